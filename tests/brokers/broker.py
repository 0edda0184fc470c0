"""The life every broker of the tests has, whichever bus it serves and however it is run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from brokers import container, process

if TYPE_CHECKING:
    from pathlib import Path

    from brokers.program import Program, Runner

_START_LIMIT = 120.0
_LOG_LINES = 40


class BrokerError(Exception):
    """A broker that did not start, with the end of its log."""


class Broker(ABC):
    """A broker with fixed ports and a fixed data directory, so that it can come back as itself.

    A subclass says which program to run and when it is ready; what it adds are the addresses by
    which clients reach it.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._runner: Runner | None = None

    @abstractmethod
    def _program(self) -> Program:
        """Write what the program reads, and say how to run it."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Ask the broker in its own protocol; False, or any error, means to ask again."""

    @property
    def running(self) -> bool:
        """Whether the broker is there, paused or not."""
        return self._runner is not None and self._runner.running()

    def start(self) -> None:
        """Start the broker and return once it answers in its own protocol."""
        if self.running:
            return
        if self._runner is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            program = self._program()
            kind = container.Container if container.docker_answers() else process.Process
            self._runner = kind(program, self.directory)
        self._runner.start()
        self._wait_until_ready(self._runner)

    def stop(self) -> None:
        """Ask the broker to end, and wait until it has."""
        if self._runner is not None and self._runner.running():
            self._runner.terminate()

    def kill(self) -> None:
        """End the broker without a warning, as a crash would (SIGKILL)."""
        self._live_runner().kill()

    def pause(self) -> None:
        """Freeze the broker: its connections stay open and nothing answers (SIGSTOP)."""
        self._live_runner().pause()

    def resume(self) -> None:
        """Let a paused broker go on (SIGCONT)."""
        self._live_runner().resume()

    def restart(self) -> None:
        """Start the broker again on its ports and data, after stopping it if it still runs."""
        self.stop()
        self.start()

    def log(self) -> str:
        """Return the end of what the broker wrote, over all its starts."""
        return "" if self._runner is None else self._runner.log(_LOG_LINES)

    def _live_runner(self) -> Runner:
        if self._runner is None or not self._runner.running():
            raise BrokerError(f"{type(self).__name__} is not running")
        return self._runner

    def _wait_until_ready(self, runner: Runner) -> None:
        deadline = time.monotonic() + _START_LIMIT
        reason = "it did not say that it is ready"
        while time.monotonic() < deadline:
            if not runner.running():
                reason = "it ended"
                break
            try:
                if self._is_ready():
                    return
            # Each client has errors of its own for "not yet"; the last one is reported.
            except Exception as error:  # noqa: BLE001
                reason = repr(error)
            time.sleep(0.05)
        log = runner.log(_LOG_LINES)
        if runner.running():
            runner.kill()
        raise BrokerError(f"{type(self).__name__} did not start: {reason}\n{log}")
