"""How tasks of an event loop wait for the core: one bell a loop, which its threads ring."""

from __future__ import annotations

import asyncio
import itertools
from weakref import WeakKeyDictionary

from tardis_fast import _core


class Bell:
    """The bell of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.core = _core.Bell()
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.core.fileno(), self._hear)

    def new_number(self) -> int:
        """Return a number that nobody else waits for."""
        return next(self._numbers)

    async def wait(self, number: int) -> None:
        """Wait until it is rung with this number, from now on."""
        rung = asyncio.get_running_loop().create_future()
        self._waiting[number] = rung
        try:
            await rung
        finally:
            self._waiting.pop(number, None)

    def _hear(self) -> None:
        for number in self.core.take():
            rung = self._waiting.pop(number, None)
            if rung is not None and not rung.done():
                rung.set_result(None)


_BELLS: WeakKeyDictionary[asyncio.AbstractEventLoop, Bell] = WeakKeyDictionary()


def bell_of_loop() -> Bell:
    """Return the bell of the running event loop; it goes with its loop."""
    loop = asyncio.get_running_loop()
    bell = _BELLS.get(loop)
    if bell is None:
        bell = _BELLS[loop] = Bell(loop)
    return bell
