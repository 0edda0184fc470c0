"""Bronze rows: the envelope of each event beside its bytes, and why a record is no event.

A Bronze row keeps the event's bytes, which hold everything, and those columns by which rows are
found: who, when, which payload, which position in which session. Only whole batches are looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tardis_fast import _core
from tardis_fast.spark.arrow_schemas import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

ENVELOPE = pa.schema(
    [
        ("source", pa.string()),
        ("exchange", pa.string()),
        ("symbol", pa.string()),
        ("local_ts", pa.timestamp("us", "UTC")),
        ("ingest_ts", pa.timestamp("us", "UTC")),
        ("origin", pa.string()),
        ("session", pa.string()),
        ("event_seq", pa.int64()),
        ("payload_case", pa.string()),
    ]
)
_STRUCTS = {
    case: "".join(f"_{c.lower()}" if c.isupper() else c for c in case)
    for case in _core.PAYLOAD_CASES
}
"""The column of the wide shape for each payload case."""


def table_of(case: str) -> str:
    """Return the name in tables of a payload case, for example `book_change`."""
    return _STRUCTS[case]


def with_envelope(rows: DataFrame) -> DataFrame:
    """Add to rows with a binary column `event` its envelope and `reason`, why it cannot be used."""
    columns = rows.columns
    added = spark_schema(ENVELOPE.append(pa.field("reason", pa.string())))
    schema = StructType(rows.schema.fields + added.fields)

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            events = batch.column("event").cast(pa.binary())
            envelopes = _envelopes(events)
            arrays = [*(batch.column(name) for name in columns), *envelopes.columns]
            yield pa.RecordBatch.from_arrays(arrays, [*columns, *envelopes.schema.names])

    return rows.mapInArrow(add, schema).withColumn("reason", f.coalesce("reason", _unusable()))


def _unusable() -> Column:
    """Return why an event that can be read has no place in the table."""
    year = f.year("local_ts")
    return (
        f.when(f.col("payload_case").isNull(), "the event carries no payload that is known")
        .when(f.col("exchange").isNull(), "the event names no exchange")
        .when(f.col("local_ts").isNull(), "the event has no local_ts")
        .when(~year.between(1970, 9999), "local_ts is out of range")
    )


def _envelopes(events: pa.Array) -> pa.RecordBatch:
    """Return the envelopes of events; those that cannot be read have a reason instead."""
    wide, errors = _core.events_to_checked_batch(events)
    case = pa.nulls(len(events), pa.string())
    for name, struct in _STRUCTS.items():
        column = wide.column(struct)
        if column.null_count < len(column):
            case = pc.if_else(column.is_valid(), name, case)
    meta = wide.column("meta")
    sessions = (pc.map_lookup(meta, key, "first") for key in ("session_id", "request_id"))
    made = {
        "session": pc.coalesce(*sessions),
        "payload_case": case,
        "reason": pc.binary_join_element_wise("no Bronze event", errors, ": "),
    }
    names = [*ENVELOPE.names, "reason"]
    arrays = [made[name] if name in made else wide.column(name) for name in names]
    return pa.RecordBatch.from_arrays(arrays, names)
