"""Runs a broker in a container, by Testcontainers.

Chosen only where a Docker engine answers. The project's own CI has none, so this is the one part of
the brokers that is not exercised there.
"""

from __future__ import annotations

import functools
import os
import subprocess
from typing import TYPE_CHECKING

from testcontainers.core.container import DockerContainer

if TYPE_CHECKING:
    from pathlib import Path

    from brokers.program import Program


@functools.cache
def docker_answers() -> bool:
    """Say whether to use containers; TARDIS_FAST_CONTAINERS=0 or =1 decides without asking."""
    wish = os.environ.get("TARDIS_FAST_CONTAINERS")
    if wish is not None:
        return wish == "1"
    try:
        answer = subprocess.run(["docker", "info"], capture_output=True, timeout=5, check=False)  # noqa: S607
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


class Container:
    """A program in a container that shares the host's network and the broker's data directory.

    Sharing both keeps ports, configuration files and data the same as for a process. Testcontainers
    removes the container when the tests end.
    """

    def __init__(self, program: Program, directory: Path) -> None:
        self._container = (
            DockerContainer(program.image)
            .with_volume_mapping(str(directory), str(directory), "rw")
            .with_kwargs(network_mode="host", user=f"{os.getuid()}:{os.getgid()}")
        )
        for name, value in program.environment.items():
            self._container.with_env(name, value)
        if program.container_command is not None:
            entry, *arguments = program.container_command
            self._container.with_kwargs(
                network_mode="host", user=f"{os.getuid()}:{os.getgid()}", entrypoint=[entry]
            ).with_command(arguments)
        self._created = False

    def start(self) -> None:
        """Create the container, or start it again."""
        if self._created:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._created = True

    def running(self) -> bool:
        """Say whether the container is there, paused or not."""
        return self._created and self._status() in {"running", "paused"}

    def terminate(self) -> None:
        """Stop the container; a paused one is resumed to heed it."""
        if self._status() == "paused":
            self.resume()
        self._container.get_wrapped_container().stop(timeout=30)

    def kill(self) -> None:
        """Kill what runs in the container."""
        if self._status() == "paused":
            self.resume()
        container = self._container.get_wrapped_container()
        container.kill("SIGKILL")
        container.wait()

    def pause(self) -> None:
        """Freeze the container."""
        self._container.get_wrapped_container().pause()

    def resume(self) -> None:
        """Let the container go on."""
        self._container.get_wrapped_container().unpause()

    def log(self, lines: int) -> str:
        """Return the last lines of the container's log."""
        written: bytes = self._container.get_wrapped_container().logs(tail=lines)
        return written.decode(errors="replace")

    def _status(self) -> str:
        container = self._container.get_wrapped_container()
        container.reload()
        status: str = container.status
        return status
