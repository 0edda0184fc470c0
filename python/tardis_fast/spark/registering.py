"""Making the data sources known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tardis_fast.spark.reading import TardisSource
from tardis_fast.spark.writing import TardisBusSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("tardis")` and `df.write.format("tardis_bus")` known.

    Filters on `symbol`, `exchange` and `local_ts` narrow what is replayed, for which Spark must be
    told that data sources of Python take filters.
    """
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(TardisSource)
    spark.dataSource.register(TardisBusSink)
