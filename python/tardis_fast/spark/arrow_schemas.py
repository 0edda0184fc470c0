"""Arrow's schemas as Spark's, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.pandas import types

if TYPE_CHECKING:
    import pyarrow as pa
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
