"""Replaying the archive from Python: chunks for programs, messages for people, Arrow for analysis.

Everything per message happens in the core. A replay is read by one reader, once.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from typing_extensions import Self

from tardis_fast import _core
from tardis_fast.chunks import chunks, chunks_async
from tardis_fast.options import FeedOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from types import TracebackType

    import pyarrow as pa

__all__ = [
    "NormalizedReplay",
    "Progress",
    "Replay",
    "Stream",
    "clear_cache",
    "replay",
    "replay_normalized",
]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
When = str | date | datetime
"""A date, or a time to the minute; without a zone it is UTC. As text: ISO 8601."""
Made = TypeVar("Made")


@dataclass(frozen=True)
class Progress:
    """How far a replay is."""

    slices: int
    """Slices that are read."""
    slices_total: int
    """Slices of the whole range, as far as the API has said how long they are."""
    minutes: int
    """Minutes that are read."""
    minutes_total: int
    """Minutes of the whole range."""
    downloaded_bytes: int
    """Bytes that came from the API."""
    compressed_bytes: int
    """Bytes of slices that were read, from the cache or new."""
    bytes: int
    """The same, decompressed."""
    messages: int
    """Messages that were given out."""
    market_time: datetime | None
    """The time of the last message that was read."""


@dataclass(frozen=True)
class Stream:
    """One stream of a normalized replay; several are merged by the time of receipt."""

    exchange: str
    from_date: When
    to_date: When
    data_types: Sequence[str]
    symbols: Sequence[str] | None = None
    """All symbols if there are none."""
    with_disconnect_messages: bool = False
    wait_when_data_not_yet_available: bool | float = False
    """Wait for data of the last minutes instead of failing: this many behind now, true = 30."""
    auto_cleanup: bool = False
    """Remove slices from the cache once they are read."""

    def _options(self) -> dict[str, Any]:
        return _common(self) | {
            "symbols": self.symbols,
            "dataTypes": self.data_types,
            "withDisconnectMessages": self.with_disconnect_messages,
        }


class _Readings(Generic[Made]):
    """What a replay gives, one after the other, in a `for` or an `async for`."""

    def __init__(self, made: Replay, of_chunk: Any) -> None:  # noqa: ANN401 - Chunk -> items
        self._replay = made
        self._of_chunk = of_chunk

    def __iter__(self) -> Iterator[Made]:
        for chunk in chunks(self._replay._session):  # noqa: SLF001 - a part of it
            yield from self._of_chunk(chunk)

    async def __aiter__(self) -> AsyncIterator[Made]:
        async for chunk in chunks_async(self._replay._session):  # noqa: SLF001 - a part of it
            for item in self._of_chunk(chunk):
                yield item


class Replay:
    """A replay of an exchange's own messages.

    Iterate it, with `for` or `async for`, for chunks of whole lines as bytes: each line is a JSON
    object with `localTimestamp` and `message`; an empty line is a disconnect, if they were asked
    for. Closing it, or leaving its `with`, ends its work at once.
    """

    def __init__(self, session: _core.Session) -> None:
        self._session = session

    def __iter__(self) -> Iterator[bytes]:
        for chunk in chunks(self._session):
            yield chunk.lines

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in chunks_async(self._session):
            yield chunk.lines

    def messages(self) -> _Readings[dict[str, Any] | None]:
        """Give messages as dicts, in a `for` or an `async for`; a disconnect is `None`.

        For people: a program that reads much takes the chunks.
        """
        return _Readings(self, _read_lines)

    @property
    def progress(self) -> Progress:
        """How far it is."""
        values = json.loads(self._session.progress())
        reached = values.pop("market_time_us")
        market_time = None if reached is None else EPOCH + timedelta(microseconds=reached)
        return Progress(**values, market_time=market_time)

    def close(self) -> None:
        """End its work; what is not read yet is given up."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class NormalizedReplay(Replay):
    """A replay of normalized messages.

    Iterate it, with `for` or `async for`, for chunks of whole lines as bytes: each line is a
    normalized message as JSON. Closing it, or leaving its `with`, ends its work at once.
    """

    def __init__(self, session: _core.Session, encoder: _core.BronzeEncoder) -> None:
        super().__init__(session)
        self._encoder = encoder

    def events(self) -> _Readings[pa.Array]:
        """Give the Bronze events of the messages, as arrays of many; made for publishing."""
        self._session.make_events(self._encoder)
        return _Readings(self, lambda chunk: [chunk.events()])

    def record_batches(self) -> _Readings[pa.RecordBatch]:
        """Give record batches in the columns of Bronze, all types of messages in one schema.

        Made for Polars, DuckDB and the like, and for writing Parquet as it goes.
        """
        self._session.make_events(self._encoder)
        return _Readings(self, lambda chunk: [_core.events_to_batch(chunk.events())])

    def to_arrow(self) -> dict[str, pa.Table]:
        """Read it to its end: a table for each payload case, with the columns of that case."""
        import pyarrow as pa  # noqa: PLC0415 - only those who ask for Arrow need it

        self._session.make_events(self._encoder)
        batches: dict[str, list[pa.RecordBatch]] = {}
        for chunk in chunks(self._session):
            for case, batch in _core.events_by_case(chunk.events()).items():
                batches.setdefault(case, []).append(batch)
        return {case: pa.Table.from_batches(parts) for case, parts in batches.items()}


def replay(  # noqa: PLR0913 - the options of the API, by name
    exchange: str,
    from_date: When,
    to_date: When,
    filters: Sequence[Mapping[str, Any]] = (),
    *,
    with_disconnects: bool = False,
    wait_when_data_not_yet_available: bool | float = False,
    auto_cleanup: bool = False,
    feed: FeedOptions | None = None,
) -> Replay:
    """Replay an exchange's own messages from `from_date` up to, and not including, `to_date`.

    A filter is `{"channel": ..., "symbols": [...]}`; without filters everything is replayed.
    """
    options = _common(
        Stream(
            exchange,
            from_date,
            to_date,
            (),
            wait_when_data_not_yet_available=wait_when_data_not_yet_available,
            auto_cleanup=auto_cleanup,
        )
    )
    options |= {
        "filters": [dict(filter_) for filter_ in filters],
        "withDisconnects": with_disconnects,
    }
    return Replay(_core.Session.raw(json.dumps(options), archive_of(feed)))


def replay_normalized(
    *streams: Stream,
    feed: FeedOptions | None = None,
    encoder: _core.BronzeEncoder | None = None,
) -> NormalizedReplay:
    """Replay normalized messages of one or several streams, merged by the time of receipt.

    `encoder` says how the events of `events`, `record_batches` and `to_arrow` are made.
    """
    options = [stream._options() for stream in streams]  # noqa: SLF001 - of this module
    session = _core.Session.normalized(json.dumps(options), archive_of(feed))
    return NormalizedReplay(session, encoder or _core.BronzeEncoder(origin="replay"))


def clear_cache(  # noqa: PLR0913 - the parts of a path
    exchange: str | None = None,
    filters: Sequence[Mapping[str, Any]] | None = None,
    year: int | None = None,
    month: int | None = None,
    day: int | None = None,
    *,
    feed: FeedOptions | None = None,
) -> None:
    """Remove a part of the cache, or all of it; each part needs those before it."""
    filters_text = None if filters is None else json.dumps([dict(one) for one in filters])
    archive_of(feed).clear_cache(exchange, filters_text, year, month, day)


def _common(stream: Stream) -> dict[str, Any]:
    return {
        "exchange": stream.exchange,
        "from": _text(stream.from_date),
        "to": _text(stream.to_date),
        "waitWhenDataNotYetAvailable": stream.wait_when_data_not_yet_available,
        "autoCleanup": stream.auto_cleanup,
    }


def _text(when: When) -> str:
    if isinstance(when, datetime) and when.tzinfo is not None:
        when = when.astimezone(timezone.utc).replace(tzinfo=None)
    return when if isinstance(when, str) else when.isoformat()


_ARCHIVES: dict[tuple[int, str], _core.Archive] = {}
"""By process and options: connections are kept, but not across a fork."""


def archive_of(feed: FeedOptions | None) -> _core.Archive:
    """Return the archive of these options; all who use the same share its connections."""
    key = os.getpid(), json.dumps((feed or FeedOptions()).core_values())
    if key not in _ARCHIVES:
        _ARCHIVES[key] = _core.Archive(key[1])
    return _ARCHIVES[key]


def _read_lines(chunk: _core.Chunk) -> Iterator[dict[str, Any] | None]:
    for line in chunk.lines.splitlines():
        yield json.loads(line) if line else None
