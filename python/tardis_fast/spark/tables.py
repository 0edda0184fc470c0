"""The one place that knows the table format: Delta Lake, or plain Parquet.

Tables lie below one root and are named `layer/table`. Delta commits as a whole and merges in place.
Parquet has no transactions: what is merged overwrites the partitions it touches, and a job that is
killed while it does so may leave such a partition without its old rows; readers should wait for
jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from tardis_fast._core import TardisFastError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

TableFormat: TypeAlias = Literal["delta", "parquet"]
Partition: TypeAlias = "Mapping[str, date | str]"
"""The values of a partition's columns."""

DELTA_CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""What a session needs, before it is made, to work with Delta tables."""

_LAST_TIME = "TIMESTAMP '9999-12-31 23:59:59'"


@dataclass(frozen=True)
class Tables:
    """All tables below a root, in one format."""

    spark: SparkSession
    root: str
    """A directory, or an address that Spark can write to."""
    format: TableFormat = "delta"

    def table(self, name: str, partitions: Sequence[str] = ("date", "exchange")) -> Table:
        """Return a table, which need not exist."""
        return Table(self, name, tuple(partitions))

    def table_of_batches(self, name: str, partitions: Sequence[str]) -> Table:
        """Return a table that is appended to batch by batch, with a column `batch`."""
        return self.table(name, partitions if self.format == "delta" else (*partitions, "batch"))

    def checkpoint(self, job: str) -> str:
        """Return where a job remembers what it has read."""
        return f"{self.root.rstrip('/')}/_checkpoints/{job}"


@dataclass(frozen=True)
class Table:
    """One table: how it is read, and the three ways in which it is written."""

    tables: Tables
    name: str
    partitions: tuple[str, ...]

    @property
    def path(self) -> str:
        """Where it lies."""
        return f"{self.tables.root.rstrip('/')}/{self.name}"

    @property
    def exists(self) -> bool:
        """Whether anything was ever written to it."""
        try:
            self._load()
        except AnalysisException as error:
            # A table that is there and cannot be read must not be taken for one that is not there.
            if error.getCondition() in _NO_TABLE:
                return False
            raise
        return True

    def read(self) -> DataFrame:
        """Return its rows."""
        try:
            return self._load()
        except AnalysisException as error:
            if error.getCondition() not in _NO_TABLE:
                raise
            raise self._is_missing() from None

    def read_new(self) -> DataFrame:
        """Return a stream of its rows; with a checkpoint, of those that came since."""
        spark, table_format = self.tables.spark, self.tables.format
        reader: DataStreamReader = spark.readStream.format(table_format).schema(self.read().schema)
        if table_format == "delta":
            # The schema is the table's own. Old partitions may be dropped; rows never change.
            reader = spark.readStream.format(table_format).option("ignoreDeletes", "true")
        return reader.load(self.path)

    def append_once(self, rows: DataFrame, writer: str, batch: int) -> None:
        """Append a batch of a writer; one that was appended before is not appended again.

        Only for a `table_of_batches`: in Parquet, a batch that comes again overwrites itself.
        """
        write = rows.write.format(self.tables.format).partitionBy(*self.partitions)
        if self.tables.format == "delta":
            write.mode("append").option("txnAppId", writer).option("txnVersion", batch).save(
                self.path
            )
        else:
            write.mode("overwrite").option("partitionOverwriteMode", "dynamic").save(self.path)

    def append(self, rows: DataFrame) -> None:
        """Append rows."""
        write = rows.write.format(self.tables.format).partitionBy(*self.partitions)
        write.mode("append").save(self.path)

    def replace(self, rows: DataFrame, partitions: Sequence[Partition]) -> None:
        """Replace partitions by rows, which belong to no others."""
        write = rows.write.format(self.tables.format).mode("overwrite")
        write = write.partitionBy(*self.partitions)
        if self.tables.format == "delta":
            if self.exists:
                write = write.option("replaceWhere", where(partitions))
        else:
            write = write.option("partitionOverwriteMode", "dynamic")
        write.save(self.path)

    def upsert(
        self, rows: DataFrame, identity: str, partitions: Sequence[Partition], within: str = "true"
    ) -> None:
        """Merge rows into their partitions: of the rows of one identity, the earliest made stays.

        `identity` is an SQL expression over the table's columns, each written `{row}.column`; it is
        compared within a partition and a symbol. `within` bounds the rows of the table that can be
        met, in the same spelling, so that the others are not read.
        """
        rows = _earliest(rows, identity)
        if not self.exists:
            self.append(rows)
        elif self.tables.format == "delta":
            self._merge(rows, identity, f"{where(partitions, 'old.')} AND ({within})")
        else:
            old = self.read().where(where(partitions)).select(*rows.columns)
            self.replace(_earliest(old.unionByName(rows), identity), partitions)

    def _merge(self, rows: DataFrame, identity: str, within: str) -> None:
        new = f"new_{self.name.replace('/', '_')}"
        rows.createOrReplaceTempView(new)
        same = [f"old.{column} = new.{column}" for column in self.partitions]
        same.append("old.symbol <=> new.symbol")
        same.append(f"{identity.format(row='old')} = {identity.format(row='new')}")
        earlier = f"coalesce(new.ingest_ts, {_LAST_TIME}) <= coalesce(old.ingest_ts, {_LAST_TIME})"
        rows.sparkSession.sql(
            f"MERGE INTO delta.`{self.path}` old USING {new} new "
            f"ON {within.format(row='old')} AND {' AND '.join(same)} "
            f"WHEN MATCHED AND {earlier} THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def _load(self) -> DataFrame:
        return self.tables.spark.read.format(self.tables.format).load(self.path)

    def _is_missing(self) -> TardisFastError:
        return TardisFastError(
            f"there is no {self.tables.format} table at {self.path}; run the job that writes "
            f"{self.name} first, with the same --tables and --table-format"
        )


_NO_TABLE = frozenset(
    {
        "PATH_NOT_FOUND",
        "DELTA_PATH_DOES_NOT_EXIST",
        "DELTA_MISSING_DELTA_TABLE",
        "UNABLE_TO_INFER_SCHEMA",
    }
)


def where(partitions: Sequence[Partition], row: str = "") -> str:
    """Return the SQL condition of being in one of the partitions."""
    if not partitions:
        return "false"
    alternatives = (
        " AND ".join(f"{row}{column} = {_literal(value)}" for column, value in partition.items())
        for partition in partitions
    )
    return "((" + ") OR (".join(alternatives) + "))"


def _literal(value: date | str) -> str:
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"DATE '{value.isoformat()}'"


def _earliest(rows: DataFrame, identity: str) -> DataFrame:
    named = rows.alias("row")
    same = Window.partitionBy("date", "exchange", "symbol", f.expr(identity.format(row="row")))
    order = [f.asc_nulls_last(column) for column in ("ingest_ts", "session", "event_seq")]
    place = f.row_number().over(same.orderBy(*order))
    return named.withColumn("_place", place).where("_place = 1").drop("_place")
