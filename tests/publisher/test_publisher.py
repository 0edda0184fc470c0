"""`Publisher`, `AsyncPublisher` and `TardisMachine` on the lake, which needs no broker."""

import asyncio
import gc
import json
import logging
import os
import threading
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tardis_fast
from tardis_fast import (
    AsyncPublisher,
    ConfigError,
    InvalidMessageError,
    Publisher,
    TardisFastError,
    TardisMachine,
)

SAMPLES = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes()


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    """Return options of a publisher to a lake."""
    return {"lake": {"dir": tmp_path / "lake"}, "state_dir": tmp_path / "state"}


@pytest.fixture
def publisher(options: dict[str, Any]) -> Iterator[Publisher]:
    """Make a publisher to a lake."""
    with Publisher(**options) as made:
        yield made


def events() -> pa.BinaryArray:
    """Encode the samples."""
    return tardis_fast.BronzeEncoder().encode_json(SAMPLES)


def threads() -> set[str]:
    """Return the names of the running threads."""
    return {thread.name for thread in threading.enumerate()}


def test_everything_that_holds_messages_or_events_is_published(publisher: Publisher) -> None:
    encoded = events()
    reader = tardis_fast.RowReader("bronze", encoder=tardis_fast.BronzeEncoder())
    made, _ = reader.read(pa.record_batch([encoded], names=["event"]))
    chunks: list[Any] = [
        SAMPLES,
        bytearray(SAMPLES),
        SAMPLES.decode(),
        (json.loads(line) for line in SAMPLES.splitlines()),
        encoded,
        encoded.cast(pa.large_binary()),
        pa.chunked_array([encoded.slice(0, 5), encoded.slice(5)]),
        tardis_fast.events_to_batch(encoded),
        pa.Table.from_batches([tardis_fast.events_to_batch(encoded)]),
        made,
    ]
    assert [publisher.publish(chunk) for chunk in chunks] == [len(encoded)] * len(chunks)
    assert publisher.publish(b"") == publisher.publish([]) == 0
    assert publisher.flush()
    stats = publisher.stats()["lake"]
    assert stats.acknowledged == stats.accepted == len(encoded) * len(chunks)
    assert stats.is_balanced
    assert sum(stats.latency.buckets) == stats.acknowledged


def test_narrow_batches_are_published_by_case(publisher: Publisher) -> None:
    for case, batch in tardis_fast.events_by_case(events()).items():
        assert publisher.publish(batch, case=case) == batch.num_rows
    assert publisher.stats()["lake"].accepted == len(events())


def test_what_is_no_message_is_refused_whole(publisher: Publisher) -> None:
    with pytest.raises(InvalidMessageError, match=r"^line 30: "):
        publisher.publish(SAMPLES + b"\n{")
    with pytest.raises(InvalidMessageError, match=r"^a message has no JSON: "):
        publisher.publish([{"type": "trade", "price": float("nan")}])
    for other in ({"type": "trade"}, 5, None):
        with pytest.raises(TypeError, match=r"^cannot publish "):
            publisher.publish(other)
    assert publisher.stats()["lake"].accepted == 0


def test_closing_says_what_is_left_and_ends_the_thread(options: dict[str, Any]) -> None:
    before = threads()
    publisher = Publisher(**options)
    assert threads() > before
    publisher.publish(SAMPLES)
    assert publisher.close()["lake"].left == 0
    assert publisher.close()["lake"].left == 0
    assert threads() == before
    with pytest.raises(TardisFastError, match="closed"):
        publisher.publish(SAMPLES)


def test_what_was_accepted_before_an_exception_is_delivered(options: dict[str, Any]) -> None:
    publisher = Publisher(**options)

    def fail() -> None:
        with publisher:
            publisher.publish(SAMPLES)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert publisher.stats()["lake"].acknowledged == len(events())


def test_a_forgotten_publisher_is_closed(options: dict[str, Any]) -> None:
    before = threads()
    forgotten = [Publisher(**options)]
    with pytest.warns(ResourceWarning, match="a publisher was not closed"):
        forgotten.clear()
    gc.collect()
    assert threads() == before


def test_notices_become_log_records(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tardis_fast")
    with Publisher(**options) as publisher:
        publisher.publish(SAMPLES)
    records = [record for record in caplog.records if record.name == "tardis_fast.bus.lake"]
    kinds = {getattr(record, "event_kind", None) for record in records}
    assert "connected" in kinds
    assert all(isinstance(getattr(record, "fields", None), dict) for record in records)
    assert {getattr(record, "bus", None) for record in records} == {"lake"}
    assert max(record.levelno for record in records) == logging.INFO


def test_a_fork_cannot_use_it(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getpid()
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: owner + 1)
        for use in (
            publisher.stats,
            publisher.flush,
            publisher.close,
            lambda: publisher.publish(""),
        ):
            with pytest.raises(TardisFastError, match=f"belongs to process {owner}"):
                use()


def test_a_fork_makes_a_publisher_of_its_own(publisher: Publisher, tmp_path: Path) -> None:
    publisher.publish(SAMPLES)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with Publisher(lake={"dir": tmp_path / "child"}, state_dir=tmp_path / "state") as own:
                own.publish(SAMPLES)
                flushed = own.flush(60)
            if flushed and own.stats()["lake"].acknowledged == len(events()):
                status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert publisher.flush(60)
    assert publisher.stats()["lake"].acknowledged == len(events())


def test_without_a_bus_there_is_nothing_to_publish_to() -> None:
    with pytest.raises(ConfigError, match=r"^no bus is configured; give the options of at least"):
        Publisher()


def test_options_of_the_encoder_are_used_and_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="origin is `past`"):
        Publisher(**options, origin="past")
    with Publisher(**options, source="me", meta={"run": "1"}, book_changes="message") as publisher:
        assert publisher.publish(SAMPLES) == SAMPLES.count(b"\n")
        assert repr(publisher) == "Publisher(lake)"


def test_the_buses_can_be_checked(options: dict[str, Any]) -> None:
    checks = tardis_fast.check_buses(lake=options["lake"])
    assert [(check.bus, check.ok, check.error) for check in checks] == [("lake", True, None)]
    with pytest.raises(ConfigError, match=r"^no bus is configured"):
        tardis_fast.check_buses()


def test_asyncio(options: dict[str, Any]) -> None:
    async def run() -> None:
        async with AsyncPublisher(**options) as publisher:
            counts = await asyncio.gather(*(publisher.publish(SAMPLES) for _ in range(5)))
            assert counts == [len(events())] * 5
            assert await publisher.flush(10)
            assert publisher.stats()["lake"].acknowledged == sum(counts)
        with pytest.raises(TardisFastError, match="closed"):
            await publisher.publish(SAMPLES)

    before = threads()
    asyncio.run(run())
    assert threads() == before


def test_a_cancelled_call_publishes_all_or_nothing(options: dict[str, Any]) -> None:
    async def run() -> int:
        async with AsyncPublisher(**options) as publisher:
            calls = [asyncio.ensure_future(publisher.publish(SAMPLES)) for _ in range(20)]
            await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await publisher.publish(SAMPLES)
        return publisher.stats()["lake"].acknowledged

    acknowledged = asyncio.run(run())
    assert acknowledged >= len(events())
    assert acknowledged % len(events()) == 0


def test_a_machine_without_buses_starts_nothing() -> None:
    before = threads()
    with TardisMachine() as machine:
        assert machine.publisher is None
        assert threads() == before
    with pytest.raises(ConfigError, match="did you mean `max_block_ms`"):
        TardisMachine(max_block="1")


def test_a_machine_owns_its_publisher(options: dict[str, Any]) -> None:
    with TardisMachine(**options, max_memory_mb=16) as machine:
        assert machine.publisher is not None
        machine.publisher.publish(SAMPLES)
    with pytest.raises(TardisFastError, match="closed"):
        machine.publisher.publish(SAMPLES)
    with pytest.raises(ConfigError, match=r"^event_bus: it contradicts kafka: "):
        TardisMachine(event_bus={}, kafka={})
