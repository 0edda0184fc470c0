"""What all contenders publish: the same trades, prepared before any clock starts."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import tardis_fast

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHUNK = 10_000
"""Rows in a batch; as many as Spark puts in one unless told otherwise."""
SYMBOLS = 50
META = {"request_id": "0d9c7d5c-1f9e-4f7e-8a31-74f4a2a2b1c9", "route": "/replay-normalized"}
PAYLOAD_DELIMITER = b"<end of event>"

_START_MICROS = 1_709_251_201_234_567
_COLUMNS = "trades.arrow"
_LINES = "trades.jsonl"
_EVENT = "event.bin"
_PAYLOADS = "payloads.txt"


class Trades:
    """A directory with trades as Arrow columns and as JSON lines, the same in both."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def event(self) -> Path:
        """The file of one event, the body of a load tool's messages."""
        return self.directory / _EVENT

    @property
    def payloads(self) -> Path:
        """A file of events for a load tool that reads text.

        These are real events, so that they compress as events do; only the highest bit of each
        byte is cleared, so that they are text of the same length.
        """
        return self.directory / _PAYLOADS

    def write(self, events: int) -> float:
        """Write everything; return the mean size of an event in bytes."""
        encoder = tardis_fast.BronzeEncoder(origin="replay", meta=META)
        size = 0
        schema = tardis_fast.bronze_schema("trade")
        with (
            (self.directory / _LINES).open("wb") as lines_file,
            pa.OSFile(str(self.directory / _COLUMNS), "wb") as columns_file,
            pa.ipc.new_file(columns_file, schema) as columns,
        ):
            for start in range(0, events, CHUNK):
                lines = b"".join(_lines(start, min(start + CHUNK, events)))
                lines_file.write(lines)
                encoded = encoder.encode_json(lines)
                columns.write_batch(tardis_fast.events_by_case(encoded)["trade"])
                size += sum(len(event) for event in encoded.to_pylist())
                if start == 0:
                    self._write_payloads(encoded.to_pylist())
        return size / events

    def _write_payloads(self, events: list[bytes]) -> None:
        self.event.write_bytes(events[0])
        as_text = bytes(byte & 0x7F for byte in range(256))
        texts = [event.translate(as_text) for event in events]
        if any(PAYLOAD_DELIMITER in text for text in texts):
            raise RuntimeError("the delimiter of payloads is in one of them")
        self.payloads.write_bytes(PAYLOAD_DELIMITER.join(texts))

    def batches(self, events: int) -> list[Any]:
        """Return the first trades as record batches of narrow columns."""
        with pa.OSFile(str(self.directory / _COLUMNS)) as file:
            table = pa.ipc.open_file(file).read_all()
        return list(table.slice(0, events).to_batches())

    def chunks(self, events: int) -> list[bytes]:
        """Return the first trades as JSON lines, as many in a chunk as in a batch."""
        lines = (self.directory / _LINES).read_bytes().splitlines(keepends=True)[:events]
        return [b"".join(lines[at : at + CHUNK]) for at in range(0, len(lines), CHUNK)]

    def rows(self, events: int) -> list[dict[str, Any]]:
        """Return the first trades as dicts of the columns; times as microseconds."""
        table = pa.Table.from_batches(self.batches(events))
        for name in ("local_ts", "ingest_ts", "event_ts"):
            at = table.column_names.index(name)
            table = table.set_column(at, name, table.column(name).cast(pa.int64()))
        rows: list[dict[str, Any]] = table.to_pylist()
        for row in rows:
            row["meta"] = dict(row["meta"])
        return rows


def _lines(start: int, stop: int) -> Iterator[bytes]:
    # The same trades in every run.
    chance = random.Random(start)  # noqa: S311
    for number in range(start, stop):
        micros = _START_MICROS + number * 137
        message = {
            "type": "trade",
            "symbol": f"COIN{chance.randrange(SYMBOLS):02}USDT",
            "exchange": "binance-futures",
            "id": str(3_391_206_410 + number),
            "price": chance.randrange(6_000_000, 6_500_000) / 100,
            "amount": chance.randrange(1, 5_000_000) / 1_000,
            "side": chance.choice(("buy", "sell")),
            "timestamp": _iso(micros - 30_000),
            "localTimestamp": _iso(micros),
        }
        yield json.dumps(message).encode() + b"\n"


def _iso(micros: int) -> str:
    seconds, rest = divmod(micros - _START_MICROS // 1_000_000 * 1_000_000, 1_000_000)
    hours, minutes, seconds = seconds // 3_600, seconds // 60 % 60, seconds % 60
    return f"2024-03-01T{hours:02}:{minutes:02}:{seconds:02}.{rest:06}Z"
