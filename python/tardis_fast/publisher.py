"""Publishing to buses from Python: `Publisher`, and `AsyncPublisher` for asyncio.

Everything per event happens in the core. Python hands over whole chunks: the larger, the better.
"""

import asyncio
import json
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeAlias

from typing_extensions import Self

from tardis_fast import _core, bus_log
from tardis_fast._core import ConfigError, EventBatches, InvalidMessageError, TardisFastError
from tardis_fast.bus_stats import (
    BusCheck,
    BusStats,
    Latency,
    Remainder,
    read_checks,
    read_remainders,
    read_stats,
)
from tardis_fast.options import (
    BronzeOptions,
    DeliveryOptions,
    KafkaOptions,
    KinesisOptions,
    LakeOptions,
    NatsOptions,
    RedisOptions,
    Settings,
    SqsOptions,
)
from tardis_fast.options.settings import NO_BUS

__all__ = [
    "AsyncPublisher",
    "BusCheck",
    "BusStats",
    "ConfigError",
    "DeliveryOptions",
    "KafkaOptions",
    "KinesisOptions",
    "LakeOptions",
    "Latency",
    "NatsOptions",
    "Publisher",
    "RedisOptions",
    "Remainder",
    "SqsOptions",
    "check_buses",
]

Messages: TypeAlias = "bytes | bytearray | memoryview | str | Iterable[Mapping[str, Any]] | Any"
"""What can be published; `Any` stands for pyarrow's types, which have none."""


class Publisher:
    """Publishes normalized messages and Bronze events to one or more buses.

    Each bus is given as its options object or a mapping of the same names; `event_bus` is Kafka in
    the spelling of tardis-machine. Making one checks all options and raises `ConfigError`; it does
    not wait for brokers, and what is published before they answer waits in memory and on disk.

    `delivery` says how; `state_dir` is where what waits on disk (unless `spill` is false) and what
    cannot be delivered is kept; processes that share it have files of their own. `source`,
    `origin`, `meta` and `book_changes` are those of `BronzeEncoder`.

    Methods may be called from several threads, not from a forked process.
    """

    def __init__(  # noqa: PLR0913 - the options, by name
        self,
        *,
        kafka: KafkaOptions | Mapping[str, Any] | None = None,
        kinesis: KinesisOptions | Mapping[str, Any] | None = None,
        sqs: SqsOptions | Mapping[str, Any] | None = None,
        nats: NatsOptions | Mapping[str, Any] | None = None,
        redis: RedisOptions | Mapping[str, Any] | None = None,
        lake: LakeOptions | Mapping[str, Any] | None = None,
        event_bus: Mapping[str, Any] | None = None,
        delivery: DeliveryOptions | Mapping[str, Any] | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        spill: bool | None = None,
        source: str | None = None,
        origin: str | None = None,
        meta: Mapping[str, str] | None = None,
        book_changes: str | None = None,
    ) -> None:
        buses = {
            "kafka": kafka,
            "kinesis": kinesis,
            "sqs": sqs,
            "nats": nats,
            "redis": redis,
            "lake": lake,
        }
        bronze = BronzeOptions(source=source, origin=origin, meta=meta, book_changes=book_changes)
        settings = Settings.of_objects(buses, event_bus=event_bus, delivery=delivery, bronze=bronze)
        self._start(settings.with_state(state_dir, spill=spill))

    @classmethod
    def of_settings(cls, settings: Settings) -> "Publisher":
        """Make a publisher from settings that are loaded already."""
        publisher = cls.__new__(cls)
        publisher._start(settings)  # noqa: SLF001 - the other way to make one
        return publisher

    def _start(self, settings: Settings) -> None:
        if not settings.buses:
            raise ConfigError(NO_BUS)
        self._buses = tuple(settings.buses)
        self._bronze = settings.bronze
        self._encoder = self._bronze.encoder()
        self._drain_seconds = settings.delivery.drain_seconds
        self._core = _core.Publisher(settings.to_core())
        self._pid = os.getpid()
        self._log = bus_log.start(self._core)
        self._abandoned = weakref.finalize(
            self, _close_abandoned, self._core, self._log, self._pid, self._drain_seconds
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._buses)})"

    def _of_this_process(self) -> "_core.Publisher":
        pid = os.getpid()
        if pid != self._pid:
            raise TardisFastError(
                f"this publisher belongs to process {self._pid} and cannot be used in its fork "
                f"{pid}; make a publisher after the fork"
            )
        return self._core

    def publish(
        self, messages: Messages, *, ingest_micros: int | None = None, case: str | None = None
    ) -> int:
        """Publish a chunk and return how many events the buses took in.

        A chunk is one of

        - normalized messages as JSON lines, `bytes` or `str`: the fast way for messages. If a line
          is none, `InvalidMessageError` names it and nothing of the chunk is published;
        - a pyarrow array or chunked array of Bronze events, what a `RowReader` made, or a record
          batch or table in Bronze columns, wide or narrow; book snapshots, grouped or not, have the
          same narrow columns, so that `case` must say which they are;
        - messages as dicts, which `json.dumps` turns into lines first: the slow way.

        Returns as soon as all of it is in memory or on disk.
        """
        core = self._of_this_process()
        if isinstance(messages, str):
            messages = messages.encode()
        if isinstance(messages, (bytes, bytearray, memoryview)):
            return core.publish_json(self._encoder, bytes(messages), ingest_micros=ingest_micros)
        if isinstance(messages, EventBatches):
            return core.publish_batches(messages)
        if _is_record_batch(messages):
            return core.publish_columns(messages, case=case)
        batches = _arrow_batches(messages, case)
        if batches is not None:
            return sum(core.publish_events(events) for events in batches)
        if isinstance(messages, Mapping) or not isinstance(messages, Iterable):
            raise TypeError(
                f"cannot publish {type(messages).__name__}; give JSON lines as bytes or str, "
                "a pyarrow array or batch, or an iterable of dicts"
            )
        return core.publish_json(self._encoder, _lines(messages), ingest_micros=ingest_micros)

    def publish_session(
        self, session: "_core.Session", *, origin: str, meta: Mapping[str, str]
    ) -> None:
        """Have a session publish its messages as it goes, each chunk before it is handed over.

        `origin` and `meta` are those of its events, unless the publisher has an origin of its own.
        """
        encoder = self._bronze.encoder(origin=origin, meta=meta)
        session.publish_to(self._of_this_process(), encoder)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until nothing waits any more; false if that took longer than `timeout` seconds."""
        return self._of_this_process().flush(timeout)

    def stats(self) -> dict[str, BusStats]:
        """Return the ledger of each bus as it is at this moment."""
        return read_stats(self._of_this_process().stats())

    def close(self, timeout: float | None = None) -> dict[str, Remainder]:
        """Deliver for at most `timeout` seconds (if not given, `drain_timeout`), spill the rest.

        Returns what is left, by bus. May be called more than once.
        """
        core = self._of_this_process()
        self._abandoned.detach()
        remainders = read_remainders(
            core.close(self._drain_seconds if timeout is None else timeout)
        )
        if threading.current_thread() is not self._log:
            self._log.join()
        return remainders

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # After an exception as well: what was accepted is delivered.
        self.close()


class AsyncPublisher:
    """`Publisher` for asyncio: the same options, the same methods, awaited.

    Each chunk is handed over in a thread, one after the other in the order of the calls; the event
    loop never waits. A `publish` that is cancelled before its turn publishes nothing; one whose
    turn has come publishes its whole chunk. Prefer chunks of many messages: a hand-over costs some
    tens of microseconds.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - those of Publisher
        self._publisher = Publisher(**options)
        # One thread, since chunks that overtake one another would break the order of keys.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tardis-fast-publish")
        self._is_closed = False

    def __repr__(self) -> str:
        return f"Async{self._publisher!r}"

    async def publish(
        self, messages: Messages, *, ingest_micros: int | None = None, case: str | None = None
    ) -> int:
        """Publish a chunk; see `Publisher.publish`."""
        if self._is_closed:
            raise TardisFastError("the publisher is closed")
        publish = self._publisher.publish
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: publish(messages, ingest_micros=ingest_micros, case=case)
        )

    async def flush(self, timeout: float | None = None) -> bool:
        """Wait until nothing waits any more; see `Publisher.flush`."""
        return await asyncio.to_thread(self._publisher.flush, timeout)

    def stats(self) -> dict[str, BusStats]:
        """Return the ledger of each bus; it waits for nothing, so it is not awaited."""
        return self._publisher.stats()

    async def close(self, timeout: float | None = None) -> dict[str, Remainder]:
        """Deliver, then spill the rest; see `Publisher.close`. Goes on when it is cancelled."""
        self._is_closed = True
        closing = asyncio.ensure_future(asyncio.to_thread(self._close, timeout))
        return await asyncio.shield(closing)

    def _close(self, timeout: float | None) -> dict[str, Remainder]:
        # Chunks whose turn has not come are part of what the caller published.
        self._thread.shutdown(wait=True)
        return self._publisher.close(timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def check_buses(settings: Settings | None = None, **options: Any) -> list[BusCheck]:  # noqa: ANN401 - those of Publisher
    """Try the connection of every bus; takes settings, or buses by name as `Publisher` does.

    Raises `ConfigError` for options that cannot be used.
    """
    if settings is None:
        event_bus, delivery = options.pop("event_bus", None), options.pop("delivery", None)
        settings = Settings.of_objects(options, event_bus=event_bus, delivery=delivery)
    if not settings.buses:
        raise ConfigError(NO_BUS)
    return read_checks(_core.check_buses(settings.to_core()))


def _close_abandoned(
    core: "_core.Publisher", log: threading.Thread, pid: int, drain_seconds: float
) -> None:
    """Close a publisher that was forgotten, when it is collected or the interpreter ends."""
    if os.getpid() != pid:
        return
    warnings.warn("a publisher was not closed", ResourceWarning, stacklevel=2)
    core.close(drain_seconds)
    # A thread that still waits in the core when the interpreter ends cannot be ended cleanly.
    if threading.current_thread() is not log:
        log.join()


def _is_record_batch(messages: object) -> bool:
    # Who has Arrow data has loaded pyarrow; others need not wait for it.
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(messages, pyarrow.RecordBatch)


def _arrow_batches(messages: object, case: str | None) -> "list[Any] | None":
    """Return the arrays of events in other Arrow data; `None` if it is something else."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None:
        return None
    if isinstance(messages, pyarrow.Array):
        return [messages]
    if isinstance(messages, pyarrow.ChunkedArray):
        return list(messages.chunks)
    if isinstance(messages, pyarrow.Table):
        return [_core.batch_to_events(batch, case=case) for batch in messages.to_batches()]
    return None


def _lines(messages: Iterable[Any]) -> bytes:
    try:
        texts = [json.dumps(message, allow_nan=False) for message in messages]
    except (TypeError, ValueError) as error:
        raise InvalidMessageError(f"a message has no JSON: {error}") from None
    return "\n".join(texts).encode()
