"""Kafka to Bronze: every record exactly once in the table, or in quarantine with the reason.

Run again, it goes on where it stopped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tardis_fast.spark import job
from tardis_fast.spark.ingest import IngestOptions, run_ingest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments and run."""
    parser = job.parser(__doc__ or "")
    parser.add_argument(
        "--brokers", required=True, metavar="HOST:PORT,…", help="brokers of Kafka to begin with"
    )
    topics = parser.add_mutually_exclusive_group(required=True)
    topics.add_argument("--topics", default="", metavar="A,B", help="topics")
    topics.add_argument("--topic-pattern", metavar="REGEX", help="topics by a regular expression")
    parser.add_argument(
        "--starting",
        choices=["earliest", "latest"],
        default="earliest",
        help="where the first run begins (earliest)",
    )
    parser.add_argument(
        "--late-after",
        type=float,
        metavar="SECONDS",
        help="put records into quarantine that reached Kafka so long after their event was made "
        "(no bound)",
    )
    parser.add_argument(
        "--max-per-batch",
        type=int,
        default=2_000_000,
        metavar="N",
        help="records of a batch at most (2000000)",
    )
    parser.add_argument(
        "--every",
        metavar="INTERVAL",
        help='go on for ever, a batch at most so often, for example "10 seconds" '
        "(end when all that is there is read)",
    )
    parser.add_argument(
        "--kafka-option",
        action="append",
        default=[],
        type=job.pair,
        metavar="NAME=VALUE",
        help="an option of Spark's Kafka source, for example kafka.security.protocol=SASL_SSL; "
        "may be given again",
    )
    _run(parser.parse_args(arguments))


def _run(given: argparse.Namespace) -> None:
    options = IngestOptions(
        brokers=given.brokers,
        topics=[topic.strip() for topic in given.topics.split(",") if topic.strip()],
        pattern=given.topic_pattern,
        starting=given.starting,
        late_after=given.late_after,
        max_per_batch=given.max_per_batch,
        every=given.every,
        kafka=dict(given.kafka_option),
    )
    counts = run_ingest(job.open_tables(given, "bronze_ingest"), options)
    for table, rows in counts.items():
        print(f"{table}: {rows} new rows")


if __name__ == "__main__":
    job.run(main)
