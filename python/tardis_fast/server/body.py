"""The body of an answer: chunks go to the connection as they are, without being copied."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.abc import AbstractStreamWriter

_BUFFERED_BYTES = 512 << 10
"""Bytes that wait for a slow client in this process."""


class Body:
    """The rest of a body whose beginning, and the headers before it, were sent by aiohttp."""

    def __init__(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        writer: AbstractStreamWriter | None,
    ) -> None:
        if request.transport is None or writer is None:
            raise ConnectionResetError("the client is gone")
        self._transport = request.transport
        self._transport.set_write_buffer_limits(high=_BUFFERED_BYTES)
        self._writer = writer
        self._is_chunked = response.chunked or request.version >= (1, 1)

    async def send(self, lines: bytes) -> None:
        """Send, waiting while the client is slow."""
        if self._transport.is_closing():
            raise ConnectionResetError("the client is gone")
        if self._is_chunked:
            self._transport.writelines((b"%x\r\n" % len(lines), lines, b"\r\n"))
        else:
            self._transport.write(lines)
        await self._writer.drain()
