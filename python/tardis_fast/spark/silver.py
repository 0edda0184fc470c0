"""Bronze to Silver: one typed table for each payload case.

The new rows of Bronze are read as a stream, so that a run takes what came since the last one. What
it makes of a batch is merged by what identifies an event: a batch that comes again, and an event
that was delivered twice, change nothing. Nothing is wrapped or rounded; a row with a figure that
has no exact place goes to `silver/quarantine` with the reason.

After a batch, `silver/changes` gets a row for every partition that it touched: from these rows
Gold knows what to do again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from tardis_fast.spark.bronze import BRONZE
from tardis_fast.spark.decoding import decode_bronze
from tardis_fast.spark.envelopes import table_of
from tardis_fast.spark.silver_records import LINEAGE, RECORDS, Record
from tardis_fast.spark.streams import run_stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, Row

    from tardis_fast.spark.tables import Partition, Tables

QUARANTINE = "silver/quarantine"
CHANGES = "silver/changes"
_QUARANTINED = (*LINEAGE, "payload_case", "quarantine_reason", "event")
_QUARANTINE_IDENTITY = "concat(sha2({row}.event, 256), ':', {row}.quarantine_reason)"


@dataclass(frozen=True)
class SilverOptions:
    """How Silver is made."""

    round_computed: bool = False
    """Round computed figures to their scale instead of putting their rows into quarantine."""
    every: str | None = None
    """Go on for ever and look for new rows this often; once if there is none."""


def run_silver(tables: Tables, options: SilverOptions | None = None) -> dict[str, int]:
    """Take the new rows of Bronze into Silver; return the rows that were read, by payload case."""
    options = options or SilverOptions()
    counts: dict[str, int] = {}

    def take(batch: DataFrame, _: int) -> None:
        for case, rows in _take_batch(tables, batch, options).items():
            counts[case] = counts.get(case, 0) + rows

    new = tables.table(BRONZE).read_new()
    run_stream(new, take, tables.checkpoint("silver"), options.every)
    return counts


def silver_rows(bronze: DataFrame, case: str, *, round_computed: bool = False) -> DataFrame:
    """Return the Silver rows of Bronze rows that carry this case.

    A row whose `quarantine_reason` is not NULL has no place in the table.
    """
    record = RECORDS[case]
    events = bronze.select("event", f.col("event").alias("bytes"))
    narrow = decode_bronze(events, "bytes", case, keep=["event"])
    if case == "bookChange":
        narrow = _levels(narrow)
    if "event_ts" not in narrow.columns:
        narrow = narrow.withColumn("event_ts", f.lit(None).cast("timestamp"))
    # In two steps: a figure is computed once, and why it has no value only where it has none.
    texts = sorted({text for field in record.fields for text in field.texts})
    values = [f"{field.value(rounded=round_computed)} AS {field.name}" for field in record.fields]
    valued = narrow.selectExpr(
        *LINEAGE[:6],
        "coalesce(meta['session_id'], meta['request_id']) AS session",
        "event_seq",
        *values,
        "coalesce(to_date(event_ts), to_date(local_ts)) AS date",
        "event",
        *(f"{text} AS text_{text}" for text in texts),
    )
    reasons = [
        reason for field in record.fields for reason in field.misfits(rounded=round_computed)
    ]
    reasons.append(
        "CASE WHEN year(event_ts) NOT BETWEEN 1970 AND 9999 THEN 'event_ts is out of range' END"
    )
    return valued.selectExpr(
        *(*record.columns, "date"),
        f"nullif(concat_ws('; ', {', '.join(reasons)}), '') AS quarantine_reason",
        "event",
    )


def _levels(changes: DataFrame) -> DataFrame:
    """Return a row for each level, also of changes that were published as whole messages."""

    def side(name: str, levels: str) -> str:
        return (
            f"transform({levels}, level -> named_struct('side', '{name}', 'action', "
            "if(level.qty_str = '0', 'ACTION_DELETE', 'ACTION_UPSERT'), "
            "'price_str', level.price_str, 'qty_str', level.qty_str))"
        )

    whole = f"concat({side('SIDE_BUY', 'bids')}, {side('SIDE_SELL', 'asks')})"
    single = (
        "array(named_struct('side', side, 'action', action, "
        "'price_str', price_str, 'qty_str', qty_str))"
    )
    is_whole = "size(bids) + size(asks) > 0"
    kept = [*LINEAGE[:6], "event_seq", "meta", "is_snapshot", "event"]
    exploded = changes.selectExpr(
        *kept,
        "part AS own_part",
        "parts AS own_parts",
        f"{is_whole} AS is_whole",
        "size(bids) + size(asks) AS levels",
        f"posexplode(if({is_whole}, {whole}, {single})) AS (position, level)",
    )
    return exploded.selectExpr(
        *kept,
        "level.*",
        "CAST(if(is_whole, position, own_part) AS BIGINT) AS part",
        "CAST(if(is_whole, levels, own_parts) AS BIGINT) AS parts",
    )


def _take_batch(tables: Tables, batch: DataFrame, options: SilverOptions) -> dict[str, int]:
    batch = batch.persist()
    try:
        found = batch.groupBy("payload_case", "date", "exchange").count().collect()
        counts: dict[str, int] = {}
        for row in found:
            counts[row["payload_case"]] = counts.get(row["payload_case"], 0) + row["count"]
        # Completeness is counted in Bronze itself.
        changes = {("bronze", row["date"], row["exchange"]) for row in found}
        for case in sorted(counts):
            rows = silver_rows(
                batch.where(f.col("payload_case") == case),
                case,
                round_computed=options.round_computed,
            ).persist()
            try:
                touched = _write_case(tables, rows, case)
            finally:
                rows.unpersist()
            changes |= {(table_of(case), row["date"], row["exchange"]) for row in touched}
        _write_changes(tables, changes)
    finally:
        batch.unpersist()
    return counts


def _write_case(tables: Tables, rows: DataFrame, case: str) -> Sequence[Row]:
    record: Record = RECORDS[case]
    bad = f.col("quarantine_reason").isNotNull()
    found = (
        rows.groupBy("date", "exchange", bad.alias("bad"))
        .agg(
            f.unix_micros(f.min("event_ts")).alias("first"),
            f.unix_micros(f.max("event_ts")).alias("last"),
        )
        .collect()
    )
    touched = [row for row in found if not row["bad"]]
    if touched:
        good = rows.where(~bad).select(*record.columns, "date")
        tables.table(f"silver/{table_of(case)}").upsert(
            good, record.identity, _partitions(touched), _time_range(touched)
        )
    quarantined = [row for row in found if row["bad"]]
    if quarantined:
        misfits = rows.where(bad).withColumn("payload_case", f.lit(case))
        tables.table(QUARANTINE).upsert(
            misfits.select(*_QUARANTINED, "date"), _QUARANTINE_IDENTITY, _partitions(quarantined)
        )
    return touched


def _partitions(rows: Sequence[Row]) -> list[Partition]:
    return [{"date": row["date"], "exchange": row["exchange"]} for row in rows]


def _time_range(rows: Sequence[Row]) -> str:
    """Return the SQL of being in the time of the batch: an event comes again at its own time."""
    firsts = [row["first"] for row in rows if row["first"] is not None]
    if not firsts:
        return "true"
    first, last = min(firsts), max(row["last"] for row in rows if row["last"] is not None)
    return (
        f"{{row}}.event_ts IS NULL OR {{row}}.event_ts BETWEEN "
        f"timestamp_micros({first}) AND timestamp_micros({last})"
    )


def _write_changes(tables: Tables, changes: set[tuple[str, object, str]]) -> None:
    rows: list[Mapping[str, object]] = [
        {"changed": name, "date": date, "exchange": exchange}
        for name, date, exchange in sorted(changes, key=str)
    ]
    frame = tables.spark.createDataFrame(
        [tuple(row.values()) for row in rows], "changed string, date date, exchange string"
    ).coalesce(1)
    tables.table(CHANGES, partitions=()).append(frame)
