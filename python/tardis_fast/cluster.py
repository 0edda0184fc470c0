"""Cluster mode: several processes that serve on the same ports.

The parent serves nothing. It holds the ports, starts the members and starts a member anew that
ended. A member listens with `SO_REUSEPORT`, so that the kernel spreads connections over all of
them; prints one line when it is up; and stops when it is told to, or when its standard input ends,
which it does when the parent is gone, however that came.
"""

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress

from tardis_fast._core import TardisFastError

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
_LONG_LIFE_SECONDS = 60.0
"""A member that lived so long was sound: it is started anew without delay."""
_PORT_TRIES = 50
_PORTS = 2
"""That of HTTP and the next one, of WebSocket."""
_LARGEST_PORT = 65_535

_log = logging.getLogger(__name__)


def default_processes() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class HeldPorts:
    """A port and the next one, held for the members while none of them listens.

    Raises `TardisFastError` if another program listens there, also one that shares its ports.
    """

    def __init__(self, host: str, port: int) -> None:
        self._sockets = ExitStack()
        for tries_left in reversed(range(1 if port else _PORT_TRIES)):
            try:
                self.port = self._hold(host, port)
            except OSError as error:  # noqa: PERF203 - that is why it is tried again
                self.close()
                if not tries_left:
                    reason = error.strerror or str(error)
                    raise TardisFastError(f"cannot listen on {host}:{port}: {reason}") from None
            else:
                return

    def _hold(self, host: str, port: int) -> int:
        for number in range(_PORTS):
            if port + number > _LARGEST_PORT:
                break
            # Shared ports could be taken beside another cluster; an unshared one cannot.
            with _bound(host, port + number, is_shared=False) as free:
                found: int = free.getsockname()[1]
            self._sockets.enter_context(_bound(host, found, is_shared=True))
            port = found - number
        return port

    def close(self) -> None:
        """Let the ports go."""
        self._sockets.close()


def _bound(host: str, port: int, *, is_shared: bool) -> socket.socket:
    family, kind, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


class Cluster:
    """Members, and who starts them."""

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        *,
        on_ready: Callable[[], None] = lambda: None,
        final_codes: frozenset[int] = frozenset(),
    ) -> None:
        """Make a cluster of one member per command.

        `on_ready` is called once, when all members are up. A member that ends with one of
        `final_codes` would end so again: it ends the cluster.
        """
        self._commands = commands
        self._on_ready = on_ready
        self._final_codes = final_codes
        self._not_ready = set(range(len(commands)))
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = asyncio.Event()
        self._final_code = 0

    def stop(self) -> None:
        """Tell the members to stop; the second time, kill them."""
        is_second = self._stopping.is_set()
        self._stopping.set()
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL if is_second else signal.SIGTERM)

    async def run(self) -> int:
        """Run until it is stopped and return the exit code: 0 if all members ended with 0."""
        codes = await asyncio.gather(*(self._keep(member) for member in range(len(self._commands))))
        return self._final_code or (1 if any(codes) else 0)

    async def _keep(self, member: int) -> int:
        """Run a member, again and again, and return how it ended after the cluster was stopped."""
        pause = FIRST_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            code = await self._run(member)
            if self._stopping.is_set():
                return code
            if code in self._final_codes:
                self._final_code = code
                self.stop()
                return code
            if loop.time() - started > _LONG_LIFE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            _log.error(
                "process %d ended by itself and is started again in %g s",
                member,
                pause,
                extra={"member": member, "exit_code": code},
            )
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
                # It is not running, and what it had not delivered waits for the next start.
                return 1
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def _run(self, member: int) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._commands[member],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Signals of the terminal go to the parent alone, so that none arrives twice.
            start_new_session=True,
        )
        self._processes[member] = process
        if self._stopping.is_set():
            process.send_signal(signal.SIGTERM)
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe, as asked for
            if await process.stdout.readline():
                self._is_up(member)
            return await process.wait()
        finally:
            del self._processes[member]

    def _is_up(self, member: int) -> None:
        if member in self._not_ready:
            self._not_ready.remove(member)
            if not self._not_ready:
                self._on_ready()
