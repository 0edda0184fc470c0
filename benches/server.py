"""Normalized replays through the server, against the core's own replay of the same range.

usage: python benches/server.py [--minutes N]

The server is a process of its own, and so are its clients, which read and count; the data is the
sample market's, from a warm cache. The core's own replay and those over HTTP and WebSocket take
turns, and the least CPU of each counts. Then a stand-in exchange sends trades, and the time each
takes until a client has it is measured. Nothing is asserted; the report says which bars are met.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from replay import EXCHANGE, MESSAGES_PER_SECOND, START, in_child
from replay import run as replay_alone
from tardis_fast import FeedOptions, SampleMarket
from tardis_fast.sample_api import SampleApiThread

MINUTES = 25
ROUNDS = 3
DATA_TYPES = "trade,book_change"
BARS = {"HTTP": 1.2, "WebSocket": 1.6}
"""Times the CPU of the core's own replay that one through the server may take."""
TRADES = 2_000
TRADES_PER_SECOND = 200
READ_BYTES = 1 << 20
HANDSHAKE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


class Server:
    """A server that runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        if process.stdout is None:
            raise RuntimeError("the server has no pipe")
        self.port = int(process.stdout.readline().rpartition(":")[2])

    def cpu_seconds(self) -> float:
        """Return how long it kept processors busy."""
        stat = Path(f"/proc/{self._process.pid}/stat").read_text("ascii")
        user, system = stat.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """Return the most memory it had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text("ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1024


@contextmanager
def serving(*arguments: str, **environment: str) -> Iterator[Server]:
    """Run a server on a free port."""
    with subprocess.Popen(
        [sys.executable, "-m", "tardis_fast", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | environment,
    ) as process:
        try:
            yield Server(process)
        finally:
            process.send_signal(signal.SIGTERM)


def read_all(port: int, path: str, head: str) -> tuple[float, int]:
    """Read an answer to its end and count; returns seconds and bytes."""
    import socket  # noqa: PLC0415 - used in the client's process alone

    buffer = bytearray(READ_BYTES)
    began, count = time.perf_counter(), 0
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
        while size := connection.recv_into(buffer):
            count += size
            # A WebSocket's server closes first and waits for its client.
            if head == HANDSHAKE and b"normalized finished" in buffer[max(0, size - 64) : size]:
                break
    return time.perf_counter() - began, count


@dataclass(frozen=True)
class Row:
    """What a way to replay takes."""

    name: str
    cpu_seconds: float
    seconds: float
    out_bytes: int
    peak_mb: float


def best(name: str, rows: list[Row]) -> Row:
    """Return the least of each figure."""
    return Row(
        name,
        min(row.cpu_seconds for row in rows),
        min(row.seconds for row in rows),
        rows[0].out_bytes,
        max(row.peak_mb for row in rows),
    )


def through_server(name: str, minutes: int, cache: Path, endpoint: str) -> Row:
    """Replay once through a new server."""
    end = START + timedelta(minutes=minutes)
    options = {
        "exchange": EXCHANGE,
        "from": START.isoformat(),
        "to": end.isoformat(),
        "dataTypes": DATA_TYPES.split(","),
    }
    route, head = {
        "HTTP": ("/replay-normalized", "Connection: close\r\n"),
        "WebSocket": ("/ws-replay-normalized", HANDSHAKE),
    }[name]
    path = f"{route}?options={quote(json.dumps(options))}"
    arguments = ["--endpoint", endpoint, "--cache-dir", str(cache), "--no-request-log"]
    with serving(*arguments) as server:
        before = server.cpu_seconds()
        seconds, count = in_child(read_all, server.port, path, head)
        return Row(name, server.cpu_seconds() - before, seconds, count, server.peak_mb())


def alone(minutes: int, cache: Path, endpoint: str) -> Row:
    """Replay once without a server."""
    feed = FeedOptions(endpoint=endpoint, cache_dir=str(cache))
    run = in_child(replay_alone, DATA_TYPES, minutes, feed)
    return Row("core alone", run.cpu_seconds, run.seconds, run.out_bytes, run.peak_mb)


def compare(minutes: int, cache: Path) -> None:
    """Print what replays take, and which bars are met."""
    with SampleApiThread(SampleMarket(messages_per_second=MESSAGES_PER_SECOND)) as api:
        alone(minutes, cache, api.endpoint)
        rows: dict[str, list[Row]] = {"core alone": [], "HTTP": [], "WebSocket": []}
        for _ in range(ROUNDS):
            for name, found in rows.items():
                found.append(
                    alone(minutes, cache, api.endpoint)
                    if name == "core alone"
                    else through_server(name, minutes, cache, api.endpoint)
                )
    bests = {name: best(name, found) for name, found in rows.items()}
    core = bests["core alone"]
    print(f"{minutes} minutes of {EXCHANGE}, {DATA_TYPES}, {core.out_bytes / 1e6:.0f} MB of lines")
    print(f"{'':<14}{'CPU s':>8}{'x core':>8}{'seconds':>9}{'MB/s':>8}{'peak MB':>9}")
    for row in bests.values():
        print(
            f"{row.name:<14}{row.cpu_seconds:>8.2f}{row.cpu_seconds / core.cpu_seconds:>8.2f}"
            f"{row.seconds:>9.2f}{row.out_bytes / row.seconds / 1e6:>8.0f}{row.peak_mb:>9.0f}"
        )
    for name, bar in BARS.items():
        ratio = bests[name].cpu_seconds / core.cpu_seconds
        print(f"  {name} at most {bar} x the core: {'met' if ratio <= bar else 'not met'}")


def trade(number: int) -> str:
    """Return a trade of BitMEX, with the time it is sent in its id."""
    row = {
        "timestamp": "2024-03-01T00:00:00.200Z",
        "symbol": "XBTUSD",
        "side": "Buy",
        "size": number,
        "price": 62_000.5,
        "trdMatchID": str(time.monotonic_ns()),
    }
    return json.dumps({"table": "trade", "action": "insert", "data": [row]})


def exchange(ports: Any) -> None:  # noqa: ANN401 - a queue of multiprocessing
    """Be an exchange that sends trades to whoever subscribes."""

    async def receive(connection: ServerConnection) -> None:
        await connection.recv()
        for number in range(1, TRADES + 1):
            await connection.send(trade(number))
            await asyncio.sleep(1 / TRADES_PER_SECOND)
        await connection.wait_closed()

    async def run() -> None:
        async with serve(receive, "127.0.0.1", 0, compression=None) as server:
            ports.put(next(iter(server.sockets)).getsockname()[1])
            await server.serve_forever()

    asyncio.run(run())


def latencies(port: int) -> list[float]:
    """Take all trades as a client; return how many milliseconds each took."""
    options = {"exchange": "bitmex", "symbols": ["XBTUSD"], "dataTypes": ["trade"]}
    url = f"ws://127.0.0.1:{port}/ws-stream-normalized?options={quote(json.dumps(options))}"

    async def run() -> list[float]:
        found = []
        async with connect(url, compression=None) as connection:
            for _ in range(TRADES):
                message = await connection.recv()
                now = time.monotonic_ns()
                found.append((now - int(json.loads(message)["id"])) / 1e6)
        return found

    return asyncio.run(run())


def direct(port: int) -> list[float]:
    """Take all trades from the exchange itself: what the test's own parts take."""

    async def run() -> list[float]:
        found = []
        async with connect(f"ws://127.0.0.1:{port}", compression=None) as connection:
            await connection.send("{}")
            for _ in range(TRADES):
                message = await connection.recv()
                now = time.monotonic_ns()
                sent = int(json.loads(message)["data"][0]["trdMatchID"])
                found.append((now - sent) / 1e6)
        return found

    return asyncio.run(run())


def live() -> None:
    """Print how long a trade takes from the exchange to the client."""
    spawn = multiprocessing.get_context("spawn")
    ports = spawn.Queue()
    process = spawn.Process(target=exchange, args=(ports,), daemon=True)
    process.start()
    port = ports.get()
    print(f"\nlive, {TRADES:,} trades at {TRADES_PER_SECOND} a second, ms from sent to received")
    print(f"{'':<24}{'p50':>8}{'p99':>8}{'max':>8}")
    try:
        show("exchange to client", in_child(direct, port))
        with serving(WSS_URL_BITMEX=f"ws://127.0.0.1:{port}") as server:
            show("through the server", in_child(latencies, server.port))
    finally:
        process.terminate()
        process.join()


def show(name: str, found: list[float]) -> None:
    """Print a row."""
    cuts = statistics.quantiles(found, n=100)
    print(f"{name:<24}{cuts[49]:>8.2f}{cuts[98]:>8.2f}{max(found):>8.2f}")


def main() -> None:
    """Run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=MINUTES)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        compare(options.minutes, Path(root))
    live()


if __name__ == "__main__":
    main()
