"""Trades for the tests of buses, and what is found in Bronze events."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from tardis_fast import DeadLetterReader
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tardis_fast.publisher import BusStats

TIME = "2024-03-01T00:00:01.200Z"


def trade(symbol: str, number: object, **fields: object) -> bytes:
    """Return the JSON line of a trade whose id is a number."""
    message: dict[str, object] = {
        "type": "trade",
        "symbol": symbol,
        "exchange": "bitmex",
        "id": str(number),
        "price": 1,
        "amount": 1,
        "side": "buy",
        "timestamp": TIME,
        "localTimestamp": TIME,
    }
    return json.dumps(message | fields).encode() + b"\n"


def trades(symbols: int, each: int) -> bytes:
    """Return trades of several symbols in turn, numbered for each symbol."""
    return b"".join(
        trade(f"S{symbol}", number) for number in range(each) for symbol in range(symbols)
    )


def numbers_by_symbol(events: Iterable[bytes]) -> dict[str, list[int]]:
    """Return the numbers of trades, in their order; those that came again only once."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for data in events:
        event = NormalizedEvent.FromString(data)
        number = int(event.trade.trade_id)
        if number not in found[event.symbol]:
            found[event.symbol].append(number)
    return dict(found)


def in_order(symbols: int, each: int) -> dict[str, list[int]]:
    """Return the numbers that `trades` gives, in their order."""
    return {f"S{symbol}": list(range(each)) for symbol in range(symbols)}


def reasons(stats: BusStats) -> list[str]:
    """Return why the dead letters of a bus are dead."""
    if stats.dead_letter_file is None:
        return []
    batches = DeadLetterReader(stats.dead_letter_file)
    return [reason for batch in batches for reason in batch.column("reason").to_pylist()]
