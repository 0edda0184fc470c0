"""A soak: events at a steady rate for minutes, through random faults; memory must stay flat.

Run it in `tests`, with the brokers installed: `python -m faults.soak --bus kafka --minutes 10`.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from brokers.toxiproxy import Toxiproxy
from faults.account import account
from faults.child import ProducerProcess
from faults.stages import BUSES, own_stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from faults.stage import Stage


def faults(stage: Stage, chance: random.Random) -> dict[str, Callable[[], None]]:
    """Return what can go wrong, by name; each heals what it did."""
    proxy = stage.proxy

    def toxic(kind: Any, **attributes: Any) -> None:
        added = proxy.add(kind, **attributes)
        time.sleep(chance.uniform(0.2, 3))
        added.remove()

    def cut() -> None:
        proxy.down()
        time.sleep(chance.uniform(0.2, 8))
        proxy.up()

    def pause() -> None:
        stage.broker.pause()
        time.sleep(chance.uniform(0.2, 14))
        stage.broker.resume()

    return {
        "latency": lambda: toxic("latency", latency=200, jitter=100),
        "reset": lambda: toxic("reset_peer", timeout=100),
        "limit": lambda: toxic("limit_data", stream="upstream", bytes=50_000),
        "slow": lambda: toxic("bandwidth", rate=100),
        "cut": cut,
        "pause": pause,
        "kill": stage.restart,
    }


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def soak(bus: str, minutes: float, rate: int, seed: int, directory: Path) -> bool:
    """Run one soak; return whether it went well."""
    chance = random.Random(seed)  # noqa: S311 - which fault comes next is no secret
    proxies = Toxiproxy(directory / "toxiproxy")
    proxies.start()
    stage = own_stage(bus, directory / "broker", proxies)
    seconds = minutes * 60
    events = int(rate * seconds)
    order = {
        "bus": bus,
        "options": stage.options(),
        "first": 1,
        "keys": 40,
        "events": events,
        "seconds": seconds,
        "padding": 50,
        "flush_seconds": 600,
        "drain_seconds": 60,
        "delivery": {"max_memory_mb": 8, "max_block_ms": 200, "retry_backoff_max_ms": 1_000},
    }
    say(f"{bus}: {events} events in {minutes} minutes, seed {seed}")
    with ProducerProcess(order, directory) as producer:
        end = time.monotonic() + seconds - 30
        while time.monotonic() < end and producer.is_running:
            time.sleep(chance.uniform(2, 10))
            name = chance.choice(list(faults(stage, chance)))
            faults(stage, chance)[name]()
            stage.collect()
        producer.answer()
        producer.go_on()
        answer = producer.answer()
    stage.collect()
    arrived = account(stage.arrived, range(1, events + 1))
    rss = [size >> 20 for size in answer["watch"]["rss"]]
    tenth = max(len(rss) // 10, 1)
    tenths = [statistics.median(rss[at : at + tenth]) for at in range(0, tenth * 10, tenth)]
    say(f"{bus}: RSS in MB, median of each tenth: {tenths}")
    say(f"{bus}: {answer['stats']}")
    say(
        f"{bus}: {arrived.events} arrived, {arrived.duplicates} duplicates, "
        f"missing {arrived.missing}, overtaken {arrived.overtaken}; "
        f"ledger out of balance in {answer['watch']['unbalanced']} of {answer['watch']['samples']} "
        f"samples, memory over its bound in {answer['watch']['over_bound']}"
    )
    stage.broker.kill()
    proxies.stop()
    is_balanced = answer["watch"]["unbalanced"] == answer["watch"]["over_bound"] == 0
    return arrived.is_whole and is_balanced and answer["stats"]["acknowledged"] == events


def main() -> int:
    """Read the arguments and soak."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bus", choices=BUSES, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rate", type=int, default=2_000, help="events a second")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        went_well = soak(
            arguments.bus, arguments.minutes, arguments.rate, arguments.seed, Path(directory)
        )
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
