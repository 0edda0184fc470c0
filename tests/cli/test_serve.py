"""`serve`, run as a person runs it: where it listens, how it ends."""

import os
import signal
import socket
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

COMMAND = Path(sysconfig.get_path("scripts")) / "tardis-fast"
EXPECTED = Path(__file__).parent / "expected"


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment without options of tardis-fast."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TM_")}
    return clean | {"COLUMNS": "80"}


class Server:
    """A server that runs."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.line = process.stdout.readline()
        self.address = self.line.split()[-1] if self.line else ""

    def is_healthy(self) -> bool:
        """Ask it."""
        with urlopen(f"{self.address}/health-check", timeout=30) as answer:  # noqa: S310 - HTTP
            return bool(answer.status == 200)

    def children(self) -> list[int]:
        """Return the process ids of its members."""
        pid = self.process.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8")
        return [int(child) for child in text.split()]


@contextmanager
def serving(environment: dict[str, str], *arguments: str) -> Iterator[Server]:
    """Run `tardis-fast serve` on a free port until the block ends."""
    with subprocess.Popen(
        [COMMAND, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            yield Server(process)
        finally:
            if process.poll() is None:
                process.terminate()


def test_help(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [COMMAND, "serve", "--help"], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout == (EXPECTED / "serve-help.txt").read_text("utf-8")
    assert done.stdout.count("\n") <= 50


def test_help_of_the_server(environment: dict[str, str]) -> None:
    done = subprocess.run(
        [COMMAND, "serve", "--help-bus", "server"],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.stdout == (EXPECTED / "help-bus-server.txt").read_text("utf-8")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_0(environment: dict[str, str], number: signal.Signals) -> None:
    with serving(environment) as server:
        assert server.line.startswith("tardis-fast ")
        assert server.is_healthy()
        server.process.send_signal(number)
        out, err = server.process.communicate(timeout=60)
    assert (server.process.returncode, out) == (0, "")
    assert "Traceback" not in err


def test_a_port_that_is_taken_ends_it_with_3(environment: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for mode in ([], ["--cluster-mode"]):
            with serving(environment, "--port", str(port), *mode) as server:
                _, err = server.process.communicate(timeout=60)
            assert server.process.returncode == 3
            assert err.startswith(f"error: cannot listen on 127.0.0.1:{port}")
            assert err.endswith("; give another --port or --host\n")


def test_bad_configuration_ends_it_with_2(environment: dict[str, str]) -> None:
    with serving(environment | {"TM_MAX_SESSIONS": "none"}) as server:
        _, err = server.process.communicate(timeout=60)
    assert server.process.returncode == 2
    assert err == "error: --max-sessions: `none` is not a whole number; give one\n"


def test_a_cluster_serves_on_one_port_and_replaces_members(environment: dict[str, str]) -> None:
    with serving(environment, "--cluster-mode", "--processes", "2") as server:
        assert server.is_healthy()
        first = server.children()
        assert len(first) == 2
        os.kill(first[0], signal.SIGKILL)
        patience = time.monotonic() + 60
        while len(set(server.children()) - {first[0]}) < 2:
            assert time.monotonic() < patience
            time.sleep(0.05)
        assert server.is_healthy()
        second = server.children()
        server.process.terminate()
        _, err = server.process.communicate(timeout=60)
    assert "process 0 ended by itself" in err or "process 1 ended by itself" in err
    assert not any(Path(f"/proc/{pid}").exists() for pid in {*first, *second})
