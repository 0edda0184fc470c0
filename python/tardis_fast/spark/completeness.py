"""How complete the days are: what came, what came twice, what is missing.

Counted in Bronze, where nothing is deduplicated yet. The position of an event (`event_seq`) counts
all events of its session, of every payload case and symbol; so a session is only without gaps where
all topics it was published to are ingested. A gap belongs to the day of the event after it. An
event that no session numbers is counted, but no gap can be seen.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.window import Window

from tardis_fast.spark.bronze import BRONZE
from tardis_fast.spark.completeness_plot import plot_days
from tardis_fast.spark.tables import where

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from pyspark.sql import DataFrame

    from tardis_fast.spark.tables import Partition, Tables

SESSION_DAYS = 7
"""How long a session may be silent and still be the same."""


def write_completeness(
    tables: Tables, partitions: Sequence[Partition], plots: str | None = None
) -> None:
    """Write the report of partitions of Bronze, and of all sessions of their days."""
    bronze = tables.table(BRONZE).read()
    symbols = tables.table("gold/completeness")
    symbols.replace(count_symbols(bronze.where(where(partitions))), partitions)
    days = _days(bronze, partitions)
    near = f.col("date").between(min(days) - timedelta(SESSION_DAYS), max(days) + timedelta(1))
    sessions = tables.table("gold/sessions", ("date",))
    rows = count_sessions(bronze.where(near)).where(f.col("date").isin(days))
    sessions.replace(rows, [{"date": day} for day in days])
    if plots is not None:
        plot_days(bronze.where(where(partitions)), sessions.read(), plots)


def _days(bronze: DataFrame, partitions: Sequence[Partition]) -> list[date]:
    """Return the days of the partitions, and those after, whose first gaps depend on them."""
    changed = {partition["date"] for partition in partitions}
    wanted = [
        day + timedelta(more) for day in changed for more in (0, 1) if not isinstance(day, str)
    ]
    there = bronze.where(f.col("date").isin(wanted)).select("date").distinct().collect()
    return sorted(row["date"] for row in there)


def _distinct_events() -> str:
    return (
        "count(DISTINCT if(session IS NOT NULL AND event_seq > 0, "
        "concat(event_seq, ':', session), sha2(event, 256)))"
    )


def count_symbols(bronze: DataFrame) -> DataFrame:
    """Return what each symbol has on each day, by payload case.

    `duplicates` are records of events that had come before; `longest_silence_s` is the longest time
    without an event of that case.
    """
    keys = ("date", "exchange", "symbol", "payload_case")
    before = f.lag("local_ts").over(Window.partitionBy(*keys).orderBy("local_ts"))
    silence = (f.unix_micros("local_ts") - f.unix_micros(before)) / 1e6
    return (
        bronze.withColumn("silence", silence)
        .groupBy(*keys)
        .agg(
            f.count("*").alias("records"),
            f.expr(_distinct_events()).alias("events"),
            f.min("local_ts").alias("first_ts"),
            f.max("local_ts").alias("last_ts"),
            f.max("silence").alias("longest_silence_s"),
        )
        .selectExpr(
            *("exchange", "symbol", "payload_case", "records", "events"),
            "records - events AS duplicates",
            *("first_ts", "last_ts", "longest_silence_s", "date"),
        )
    )


def count_sessions(bronze: DataFrame) -> DataFrame:
    """Return for each session and day how many of its events are missing, and where.

    A gap is the first and the last missing number, and the time of the event after it.
    """
    numbered = bronze.where("session IS NOT NULL AND event_seq > 0")
    records = numbered.groupBy("session", "event_seq").agg(
        f.count("*").alias("copies"),
        f.min("date").alias("date"),
        f.min("local_ts").alias("local_ts"),
        f.first("exchange").alias("exchange"),
        f.max(f.col("payload_case") == "disconnect").alias("is_disconnect"),
    )
    before = f.lag("event_seq", 1, 0).over(Window.partitionBy("session").orderBy("event_seq"))
    gap = f.expr(
        "CASE WHEN event_seq - before > 1 THEN named_struct("
        "'first_seq', before + 1, 'last_seq', event_seq - 1, 'before_ts', local_ts) END"
    )
    return (
        records.withColumn("before", before)
        .withColumn("gap", gap)
        .groupBy("date", "session")
        .agg(
            f.sort_array(f.collect_set("exchange")).alias("exchanges"),
            f.min("event_seq").alias("first_seq"),
            f.max("event_seq").alias("last_seq"),
            f.count("*").alias("events"),
            f.expr("coalesce(sum(gap.last_seq - gap.first_seq + 1), 0)").alias("missing"),
            f.expr("sort_array(collect_list(gap))").alias("gaps"),
            f.sum(f.col("copies") - 1).alias("duplicates"),
            f.count_if("is_disconnect").alias("disconnects"),
            f.min("local_ts").alias("first_ts"),
            f.max("local_ts").alias("last_ts"),
        )
        .select(
            *("session", "exchanges", "first_seq", "last_seq", "events", "missing", "gaps"),
            *("duplicates", "disconnects", "first_ts", "last_ts", "date"),
        )
    )
