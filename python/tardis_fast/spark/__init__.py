"""Spark over the same Rust functions: whole record batches, no Python per row.

- `publish` sends a DataFrame to buses and returns the ledger; `publish_batch` does it for
  `foreachBatch`.
- `encode_bronze` and `decode_bronze` turn rows into Bronze events and back.
- `register` makes `spark.read.format("tardis")` and `df.write.format("tardis_bus")` known.
"""

# ruff: noqa: E402 - all that follows needs what is looked for here
from importlib.util import find_spec

# Spark itself asks for pandas only when a job runs.
for _needed in ("pyspark", "pandas"):
    if find_spec(_needed) is None:
        raise ImportError(
            f"tardis_fast.spark needs {_needed}; install it with: pip install 'tardis-fast[spark]'"
        )

from tardis_fast.spark.decoding import decode_bronze
from tardis_fast.spark.encoding import encode_bronze
from tardis_fast.spark.publishing import publish, publish_batch
from tardis_fast.spark.registering import register

__all__ = ["decode_bronze", "encode_bronze", "publish", "publish_batch", "register"]
