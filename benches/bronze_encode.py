"""Bronze encoding: direct encoder, prost's structs and Python's protobuf on the same messages.

usage: python benches/bronze_encode.py

Runs the criterion bench `bronze_encode`, then Python's protobuf as a competent user would write it,
and prints one table. The bars: direct at least 3 times prost's structs and 50 times Python.
"""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from google.protobuf.internal import api_implementation

from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import (
    ACTION_DELETE,
    ACTION_UPSERT,
    ORIGIN_REPLAY,
    SIDE_BUY,
    SIDE_SELL,
    NormalizedEvent,
)

ROOT = Path(__file__).resolve().parent.parent
MESSAGES = 1_000
LOCAL = 1_709_251_201_234_567
META = {
    "request_id": "0d9c7d5c-1f9e-4f7e-8a31-74f4a2a2b1c9",
    "route": "/replay-normalized",
    "transport": "http",
}


def decimal(value: float) -> str:
    """Return plain decimal text, as short as it can be; these values need no exponent."""
    return str(int(value)) if value.is_integer() else repr(value)


def envelope(n: int, seq: int, data_type: str) -> NormalizedEvent:
    """Return an event without its payload."""
    event = NormalizedEvent(
        source="tardis-fast",
        exchange="binance-futures",
        symbol="BTCUSDT",
        origin=ORIGIN_REPLAY,
        event_seq=seq,
        meta=META,
    )
    local = LOCAL + n * 1_000
    event.local_ts.seconds, event.local_ts.nanos = local // 1_000_000, local % 1_000_000 * 1_000
    ingest = LOCAL + 500
    event.ingest_ts.seconds = ingest // 1_000_000
    event.ingest_ts.nanos = ingest % 1_000_000 * 1_000
    event.meta["data_type"] = data_type
    return event


def encode_trades() -> int:
    """Encode the bench's trades and return their bytes."""
    size = 0
    for n in range(MESSAGES):
        event = envelope(n, n + 1, "trade")
        trade = event.trade
        trade.trade_id = str(3_391_206_410 + n)
        trade.price_str = decimal((6_234_990 + n) / 100)
        trade.qty_str = decimal((1 + n * 7) / 1_000)
        trade.side = SIDE_BUY if n % 2 == 0 else SIDE_SELL
        millis = LOCAL // 1_000 - 30 + n
        trade.event_ts.seconds, trade.event_ts.nanos = millis // 1_000, millis % 1_000 * 1_000_000
        size += len(event.SerializeToString())
    return size


def book_side(n: int, direction: int) -> list[tuple[float, float]]:
    """Return ten levels of a book change."""
    return [
        ((623_499 + n + direction * level) / 10, (n * 31 + level * 17) % 5_000 / 1_000)
        for level in range(10)
    ]


def encode_levels() -> int:
    """Encode the bench's book changes, one event a level."""
    size = seq = 0
    for n in range(MESSAGES):
        part = 0
        millis = LOCAL // 1_000 - 30 + n
        for side, direction in ((SIDE_BUY, -1), (SIDE_SELL, 1)):
            for position, (price, amount) in enumerate(book_side(n, direction)):
                seq += 1
                event = envelope(n, seq, "book_change")
                event.meta["is_snapshot"] = "false"
                change = event.book_change
                change.side = side
                change.action = ACTION_UPSERT if amount else ACTION_DELETE
                change.price_str = decimal(price)
                change.qty_str = decimal(amount)
                change.level = position
                change.event_ts.seconds = millis // 1_000
                change.event_ts.nanos = millis % 1_000 * 1_000_000
                change.part, change.parts = part, 20
                part += 1
                size += len(event.SerializeToString())
    return size


def encode_whole_changes() -> int:
    """Encode the bench's book changes, one event a message."""
    size = 0
    for n in range(MESSAGES):
        event = envelope(n, n + 1, "book_change")
        event.meta["is_snapshot"] = "false"
        change = event.book_change
        millis = LOCAL // 1_000 - 30 + n
        change.event_ts.seconds, change.event_ts.nanos = millis // 1_000, millis % 1_000 * 1_000_000
        for levels, direction in ((change.bids, -1), (change.asks, 1)):
            for price, amount in book_side(n, direction):
                levels.add(price_str=decimal(price), qty_str=decimal(amount))
        size += len(event.SerializeToString())
    return size


def python_nanos(encode: Callable[[], int]) -> float:
    """Return the median time a message of `encode`, in nanoseconds."""
    times = []
    for _ in range(7):
        started = time.perf_counter_ns()
        encode()
        times.append((time.perf_counter_ns() - started) / MESSAGES)
    return sorted(times)[len(times) // 2]


def criterion_nanos(group: str, function: str) -> float:
    """Return criterion's median time a message, in nanoseconds."""
    estimates = ROOT / "target" / "criterion" / group / function / "new" / "estimates.json"
    median: float = json.loads(estimates.read_text())["median"]["point_estimate"]
    return median / MESSAGES


def main() -> None:
    """Run everything and print the report."""
    command = ["cargo", "bench", "--quiet", "--locked", "-p", "bronze_core"]
    subprocess.run([*command, "--bench", "bronze_encode", "--", "--noplot"], cwd=ROOT, check=True)
    print(f"\nPython protobuf implementation: {api_implementation.Type()}; times are per message")
    print(
        f"{'message':<26}{'direct':>12}{'prost':>12}{'Python':>12}{'x prost':>10}{'x Python':>10}"
    )
    for group, encode in (
        ("trade", encode_trades),
        ("book_change_20_levels", encode_levels),
        ("book_change_20_message", encode_whole_changes),
    ):
        direct = criterion_nanos(group, "direct")
        prost = criterion_nanos(group, "prost_structs")
        python = python_nanos(encode)
        print(
            f"{group:<26}{direct:>9,.0f} ns{prost:>9,.0f} ns{python:>9,.0f} ns"
            f"{prost / direct:>10.1f}{python / direct:>10.1f}"
        )


if __name__ == "__main__":
    main()
