"""Backfills go on where they stopped, and give the table and the buses what the archive has."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from spark.jobs import rows_of
from tardis_fast import BronzeEncoder, FeedOptions, SampleMarket, Stream, replay_normalized
from tardis_fast.options import Settings
from tardis_fast.sample_api import SampleApiThread
from tardis_fast.spark import backfill
from tardis_fast.spark.backfill import BackfillOptions, Unit, run_backfill
from tardis_fast.spark.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FROM, TO = "2020-01-31T23:59", "2020-02-01T00:02"


class StoppedError(Exception):
    """Stands for whatever ends a job."""


@pytest.fixture(scope="module")
def api() -> Iterator[SampleApiThread]:
    """Serve a quiet sample market."""
    with SampleApiThread(SampleMarket(messages_per_second=2, book_levels=3)) as served:
        yield served


def test_a_backfill_goes_on_where_it_stopped(
    spark: SparkSession, api: SampleApiThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(spark, str(tmp_path / "tables"))
    feed = {"endpoint": api.endpoint, "cache_dir": str(tmp_path / "cache")}
    options = BackfillOptions(
        exchanges=["bitmex"],
        data_types=["trade"],
        symbols=["XBTUSD"],
        from_date=datetime.fromisoformat(FROM),
        to_date=datetime.fromisoformat(TO),
        settings=Settings.of_objects({"lake": {"dir": str(tmp_path / "lake")}}),
        feed=feed,
    )

    def stop(_unit: Unit, _events: int | None) -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        run_backfill(tables, options, stop)
    # The second unit is written, but the job ends before it can say so.
    recorded = backfill._record  # noqa: SLF001 - what is cut off
    monkeypatch.setattr(backfill, "_record", lambda *_: stop(*_[:2]))
    with pytest.raises(StoppedError):
        run_backfill(tables, options)
    monkeypatch.setattr(backfill, "_record", recorded)

    reports: list[tuple[str, int | None]] = []
    run_backfill(tables, options, lambda unit, events: reports.append((unit.from_date, events)))
    assert [day for day, _ in reports] == [FROM, "2020-02-01T00:00"]
    assert reports[0][1] is None
    assert reports[1][1] is not None
    expected = archive(feed)
    found = rows_of(tables, "bronze/events", "event_seq", "session", "local_ts", "origin")
    assert len(found) == len(set(found)) == expected
    assert {row["origin"] for row in found} == {"ORIGIN_ARCHIVE"}
    assert spark.read.parquet(str(tmp_path / "lake")).count() == expected
    done = rows_of(tables, "bronze/backfills", "from_date", "destination", "events")
    assert [row["destination"] for row in done] == ["buses", "table", "buses", "table"]
    assert sum(row["events"] for row in done) == 2 * expected


def archive(feed: dict[str, str]) -> int:
    """Return how many events the range has, from a plain replay of each of its days."""
    count = 0
    for start, end in ((FROM, "2020-02-01"), ("2020-02-01", TO)):
        stream = Stream("bitmex", start, end, ["trade"], ["XBTUSD"])
        lines = b"".join(replay_normalized(stream, feed=FeedOptions(**feed)))  # type: ignore[arg-type] # all of these are texts
        count += len(BronzeEncoder().encode_json(lines))
    return count
