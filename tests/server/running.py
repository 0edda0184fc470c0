"""A machine that runs in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import uvloop
from typing_extensions import Self

from server.client import Client

if TYPE_CHECKING:
    from types import TracebackType

    from tardis_fast import TardisMachine


class RunningMachine(Client):
    """A machine, started on a free port; stopped at the end of `with`."""

    def __init__(self, machine: TardisMachine) -> None:
        self.machine = machine
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="machine")

    def run(self, coroutine: Any) -> Any:
        """Run something in the machine's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.run(self.machine.start(0))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.run(self.machine.stop())
        finally:
            self._end()

    def _end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    @property
    def port(self) -> int:
        """The port of HTTP."""
        return self.machine.port
