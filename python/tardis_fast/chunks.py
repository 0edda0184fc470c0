"""The chunks of a session of the core, for `for` and `async for`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tardis_fast import _core


def chunks(session: _core.Session) -> Iterator[_core.Chunk]:
    """Give the chunks of a session, and end it when nobody reads on."""
    try:
        while (chunk := session.next_chunk()) is not None:
            yield chunk
    finally:
        session.close()


async def chunks_async(session: _core.Session) -> AsyncIterator[_core.Chunk]:
    """Give the chunks of a session, without a thread, and end it when nobody reads on."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(ready.set)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    try:
        while True:
            ready.clear()
            is_ready, chunk = session.try_chunk(wake)
            if not is_ready:
                await ready.wait()
            elif chunk is None:
                return
            else:
                yield chunk
    finally:
        session.close()
