"""The Bronze table: events as they came, each batch exactly once, and what is no event apart.

A row is an event's bytes, its envelope, and its place in Kafka if it came from there. The date is
that of its receipt from the exchange (`local_ts`), in UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from tardis_fast.spark.envelopes import ENVELOPE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from tardis_fast.spark.tables import Table, Tables

BRONZE = "bronze/events"
QUARANTINE = "bronze/quarantine"
KAFKA_COLUMNS = {
    "kafka_topic": "string",
    "kafka_partition": "int",
    "kafka_offset": "bigint",
    "kafka_ts": "timestamp",
    "kafka_key": "binary",
}
_BRONZE = (*ENVELOPE.names, "event", *list(KAFKA_COLUMNS)[:-1], "date", "batch")
_QUARANTINE = (*KAFKA_COLUMNS, "event", "reason", "date", "batch")


def bronze_table(tables: Tables) -> Table:
    """Return the table of events."""
    return tables.table_of_batches(BRONZE, ("date", "exchange"))


def quarantine_table(tables: Tables) -> Table:
    """Return the table of records that are no events, or too late; the date is that of arrival."""
    return tables.table_of_batches(QUARANTINE, ("date",))


def write_batch(tables: Tables, rows: DataFrame, writer: str, number: int) -> dict[str, int]:
    """Write rows that have an envelope as a batch of a writer; return how many went where.

    A batch that was written before is not written again.
    """
    for column, kind in KAFKA_COLUMNS.items():
        if column not in rows.columns:
            rows = rows.withColumn(column, f.lit(None).cast(kind))
    rows = rows.withColumn("batch", f.lit(f"{writer}-{number:010}")).persist()
    try:
        is_good = f.col("reason").isNull()
        found = {
            row["good"]: row["count"]
            for row in rows.groupBy(is_good.alias("good")).count().collect()
        }
        if found.get(True):
            good = rows.where(is_good).withColumn("date", f.to_date("local_ts"))
            bronze_table(tables).append_once(good.select(*_BRONZE), writer, number)
        if found.get(False):
            arrival = f.to_date(f.coalesce("kafka_ts", f.current_timestamp()))
            bad = rows.where(~is_good).withColumn("date", arrival)
            quarantine_table(tables).append_once(bad.select(*_QUARANTINE), writer, number)
    finally:
        rows.unpersist()
    return {BRONZE: found.get(True, 0), QUARANTINE: found.get(False, 0)}
