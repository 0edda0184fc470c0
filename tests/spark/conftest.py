"""One Spark session for the run, with the jars of Delta Lake and Kafka, and a cluster."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from spark.cluster import Cluster
from tardis_fast.sample_api import SampleApiThread
from tardis_fast.spark.tables import DELTA_CONF

if TYPE_CHECKING:
    from collections.abc import Iterator


def jars() -> list[Path]:
    """Return the jars that `scripts/spark.sh` fetched."""
    if named := os.environ.get("TARDIS_FAST_SPARK_JARS"):
        directory = Path(named)
    elif named := os.environ.get("TARDIS_FAST_CACHE"):
        directory = Path(named) / "spark-jars"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        directory = Path(cache) / "tardis-fast" / "spark-jars"
    found = sorted(directory.glob("*.jar"))
    assert found, f"no jars in {directory}; run scripts/spark-jars"
    return found


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Start the run's Spark session: two cores, UTC, small shuffles, Delta Lake and Kafka."""
    directory = tmp_path_factory.mktemp("spark")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        **DELTA_CONF,
        # All jars in one setting: executors get no others.
        "spark.jars": ",".join(map(str, jars())),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        # Small data: compiling costs more than it gives.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster of a master and two workers with a core each."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def sample_api() -> Iterator[SampleApiThread]:
    """Serve the sample market."""
    with SampleApiThread() as api:
        yield api
