"""A producer in a process of its own: publishes numbered trades and says what it saw.

Reads one JSON object from standard input, writes JSON lines to standard output: `{"published": …}`
when everything is with the publisher, then, told to go on by a line, `{"stats": …, …}` at the end.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tardis_fast.publisher import Publisher

if TYPE_CHECKING:
    from tardis_fast.publisher import BusStats

CHUNK = 200


def trades(numbers: range, keys: int) -> bytes:
    """Return trades as JSON lines; a trade's id is its number, its symbol its key."""
    lines = [
        f'{{"type":"trade","symbol":"KEY{number % keys}","exchange":"bitmex","id":"{number}",'
        f'"price":{30_000 + number % 100},"amount":1.5,"side":"buy",'
        '"timestamp":"2024-05-01T00:00:00.000Z","localTimestamp":"2024-05-01T00:00:00.001Z"}'
        for number in numbers
    ]
    return "\n".join(lines).encode()


@dataclass
class Watch:
    """What is looked at after every chunk."""

    bus: str
    memory_bound: int
    samples: int = 0
    unbalanced: int = 0
    over_bound: int = 0
    longest_publish: float = 0.0
    rss: list[int] = field(default_factory=list)

    def look(self, stats: BusStats) -> None:
        """Take one sample."""
        self.samples += 1
        self.unbalanced += not stats.is_balanced
        # One batch of 128 KiB may lie between the queue and the outbox.
        held = stats.in_memory_bytes + stats.in_flight_bytes
        self.over_bound += held > self.memory_bound + 2 * 128 * 1024
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - not a file
            self.rss.append(int(statm.read().split()[1]) * resource.getpagesize())


def run(order: dict[str, Any]) -> None:
    """Publish as ordered."""
    bus = str(order["bus"])
    delivery = order["delivery"]
    publisher = Publisher(
        **{bus: order["options"]},
        delivery=delivery,
        state_dir=order["state_dir"],
        meta={"padding": "x" * order["padding"]},
    )
    watch = Watch(bus, int(delivery["max_memory_mb"]) << 20)
    first, events, seconds = order["first"], order["events"], order["seconds"]
    begin = time.monotonic()
    for start in range(first, first + events, CHUNK):
        numbers = range(start, min(start + CHUNK, first + events))
        called = time.monotonic()
        publisher.publish(trades(numbers, order["keys"]))
        watch.longest_publish = max(watch.longest_publish, time.monotonic() - called)
        watch.look(publisher.stats()[bus])
        ahead = (numbers.stop - first) / events * seconds - (time.monotonic() - begin)
        if ahead > 0:
            time.sleep(ahead)
    tell({"published": events, "stats": vars_of(publisher.stats()[bus])})
    sys.stdin.readline()
    flushed = publisher.flush(order["flush_seconds"])
    watch.look(publisher.stats()[bus])
    left = publisher.close(order["drain_seconds"])[bus].left
    stats = publisher.stats()[bus]
    watch.look(stats)
    tell({"flushed": flushed, "left": left, "stats": vars_of(stats), "watch": vars(watch)})


def vars_of(stats: BusStats) -> dict[str, Any]:
    """Return the figures of a ledger."""
    names = (
        "accepted",
        "acknowledged",
        "retried",
        "dead_lettered",
        "spilled",
        "spilled_total",
        "dropped",
        "waiting",
        "last_error",
    )
    return {name: getattr(stats, name) for name in names}


def tell(answer: dict[str, Any]) -> None:
    """Write one line of the answer."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    run(json.loads(sys.stdin.readline()))
    sys.stdout.flush()
    os._exit(0)
