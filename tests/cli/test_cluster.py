"""The parent of a cluster, with members that are small programs."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tardis_fast import TardisFastError, cluster
from tardis_fast.cluster import Cluster, HeldPorts

MEMBER = """
import os, pathlib, signal, sys
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(sys.argv[2])))
print("up", flush=True)
sys.stdin.read()
"""


def members(directory: Path, *exit_codes: int) -> list[list[str]]:
    """Return the commands of members that leave their process ids in a directory."""
    return [[sys.executable, "-c", MEMBER, str(directory), str(code)] for code in exit_codes]


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that will come."""
    for _ in range(6000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError("it did not come within a minute")


def pids(directory: Path) -> set[int]:
    """Return the process ids of all members that ever ran."""
    return {int(path.name) for path in directory.iterdir()}


def run(made: Cluster, during: Callable[[], Awaitable[None]]) -> int:
    """Run a cluster, do something in the meantime, stop it, and return its exit code."""

    async def both() -> int:
        running = asyncio.ensure_future(made.run())
        await during()
        made.stop()
        return await running

    return asyncio.run(both())


@pytest.mark.parametrize(("codes", "code"), [((0, 0), 0), ((0, 1), 1)])
def test_members_run_until_the_cluster_is_stopped(
    tmp_path: Path, codes: tuple[int, ...], code: int
) -> None:
    ready: list[str] = []

    async def during() -> None:
        await until(lambda: ready == ["ready"])

    made = Cluster(members(tmp_path, *codes), on_ready=lambda: ready.append("ready"))
    assert run(made, during) == code
    assert len(pids(tmp_path)) == len(codes)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids(tmp_path))


def test_a_member_that_ends_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "FIRST_PAUSE_SECONDS", 0.01)
    ready: list[str] = []

    async def during() -> None:
        await until(lambda: ready == ["ready"])
        killed = min(pids(tmp_path))
        os.kill(killed, signal.SIGKILL)
        await until(lambda: len(pids(tmp_path)) == 3)

    made = Cluster(members(tmp_path, 0, 0), on_ready=lambda: ready.append("ready"))
    run(made, during)
    assert "ended by itself and is started again in 0.01 s" in caplog.text
    assert ready == ["ready"]


def test_a_member_that_can_never_run_ends_the_cluster(tmp_path: Path) -> None:
    refusing = [sys.executable, "-c", "raise SystemExit(3)"]
    made = Cluster([refusing, *members(tmp_path, 0)], final_codes=frozenset({3}))
    assert asyncio.run(asyncio.wait_for(made.run(), 60)) == 3


def test_being_stopped_twice_kills() -> None:
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); signal.pause()"
    ready: list[str] = []
    made = Cluster([[sys.executable, "-c", deaf]], on_ready=lambda: ready.append("ready"))

    async def during() -> None:
        await until(lambda: ready == ["ready"])
        made.stop()

    assert run(made, during) == 1


def test_members_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = (
        "import asyncio, json, sys; from tardis_fast.cluster import Cluster\n"
        "async def main():\n"
        "    await Cluster(json.loads(sys.argv[1])).run()\n"
        "asyncio.run(main())"
    )

    async def both() -> None:
        commands = json.dumps(members(tmp_path, 0, 0))
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", parent, commands)
        await until(lambda: len(pids(tmp_path)) == 2)
        process.kill()
        await process.wait()
        await until(lambda: not any(is_running(pid) for pid in pids(tmp_path)))

    asyncio.run(asyncio.wait_for(both(), 60))


def is_running(pid: int) -> bool:
    """Whether a process does something; one that ended may wait for whoever inherited it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_ports_are_held_for_those_who_share_them() -> None:
    held = HeldPorts("127.0.0.1", 0)
    try:
        for port in (held.port, held.port + 1):
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
            with socket.socket() as member:
                for shared in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
                    member.setsockopt(socket.SOL_SOCKET, shared, 1)
                member.bind(("127.0.0.1", port))
                member.listen()
                with pytest.raises(TardisFastError, match="in use"):
                    HeldPorts("127.0.0.1", port)
    finally:
        held.close()
    HeldPorts("127.0.0.1", held.port).close()


def test_a_next_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(TardisFastError, match="in use"):
            HeldPorts("127.0.0.1", taken.getsockname()[1] - 1)
