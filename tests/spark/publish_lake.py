"""A driver: publishes a table of the lake to a bus, from a cluster."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tardis_fast.spark import publish

if __name__ == "__main__":
    given: dict[str, Any] = json.loads(sys.argv[1])
    builder = SparkSession.builder.master(given["master"]).appName("publish-lake")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        # By it, tests find the executors of their own cluster.
        "spark.executor.extraJavaOptions": f"-Dtests={given['directory']}",
        "spark.executorEnv.PYTHONPATH": ":".join(sys.path[1:2] + sys.path[:1]),
        "spark.sql.session.timeZone": "UTC",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    table = spark.read.parquet(given["table"]).repartition(given["partitions"])
    ledger = publish(table, input="narrow:trade", **given["buses"])
    rows = [row.asDict() for row in ledger.collect()]
    Path(given["result"]).write_text(json.dumps(rows), "utf-8")
    spark.stop()
