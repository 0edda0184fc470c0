"""`format("tardis_bus")` publishes as `publish` does, for batches and streams."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from spark.market_lake import trade_line
from tardis_fast.spark import encode_bronze, register

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def trades(spark: SparkSession, count: int) -> DataFrame:
    register(spark)
    return spark.createDataFrame([(trade_line(number),) for number in range(count)], "value string")


def ids(lake: Path) -> list[int]:
    files = lake.rglob("*.parquet")
    found = [cell for file in files for cell in pq.ParquetFile(file).read()["trade_id"].to_pylist()]
    return sorted(map(int, found))


def test_a_batch_is_written(spark: SparkSession, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    writer = trades(spark, 20).repartition(2).write.format("tardis_bus").mode("append")
    writer.option("lake-dir", str(lake)).option("lake-roll-seconds", "0").save()
    assert ids(lake) == list(range(20))
    events = encode_bronze(trades(spark, 5)).select("event")
    events.write.format("tardis_bus").mode("append").option("lake_dir", str(lake)).save()
    assert len(ids(lake)) == 25


def test_a_stream_is_written(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    source, lake = tmp_path / "source", tmp_path / "lake"
    source.mkdir()
    (source / "a.txt").write_text("\n".join(trade_line(number) for number in range(7)))
    query = (
        spark.readStream.text(str(source))
        .writeStream.format("tardis_bus")
        .option("lake-dir", str(lake))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert ids(lake) == list(range(7))


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"lake-dirr": "never"}, "did you mean `lake-dir`"),
        ({}, "no bus is configured"),
        ({"lake-dir": "never", "input": "csv:trades"}, "is not there"),
    ],
)
def test_options_are_checked(spark: SparkSession, options: dict[str, str], refusal: str) -> None:
    writer = trades(spark, 1).write.format("tardis_bus").mode("append")
    with pytest.raises(Exception, match=refusal):
        writer.options(**options).save()
    assert not os.path.lexists("never")


def test_a_bus_is_not_overwritten(spark: SparkSession) -> None:
    writer = trades(spark, 1).write.format("tardis_bus").mode("overwrite")
    with pytest.raises(Exception, match="cannot be overwritten"):
        writer.option("lake-dir", "never").save()
