"""The Rust core of `tardis_fast`."""

from collections.abc import Mapping
from typing import Any, Final, Literal, final

__all__ = [
    "PAYLOAD_CASES",
    "BronzeEncoder",
    "InvalidEventError",
    "InvalidMessageError",
    "TardisFastError",
    "__version__",
    "batch_to_events",
    "bronze_schema",
    "decode_to_json",
    "events_by_case",
    "events_to_batch",
]

__version__: Final[str]
PAYLOAD_CASES: Final[tuple[str, ...]]

class TardisFastError(ValueError):
    """Base of all errors raised by tardis_fast."""

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
