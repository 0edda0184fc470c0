"""Running the jobs of `spark/` in the session of the tests, and reading what they wrote."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from tardis_fast.spark.bronze import write_batch
from tardis_fast.spark.envelopes import with_envelope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from tardis_fast.spark.tables import Tables

JOBS = Path(__file__).parents[2] / "spark"


def run_job(name: str, tables: Tables, *arguments: str) -> None:
    """Run a job as spark-submit does, but for the session, which is that of the tests."""
    main = runpy.run_path(str(JOBS / f"{name}.py"))["main"]
    main(["--tables", tables.root, "--table-format", tables.format, *arguments])


def write_bronze(tables: Tables, events: Sequence[bytes | None], number: int) -> None:
    """Write events into Bronze as a batch of their own."""
    column = pa.table({"event": pa.array(events, pa.binary())})
    write_batch(tables, with_envelope(frame(tables.spark, column)), "test", number)


def frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return rows as a DataFrame."""
    return spark.createDataFrame(rows)


def rows_of(tables: Tables, name: str, *columns: str) -> list[Row]:
    """Return all rows of a table, or some of their columns, in one order."""
    frame = tables.table(name).read()
    return sorted(frame.select(*columns or frame.columns).collect(), key=repr)


def all_tables(tables: Tables, layer: str) -> dict[str, list[Row]]:
    """Return the rows of every table of a layer."""
    names = sorted(path.name for path in Path(tables.root, layer).iterdir())
    return {name: rows_of(tables, f"{layer}/{name}") for name in names}
