"""Many clients at once: all replays are whole, shares are fair, memory is bounded.

`--load long` has 200 replays and 1,000 idle WebSockets.
"""

from __future__ import annotations

import asyncio
import hashlib
import resource
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from websockets.asyncio.client import ClientConnection, connect

from server.client import PATIENCE, path_with
from server.server_process import ServerProcess
from server.stand_in_exchange import StandInExchange, Visit

if TYPE_CHECKING:
    from pathlib import Path

REPLAY = {
    "exchange": "bitmex",
    "from": "2020-02-01",
    "to": "2020-02-01T00:10",
    "dataTypes": ["trade", "book_change"],
}
LIVE = {"exchange": "bitmex", "symbols": ["XBTUSD"], "dataTypes": ["trade"]}
MB_PER_REPLAY = 16
"""Its prefetched data (4 MB a stream), what is decompressed and waits to be sent, the client's
share of buffers, and room for the allocator."""
MB_PER_IDLE_SOCKET = 0.5
MB_OF_A_SERVER = 200


@dataclass
class Load:
    """How many there are."""

    replays: int
    idle: int


@pytest.fixture
def load(request: pytest.FixtureRequest) -> Load:
    """Return the load that was asked for."""
    is_long = request.config.getoption("--load") == "long"
    return Load(replays=200, idle=1_000) if is_long else Load(replays=40, idle=200)


def be_silent(visit: Visit) -> None:
    """Be an exchange without news."""
    visit.stay()


@dataclass
class Shares:
    """What each reader had when all of them together had half of everything."""

    half: int
    readers: list[Reader] = field(default_factory=list)
    bytes: int = 0
    of_each: list[int] = field(default_factory=list)

    def add(self, size: int) -> None:
        """Count what one of them read."""
        self.bytes += size
        if self.bytes >= self.half and not self.of_each:
            self.of_each = sorted(reader.bytes for reader in self.readers)


@dataclass
class Reader:
    """Reads a replay, and knows its bytes by number and by hash."""

    port: int
    bytes: int = 0
    is_whole: bool = False
    digest: str = ""

    async def run(self, shares: Shares | None = None) -> None:
        """Read to the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        path = path_with("/replay-normalized", REPLAY)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        hashing = hashlib.blake2b()
        while size := int(await reader.readuntil(b"\r\n"), 16):
            piece = await reader.readexactly(size + 2)
            hashing.update(piece[:-2])
            self.bytes += size
            if shares is not None:
                shares.add(size)
        self.is_whole = await reader.read() == b"\r\n"
        self.digest = hashing.hexdigest()
        writer.close()


async def idle_sockets(server: ServerProcess, count: int) -> list[ClientConnection]:
    """Open live streams, on which nothing happens.

    They ask for no answers by themselves: who reads many replays in the same process is late.
    """
    url = f"ws://127.0.0.1:{server.port + 1}{path_with('/ws-stream-normalized', LIVE)}"
    opened: list[ClientConnection] = []
    for first in range(0, count, 50):
        some = min(50, count - first)
        opening = (connect(url, open_timeout=PATIENCE, ping_interval=None) for _ in range(some))
        opened += await asyncio.gather(*opening)
    return opened


async def run(server: ServerProcess, load: Load) -> tuple[Shares, Reader]:
    """Let all of them run; returns the replays with their shares, and one that was alone."""
    alone = Reader(server.port)
    await alone.run()
    idle = await idle_sockets(server, load.idle)
    readers = [Reader(server.port) for _ in range(load.replays)]
    shares = Shares(alone.bytes * load.replays // 2, readers)
    await asyncio.gather(*(reader.run(shares) for reader in readers))
    pongs = [await connection.ping() for connection in idle]
    await asyncio.wait_for(asyncio.gather(*pongs), PATIENCE)
    running = await asyncio.to_thread(server.status)
    assert running["totals"]["sessionsRunning"] == load.idle
    await asyncio.gather(*(connection.close() for connection in idle))
    return shares, alone


def test_all_replays_are_whole_and_shares_are_fair(tmp_path: Path, load: Load) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with (
        StandInExchange(1, be_silent) as exchange,
        ServerProcess(tmp_path, "--max-sessions", "2000", **exchange.variables) as server,
    ):
        shares, alone = asyncio.run(run(server, load))
        most_mb = server.rss_mb("VmHWM")
        server.wait_until_idle()
        assert server.terminate() == 0
    assert all(reader.is_whole for reader in shares.readers)
    assert {reader.digest for reader in shares.readers} == {alone.digest}
    # One after the other, half of them would have nothing yet.
    least, median = shares.of_each[0], statistics.median(shares.of_each)
    assert least >= median / 10, shares.of_each
    bound = MB_OF_A_SERVER + MB_PER_REPLAY * load.replays + MB_PER_IDLE_SOCKET * load.idle
    assert most_mb < bound
    assert "Traceback" not in server.log()
    print(f"{load}: most memory {most_mb:.0f} MB, least share {least / median:.2f}")  # noqa: T201
