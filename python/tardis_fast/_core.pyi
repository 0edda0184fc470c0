"""The Rust core of `tardis_fast`."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, final

__all__ = [
    "PAYLOAD_CASES",
    "Archive",
    "Bell",
    "BronzeEncoder",
    "Chunk",
    "Computer",
    "ConfigError",
    "DeadLetterReader",
    "EventBatches",
    "InvalidEventError",
    "InvalidMessageError",
    "Publisher",
    "ReplayError",
    "RowReader",
    "SampleMarket",
    "SampleStream",
    "Session",
    "TardisFastError",
    "__version__",
    "batch_to_events",
    "bronze_schema",
    "can_subscribe",
    "check_buses",
    "check_options",
    "dataset_columns",
    "decode_to_json",
    "event_keys",
    "events_by_case",
    "events_to_batch",
    "events_to_checked_batch",
    "subscribed_filters",
]

__version__: Final[str]
PAYLOAD_CASES: Final[tuple[str, ...]]

class TardisFastError(ValueError):
    """Base of all errors raised by tardis_fast."""

class ConfigError(TardisFastError):
    """A setting cannot be used."""

class ReplayError(TardisFastError):
    """A replay ended early.

    `status` is the HTTP status of the Tardis API if it refused, else None.
    """

    status: int | None

class InvalidMessageError(TardisFastError):
    """A text is not a normalized message."""

class InvalidEventError(TardisFastError):
    """Bytes are no Bronze event, or a batch has other columns than Bronze."""

@final
class BronzeEncoder:
    """Encodes the messages of one session into Bronze events."""

    def __new__(
        cls,
        *,
        source: str = "tardis-fast",
        origin: Literal["unspecified", "realtime", "replay", "archive"] = "unspecified",
        meta: Mapping[str, str] | None = None,
        book_changes: Literal["level", "message"] = "level",
        first_seq: int = 1,
    ) -> BronzeEncoder: ...
    @property
    def next_seq(self) -> int:
        """`event_seq` of the next event."""

    def encode_json(self, lines: bytes, *, ingest_micros: int | None = None) -> Any:
        """Encode normalized messages, one JSON object a line, into a `pyarrow.BinaryArray`.

        All or nothing: if a line is no message, none is encoded and no number is used up.
        """

def decode_to_json(events: Any, *, per_event: bool = False) -> bytes:
    """Decode Bronze events into normalized messages, one JSON object a line.

    Book changes that were published a level at a time are put together again; with `per_event`
    each event is a line of its own.
    """

def events_to_batch(events: Any, *, case: str | None = None) -> Any:
    """Return the record batch of `events`: wide, or narrow if a payload case is given."""

def events_by_case(events: Any) -> dict[str, Any]:
    """Return the narrow record batches of `events`, by the name of their payload case."""

def batch_to_events(batch: Any, *, case: str | None = None) -> Any:
    """Return the events of a wide or narrow record batch, as a `pyarrow.BinaryArray`.

    A narrow batch is recognised by its columns unless its payload case is given.
    """

def bronze_schema(case: str | None = None) -> Any:
    """Return the schema of wide batches, or of the narrow ones of a payload case."""

def events_to_checked_batch(events: Any, *, case: str | None = None) -> tuple[Any, Any]:
    """Return the record batch of `events`, row by row, and an array of what is wrong with each.

    A row that is null, cannot be decoded, or is of another payload case than asked for, is null in
    all columns; for the others the reason is null.
    """

def event_keys(events: Any) -> Any:
    """Return exchange, symbol and payload case of each event, as a record batch of texts."""

def dataset_columns() -> dict[str, list[str]]:
    """Return the columns of each downloadable dataset, by its name."""

@final
class EventBatches:
    """Encoded events, as `Publisher.publish` takes them without reading them again."""

    def __len__(self) -> int:
        """Return how many they are."""

    def to_arrow(self) -> Any:
        """Return them as one pyarrow array of binary type."""

@final
class RowReader:
    """Makes events from rows, and says which rows do not fit.

    `form` is `bronze` (a column of events), `json` (a column of normalized messages), `columns` (of
    Bronze: wide, or narrow if `kind` is a payload case) or `csv` (the dataset `kind`, all as
    text).
    """

    def __new__(
        cls,
        form: str,
        kind: str | None = None,
        *,
        encoder: BronzeEncoder,
        max_event_bytes: int = 1_048_576,
    ) -> RowReader: ...
    def read(self, batch: Any, *, ingest_micros: int | None = None) -> tuple[EventBatches, Any]:
        """Return the events of the rows, and a record batch of `row` and `reason` of the others.

        The last book change of a dataset waits: the next rows may belong to it.
        """

    def finish(self, *, ingest_micros: int | None = None) -> tuple[EventBatches, Any]:
        """Return the events of what waited for more rows."""

@final
class Publisher:
    """Sends Bronze events to buses; `tardis_fast.publisher` wraps it for users.

    Calls from several threads are fine. After `close` all but `stats`, `close` and `take_notices`
    raise `TardisFastError`.
    """

    def __new__(cls, options: str) -> Publisher:
        """Check `options`, the JSON text of all buses and of delivery, and start.

        Raises `ConfigError` before anything is connected; no broker is waited for.
        """

    def publish_json(
        self, encoder: BronzeEncoder, lines: bytes, *, ingest_micros: int | None = None
    ) -> int:
        """Encode messages, one JSON object a line, and return how many events were taken.

        Waits at most `max_block_ms` for room in memory, then spills. If a line is no message,
        `InvalidMessageError` is raised and no event is taken.
        """

    def publish_events(self, events: Any) -> int:
        """Take encoded events, a pyarrow array of binary type, and return how many were taken."""

    def publish_batches(self, events: EventBatches) -> int:
        """Take the events that a `RowReader` made, and return how many were taken."""

    def publish_columns(self, batch: Any, *, case: str | None = None) -> int:
        """Take a record batch in Bronze columns, and return how many events were taken."""

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until no event waits any more; `False` after `timeout` seconds."""

    def stats(self) -> str:
        """Return the ledger of every bus, a JSON object by the name of the bus."""

    def close(self, timeout: float) -> str:
        """Take nothing more, deliver for at most `timeout` seconds, then spill the rest.

        Returns what is left and where, a JSON object by the name of the bus. May be called again.
        """

    def take_notices(
        self, timeout: float
    ) -> list[tuple[int, str, str, str, dict[str, str]]] | None:
        """Take what operators should know: logging level, bus, kind, message, fields.

        Waits at most `timeout` seconds for a notice; `None` once closed and empty.
        """

@final
class DeadLetterReader:
    """The events of a dead-letter file or spill segment, as `pyarrow.RecordBatch`es.

    Their columns are `reason`, `payload_case` and `event`; the reason of spilled events is empty.
    An end that cannot be read raises `InvalidEventError` after everything before it was given.
    """

    def __new__(cls, path: str | PathLike[str]) -> DeadLetterReader: ...
    def __iter__(self) -> DeadLetterReader: ...
    def __next__(self) -> Any: ...

def check_options(options: str) -> None:
    """Raise `ConfigError` if `options`, those of `Publisher`, are wrong; nothing is connected."""

def check_buses(options: str) -> str:
    """Check `options` and try every connection; returns a JSON list with an object per bus."""

@final
class Computer:
    """Computes data types from normalized messages."""

    def __new__(cls, data_types: Sequence[str]) -> Computer: ...
    def feed(self, lines: bytes) -> bytes:
        """Take messages, one JSON object a line; return them with what they complete.

        Each computed message stands behind the message that completes it.
        """

@final
class Chunk:
    """A piece of a replay's output."""

    @property
    def lines(self) -> bytes:
        """Whole lines, each with its newline, or whole frames."""

    @property
    def messages(self) -> int:
        """How many there are."""

    @property
    def connection(self) -> int:
        """Which connection of a synchronised replay it is for."""

    def events(self) -> Any:
        """Return the events of the same messages, as a `pyarrow.BinaryArray`."""

@final
class Archive:
    """The archive: where replays get their data. Replays of one archive share their connections."""

    def __new__(cls, options: str) -> Archive: ...
    def clear_cache(
        self,
        exchange: str | None = None,
        filters: str | None = None,
        year: int | None = None,
        month: int | None = None,
        day: int | None = None,
    ) -> None:
        """Remove a part of the cache, or all of it.

        Filters are JSON, and each part needs those before it.
        """

@final
class Bell:
    """What sessions ring, from any thread, when it is worth asking them again."""

    def __new__(cls) -> Bell: ...
    def fileno(self) -> int:
        """Return what an event loop watches: it can be read once the bell was rung."""

    def take(self) -> list[int]:
        """Return the numbers that rang since the last call."""

@final
class Session:
    """A replay or a live stream."""

    @staticmethod
    def raw(options: str, archive: Archive) -> Session:
        """Replay an exchange's own messages."""

    @staticmethod
    def normalized(options: str, archive: Archive, *, frames: bool = False) -> Session:
        """Replay normalized messages, as lines or as WebSocket frames."""

    @staticmethod
    def synchronised(connections: Sequence[tuple[str, str, str, str]], archive: Archive) -> Session:
        """Replay exchanges' own messages to several connections in step.

        Each is an exchange, a beginning, an end and filters as JSON; chunks are WebSocket frames
        for one of them.
        """

    @staticmethod
    def live(
        options: str, *, frames: bool = False, variables: Mapping[str, str] | None = None
    ) -> Session:
        """Give normalized messages as exchanges send them.

        Variables such as `WSS_URL_BITMEX` beat those of the environment.
        """

    def leave(self, connection: int) -> None:
        """Go on without a connection of a synchronised replay."""

    def make_events(self, encoder: BronzeEncoder) -> None:
        """Have chunks hold events too, as `encoder` makes them; before the first chunk only."""

    def publish_to(self, publisher: Publisher, encoder: BronzeEncoder) -> None:
        """Have the events of each chunk published before it is handed over.

        They are made as `encoder` makes them; before the first chunk only.
        """

    def next_chunk(self) -> Chunk | None:
        """Wait for the next chunk; `None` at the end."""

    def try_chunk(self, bell: Bell, number: int) -> tuple[bool, Chunk | None]:
        """Return whether a chunk, or the end, is there, and the chunk.

        If not, `bell` is rung with `number`, once, when it is worth asking again.
        """

    def progress(self) -> str:
        """Return how far it is, as JSON."""

    def close(self) -> None:
        """End its work; what is not read yet is given up."""

def can_subscribe(exchange: str) -> bool:
    """Say whether subscriptions to an exchange are understood."""

def subscribed_filters(exchange: str, message: str) -> str | None:
    """Return what a client's message asks for, as JSON filters; `None` if it is no subscription.

    Raises `ConfigError` if it is one that is not understood.
    """

@final
class SampleMarket:
    """A made-up market, the same each time for the same options."""

    def __new__(
        cls,
        *,
        seed: int | None = None,
        messages_per_second: int | None = None,
        book_levels: int | None = None,
    ) -> SampleMarket: ...
    @staticmethod
    def exchanges() -> list[str]:
        """Return the exchanges that it has."""

    def slice(
        self,
        exchange: str,
        from_: str,
        offset: int,
        minutes: int,
        filters: str,
        compression: str,
    ) -> bytes:
        """Return the compressed lines of some minutes, beginning `offset` minutes after `from_`."""

    def connect(self, exchange: str, now: int) -> SampleStream:
        """Connect to an exchange, live, at `now`, in microseconds since 1970."""

    def state(self, exchange: str, now: int, filters: str) -> bytes:
        """Return what an exchange answers over HTTP at `now` for `filters`, as JSON; or nothing."""

@final
class SampleStream:
    """A live connection to an exchange of the sample market."""

    def subscribe(self, filters: str) -> bytes:
        """Subscribe, and return the snapshots that follow as WebSocket frames."""

    def frames(self, now: int) -> bytes:
        """Return all messages since the last time, up to `now`, as WebSocket frames."""
