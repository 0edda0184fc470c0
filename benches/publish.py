"""Encode and publish to real brokers: ours, Python's usual clients, and the brokers' load tools.

usage: python benches/publish.py [--events N] [--only kafka|redis|nats]

Starts the brokers that scripts/brokers.sh installed, one at a time. Contenders take turns, four
times (twelve on Redis, whose load tool is tried with three numbers of connections), and the best of
each figure counts. Nothing is asserted; the report says which bars are met.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

# The brokers are those of the tests.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from publishing import ours, python_publishers
from publishing.buses import BUSES, Bus
from publishing.figures import Figures
from publishing.trades import CHUNK, SYMBOLS, Trades

PYTHON_SHARE = 8
"""Python publishes so many times fewer events, to end in the same time."""
LIMIT_SHARE = 0.85
"""Of the load tool's events a second, which ours must reach."""

COLUMNS = "ours, Arrow columns"
LINES = "ours, JSON lines"
PYTHON = "(a) Python"
LIMIT = "(b) "

T = TypeVar("T")


def in_child(function: Callable[..., T], *arguments: object) -> T:
    """Call a function in a new process, whose CPU time is its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as process:
        return process.submit(function, *arguments).result()


class Course:
    """A bus and its contenders."""

    def __init__(self, bus: Bus, trades: Trades, events: int) -> None:
        self._bus = bus
        self._trades = trades
        self._events = events
        self._runs = 0

    def _run(self, contender: str, events: int) -> Figures:
        """Let a contender publish to a destination that is made for it."""
        self._runs += 1
        bus, trades = self._bus, self._trades
        destination = f"bench-{self._runs}"
        options = bus.create(destination)
        if contender == PYTHON:
            events = max(events // PYTHON_SHARE, 1)
            figures = in_child(python_publishers.publish, bus.name, options, trades, events)
        elif contender in {COLUMNS, LINES}:
            form = "columns" if contender == COLUMNS else "lines"
            figures = in_child(ours.publish, bus.name, options, trades, events, form)
        else:
            figures, events = bus.limit(destination, trades, events)
        arrived = bus.count(destination)
        bus.delete(destination)
        # A load tool may fill its last pipeline.
        if arrived < events:
            raise RuntimeError(f"{contender}: {arrived} of {events} events are in {bus.name}")
        return figures

    def figures(self) -> dict[str, Figures]:
        """Run all contenders in turn; return the best of each."""
        # A broker that just started is slower than it will be.
        self._run(COLUMNS, self._events)
        best: dict[str, Figures] = {}
        for _ in range(self._bus.rounds):
            for contender in (COLUMNS, LINES, PYTHON, LIMIT + self._bus.limit_name):
                figures = self._run(contender, self._events)
                best[contender] = figures.best(best.get(contender, figures))
                print(
                    f"  {contender:<32}{figures.rate:>11,.0f}/s  (load {os.getloadavg()[0]:.1f})",
                    file=sys.stderr,
                    flush=True,
                )
        return best


def report(bus: Bus, best: dict[str, Figures]) -> None:
    """Print the table of a bus, and which bars it meets."""
    python, limit = best[PYTHON], best[LIMIT + bus.limit_name]
    print(f"\n{bus.name}: {bus.setting}")
    print(
        f"  {'':<32}{'events/s':>11}{'CPU s/million':>15}{'x (a)':>8}{'CPU of (a)':>12}"
        f"{'of (b)':>8}"
    )
    for contender, figures in best.items():
        print(
            f"  {contender:<32}{figures.rate:>11,.0f}{figures.cpu:>15.2f}"
            f"{figures.rate / python.rate:>8.1f}{figures.cpu / python.cpu:>12.1%}"
            f"{figures.rate / limit.rate:>8.0%}"
        )
    mine = best[COLUMNS]
    bars = [
        (f"at least {LIMIT_SHARE:.0%} of (b)", mine.rate / limit.rate >= LIMIT_SHARE),
        (f"at least {bus.times_python:.0f} x (a)", mine.rate / python.rate >= bus.times_python),
    ]
    if bus.share_of_python_cpu is not None:
        bar = f"at most {bus.share_of_python_cpu:.1%} of the CPU of (a)"
        bars.append((bar, mine.cpu / python.cpu <= bus.share_of_python_cpu))
    for bar, is_met in bars:
        print(f"  {bar:<42}{'met' if is_met else 'not met'}")


def main() -> None:
    """Run everything and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--only", choices=list(BUSES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="publish-bench-") as directory:
        trades = Trades(Path(directory))
        size = trades.write(options.events)
        print(
            f"{options.events:,} trades of {size:.0f} bytes, {SYMBOLS} symbols, {CHUNK:,} in a "
            f"batch; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        for name in [options.only] if options.only else list(BUSES):
            bus = BUSES[name](Path(directory) / name)
            try:
                report(bus, Course(bus, trades, options.events).figures())
            finally:
                bus.broker.stop()


if __name__ == "__main__":
    main()
