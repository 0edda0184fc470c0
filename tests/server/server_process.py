"""A server as people run it: a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import Self

from server.client import PATIENCE, Client

if TYPE_CHECKING:
    from types import TracebackType


class ServerProcess(Client):
    """`serve` of the sample market on a free port; killed at the end of `with` if it still runs."""

    def __init__(self, directory: Path, *arguments: str, **environment: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log_path = directory / "server.log"
        clean = {name: text for name, text in os.environ.items() if not name.startswith("TM_")}
        command = [sys.executable, "-m", "tardis_fast", "serve", "--sample", "--port", "0"]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--cache-dir", str(directory / "cache"), *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                env=clean | environment,
            )
        if self.process.stdout is None:
            raise RuntimeError("the server has no pipe")
        self._line = self.process.stdout.readline().decode()

    @property
    def port(self) -> int:
        """The port of HTTP."""
        if not self._line:
            raise RuntimeError(f"the server did not start:\n{self.log()}")
        return int(self._line.rpartition(":")[2])

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def log(self) -> str:
        """Return what it logged."""
        return self.log_path.read_text("utf-8")

    def terminate(self) -> int:
        """Send SIGTERM, and return how it ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def rss_mb(self, kind: str = "VmRSS") -> float:
        """Return the memory it has; `VmHWM` is the most it ever had."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        line = next(line for line in status.splitlines() if line.startswith(f"{kind}:"))
        return int(line.split()[1]) / 1024

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
