"""The demo: the sample market served and published to a lake, with clients that read it."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import aiohttp
import pyarrow.parquet as pq
from rich.table import Table

import tardis_fast
from tardis_fast.machine import TardisMachine

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tardis_fast.bus_stats import BusStats

REPLAYED_MINUTES = 5
LIVE_SECONDS = 6.0
"""How long the live stream runs at least, where the demo ends by itself."""
_SYMBOLS = {
    "bitmex": ["XBTUSD", "ETHUSD"],
    "binance-futures": ["BTCUSDT", "ETHUSDT"],
    "deribit": ["BTC-PERPETUAL", "ETH-PERPETUAL"],
}
_DATA_TYPES = ["trade", "book_change", "derivative_ticker", "book_snapshot_10_1s"]
_START, _END = "2020-02-01", f"2020-02-01T00:{REPLAYED_MINUTES:02}"
_REPLAY, _LIVE = "/replay-normalized", "/ws-stream-normalized"
_READ_BYTES = 256 << 10


@dataclass
class Stream:
    """What a client of the demo asked for and got."""

    name: str
    endpoint: str
    messages: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Demo:
    """A machine with a lake, and its clients, all in one process."""

    def __init__(self, directory: Path, console: Console) -> None:
        self._lake = directory / "lake"
        self._console = console
        self._machine = TardisMachine(
            cache_dir=directory / "cache",
            server={"sample": True, "request_log": False},
            lake={"dir": str(self._lake), "roll_seconds": 2},
            state_dir=str(directory / "state"),
        )
        self._files_before = set(self._files())
        self._live = Stream("all of them, live", _LIVE)
        self._streams: list[Stream] = []

    async def run(self, port: int, stopping: asyncio.Event, *, once: bool) -> bool:
        """Run until `stopping`, or with `once` until a bounded amount is done; print a summary.

        Returns whether all is as it should be.
        """
        await self._machine.start(port)
        try:
            self._console.print(f"tardis-fast {tardis_fast.__version__} at {self._machine.address}")
            if not once:
                self._say_what_to_try()
            live = asyncio.create_task(self._read_live())
            replays = asyncio.create_task(self._read_replays())
            enough = [replays, asyncio.create_task(asyncio.sleep(LIVE_SECONDS))]
            until = asyncio.gather(*enough) if once else stopping.wait()
            stop = asyncio.create_task(stopping.wait())
            await asyncio.wait(
                {asyncio.ensure_future(until), stop, live}, return_when=asyncio.FIRST_COMPLETED
            )
            await self._count_live()
            tasks = [live, stop, *enough]
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            await self._machine.stop()
        failures = [end for end in ends if isinstance(end, Exception)]
        for failure in failures:
            self._console.print(f"error: {failure}", markup=False, soft_wrap=True)
        return self._print_summary() and not failures

    async def _read_replays(self) -> None:
        """Replay each exchange over HTTP, one after the other."""
        async with aiohttp.ClientSession() as client:
            for exchange in _SYMBOLS:
                stream = Stream(exchange, _REPLAY)
                options = _options(exchange) | {"from": _START, "to": _END}
                url = f"{self._machine.address}{_REPLAY}"
                began = time.perf_counter()
                async with client.get(url, params={"options": json.dumps(options)}) as answer:
                    answer.raise_for_status()
                    async for chunk in answer.content.iter_any():
                        stream.messages += chunk.count(b"\n")
                        stream.bytes += len(chunk)
                stream.seconds = time.perf_counter() - began
                self._streams.append(stream)

    async def _read_live(self) -> None:
        """Read a live stream of all exchanges for as long as it runs: bytes, as they come."""
        options = json.dumps([_options(exchange) for exchange in _SYMBOLS])
        key = base64.b64encode(os.urandom(16)).decode()
        request = (
            f"GET {_LIVE}?options={quote(options)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n"
        )
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self._machine.port)
        try:
            writer.write(request.encode())
            await reader.readuntil(b"\r\n\r\n")
            while chunk := await reader.read(_READ_BYTES):
                self._live.bytes += len(chunk)
                self._live.seconds = time.perf_counter() - began
        finally:
            writer.close()
        raise ConnectionError("the live stream ended by itself")

    async def _count_live(self) -> None:
        """Ask the server how many messages it sent: nobody here looks into frames."""
        async with (
            aiohttp.ClientSession() as client,
            client.get(f"{self._machine.address}/status") as answer,
        ):
            sessions = (await answer.json())["sessions"]
        sent = (one["messages"] for one in sessions if one["endpoint"] == _LIVE)
        self._live.messages = sum(sent)

    def _say_what_to_try(self) -> None:
        address = self._machine.address
        trade = {"symbols": ["XBTUSD"], "dataTypes": ["trade"]}
        options = json.dumps(_options("bitmex") | trade | {"from": _START, "to": _END})
        live = quote(json.dumps(_options("bitmex") | trade))
        socket = f"{address.replace('http', 'ws')}{_LIVE}?options={live}"
        trades = self._lake / "payload_case=trade"
        text = f"""
The page:   {address}/

A replay:
  curl -sG {address}{_REPLAY} --data-urlencode 'options={options}' | head

A live stream, in Python (pip install websockets):
  from websockets.sync.client import connect
  with connect("{socket}") as socket:
      for _ in range(5): print(socket.recv())

The lake, with pyarrow:
  import pyarrow.dataset as ds
  ds.dataset("{trades}", partitioning="hive").head(5)

The lake, with Spark:
  spark.read.parquet("{trades}").groupBy("exchange", "symbol").count().show()

A replay and a live stream run now and are published to the lake. Ctrl-C ends it.
"""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _print_summary(self) -> bool:
        streams = Table(
            title=f"{REPLAYED_MINUTES} minutes replayed, and a live stream",
            caption="Times include making the market up; both ends are in one process.",
        )
        for name in ("stream", "endpoint"):
            streams.add_column(name)
        for name in ("messages", "messages/s", "MB"):
            streams.add_column(name, justify="right")
        for stream in (*self._streams, self._live):
            rate = stream.messages / stream.seconds if stream.seconds else 0.0
            figures = (f"{stream.messages:,}", f"{rate:,.0f}", f"{stream.bytes / 1e6:,.1f}")
            streams.add_row(stream.name, stream.endpoint, *figures)
        self._console.print(streams)
        publisher = self._machine.publisher
        if publisher is None:
            return False
        return self._print_lake(publisher.stats()["lake"])

    def _files(self) -> list[Path]:
        return sorted(self._lake.glob("payload_case=*/date=*/*.parquet"))

    def _print_lake(self, stats: BusStats) -> bool:
        parquet = [file for file in self._files() if file not in self._files_before]
        rows = sum(pq.ParquetFile(file).metadata.num_rows for file in parquet)
        size = sum(file.stat().st_size for file in parquet)
        names = ("accepted", "acknowledged", "dead_lettered", "dropped", "waiting")
        ledger: dict[str, Any] = {name: getattr(stats, name) for name in names}
        ledger |= {"rows in files": rows, "files": len(parquet), "MB": f"{size / 1e6:,.1f}"}
        table = Table("Bronze events in the lake")
        table.add_column("", justify="right")
        for name, value in ledger.items():
            figure = f"{value:,}" if isinstance(value, int) else value
            table.add_row(name.replace("_", "-"), figure)
        self._console.print(table)
        all_is_there = stats.is_balanced and stats.acknowledged == stats.accepted == rows > 0
        verdict = "balances, and all of it is in the files" if all_is_there else "DOES NOT BALANCE"
        self._console.print(f"The ledger {verdict}.", highlight=False)
        is_lossless = _codec_is_lossless()
        same = "the same JSON" if is_lossless else "OTHER JSON"
        self._console.print(f"Sample messages of every kind to Bronze and back: {same}.")
        return all_is_there and is_lossless


def _options(exchange: str) -> dict[str, Any]:
    return {"exchange": exchange, "symbols": _SYMBOLS[exchange], "dataTypes": _DATA_TYPES}


def _codec_is_lossless() -> bool:
    lines = (files(tardis_fast) / "samples" / "messages.jsonl").read_bytes()
    return tardis_fast.decode_to_json(tardis_fast.BronzeEncoder().encode_json(lines)) == lines
