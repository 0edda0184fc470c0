"""Bronze events to typed columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import BinaryType

from tardis_fast import _core
from tardis_fast._core import ConfigError
from tardis_fast.spark.arrow_schemas import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame

OnError = Literal["fail", "null", "quarantine"]


def decode_bronze(
    df: DataFrame,
    column: str = "event",
    case: str | None = None,
    *,
    on_error: OnError = "fail",
    keep: Sequence[str] = (),
) -> DataFrame:
    """Return the events of a binary column as typed columns, row by row.

    Wide, a struct for each payload case, unless `case` names the only one. `keep` names columns
    that stay, before the others. What cannot be decoded, null and other cases included, fails the
    job; with `null` it becomes a row of nulls; with `quarantine` all rows have two more columns,
    `decode_error`, which is null for good ones, and `bad_event`, the bytes of the others.
    """
    if column not in df.columns or not isinstance(df.schema[column].dataType, BinaryType):
        raise ConfigError(
            f"decode_bronze: expected a binary column `{column}`; found {df.schema.simpleString()}"
        )
    if on_error not in ("fail", "null", "quarantine"):
        raise ConfigError(f"on_error: `{on_error}` is not known; use fail, null or quarantine")
    kept = df.select(*keep).schema
    schema = _core.bronze_schema(case)
    if on_error == "quarantine":
        schema = schema.append(pa.field("decode_error", pa.string()))
        schema = schema.append(pa.field("bad_event", pa.binary()))
    double = sorted({*kept.names} & {*schema.names})
    if double:
        raise ConfigError(
            f"keep: `{double[0]}` is also a column of Bronze; rename it before it is decoded"
        )
    for field in spark_schema(schema):
        kept = kept.add(field)
    return df.select(*keep, column).mapInArrow(_Decoder(case, on_error, kept.names), kept)


class _Decoder:
    """Decodes the last column of batches; it goes to the executors."""

    def __init__(self, case: str | None, on_error: OnError, names: list[str]) -> None:
        self._case = case
        self._on_error = on_error
        self._names = names

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            *kept, events = batch.columns
            yield pa.RecordBatch.from_arrays([*kept, *self._columns(events)], names=self._names)

    def _columns(self, events: pa.Array) -> list[pa.Array]:
        if self._on_error == "fail":
            columns: list[pa.Array] = _core.events_to_batch(events, case=self._case).columns
            return columns
        decoded, errors = _core.events_to_checked_batch(events, case=self._case)
        columns = decoded.columns
        if self._on_error == "quarantine":
            bad = pc.if_else(errors.is_valid(), events, pa.scalar(None, events.type))
            columns += [errors, bad]
        return columns
