"""Merged streams against a sort, over random times of receipt."""

import json
import tempfile
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import tardis_fast
from replay.slices_api import SlicesApi
from tardis_fast import FeedOptions, Stream

START = datetime(2020, 2, 1, tzinfo=timezone.utc)
MINUTE_MS = 60_000


def line(millis: int, symbol: str, number: int) -> str:
    """Return a raw trade as the archive keeps it."""
    stamp = (START + timedelta(milliseconds=millis)).strftime("%Y-%m-%dT%H:%M:%S.%f")
    row = {"timestamp": stamp[:-3] + "Z", "symbol": symbol, "side": "Buy", "size": 1}
    trade = {
        "table": "trade",
        "action": "insert",
        "data": [row | {"price": 1, "trdMatchID": str(number)}],
    }
    return f"{stamp}0Z {json.dumps(trade)}\n"


def write_minute(root: Path, number: int, lines: str) -> None:
    """Write a slice where the API looks for it."""
    minute = START + timedelta(minutes=number)
    path = root / "bitmex" / minute.strftime("%Y/%m/%d/%H/%M.json.zst")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pa.Codec("zstd").compress(lines.encode(), asbytes=True))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2 * MINUTE_MS - 1), st.sampled_from("ABC")),
        max_size=80,
    )
)
def test_merged_streams_are_sorted_with_ties_to_the_earlier(times: list[tuple[int, str]]) -> None:
    arrivals = sorted(times, key=lambda arrival: arrival[0])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for number in (0, 1):
            lines = [
                line(millis, symbol, position)
                for position, (millis, symbol) in enumerate(arrivals)
                if millis // MINUTE_MS == number
            ]
            write_minute(root, number, "".join(lines))
        with SlicesApi(root) as api:
            feed = FeedOptions(endpoint=api.endpoint, cache_dir=root / "cache")
            streams = [
                Stream("bitmex", START, START + timedelta(minutes=2), ["trade"], [symbol])
                for symbol in "ABC"
            ]
            merged = list(tardis_fast.replay_normalized(*streams, feed=feed).messages())
    # A stable sort: those of one moment stay in the order of their streams, and of their arrival.
    by_stream = [(symbol, number, millis) for number, (millis, symbol) in enumerate(arrivals)]
    expected = sorted(sorted(by_stream), key=lambda arrival: arrival[2])
    found = [(message["symbol"], int(message["id"])) for message in merged if message]
    assert found == [(symbol, number) for symbol, number, _ in expected]
