"""Replays of the sample market from a warm cache, against plain decompression of the same files.

usage: python benches/replay.py [--minutes N] [--scaling]

Each replay is a process of its own, so that its CPU and memory are its own. Replays and
decompression take turns, and the best of each figure counts. Nothing is asserted; the report says
which bars are met. `--scaling` shows instead how cost grows with the range and with the depth of
the book.
"""

import argparse
import multiprocessing
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TypeVar

from tardis_fast import FeedOptions, SampleMarket, Stream, replay, replay_normalized
from tardis_fast.sample_api import SampleApiThread

START = datetime(2020, 2, 1, tzinfo=timezone.utc)
EXCHANGE = "bitmex"
MESSAGES_PER_SECOND = 2_000
MINUTES = 25
ROUNDS = 3

RAW = "raw"
RAW_CHANNELS = ("trade", "orderBookL2")
DATA_TYPES = (
    "trade,book_change",
    "book_snapshot_20_100ms",
    "book_snapshot_5_0ms",
    "quote",
    "trade_bar_1s",
)
BARS = {RAW: 1.5, "trade,book_change": 4.0}
"""Times of plain decompression that a replay may take."""
MEMORY_BAR_MB = 120
RANGES = (1, 4, 16)
DEPTHS = (100, 1_000, 10_000)

T = TypeVar("T")


def in_child(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a new process, whose CPU time and memory are its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(function, *arguments).result()


@dataclass(frozen=True)
class Run:
    """What one replay took."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    messages: int
    out_bytes: int
    read_bytes: int


def run(row: str, minutes: int, feed: FeedOptions) -> Run:
    """Replay to the end."""
    end = START + timedelta(minutes=minutes)
    filters = [{"channel": channel} for channel in RAW_CHANNELS]
    made = (
        replay(EXCHANGE, START, end, filters, feed=feed)
        if row == RAW
        else replay_normalized(Stream(EXCHANGE, START, end, row.split(",")), feed=feed)
    )
    began, cpu_began = time.perf_counter(), time.process_time()
    out_bytes = sum(len(chunk) for chunk in made)
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
    progress = made.progress
    return Run(seconds, cpu_seconds, peak_mb(), progress.messages, out_bytes, progress.bytes)


def peak_mb() -> float:
    """Return the most memory this process had; what getrusage says includes its parent's."""
    status = Path("/proc/self/status").read_text("ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def decompress(cache: Path, compression: str) -> float:
    """Return how long the usual tool takes for the same files."""
    files = sorted(str(path) for path in cache.rglob("*.json.*"))
    tool = ["zstd", "-dcq"] if compression == "zstd" else ["gzip", "-dc"]
    began = time.perf_counter()
    subprocess.run([*tool, *files], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def count_lines(cache: Path, compression: str) -> int:
    """Return how many raw messages the files hold."""
    files = sorted(str(path) for path in cache.rglob("*.json.*"))
    tool = ["zstd", "-dcq"] if compression == "zstd" else ["gzip", "-dc"]
    with subprocess.Popen([*tool, *files], stdout=subprocess.PIPE) as process:
        return sum(1 for line in process.stdout or () if line != b"\n")


@dataclass(frozen=True)
class Best:
    """The best of several runs of a row."""

    row: str
    lines: int
    run: Run
    limit_seconds: float


def measure(row: str, minutes: int, feed: FeedOptions, rounds: int) -> Best:
    """Fill the cache, then let replay and decompression take turns."""
    cache, compression = Path(str(feed.cache_dir)), str(feed.compression)
    in_child(run, row, minutes, feed)
    lines = count_lines(cache, compression)
    runs, limits = [], []
    for _ in range(rounds):
        runs.append(in_child(run, row, minutes, feed))
        limits.append(decompress(cache, compression))
    fastest = min(runs, key=lambda one: one.seconds)
    best = Run(
        fastest.seconds,
        min(one.cpu_seconds for one in runs),
        max(one.peak_mb for one in runs),
        fastest.messages,
        fastest.out_bytes,
        fastest.read_bytes,
    )
    return Best(row, lines, best, min(limits))


HEADER = (
    f"{'':<26}{'raw/s':>12}{'out/s':>12}{'MB/s in':>9}{'MB/s out':>9}"
    f"{'CPU s':>7}{'peak MB':>9}{'x limit':>9}"
)


def show(best: Best) -> None:
    """Print a row."""
    one = best.run
    print(
        f"{best.row:<26}{best.lines / one.seconds:>12,.0f}{one.messages / one.seconds:>12,.0f}"
        f"{one.read_bytes / one.seconds / 1e6:>9.0f}{one.out_bytes / one.seconds / 1e6:>9.0f}"
        f"{one.cpu_seconds:>7.2f}{one.peak_mb:>9.0f}{one.seconds / best.limit_seconds:>9.2f}",
        flush=True,
    )


def compare(minutes: int, root: Path) -> None:
    """Print all rows, and which bars are met."""
    with SampleApiThread(SampleMarket(messages_per_second=MESSAGES_PER_SECOND)) as api:
        for compression in ("zstd", "gzip"):
            print(f"\n{compression}, {minutes} minutes of {EXCHANGE}, limit: {compression} -d")
            print(HEADER)
            for row in (RAW, *DATA_TYPES):
                cache = root / compression / row
                feed = FeedOptions(
                    endpoint=api.endpoint, cache_dir=str(cache), compression=compression
                )
                best = measure(row, minutes, feed, ROUNDS)
                show(best)
                if row in BARS:
                    ratio = best.run.seconds / best.limit_seconds
                    verdict = "met" if ratio <= BARS[row] else "not met"
                    print(f"  at most {BARS[row]} x the limit: {verdict}")
                if best.run.peak_mb > MEMORY_BAR_MB:
                    print(f"  at most {MEMORY_BAR_MB} MB: not met")


def scale(minutes: int, root: Path) -> None:
    """Print how cost grows."""
    print(HEADER)
    for depth in DEPTHS:
        market = SampleMarket(messages_per_second=MESSAGES_PER_SECOND, book_levels=depth)
        with SampleApiThread(market) as api:
            for times in RANGES:
                for row in ("trade,book_change", "book_snapshot_20_100ms"):
                    cache = root / f"{depth}-{times}" / row
                    feed = FeedOptions(
                        endpoint=api.endpoint, cache_dir=str(cache), compression="zstd"
                    )
                    best = measure(row, minutes * times, feed, 1)
                    name = f"{depth:,} levels, {times} x, {row[:8]}"
                    show(Best(name, best.lines, best.run, best.limit_seconds))


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, help=f"default {MINUTES}, with --scaling 1")
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        if options.scaling:
            scale(options.minutes or 1, Path(root))
        else:
            compare(options.minutes or MINUTES, Path(root))


if __name__ == "__main__":
    main()
