"""A lake of trades: what it holds, and how it is made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from tardis_fast import Publisher, batch_to_events

if TYPE_CHECKING:
    from pathlib import Path

_CHUNK = 50_000
_START_MICROS = 1_709_251_200_000_000


@dataclass(frozen=True)
class MarketLake:
    """Trades with the ids 0 to `trades` - 1, of ten symbols."""

    table: Path
    """The directory of the trades, which Spark reads as Parquet."""
    trades: int

    def events(self) -> list[bytes]:
        """Return the events, read without Spark."""
        return [
            bytes(event)
            for file in sorted(self.table.rglob("*.parquet"))
            for batch in pq.ParquetFile(file).iter_batches()
            for event in batch_to_events(batch, case="trade").to_pylist()
        ]


def make_lake(directory: Path, trades: int) -> MarketLake:
    """Write trades into a lake."""
    with Publisher(lake={"dir": directory, "roll_seconds": 1}, spill=False) as publisher:
        for first in range(0, trades, _CHUNK):
            numbers = range(first, min(first + _CHUNK, trades))
            publisher.publish("\n".join(trade_line(number) for number in numbers))
        assert publisher.flush(120)
    return MarketLake(directory / "payload_case=trade", trades)


def trade_line(number: int) -> str:
    """Return a trade as JSON."""
    micros = _START_MICROS + number * 1_000
    seconds, rest = divmod(micros - _START_MICROS, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    time = f"2024-03-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{rest:06}Z"
    return json.dumps(
        {
            "type": "trade",
            "symbol": f"S{number % 10}",
            "exchange": "bitmex",
            "id": str(number),
            "price": 100 + number % 997 / 2,
            "amount": 1 + number % 13,
            "side": "buy" if number % 2 else "sell",
            "timestamp": time,
            "localTimestamp": time,
        }
    )
