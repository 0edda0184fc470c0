"""Kafka to Bronze: every record exactly once in the table, or in quarantine with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from tardis_fast._core import ConfigError
from tardis_fast.spark.bronze import BRONZE, QUARANTINE, write_batch
from tardis_fast.spark.envelopes import with_envelope
from tardis_fast.spark.streams import run_stream, stream_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tardis_fast.spark.tables import Tables


@dataclass(frozen=True)
class IngestOptions:
    """What is read from Kafka, and how."""

    brokers: str
    topics: Sequence[str] = ()
    pattern: str | None = None
    """A regular expression of topics, in place of their names."""
    starting: str = "earliest"
    """Where to begin without a checkpoint."""
    late_after: float | None = None
    """Seconds between the making of an event and its arrival in Kafka; more is late."""
    max_per_batch: int = 2_000_000
    """Records; a batch that fails is done again as a whole."""
    every: str | None = None
    """Go on for ever and look for new records this often; once if there is none."""
    kafka: Mapping[str, str] = field(default_factory=dict)
    """Further options of Spark's Kafka source, for example `kafka.security.protocol`."""


def run_ingest(tables: Tables, options: IngestOptions) -> dict[str, int]:
    """Take the new records of Kafka into Bronze; return how many went where."""
    checkpoint = tables.checkpoint("bronze_ingest")
    counts = {BRONZE: 0, QUARANTINE: 0}
    writers: list[str] = []

    def take(batch: DataFrame, number: int) -> None:
        if not writers:  # only a stream that runs has a name
            writers.append(stream_id(tables.spark, checkpoint))
        for name, rows in write_batch(tables, batch, writers[0], number).items():
            counts[name] += rows

    rows = with_envelope(read_kafka(tables.spark, options))
    if options.late_after is not None:
        rows = _with_lateness(rows, options.late_after)
    run_stream(rows, take, checkpoint, options.every)
    return counts


def read_kafka(spark: SparkSession, options: IngestOptions) -> DataFrame:
    """Return the stream of Kafka's records: their place, key, time and the event."""
    if bool(options.topics) == bool(options.pattern):
        raise ConfigError("give either the topics or a pattern of topics")
    reader = spark.readStream.format("kafka").options(**options.kafka)
    reader = reader.option("kafka.bootstrap.servers", options.brokers)
    reader = reader.option("startingOffsets", options.starting)
    if options.pattern:
        reader = reader.option("subscribePattern", options.pattern)
    else:
        reader = reader.option("subscribe", ",".join(options.topics))
    reader = reader.option("maxOffsetsPerTrigger", options.max_per_batch)
    return reader.load().selectExpr(
        "topic AS kafka_topic",
        "partition AS kafka_partition",
        "offset AS kafka_offset",
        "timestamp AS kafka_ts",
        "key AS kafka_key",
        "value AS event",
    )


def _with_lateness(rows: DataFrame, late_after: float) -> DataFrame:
    took = (f.unix_micros("kafka_ts") - f.unix_micros("ingest_ts")) / 1e6
    late = f.format_string(
        f"late: arrived %.1f s after it was made, {late_after:g} s are allowed", took
    )
    return rows.withColumn("reason", f.coalesce("reason", f.when(took > late_after, late)))
