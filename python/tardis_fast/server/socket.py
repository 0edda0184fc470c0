"""A client's WebSocket: whole frames out, messages in, and one way to close."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import WSMsgType, web

from tardis_fast.server.refusals import close_reason

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_MESSAGE = 512 << 10
"""Bytes of a client's message, at most."""
_CLOSE_SECONDS = 10.0
"""How long a client may take to answer a close."""
_PING_SECONDS = 30.0
"""How often a client is pinged, so that nothing between it and the server takes it for idle."""
_BUFFERED_BYTES = 512 << 10
"""Bytes that wait for a slow client in this process."""


def client_of(request: web.BaseRequest) -> str:
    """Return the address of whoever asks."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    return f"{peer[0]}:{peer[1]}" if peer else ""


class Socket:
    """A WebSocket that is open."""

    def __init__(self, request: web.BaseRequest) -> None:
        # Frames come from the core as they are, so the connection must not agree on compression.
        self.response = web.WebSocketResponse(
            compress=False, max_msg_size=_LONGEST_MESSAGE, timeout=_CLOSE_SECONDS
        )
        self._request = request
        self.client = client_of(request)

    async def open(self) -> None:
        """Answer the handshake."""
        self._writer = await self.response.prepare(self._request)
        transport = self._request.transport
        if transport is None:
            raise ConnectionResetError("the client is gone")
        transport.set_write_buffer_limits(high=_BUFFERED_BYTES)
        self._transport = transport

    async def send(self, frames: bytes, patience: float | None = None) -> None:
        """Send whole frames, waiting while the client is slow, at most `patience` seconds."""
        if self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._transport.write(frames)
        if patience is None:
            await self._writer.drain()
        elif self._transport.get_write_buffer_size() > 0:
            await asyncio.wait_for(self._writer.drain(), patience)

    async def read(self, on_message: Callable[[str], None] | None = None) -> None:
        """Read until the client closes; answers pings, passes texts on."""
        pinging = asyncio.create_task(self._ping())
        try:
            async for message in self.response:
                if on_message is None:
                    continue
                if message.type is WSMsgType.TEXT:
                    on_message(message.data)
                elif message.type is WSMsgType.BINARY:
                    on_message(message.data.decode(errors="replace"))
        finally:
            pinging.cancel()

    async def _ping(self) -> None:
        with suppress(ConnectionError):
            while True:
                await asyncio.sleep(_PING_SECONDS)
                await self.response.ping()

    async def close(self, code: int, reason: str = "") -> None:
        """Close, and give the client some time to answer."""
        with suppress(ConnectionError):
            await self.response.close(code=code, message=close_reason(reason))
