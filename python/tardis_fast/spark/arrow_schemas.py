"""Arrow's schemas as Spark's, and back; texts as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas import types

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the schema under which Spark takes batches of `schema`."""
    return types.from_arrow_schema(schema, prefer_timestamp_ntz=False)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema of the batches that Spark gives of `schema`."""
    convert: Any = types.to_arrow_schema
    try:
        return convert(schema, timezone="UTC")
    except TypeError:  # versions before 4.2 take no zone
        return convert(schema)


def text_bytes(column: pa.Array) -> pa.Array:
    """Return the bytes of texts, which may be no UTF-8 where Spark did not look at them.

    A column of anything else is returned as it is.
    """
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column
