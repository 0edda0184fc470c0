"""What all jobs share: their session, the options of tables, and how they end.

A job exits with 0 when it is done, with 1 and one line of why when it failed, with 2 when it was
called in a wrong way.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tardis_fast._core import ConfigError, TardisFastError
from tardis_fast.spark.tables import DELTA_CONF, Tables

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def parser(description: str, *, epilog: str = "") -> argparse.ArgumentParser:
    """Return a parser with the options of tables."""
    made = argparse.ArgumentParser(
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    tables = made.add_argument_group("tables")
    tables.add_argument(
        "--tables",
        required=True,
        metavar="DIR",
        help="where all tables lie: a directory, or an address that Spark can write to",
    )
    tables.add_argument(
        "--table-format",
        choices=["delta", "parquet"],
        default="delta",
        help="format of all tables (delta)",
    )
    return made


def open_tables(options: argparse.Namespace, name: str) -> Tables:
    """Return the tables, in a session for this job."""
    builder = SparkSession.builder.appName(f"tardis-fast {name}")
    if options.table_format == "delta":
        for key, value in DELTA_CONF.items():
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # Dates of partitions are those of UTC, wherever the job runs.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    if options.table_format == "delta":
        _need_delta(spark)
    return Tables(spark, _whole_address(spark, options.tables), options.table_format)


def run(
    job: Callable[[Sequence[str] | None], None], arguments: Sequence[str] | None = None
) -> None:
    """Run a job as a program."""
    try:
        job(arguments)
    except (TardisFastError, PySparkException, Py4JError) as error:
        sys.stderr.write(f"error: {_reason(error)}\n")
        raise SystemExit(1) from error


def pair(text: str) -> tuple[str, str]:
    """Read `NAME=VALUE`."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _whole_address(spark: SparkSession, root: str) -> str:
    """Return where a directory lies, as Spark's file system sees it: Delta's MERGE asks for it."""
    context = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(root)  # type: ignore[union-attr]  # noqa: SLF001 - Spark has no public way to ask
    system = path.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001 - as above
    return str(system.makeQualified(path).toString())


def _need_delta(spark: SparkSession) -> None:
    found = spark.conf.get("spark.sql.extensions", "") or ""
    loader = spark.sparkContext._jvm.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]  # noqa: SLF001 - Spark has no public way to ask
    try:
        loader.loadClass(DELTA_CONF["spark.sql.extensions"])
    except Py4JError:
        raise ConfigError(
            "Delta Lake is not among Spark's jars; give spark-submit "
            '--jars "$(scripts/spark-jars)", or take --table-format parquet'
        ) from None
    if DELTA_CONF["spark.sql.extensions"] not in found:
        raise ConfigError(
            "this Spark session was made without Delta Lake; set "
            + ", ".join(f"{key}={value}" for key, value in DELTA_CONF.items())
        )


def _reason(error: Exception) -> str:
    """Return why, without the stack of the JVM."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    stack = next((i for i, line in enumerate(lines) if line.lstrip().startswith("at ")), None)
    kept = [line for line in lines[:stack] if "JVM stacktrace" not in line]
    return "\n".join(kept[:20]) or type(error).__name__
