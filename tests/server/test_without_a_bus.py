"""Without bus options nothing of publishing exists, and answers are the same."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from server.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

RANGE = {"from": "2020-02-01", "to": "2020-02-01T00:02"}
NORMALIZED = {
    "exchange": "bitmex",
    "symbols": ["XBTUSD"],
    "dataTypes": ["trade", "book_change", "quote_1s", "trade_bar_1s"],
    "withDisconnectMessages": True,
    **RANGE,
}
RAW = {"exchange": "deribit", "filters": [{"channel": "trades"}], **RANGE}
REFUSED = NORMALIZED | {"dataTypes": ["bars"]}
CORE_THREAD = "tardis-fast"
PYTHON_THREAD = Path(sys.executable).name
ARCHIVE_ALONE = """
import pathlib
from tardis_fast import FeedOptions
from tardis_fast.replaying import archive_of
archive = archive_of(FeedOptions())
tasks = pathlib.Path("/proc/self/task").glob("*/comm")
print(sum(task.read_text().strip() == "tardis-fast" for task in tasks))
"""
STILL_DIFFERENT = {"Date", "X-Request-Id"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ServerProcess, ...]]:
    """Start a server without a bus, and one with a bus."""
    without, with_bus = tmp_path_factory.mktemp("without"), tmp_path_factory.mktemp("with")
    state = {"XDG_STATE_HOME": str(without / "state"), "HOME": str(without / "home")}
    lake = ["--lake-dir", str(with_bus / "lake"), "--state-dir", str(with_bus / "state")]
    with ServerProcess(without, **state) as plain, ServerProcess(with_bus, *lake) as publishing:
        yield plain, publishing


def answers(server: ServerProcess) -> list[Any]:
    """Return everything that a client can see of some requests."""
    seen: list[Any] = []
    for path, options in (
        ("/replay-normalized", NORMALIZED),
        ("/replay-normalized", [NORMALIZED, NORMALIZED | {"exchange": "deribit", "symbols": []}]),
        ("/replay-normalized", REFUSED),
        ("/replay", RAW),
    ):
        status, headers, body = server.replay(path, options)
        seen.append((status, {k: v for k, v in headers.items() if k not in STILL_DIFFERENT}, body))
    for port in (server.port, server.port + 1):
        for options in (NORMALIZED, REFUSED):
            seen += [server.frames("/ws-replay-normalized", options, port=port)]
    return seen


def threads(server: ServerProcess) -> Counter[str]:
    """Count its threads by name."""
    tasks = Path(f"/proc/{server.pid}/task").glob("*/comm")
    return Counter(task.read_text("utf-8").strip() for task in tasks)


def links(server: ServerProcess) -> Iterator[str]:
    """Give what its open files are."""
    for link in Path(f"/proc/{server.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield str(link.readlink())


def sockets(server: ServerProcess) -> tuple[set[int], list[tuple[str, str]]]:
    """Return the ports on which it listens, and both ends of all its other connections."""
    found = (re.fullmatch(r"socket:\[(\d+)\]", link) for link in links(server))
    own = {match[1] for match in found if match}
    listening, connected = set(), []
    known = set()
    for table in ("tcp", "tcp6", "udp", "udp6"):
        lines = Path(f"/proc/{server.pid}/net/{table}").read_text("ascii").splitlines()[1:]
        for line in lines:
            fields = line.split()
            if fields[9] not in own:
                continue
            known.add(fields[9])
            if table == "tcp" and fields[3] == "0A":
                listening.add(int(fields[1].split(":")[1], 16))
            else:
                connected.append((f"{table} {fields[1]}", fields[2]))
    unix = Path(f"/proc/{server.pid}/net/unix").read_text("ascii").splitlines()[1:]
    # The loop has a pair to wake itself; none of them has a name.
    known |= {fields[6] for line in unix if len(fields := line.split()) == 7}
    assert own <= known
    return listening, connected


def test_no_thread_of_a_bus_is_started(servers: tuple[ServerProcess, ...]) -> None:
    plain, publishing = (threads(server) for server in servers)
    archive_alone = subprocess.run(
        [sys.executable, "-c", ARCHIVE_ALONE], check=True, capture_output=True, text=True
    )
    # Replays and buses share the core's threads, so these are counted; the second thread of Python
    # is the one that logs what buses tell.
    assert plain[CORE_THREAD] == int(archive_alone.stdout)
    assert publishing[CORE_THREAD] > plain[CORE_THREAD]
    assert (plain[PYTHON_THREAD], publishing[PYTHON_THREAD]) == (1, 2)
    assert set(plain) == set(publishing)


def test_answers_are_the_same_byte_for_byte(servers: tuple[ServerProcess, ...]) -> None:
    plain, publishing = servers
    expected = answers(plain)
    assert [answer[0] for answer in expected[:4]] == [200, 200, 400, 200]
    assert all(len(answer[2]) > 10_000 for answer in (expected[0], expected[1], expected[3]))
    assert len(expected[4][0]) > 100
    assert answers(publishing) == expected


def test_nothing_of_publishing_exists(servers: tuple[ServerProcess, ...]) -> None:
    plain, publishing = servers
    for server in servers:
        server.replay("/replay-normalized", NORMALIZED)
        server.frames("/ws-replay-normalized", NORMALIZED)
    # Beside its two ports there is that of the sample market, to which its own client connects.
    listening, connected = sockets(plain)
    assert {plain.port, plain.port + 1} < listening
    (archive,) = listening - {plain.port, plain.port + 1}
    for mine, peer in connected:
        ports = {int(end.rpartition(":")[2], 16) for end in (mine, peer)}
        assert ports & {archive, plain.port, plain.port + 1}, (mine, peer)
    directory = plain.log_path.parent
    assert {path.name for path in directory.iterdir()} == {"server.log"}
    assert plain.status()["buses"] == []
    assert b"tardis_fast_bus" not in plain.get("/metrics")[2]
    assert b"tardis_fast_bus" in publishing.get("/metrics")[2]


def test_no_record_of_a_bus_is_logged(servers: tuple[ServerProcess, ...]) -> None:
    plain, publishing = servers
    for server in servers:
        server.replay("/replay-normalized", NORMALIZED)
        assert server.terminate() == 0
    assert " server: " in plain.log()
    assert " bus." not in plain.log()
    assert " bus.lake: " in publishing.log()
