"""Runs a broker as a process of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from brokers.program import Program

_STOP_LIMIT = 30.0


class Process:
    """A program in a process group of its own, which does not outlive the tests."""

    def __init__(self, program: Program, directory: Path) -> None:
        self._program = program
        self._log = directory / "broker.log"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the program; what it writes goes to `broker.log` in its directory."""
        with self._log.open("ab") as log:
            try:
                # A session of its own keeps an interrupt at the keyboard from reaching the broker
                # before the tests have ended.
                self._child = subprocess.Popen(
                    self._program.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self._program.working_directory,
                    env={**os.environ, **self._program.environment},
                    start_new_session=True,
                )
            except FileNotFoundError as error:
                raise FileNotFoundError(
                    f"{error.filename} is not there; scripts/test installs the brokers"
                ) from error
        _Reaper.watch(self._child.pid)

    def running(self) -> bool:
        """Say whether the process has not ended yet."""
        return self._child is not None and self._child.poll() is None

    def terminate(self) -> None:
        """Send SIGTERM, then SIGKILL if need be; a paused process is resumed to heed it."""
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        try:
            self._reap(_STOP_LIMIT)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._signal(signal.SIGKILL)
        self._reap(None)

    def pause(self) -> None:
        """Send SIGSTOP and wait until every thread has stopped: one could still answer a client."""
        self._signal(signal.SIGSTOP)
        if self._child is not None:
            os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Send SIGCONT."""
        self._signal(signal.SIGCONT)

    def log(self, lines: int) -> str:
        """Return the last lines of `broker.log`."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def _signal(self, number: signal.Signals) -> None:
        if self._child is not None and self._child.poll() is None:
            os.killpg(self._child.pid, number)

    def _reap(self, limit: float | None) -> None:
        if self._child is not None:
            self._child.wait(limit)
            _Reaper.forget(self._child.pid)


class _Reaper:
    """A process that kills the brokers left over when the tests end, however they end.

    It learns of the end by the end of its input, which even SIGKILL brings about. The kernel's own
    signal on a parent's death would not do: it comes as soon as the thread that started the child
    ends, and tests restart brokers from threads.
    """

    _lock = threading.Lock()
    _process: subprocess.Popen[bytes] | None = None

    @classmethod
    def watch(cls, group: int) -> None:
        cls._tell(f"+{group}\n")

    @classmethod
    def forget(cls, group: int) -> None:
        cls._tell(f"-{group}\n")

    @classmethod
    def _tell(cls, line: str) -> None:
        with cls._lock:
            if cls._process is None:
                cls._process = subprocess.Popen(
                    [sys.executable, "-I", str(Path(__file__).with_name("reaper.py"))],
                    stdin=subprocess.PIPE,
                    start_new_session=True,
                )
            pipe = cls._process.stdin
            assert pipe is not None
            pipe.write(line.encode())
            pipe.flush()
