"""Clients that behave badly: the server refuses or closes, and goes on for the others."""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from server.client import PATIENCE, path_with, wait_until
from server.server_process import ServerProcess
from tardis_fast import SampleMarket
from tardis_fast.sample_api import SampleApiThread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SHORT = {
    "exchange": "bitmex",
    "symbols": ["XBTUSD"],
    "from": "2020-02-01",
    "to": "2020-02-01T00:01",
    "dataTypes": ["trade"],
}
LONG = SHORT | {"to": "2020-02-01T02:00", "dataTypes": ["trade", "book_change"], "symbols": []}
HANDSHAKE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
MEMORY_MB = 64
"""What a bad client may cost, at most."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Start a server for bad clients."""
    directory = tmp_path_factory.mktemp("bad-clients")
    # The sample market's own memory is not the server's, so it is served from here.
    with (
        SampleApiThread(SampleMarket()) as api,
        ServerProcess(directory, "--no-sample", "--endpoint", api.endpoint) as running,
    ):
        # What every server needs once is not a client's cost.
        running.replay("/replay-normalized", SHORT)
        running.frames("/ws-replay-normalized", SHORT)
        yield running
        assert running.terminate() == 0
        assert "Traceback" not in running.log()


@pytest.fixture(autouse=True)
def _goes_on(server: ServerProcess) -> Iterator[None]:
    """After every test the server answers as before, runs nothing and has not grown."""
    before = server.rss_mb()
    yield
    server.wait_until_idle()
    status, _, body = server.get("/health-check")
    assert (status, json.loads(body)["status"]) == (200, "Healthy")
    status, _, body = server.replay("/replay-normalized", SHORT)
    assert (status, body.count(b"\n") > 100) == (200, True)
    messages, code, _ = server.frames("/ws-replay-normalized", SHORT)
    assert (len(messages), code) == (body.count(b"\n"), 1000)
    assert server.rss_mb() < before + MEMORY_MB


def connection(server: ServerProcess, *, websocket: bool = False) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", server.port + websocket), timeout=PATIENCE)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def upgraded(server: ServerProcess, path: str) -> socket.socket:
    """Open a WebSocket by hand."""
    made = connection(server, websocket=True)
    made.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{HANDSHAKE}\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += made.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ")
    return made


def rest_of(made: socket.socket) -> bytes:
    """Read until the server closes, by an end or a reset."""
    found = b""
    try:
        while piece := made.recv(1 << 16):
            found = (found + piece)[-(1 << 20) :]
    except ConnectionError:
        pass
    return found


def close_code(frames: bytes) -> int:
    """Return the code of the close frame that is last."""
    at = frames.rfind(b"\x88")
    (code,) = struct.unpack(">H", frames[at + 2 : at + 4])
    return int(code)


def masked(opcode: int, payload: bytes) -> bytes:
    """Return a client's frame; the mask is zero."""
    return bytes([0x80 | opcode, 0xFF]) + struct.pack(">Q", len(payload)) + bytes(4) + payload


def send_until_closed(made: socket.socket, pieces: Callable[[], bytes], most: int) -> int:
    """Send until the server closes, at most so much, and return how much was sent."""
    sent = 0
    try:
        while sent < most:
            piece = pieces()
            made.sendall(piece)
            sent += len(piece)
    except ConnectionError:
        pass
    return sent


@pytest.mark.parametrize("path", ["/replay-normalized", "/replay"])
def test_a_client_that_never_reads(server: ServerProcess, path: str) -> None:
    options = LONG | {"filters": [{"channel": "trade"}, {"channel": "orderBookL2"}]}
    before = server.rss_mb()
    with connection(server) as idle:
        idle.sendall(f"GET {path_with(path, options)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert_stalls(server)
        assert server.rss_mb() < before + MEMORY_MB
        assert server.replay("/replay-normalized", SHORT)[0] == 200


def test_a_websocket_that_never_reads(server: ServerProcess) -> None:
    before = server.rss_mb()
    with upgraded(server, path_with("/ws-replay-normalized", LONG)):
        assert_stalls(server)
        assert server.rss_mb() < before + MEMORY_MB
        assert server.replay("/replay-normalized", SHORT)[0] == 200


def assert_stalls(server: ServerProcess) -> None:
    """Wait until the only session waits for its client."""
    seen: list[int] = []

    def is_stalled() -> bool:
        running = [one for one in server.status()["sessions"] if one["state"] == "running"]
        seen.append(running[0]["bytes"] if running else 0)
        return len(seen) > 20 and seen[-1] > 0 and len(set(seen[-20:])) == 1

    wait_until(is_stalled)


@pytest.mark.parametrize("websocket", [False, True])
def test_a_client_that_resets_in_mid_replay(server: ServerProcess, websocket: bool) -> None:  # noqa: FBT001
    if websocket:
        made = upgraded(server, path_with("/ws-replay-normalized", LONG))
    else:
        made = connection(server)
        path = path_with("/replay-normalized", LONG)
        made.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    got = 0
    while got < 1_000_000:
        got += len(made.recv(1 << 16))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()
    server.wait_until_idle()
    ended = server.status()["sessions"][0]
    assert (ended["state"], ended["error"]) == ("cancelled", None)


@pytest.mark.parametrize("websocket", [False, True])
@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n", b"\x00" * 70_000, b"}\n" * 9],
    ids=["TLS", "half a line", "zeros", "text"],
)
def test_garbage_instead_of_a_request(
    server: ServerProcess,
    garbage: bytes,
    websocket: bool,  # noqa: FBT001
) -> None:
    with connection(server, websocket=websocket) as made:
        made.sendall(garbage)
        made.shutdown(socket.SHUT_WR)
        answer = rest_of(made)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ") or b" 400 " in answer[:20]


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (b"\xff" * 64, 1002),
        (masked(1, b"x" * 600_000), 1009),
        (masked(1, b"\xff\xfe"), 1007),
        (masked(3, b""), 1002),
    ],
    ids=["garbage", "600 KB", "no UTF-8", "unknown opcode"],
)
def test_bad_frames_close_the_websocket(server: ServerProcess, frames: bytes, code: int) -> None:
    live = "/ws-replay?exchange=bitmex&from=2020-02-01&to=2020-02-01T00:01"
    for path in (live, path_with("/ws-replay-normalized", LONG)):
        with upgraded(server, path) as made:
            made.sendall(frames)
            assert close_code(rest_of(made)) == code, path


def test_a_frame_without_a_mask(server: ServerProcess) -> None:
    with upgraded(server, path_with("/ws-replay-normalized", SHORT)) as made:
        made.sendall(b"\x81\x05hello")
        assert close_code(rest_of(made)) in {1000, 1002}


@pytest.mark.parametrize(
    ("first", "block"),
    [(b"", b"X-Flood: yyyyyyyy\r\n" * 4_000), (b"X-Long: ", b"y" * 65_536), (b"", b"y" * 65_536)],
    ids=["many", "long", "long name"],
)
def test_header_floods(server: ServerProcess, first: bytes, block: bytes) -> None:
    with connection(server) as made:
        made.sendall(b"GET /health-check HTTP/1.1\r\nHost: x\r\n" + first)
        sent = send_until_closed(made, lambda: block, 100_000_000)
        answer = rest_of(made)
    assert answer == b"" or b" 400 " in answer[:20]
    assert sent < 50_000_000


@pytest.mark.parametrize("websocket", [False, True])
def test_100_mb_of_options(server: ServerProcess, websocket: bool) -> None:  # noqa: FBT001
    before = server.rss_mb("VmHWM")
    with connection(server, websocket=websocket) as made:
        made.sendall(b"GET /replay-normalized?options=")
        block = b"%20" * 20_000
        sent = send_until_closed(made, lambda: block, 100_000_000)
        answer = rest_of(made)
    assert answer == b"" or b" 4" in answer[:13]
    assert sent < 20_000_000
    assert server.rss_mb("VmHWM") < before + MEMORY_MB


def test_a_body_that_nobody_asked_for(server: ServerProcess) -> None:
    before = server.rss_mb("VmHWM")
    path = path_with("/replay-normalized", SHORT)
    with connection(server) as made:
        size = 1_000_000_000
        head = f"GET {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
        made.sendall(head.encode())
        block = os.urandom(65_536)
        sent = send_until_closed(made, lambda: block, 100_000_000)
    assert server.rss_mb("VmHWM") < before + MEMORY_MB
    assert sent <= 100_000_000 + len(block)


@pytest.mark.parametrize("websocket", [False, True])
def test_half_a_request_holds_up_nobody(server: ServerProcess, websocket: bool) -> None:  # noqa: FBT001
    waiting = [connection(server, websocket=websocket) for _ in range(50)]
    for made in waiting:
        made.sendall(b"GET /replay-normalized?options=")
    assert server.replay("/replay-normalized", SHORT)[0] == 200
    assert server.frames("/ws-replay-normalized", SHORT)[1] == 1000
    for made in waiting:
        made.close()
