"""Spark to Kafka: whole batches into Rust against Python row by row; encoding and decoding alone.

usage: python benches/spark_publish.py [--rows N]

Starts the Kafka broker that scripts/brokers.sh installed, and Spark in this machine, with two cores
and then with one. Contenders take turns, twice, after a run that warms everything up; the best
counts. Nothing is asserted; the report says which bars are met.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

# The broker is that of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from publishing.buses import KafkaBus
from publishing.spark_contenders import CONTENDERS, TEXT_COLUMN
from publishing.trades import Trades
from tardis_fast.spark import decode_bronze, encode_bronze

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

ROUNDS = 2
FILES = 8
NAMES = 4
"""Each file has so many names, and is read under all of them."""
PYTHON_SHARE = 16
"""Python publishes so many times fewer rows, to end in the same time: two files for two cores."""
FUNCTION_SHARE = 4
"""So many times fewer rows are encoded and decoded alone."""
TIMES_EACH_PARTITION = 10
"""How many times the rows a second of `foreachPartition` ours must reach."""
ARRIVAL_SECONDS = 30.0
ROWS_TO_ARROW = {
    "spark.sql.columnVector.offheap.enabled": "true",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.driver.extraJavaOptions": (
        "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false "
        "-XX:+UseParallelGC"
    ),
}
"""What spark/README.md recommends where much goes from rows to Arrow; for all contenders alike."""
OURS, UDF, EACH_PARTITION = CONTENDERS
COLUMNS, TEXTS = FORMS = ("columns", "JSON")


class Course:
    """A Spark session with so many cores, and the tables of trades in it."""

    def __init__(self, cores: int, tables: Path, rows: int) -> None:
        self._tables = tables
        self._rows = rows
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # Workers import what the driver has on its path.
        os.environ["PYTHONPATH"] = ":".join(filter(None, sys.path))
        builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.session.timeZone": "UTC",
            **ROWS_TO_ARROW,
        }
        for name, value in settings.items():
            builder = builder.config(name, value)
        self._spark = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")

    def stop(self) -> None:
        """End the session."""
        self._spark.stop()

    def trades(self, form: str = COLUMNS, share: int = 1) -> DataFrame:
        """Return the table, or the files that hold `1 / share` of it."""
        files = sorted(self._tables.joinpath(form).glob("*.parquet"))
        return self._spark.read.parquet(*map(str, files[: len(files) // share]))

    def publishing(self, bus: KafkaBus, names: list[str], form: str) -> dict[str, float]:
        """Return the rows a second of each contender."""
        best: dict[str, float] = {}
        for turn in range(ROUNDS + 1):
            for name in names:
                share = 1 if name == OURS else PYTHON_SHARE
                topic = f"{form}-{turn}-{names.index(name)}"
                options = bus.create(topic)
                df = self.trades(form, share)
                began = time.perf_counter()
                CONTENDERS[name](df, options)
                rate = self._rows / share / (time.perf_counter() - began)
                _wait_for(bus, topic, self._rows // share)
                bus.delete(topic)
                if turn > 0:
                    best[name] = max(rate, best.get(name, 0.0))
                    print(f"  {form:<8}{name:<24}{rate:>11,.0f}/s", file=sys.stderr, flush=True)
        return best

    def functions(self) -> dict[str, float]:
        """Return the rows a second of encoding, decoding, and of handing batches over alone."""
        encoded = str(self._tables / "events")
        trades = self.trades(share=FUNCTION_SHARE)
        events = encode_bronze(trades, input="narrow:trade").select("event")
        events.write.mode("overwrite").parquet(encoded)
        courses: dict[str, Callable[[], DataFrame]] = {
            "hand batches over, there and back": lambda: _identity(trades),
            "encode_bronze": lambda: encode_bronze(trades, input="narrow:trade"),
            "decode_bronze, one case": lambda: decode_bronze(
                self._spark.read.parquet(encoded), case="trade"
            ),
            "decode_bronze, wide": lambda: decode_bronze(self._spark.read.parquet(encoded)),
        }
        best: dict[str, float] = {}
        for turn in range(ROUNDS + 1):
            for name, course in courses.items():
                began = time.perf_counter()
                course().write.format("noop").mode("overwrite").save()
                rate = self._rows / FUNCTION_SHARE / (time.perf_counter() - began)
                if turn > 0:
                    best[name] = max(rate, best.get(name, 0.0))
        return best


def _identity(df: DataFrame) -> DataFrame:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    return df.mapInArrow(same, df.schema)


def _wait_for(bus: KafkaBus, topic: str, rows: int) -> None:
    """Wait for what a UDF's producer still holds when the job is done."""
    deadline = time.monotonic() + ARRIVAL_SECONDS
    while (arrived := bus.count(topic)) < rows:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{arrived:,} of {rows:,} events are in Kafka")
        time.sleep(0.1)


Rates = dict[str, float]
"""Rows a second, by name."""


def measure(cores: int, tables: Path, rows: int) -> tuple[dict[str, Rates], Rates]:
    """Measure everything with so many cores; with one, only ours publishes."""
    bus = KafkaBus(tables / f"kafka-{cores}")
    try:
        course = Course(cores, tables, rows)
        try:
            names = list(CONTENDERS) if cores > 1 else [OURS]
            published = {form: course.publishing(bus, names, form) for form in FORMS}
            return published, course.functions()
        finally:
            course.stop()
    finally:
        bus.broker.stop()


def report(results: dict[int, tuple[dict[str, Rates], Rates]]) -> None:
    """Print the tables, and which bars are met."""
    (two, two_functions), (one, one_functions) = results[2], results[1]
    for form, rates in two.items():
        print(f"\n{f'publish {form}, 2 cores':<36}{'rows/s':>11}{'x (b)':>8}")
        for name, rate in rates.items():
            print(f"{name:<36}{rate:>11,.0f}{rate / rates[EACH_PARTITION]:>8.1f}")
        is_met = rates[OURS] / rates[EACH_PARTITION] >= TIMES_EACH_PARTITION
        print(f"  at least {TIMES_EACH_PARTITION} x (b): {'met' if is_met else 'not met'}")
    print(f"\n{'':<36}{'1 core, rows/s':>16}{'2 cores':>11}{'ratio':>8}")
    with_one = {f"publish {form}": rates[OURS] for form, rates in one.items()} | one_functions
    with_two = {f"publish {form}": rates[OURS] for form, rates in two.items()} | two_functions
    for name, rate in with_one.items():
        print(f"{name:<36}{rate:>16,.0f}{with_two[name]:>11,.0f}{with_two[name] / rate:>8.2f}")


def write(table: pa.Table, directory: Path) -> None:
    """Write a table as Parquet, in several files of several names each."""
    directory.mkdir()
    rows = table.num_rows // FILES
    for number in range(FILES):
        file = directory / f"0-{number}.parquet"
        pq.write_table(table.slice(rows * number, rows), file)
        for name in range(1, NAMES):
            (directory / f"{name}-{number}.parquet").hardlink_to(file)


def main() -> None:
    """Run everything and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    options = parser.parse_args()
    read_once = options.rows // NAMES // FILES * FILES
    rows = read_once * NAMES
    with tempfile.TemporaryDirectory(prefix="spark-bench-") as directory:
        trades = Trades(Path(directory))
        size = trades.write(read_once)
        lines = [line.decode() for chunk in trades.chunks(read_once) for line in chunk.splitlines()]
        texts = pa.table({TEXT_COLUMN: pa.array(lines)})
        write(texts, Path(directory) / TEXTS)
        write(pa.Table.from_batches(trades.batches(read_once)), Path(directory) / COLUMNS)
        print(f"{rows:,} trades of {size:.0f} bytes; load {os.getloadavg()[0]:.1f}")
        # A process has one session of Spark.
        spawn = multiprocessing.get_context("spawn")
        results = {}
        for cores in (2, 1):
            with ProcessPoolExecutor(1, mp_context=spawn) as process:
                results[cores] = process.submit(measure, cores, Path(directory), rows).result()
    report(results)


if __name__ == "__main__":
    main()
