"""The jobs as programs: help, errors that say what to do, exit codes; and late records."""

from __future__ import annotations

import runpy
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bus.trades import trade
from spark.jobs import JOBS, rows_of, run_job
from tardis_fast import Publisher
from tardis_fast.spark import job
from tardis_fast.spark.tables import Tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from brokers.kafka import KafkaBroker

HOUR_SECONDS = 3600


@pytest.mark.parametrize("name", ["backfill", "bronze_ingest", "gold", "silver"])
def test_every_job_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main = runpy.run_path(str(JOBS / f"{name}.py"))["main"]
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "--table-format {delta,parquet}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments", "code", "said"),
    [
        ("silver", [], 1, "run the job that writes bronze/events first"),
        ("gold", ["--bars", "7m"], 1, "'7m' is no interval"),
        ("gold", ["--dates", "yesterday", "today"], 2, "argument --dates"),
        ("bronze_ingest", ["--brokers", "localhost:9"], 2, "--topics --topic-pattern is required"),
    ],
)
def test_errors_say_what_to_do(  # noqa: PLR0913, PLR0917 - what is run, and what comes of it
    spark: SparkSession,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    tables = Tables(spark, str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        job.run(lambda given: run_job(name, tables, *(given or ())), arguments)
    assert ended.value.code == code
    assert said in capsys.readouterr().err


@pytest.mark.broker
def test_late_records_are_in_quarantine_if_there_is_a_bound(
    spark: SparkSession, kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    topic = f"late-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": kafka_broker.address, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    kafka = {"brokers": [kafka_broker.address], "topic": topic}
    with Publisher(kafka=kafka, state_dir=tmp_path / "state") as publisher:
        publisher.publish(trade("A", 1))
        publisher.publish(trade("A", 2), ingest_micros=1)
        assert publisher.flush(120)
    tables = Tables(spark, str(tmp_path / "tables"), "parquet")
    source = ("--brokers", kafka_broker.address, "--topics", topic)
    for _ in range(2):
        run_job("bronze_ingest", tables, *source, "--late-after", str(24 * HOUR_SECONDS))
    (good,) = rows_of(tables, "bronze/events")
    (late,) = rows_of(tables, "bronze/quarantine")
    assert (good["event_seq"], good["exchange"], good["kafka_offset"]) == (1, "bitmex", 0)
    assert late["reason"].startswith("late: arrived ")
    assert late["reason"].endswith(" s after it was made, 86400 s are allowed")
