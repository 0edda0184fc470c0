"""What is run for a broker, and what a way of running it must be able to do."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Program:
    """One broker's program: a command of this machine, and the container that does the same.

    Ports, files and environment are the same for both: a container shares the network of its host
    and sees the data directory at the same path.
    """

    command: Sequence[str]
    image: str
    container_command: Sequence[str] | None = None
    """None leaves the image's own command."""
    working_directory: Path | None = None
    """For the command only; an image has its own."""
    environment: Mapping[str, str] = field(default_factory=dict)


class Runner(Protocol):
    """A way to run a program; made once per broker, started as often as the broker is."""

    def start(self) -> None:
        """Start the program and return at once."""

    def running(self) -> bool:
        """Say whether the program is there, paused or not."""

    def terminate(self) -> None:
        """Ask the program to end, insist if it does not, and wait."""

    def kill(self) -> None:
        """End the program without a warning and wait."""

    def pause(self) -> None:
        """Freeze the program."""

    def resume(self) -> None:
        """Let it go on."""

    def log(self, lines: int) -> str:
        """Return the last lines the program wrote."""


def install_directory() -> Path:
    """Say where `scripts/brokers.sh` installs to."""
    if named := os.environ.get("TARDIS_FAST_BROKERS"):
        return Path(named)
    if named := os.environ.get("TARDIS_FAST_CACHE"):
        return Path(named) / "brokers"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "tardis-fast" / "brokers"
