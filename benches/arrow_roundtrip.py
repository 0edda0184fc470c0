"""A million Bronze events to Arrow and back.

usage: python benches/arrow_roundtrip.py [ROWS]

Whole arrays cross into Rust; no Python code runs per row.
"""

import sys
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pyarrow as pa

import tardis_fast


def best(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the best time of three calls, in seconds, and the last result."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - started)
    return min(times), result


def report(name: str, lines: bytes, rows: int) -> None:
    """Print the rates of `rows` events made from `lines`."""
    encoder = tardis_fast.BronzeEncoder(origin="replay", meta={"session_id": "bench"})
    chunk = encoder.encode_json(lines)
    chunks = [chunk] + [encoder.encode_json(lines) for _ in range(rows // len(chunk))]
    events = pa.concat_arrays(chunks).slice(0, rows)
    print(f"\n{name}: {len(events):,} events, {events.nbytes / len(events):.0f} bytes each")
    wide_time, wide = best(lambda: tardis_fast.events_to_batch(events))
    back_time, back = best(lambda: tardis_fast.batch_to_events(wide))
    narrow_time, narrow = best(lambda: tardis_fast.events_by_case(events))
    narrow_back_time, _ = best(
        lambda: [tardis_fast.batch_to_events(b, case=case) for case, b in narrow.items()]
    )
    if not back.equals(events):
        sys.exit("the events did not come back as they were")
    for step, seconds in (
        ("Bronze → Arrow, wide", wide_time),
        ("Arrow → Bronze, wide", back_time),
        ("Bronze → Arrow, narrow by case", narrow_time),
        ("Arrow → Bronze, narrow", narrow_back_time),
    ):
        print(f"  {step:<32}{rows / seconds:>14,.0f} rows/s")


def main() -> None:
    """Run on trades alone and on all payload cases."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    samples = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes()
    trade = next(line for line in samples.splitlines() if b'"binance"' in line)
    report("trades", (trade + b"\n") * 10_000, rows)
    report("all payload cases", samples * 300, rows)


if __name__ == "__main__":
    main()
