"""Bars and snapshots against plain ones, written a second time, over random trades and books."""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tardis_fast import Computer

if TYPE_CHECKING:
    from collections.abc import Iterator

START = datetime(2020, 2, 1, tzinfo=timezone.utc)
Message = dict[str, Any]


def iso(millis: int) -> str:
    """Return a time after the start as the messages write it."""
    return (START + timedelta(milliseconds=millis)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def millis_of(text: str) -> int:
    """Return the milliseconds since 1970."""
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1e3)


def iso_of(millis: int) -> str:
    """Return the text of milliseconds since 1970."""
    return iso(millis - round(START.timestamp() * 1e3))


def computed(messages: list[Message], *data_types: str) -> list[Message]:
    """Return what the core computes."""
    computer = Computer(list(data_types))
    lines = "".join(json.dumps(message) + "\n" for message in messages).encode()
    out = [json.loads(line) for line in computer.feed(lines).splitlines()]
    return [message for message in out if message["type"] not in {"trade", "book_change"}]


@st.composite
def trades(draw: st.DrawFn) -> list[Message]:
    """Make trades, some of them late."""
    now = 0
    made = []
    for number in range(draw(st.integers(0, 60))):
        now += draw(st.integers(0, 900))
        late = draw(st.sampled_from([0, 0, 0, 250, 3000]))
        made.append(
            {
                "type": "trade",
                "symbol": draw(st.sampled_from(["A", "B"])),
                "exchange": "bitmex",
                "id": str(number),
                "price": draw(st.integers(1, 40)) / 2,
                "amount": draw(st.sampled_from([0.25, 1, 2, 7.5])),
                "side": draw(st.sampled_from(["buy", "sell", "unknown"])),
                "timestamp": iso(now - late),
                "localTimestamp": iso(now),
            }
        )
    return made


def plain_bars(messages: list[Message], kind: str, size: int) -> Iterator[Message]:
    """Sum trades up, a list of trades per bar."""
    open_trades: dict[str, list[Message]] = {}
    for trade in messages:
        bar = open_trades.setdefault(trade["symbol"], [])
        if kind == "time" and bar:
            bucket = millis_of(bar[0]["timestamp"]) // size
            if millis_of(trade["timestamp"]) // size > bucket:
                yield plain_bar(bar, kind, size, trade, iso_of((bucket + 1) * size))
                bar.clear()
        bar.append(trade)
        full = {
            "tick": len(bar) >= size,
            "volume": sum(one["amount"] for one in bar) >= size,
            "time": False,
        }
        if full[kind]:
            yield plain_bar(bar, kind, size, trade, None)
            bar.clear()


def plain_bar(bar: list[Message], kind: str, size: int, trade: Message, end: str | None) -> Message:
    """Make a bar of its trades."""
    prices = [one["price"] for one in bar]
    last = bar[0]
    for one in bar:
        if one["timestamp"] >= last["timestamp"]:
            last = one
    suffix = {"tick": "ticks", "volume": "vol", "time": "ms"}[kind]

    def volume(*sides: str) -> float:
        return float(sum(one["amount"] for one in bar if one["side"] in sides))

    total = volume("buy", "sell", "unknown")
    return {
        "type": "trade_bar",
        "symbol": trade["symbol"],
        "exchange": "bitmex",
        "name": f"trade_bar_{size}{suffix}",
        "interval": size,
        "kind": kind,
        "open": prices[0],
        "high": max(prices),
        "low": min(prices),
        "close": last["price"],
        "volume": total,
        "buyVolume": volume("buy"),
        "sellVolume": volume("sell"),
        "trades": len(bar),
        "vwap": sum(one["price"] * one["amount"] for one in bar) / total,
        "openTimestamp": bar[0]["timestamp"],
        "closeTimestamp": last["timestamp"],
        "localTimestamp": trade["localTimestamp"],
        "timestamp": end or last["timestamp"],
    }


def assert_same(found: list[Message], expected: list[Message]) -> None:
    """Compare, with the rounding that sums in another order have."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        for name, value in one.items():
            if isinstance(value, float):
                assert math.isclose(value, other[name], rel_tol=1e-12), (name, one, other)
            else:
                assert value == other[name], (name, one, other)


@settings(max_examples=150, deadline=None)
@given(
    trades(), st.sampled_from([("time", 1000, "ms"), ("tick", 3, "ticks"), ("volume", 5, "vol")])
)
def test_bars_are_sums_of_their_trades(
    messages: list[Message], shape: tuple[str, int, str]
) -> None:
    kind, size, suffix = shape
    found = computed(messages, f"trade_bar_{size}{suffix}")
    assert_same(found, list(plain_bars(messages, kind, size)))


@st.composite
def books(draw: st.DrawFn) -> list[Message]:
    """Make book changes of one symbol, some before the first snapshot, some crossed."""
    now = 0
    made = []
    level = st.tuples(st.integers(1, 30), st.sampled_from([0, 0, 1, 2.5, 4]))
    for _ in range(draw(st.integers(0, 40))):
        now += draw(st.integers(0, 150))
        sides = {
            side: [
                {"price": tick / 2, "amount": amount}
                for tick, amount in draw(st.lists(level, max_size=5))
            ]
            for side in ("bids", "asks")
        }
        made.append(
            {
                "type": "book_change",
                "symbol": "A",
                "exchange": "bitmex",
                "isSnapshot": draw(st.integers(0, 9)) == 0,
                **sides,
                "timestamp": iso(now),
                "localTimestamp": iso(now),
            }
        )
    return made


class PlainBook:
    """A book that is sorted anew each time it is looked at."""

    def __init__(self) -> None:
        self.sides: dict[str, dict[float, float]] = {"bids": {}, "asks": {}}
        self.is_known = False

    def apply(self, change: Message) -> None:
        """Apply a change, and uncross."""
        if change["isSnapshot"]:
            self.sides = {"bids": {}, "asks": {}}
            self.is_known = True
        if not self.is_known:
            return
        for side in ("asks", "bids"):
            for level in change[side]:
                self.sides[side].pop(level["price"], None)
                if level["amount"]:
                    self.sides[side][level["price"]] = level["amount"]
        bids, asks = self.sides["bids"], self.sides["asks"]
        if bids and asks and max(bids) >= min(asks):
            touched = {level["price"] for level in change["asks"]}
            loses_bid = min(asks) in touched
            while bids and asks and max(bids) >= min(asks):
                if loses_bid:
                    del bids[max(bids)]
                else:
                    del asks[min(asks)]

    def top(self, depth: int, grouping: int | None) -> tuple[list[Message], list[Message]]:
        """Return the best levels of both sides, empty ones included."""
        tops = []
        for side, sign in (("bids", -1), ("asks", 1)):
            levels: dict[float, float] = {}
            for price, amount in sorted(self.sides[side].items(), key=lambda item: sign * item[0]):
                bucket = price
                if grouping is not None:
                    rounding = math.floor if side == "bids" else math.ceil
                    bucket = rounding(price / grouping) * grouping
                levels[bucket] = levels.get(bucket, 0) + amount
            made: list[Message] = [
                {"price": price, "amount": amount} for price, amount in levels.items()
            ]
            tops.append((made + [{}] * depth)[:depth])
        return tops[0], tops[1]


def plain_snapshots(
    messages: list[Message], name: str, depth: int, interval: int, grouping: int | None
) -> Iterator[Message]:
    """Take snapshots of a plain book."""
    book = PlainBook()
    seen = book.top(depth, grouping)
    has_changed = is_begun = False
    last = 0
    for change in messages:
        now = millis_of(change["timestamp"])
        for step in ("before", "after"):
            if step == "after":
                book.apply(change)
                top = book.top(depth, grouping)
                has_changed |= top != seen
                seen = top
                last = now
            if not has_changed:
                continue
            stamp = last
            if interval and is_begun:
                if now // interval <= last // interval:
                    continue
                stamp = last = (last // interval + 1) * interval
            has_changed = False
            is_begun |= step == "after"
            yield {
                "type": "book_snapshot",
                "symbol": "A",
                "exchange": "bitmex",
                "name": name,
                "depth": depth,
                "interval": interval,
                **({} if grouping is None else {"grouping": grouping}),
                "bids": seen[0],
                "asks": seen[1],
                "timestamp": iso_of(stamp),
                "localTimestamp": change["localTimestamp"],
            }


@settings(max_examples=150, deadline=None)
@given(
    books(),
    st.sampled_from(
        [
            ("quote", 1, 0, None),
            ("book_snapshot_3_0ms", 3, 0, None),
            ("book_snapshot_2_100ms", 2, 100, None),
            ("book_snapshot_2_grouped2_0ms", 2, 0, 2),
            ("book_snapshot_3_grouped5_100ms", 3, 100, 5),
        ]
    ),
)
def test_snapshots_are_the_top_of_the_book(
    messages: list[Message], shape: tuple[str, int, int, int | None]
) -> None:
    name, depth, interval, grouping = shape
    found = computed(messages, name)
    assert_same(found, list(plain_snapshots(messages, name, depth, interval, grouping)))
