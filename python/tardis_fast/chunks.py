"""The chunks of a session of the core, for `for` and `async for`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tardis_fast.waiting import bell_of_loop

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
    bell = bell_of_loop()
    number = bell.new_number()
    try:
        while True:
            is_ready, chunk = session.try_chunk(bell.core, number)
            if not is_ready:
                await bell.wait(number)
            elif chunk is None:
                return
            else:
                yield chunk
    finally:
        session.close()
