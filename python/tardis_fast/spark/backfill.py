"""A range of the archive into the Bronze table and to buses, unit by unit, each of them once.

A unit is one data type of one exchange on one day, for the symbols asked for. It is replayed by
Spark's executors, and recorded in `bronze/backfills` after its data is where it should be: a run
that was stopped goes on with the units that are not recorded. A unit that was written and not
recorded is not written again to the table; to a bus it may be, as all that is published.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, time, timedelta, timezone
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from tardis_fast._core import ConfigError, TardisFastError
from tardis_fast.spark.bronze import BRONZE, QUARANTINE, bronze_table, write_batch
from tardis_fast.spark.encoding import encode_bronze
from tardis_fast.spark.envelopes import with_envelope
from tardis_fast.spark.publishing import publish
from tardis_fast.spark.registering import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tardis_fast.options import Settings
    from tardis_fast.spark.tables import Table, Tables

BACKFILLS = "bronze/backfills"
TABLE, BUSES = "table", "buses"


@dataclass(frozen=True)
class BackfillOptions:
    """What is replayed, and where it goes."""

    exchanges: Sequence[str]
    data_types: Sequence[str]
    from_date: datetime
    to_date: datetime
    """Not included."""
    symbols: Sequence[str] = ()
    """All if there are none."""
    to_table: bool = True
    settings: Settings | None = None
    """Of the buses to publish to, if any."""
    feed: Mapping[str, str] = field(default_factory=dict)
    """Further options of `format("tardis")`: `endpoint`, `api_key`, `cache_dir`, …"""
    run: str = "backfill"
    """Units of a run of another name are done again."""


@dataclass(frozen=True)
class Unit:
    """What is done, or not, as a whole."""

    run: str
    exchange: str
    symbols: str
    data_type: str
    from_date: str
    to_date: str

    @property
    def key(self) -> str:
        """A short name, the same for the same unit."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return f"{self.exchange} {self.data_type} {self.from_date} to {self.to_date}"


def units(options: BackfillOptions) -> Iterator[Unit]:
    """Return the units of a range, day by day."""
    start = _utc(options.from_date)
    end = _utc(options.to_date)
    if start >= end:
        raise ConfigError(f"from ({start:%Y-%m-%d %H:%M}) is not before to ({end:%Y-%m-%d %H:%M})")
    while start < end:
        midnight = datetime.combine(start.date() + timedelta(1), time(), timezone.utc)
        stop = min(midnight, end)
        for exchange in options.exchanges:
            for data_type in options.data_types:
                symbols = ",".join(sorted(options.symbols))
                dates = (f"{when:%Y-%m-%dT%H:%M}" for when in (start, stop))
                yield Unit(options.run, exchange, symbols, data_type, *dates)
        start = stop


def run_backfill(
    tables: Tables,
    options: BackfillOptions,
    report: Callable[[Unit, int | None], None] | None = None,
) -> None:
    """Do the units that are not done; `report` gets each with its events, `None` if it was done."""
    wanted = [TABLE] * options.to_table + [BUSES] * (options.settings is not None)
    if not wanted:
        raise ConfigError("nothing to fill: neither the table nor a bus is asked for")
    register(tables.spark)
    backfills = tables.table(BACKFILLS, ())
    done = _done(backfills)
    for unit in units(options):
        missing = [name for name in wanted if (unit.key, name) not in done]
        events = _fill(tables, backfills, unit, missing, options) if missing else None
        if report is not None:
            report(unit, events)


def _done(backfills: Table) -> set[tuple[str, str]]:
    if not backfills.exists:
        return set()
    rows = backfills.read().select("unit", "destination").collect()
    return {(row["unit"], row["destination"]) for row in rows}


def _fill(
    tables: Tables, backfills: Table, unit: Unit, missing: Sequence[str], options: BackfillOptions
) -> int:
    rows = replay(tables.spark, unit, options.feed)
    events = encode_bronze(rows, input=_form(unit.data_type)).select("event")
    count = 0
    if TABLE in missing:
        counts = write_batch(tables, with_envelope(events), f"backfill-{unit.key}", 0)
        if counts[QUARANTINE]:
            raise TardisFastError(f"{unit}: {counts[QUARANTINE]} events of it are in quarantine")
        count = counts[BRONZE]
        _record(backfills, unit, TABLE, count)
    if BUSES in missing:
        if options.to_table and bronze_table(tables).exists:
            # What the table has, to the byte.
            batch = f.col("batch").startswith(f"backfill-{unit.key}-")
            rows = bronze_table(tables).read().where(f.col("exchange") == unit.exchange)
            events = rows.where(batch).select("event")
        ledger = publish(events, settings=options.settings)
        count = max((row["acknowledged"] for row in _by_bus(ledger)), default=0)
        _record(backfills, unit, BUSES, count)
    return count


def replay(spark: SparkSession, unit: Unit, feed: Mapping[str, str]) -> DataFrame:
    """Return the rows of a unit, from the archive."""
    reader = spark.read.format("tardis").options(**{"origin": "archive", **feed})
    reader = reader.option("exchange", unit.exchange).option("data_types", unit.data_type)
    reader = reader.option("from", unit.from_date).option("to", unit.to_date)
    if unit.symbols:
        reader = reader.option("symbols", unit.symbols)
    return reader.load()


def _by_bus(ledger: DataFrame) -> list[Mapping[str, int]]:
    sums = ledger.groupBy("bus").agg(f.sum("acknowledged").alias("acknowledged"))
    return [row.asDict() for row in sums.collect()]


def _form(data_type: str) -> str:
    """Return how rows are named; grouped snapshots have the columns of the others."""
    if not data_type.startswith("book_snapshot"):
        return "auto"
    return "narrow:groupedBookSnapshot" if "_grouped" in data_type else "narrow:bookSnapshot"


def _record(backfills: Table, unit: Unit, destination: str, events: int) -> None:
    schema = (
        "unit string, destination string, run string, exchange string, symbols string, "
        "data_type string, from_date string, to_date string, events bigint, finished timestamp"
    )
    values = (unit.key, destination, *asdict(unit).values(), events, datetime.now(timezone.utc))
    frame = backfills.tables.spark.createDataFrame([values], schema)
    backfills.append(frame.coalesce(1))


def _utc(when: datetime) -> datetime:
    return when.replace(tzinfo=timezone.utc) if when.tzinfo is None else when
