"""Events in the embedded lake, read with pyarrow."""

from __future__ import annotations

import os
import resource
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from bus.lake.lake_table import events, files
from bus.sample_events import case_of, publish_samples, sample_data
from bus.trades import in_order, numbers_by_symbol, reasons, trade, trades
from tardis_fast import (
    PAYLOAD_CASES,
    ConfigError,
    Publisher,
    bronze_schema,
    check_buses,
)
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from tardis_fast.publisher import BusStats

PATIENCE = 60
DATE = "date=2024-03-01"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Name a directory for the table."""
    return tmp_path / "lake"


def options(table: Path, **more: Any) -> dict[str, Any]:
    return {"dir": str(table), **more}


def numbers(table: Path) -> dict[str, list[int]]:
    return numbers_by_symbol(data for some in events(table, "trade").values() for data in some)


def partition_of(data: bytes) -> str:
    event = NormalizedEvent.FromString(data)
    return f"payload_case={case_of(event)}/date={event.local_ts.ToDatetime().date()}"


def publish(lake: dict[str, Any], state_dir: Path, lines: bytes) -> BusStats:
    with Publisher(lake=lake, state_dir=state_dir) as publisher:
        publisher.publish(lines)
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["lake"]
    assert stats.is_balanced
    return stats


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what needs no more than time."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("include", [PAYLOAD_CASES, ("trade", "quote", "disconnect")])
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_every_case_comes_back_byte_for_byte(
    table: Path, tmp_path: Path, include: Collection[str], compression: str
) -> None:
    lake = options(table, include_payloads=list(include), compression=compression)
    with Publisher(lake=lake, state_dir=tmp_path / "state") as publisher:
        publish_samples(publisher, PATIENCE)
        stats = publisher.stats()["lake"]
    expected: defaultdict[str, list[bytes]] = defaultdict(list)
    for data in sample_data(include):
        expected[partition_of(data)].append(data)
    assert set(expected) == {f"payload_case={case}/{DATE}" for case in include}
    assert events(table) == expected
    assert stats.acknowledged == stats.accepted == sum(map(len, expected.values()))
    for file in files(table):
        of_file = pq.ParquetFile(file)
        case = file.parent.parent.name.removeprefix("payload_case=")
        assert of_file.schema_arrow.equals(bronze_schema(case))
        codec = of_file.metadata.row_group(0).column(0).compression
        assert codec == {"zstd": "ZSTD", "none": "UNCOMPRESSED"}[compression]
    assert list((table / "_temporary").iterdir()) == []


def test_readers_see_one_table_with_typed_columns(table: Path, tmp_path: Path) -> None:
    days = [f"2024-03-0{day}T00:00:01.200Z" for day in (1, 2, 2, 3)]
    lines = [trade("S", number, localTimestamp=day) for number, day in enumerate(days)]
    publish(options(table), tmp_path, b"".join(lines))
    partitions = sorted(file.parent.name for file in files(table))
    assert partitions == [f"date=2024-03-0{day}" for day in (1, 2, 3)]
    whole = ds.dataset(table / "payload_case=trade", partitioning="hive")
    assert set(whole.schema.names) == {*bronze_schema("trade").names, "date"}
    for column in bronze_schema("trade"):
        assert whole.schema.field(column.name).type == column.type
    assert pa.types.is_timestamp(whole.schema.field("local_ts").type)
    rows = whole.to_table(filter=ds.field("date") == "2024-03-02", columns=["exchange", "symbol"])
    assert rows.to_pylist() == [{"exchange": "bitmex", "symbol": "S"}] * 2
    # And all cases together, each with the columns that it shares with the others.
    every = ds.dataset(table, partitioning="hive")
    assert {"payload_case", "date"} <= set(every.schema.names)
    assert every.count_rows() == 4


def test_a_file_is_complete_when_it_is_large(table: Path, tmp_path: Path) -> None:
    lake = options(table, roll_mb=1, roll_seconds=3_600)
    lines = trades(symbols=10, each=3_000)
    with Publisher(lake=lake, state_dir=tmp_path) as publisher:
        publisher.publish(lines)
        accepted_bytes = publisher.stats()["lake"].accepted_bytes
        complete = accepted_bytes // (1 << 20)
        assert complete >= 2
        # Nobody asks for the rest, which waits for company.
        wait_until(lambda: len(files(table)) >= complete)
        stats = publisher.stats()["lake"]
        assert 0 < stats.waiting < 30_000
        assert publisher.flush(PATIENCE)
        assert len(files(table)) >= complete + 1
    assert numbers(table) == in_order(10, 3_000)


def test_a_file_is_complete_when_its_time_is_over(table: Path, tmp_path: Path) -> None:
    with Publisher(lake=options(table, roll_seconds=1), state_dir=tmp_path) as publisher:
        for count in (1, 2):
            publisher.publish(trade("S", count))
            # Nobody asks for it, so it is written when its time has come.
            wait_until(lambda: publisher.stats()["lake"].waiting == 0)
            assert len(files(table)) == count
    assert numbers(table) == {"S": [1, 2]}


def test_closing_completes_files(table: Path, tmp_path: Path) -> None:
    publisher = Publisher(lake=options(table, roll_seconds=3_600), state_dir=tmp_path)
    publisher.publish(trades(symbols=3, each=10))
    assert publisher.close(PATIENCE)["lake"].left == 0
    assert numbers(table) == in_order(3, 10)
    assert len(files(table)) == 1


def test_what_a_killed_process_left_is_not_seen_and_removed_later(
    table: Path, tmp_path: Path
) -> None:
    publish(options(table), tmp_path / "before", trade("S", 1))
    (whole,) = files(table)
    temporary = table / "_temporary"
    half = whole.read_bytes()[:100]
    old, young = temporary / "part-old.parquet", temporary / "part-young.parquet"
    for file in (old, young):
        file.write_bytes(half)
    long_ago = time.time() - 2 * 3_600
    os.utime(old, (long_ago, long_ago))
    assert ds.dataset(table, partitioning="hive").count_rows() == 1
    publish(options(table), tmp_path / "after", trade("S", 2))
    # The young one may be another process's, at this moment.
    assert list(temporary.iterdir()) == [young]
    assert ds.dataset(table, partitioning="hive").count_rows() == 2
    assert numbers(table) == {"S": [1, 2]}


def test_two_publishers_share_a_table(table: Path, tmp_path: Path) -> None:
    first = Publisher(lake=options(table), state_dir=tmp_path / "first")
    second = Publisher(lake=options(table), state_dir=tmp_path / "second")
    for publisher, symbol in ((first, "A"), (second, "B")):
        publisher.publish(b"".join(trade(symbol, number) for number in range(10)))
    for publisher in (first, second):
        assert publisher.close(PATIENCE)["lake"].left == 0
    assert numbers(table) == {"A": list(range(10)), "B": list(range(10))}


def test_a_full_disk_is_waited_for(table: Path, tmp_path: Path) -> None:
    lake = options(table, compression="none")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Publisher(lake=lake, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 0))
        assert publisher.flush(PATIENCE)
        try:
            # No file of this process may grow beyond it, as if there were no room.
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
            publisher.publish(trades(symbols=5, each=400))
            assert not publisher.flush(1)
            stats = publisher.stats()["lake"]
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (stats.acknowledged, stats.dead_lettered, stats.is_balanced) == (1, 0, True)
        assert "too large" in str(stats.last_error)
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["lake"]
    assert (stats.acknowledged, stats.dead_lettered) == (2_001, 0)
    assert numbers(table) == {"S": [0], **in_order(5, 400)}
    assert list((table / "_temporary").iterdir()) == []


def test_a_partition_that_cannot_be_written_stops_no_other(table: Path, tmp_path: Path) -> None:
    table.mkdir()
    (table / "payload_case=liquidation").write_text("no directory")
    lines = trade("S", 1, type="liquidation") + trades(symbols=3, each=10)
    stats = publish(options(table), tmp_path, lines)
    assert (stats.acknowledged, stats.dead_lettered) == (30, 1)
    (reason,) = reasons(stats)
    assert "Not a directory" in reason or "File exists" in reason
    assert numbers(table) == in_order(3, 10)
    assert list((table / "_temporary").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_said(table: Path, tmp_path: Path) -> None:
    table.write_text("no directory")
    lake = options(table / "below")
    stats = publish(lake, tmp_path / "state", trades(symbols=3, each=1))
    assert (stats.acknowledged, stats.dead_lettered, stats.connected) == (0, 3, False)
    (reason,) = set(reasons(stats))
    assert reason.startswith(f"cannot write to {table / 'below'}: Not a directory")
    (check,) = check_buses(lake=lake)
    assert (check.bus, check.ok, check.peer, check.error) == ("lake", False, None, reason)


def test_checking_tells_where_the_table_is(table: Path) -> None:
    (check,) = check_buses(lake=options(table))
    assert (check.bus, check.ok, check.peer) == ("lake", True, str(table))
    assert (check.warnings, check.error) == ((), None)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"dir": None}, "--lake-dir: it is missing"),
        ({"include_payloads": "trades"}, "--lake-include-payloads: unknown payload case"),
        ({"compression": "rar"}, "--lake-compression: `rar` is no compression"),
        ({"roll_mb": 0}, "--lake-roll-mb: "),
        ({"roll_mb": 100}, "--lake-roll-mb: it contradicts --max-memory-mb"),
        ({"roll_seconds": 3_601}, "--lake-roll-seconds: 3601 is out of range; give 0 to 3600"),
    ],
)
def test_wrong_options_are_refused_at_start(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    given = options(tmp_path / "lake") | wrong
    lake = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigError) as refusal:
        Publisher(lake=lake, state_dir=tmp_path)
    assert text in str(refusal.value)
    assert not (tmp_path / "lake").exists()
