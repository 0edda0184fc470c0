"""SIGTERM: what runs ends early, what was published is delivered or kept, and 0 is returned."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import threading
from collections import Counter, defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from bus.redis.redis_entries import entries
from server.client import PATIENCE, path_with, wait_until
from server.server_process import ServerProcess
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from brokers.redis import RedisBroker
    from brokers.toxiproxy import Proxy

LONG = {
    "exchange": "bitmex",
    "from": "2020-02-01",
    "to": "2020-02-02",
    "dataTypes": ["trade", "book_change"],
}
SHORT = LONG | {"to": "2020-02-01T00:01"}
STREAM = "shutdown"
DRAIN_SECONDS = 2
GRACE_SECONDS = 60
"""How much longer than draining the end may take on a machine that others use too."""


class HttpReplay(threading.Thread):
    """A client that reads some of a replay, later the rest, and notes how it ends."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self._goes_on = threading.Event()
        self.has_some = threading.Event()
        self.request_id = ""
        self.ended_early = False

    def run(self) -> None:
        """Read on."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        connection.request("GET", path_with("/replay-normalized", LONG))
        answer = connection.getresponse()
        self.request_id = answer.headers["X-Request-Id"]
        try:
            answer.read(100_000)
            self.has_some.set()
            self._goes_on.wait(PATIENCE)
            while answer.read1(1 << 16):
                pass
        except (http.client.IncompleteRead, ConnectionError):
            self.ended_early = True
        finally:
            connection.close()

    def go_on(self) -> None:
        """Read the rest."""
        self._goes_on.set()


class WsReplay(threading.Thread):
    """The same over WebSocket."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._url = f"ws://127.0.0.1:{port + 1}" + path_with("/ws-replay-normalized", LONG)
        self._goes_on = threading.Event()
        self.has_some = threading.Event()
        self.code: int | None = None

    def run(self) -> None:
        """Read on."""
        with connect(self._url, max_size=None, open_timeout=PATIENCE) as opened:
            for _ in range(500):
                opened.recv(PATIENCE)
            self.has_some.set()
            self._goes_on.wait(PATIENCE)
            try:
                while True:
                    opened.recv(PATIENCE)
            except ConnectionClosed:
                self.code = opened.close_code

    def go_on(self) -> None:
        """Read the rest."""
        self._goes_on.set()


def published(broker: RedisBroker) -> defaultdict[str, Counter[int]]:
    """Return how often each event of a session is on the bus, by its number."""
    found: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for entry in entries(broker, STREAM):
        event = NormalizedEvent.FromString(entry.data)
        session = event.meta["request_id"] or event.meta["session_id"]
        found[session][event.event_seq] += 1
    return found


def ledger(server: ServerProcess) -> dict[str, Any]:
    (bus,) = server.status()["buses"]
    return dict(bus)


@pytest.mark.broker
def test_ten_replays_end_early_and_nothing_published_is_lost(
    own_redis: Callable[..., RedisBroker], proxy_to: Callable[..., Proxy], tmp_path: Path
) -> None:
    broker = own_redis()
    proxy = proxy_to(broker.address)
    slow = proxy.add("bandwidth", stream="upstream", rate=50)
    bus = [
        *("--redis-url", f"redis://{proxy.address}", "--redis-stream", STREAM),
        *("--state-dir", str(tmp_path / "state"), "--drain-timeout", str(DRAIN_SECONDS)),
        *("--max-memory-mb", "4", "--max-block-ms", "10"),
    ]
    with ServerProcess(tmp_path / "server", *bus) as server:
        http_clients = [HttpReplay(server.port) for _ in range(7)]
        ws_clients = [WsReplay(server.port) for _ in range(3)]
        clients: list[HttpReplay | WsReplay] = [*http_clients, *ws_clients]
        for client in clients:
            client.start()
        assert all(client.has_some.wait(PATIENCE) for client in clients)
        sessions = {one["id"] for one in server.status()["sessions"]}
        assert server.status()["totals"]["sessionsRunning"] == 10
        server.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.go_on()
        assert server.process.wait(DRAIN_SECONDS + GRACE_SECONDS) == 0
        for client in clients:
            client.join(PATIENCE)
        said = server.log()
    assert all(client.ended_early for client in http_clients)
    assert [client.code for client in ws_clients] == [1001] * 3
    assert "Traceback" not in said
    closed = next(line for line in said.splitlines() if "bus.redis: closed" in line)
    left = int(closed.rpartition("left=")[2].split()[0])
    acknowledged = int(closed.rpartition("acknowledged=")[2].split()[0])
    assert left > 0
    assert sum(sum(counts.values()) for counts in published(broker).values()) >= acknowledged
    slow.remove()
    with ServerProcess(tmp_path / "server", *bus) as server:
        wait_until(lambda: ledger(server)["waiting"] == 0)
        second = ledger(server)
        assert second["acknowledged"] == left
        assert second["dead_lettered"] == second["dropped"] == 0
        assert server.terminate() == 0
    found = published(broker)
    assert set(found) == sessions
    for counts in found.values():
        assert sorted(counts) == list(range(1, len(counts) + 1))
    unique = sum(map(len, found.values()))
    repeated = sum(sum(counts.values()) for counts in found.values()) - unique
    assert unique <= acknowledged + left <= unique + repeated


def test_a_client_that_stopped_reading_does_not_hold_it_up(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, ExitStack() as clients:
        for offset, path in enumerate(["/replay-normalized", "/ws-replay-normalized"]):
            client = clients.enter_context(
                socket.create_connection(("127.0.0.1", server.port + offset))
            )
            upgrade = (
                "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            )
            request = f"GET {path_with(path, LONG)} HTTP/1.1\r\nHost: x\r\n"
            client.sendall(f"{request}{upgrade if offset else ''}\r\n".encode())
        wait_until(lambda: server.status()["totals"]["sessionsRunning"] == 2)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(GRACE_SECONDS) == 0
    assert "Traceback" not in server.log()


def test_an_idle_server_ends_with_0_and_closes_idle_connections(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server:
        idle = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        idle.request("GET", "/health-check")
        assert json.loads(idle.getresponse().read())["status"] == "Healthy"
        assert server.terminate() == 0
        assert idle.sock.recv(1) == b""
        idle.close()
    assert "Traceback" not in server.log()


def test_a_cluster_answers_as_one_and_ends_with_0(tmp_path: Path) -> None:
    lake = ["--lake-dir", str(tmp_path / "lake"), "--state-dir", str(tmp_path / "state")]
    with ServerProcess(tmp_path, "--cluster-mode", "--processes", "2", *lake) as server:
        _, _, expected = server.replay("/replay-normalized", SHORT)
        lines = expected.count(b"\n")
        assert lines > 1_000
        replays, seen = 1, {member_that_answers(server)}
        # The kernel chooses by the client's port, so that some requests reach each of them.
        while len(seen) < 2 or replays < 10:
            assert server.replay("/replay-normalized", SHORT)[2] == expected
            seen.add(member_that_answers(server))
            replays += 1
            assert replays < 60
        for _ in range(5):
            status = server.status()
            assert status["processes"] == 2
            assert status["totals"]["messages"] == lines * replays
            assert status["totals"]["requests"] == len(status["sessions"]) == replays
            (bus,) = status["buses"]
            assert bus["accepted"] >= lines * replays
            counted = figure(server, 'tardis_fast_messages_total{endpoint="/replay-normalized"}')
            assert counted == lines * replays
            assert figure(server, 'tardis_fast_bus_accepted_total{bus="lake"}') == bus["accepted"]
        clients = [HttpReplay(server.port) for _ in range(4)]
        for client in clients:
            client.start()
        assert all(client.has_some.wait(PATIENCE) for client in clients)
        assert server.status()["totals"]["sessionsRunning"] == 4
        for client in clients:
            client.go_on()
        assert server.terminate() == 0
        for client in clients:
            client.join(PATIENCE)
        assert all(client.ended_early for client in clients)
    assert "Traceback" not in server.log()


def figure(server: ServerProcess, name: str) -> float:
    """Return a figure of the metrics."""
    lines = server.get("/metrics")[2].decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name} "))
    return float(line.split()[-1])


def member_that_answers(server: ServerProcess) -> int:
    """Return the process id of the member that answers a new connection."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as client:
        client.sendall(b"GET /health-check HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1 << 16)
        mine, peer = f":{server.port:04X}", f":{client.getsockname()[1]:04X}"
        table = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()]
        (inode,) = (row[9] for row in table if row[1].endswith(mine) and row[2].endswith(peer))
        members = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text("ascii").split()
        for member in members:
            for link in Path(f"/proc/{member}/fd").iterdir():
                with suppress(FileNotFoundError):
                    if str(link.readlink()) == f"socket:[{inode}]":
                        return int(member)
    raise AssertionError("nobody has the other end")
