"""The exchanges of the sample market, live: they speak as the real ones do, without a network.

Messages come from the core as whole WebSocket frames, all of a tenth of a second at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aiohttp import WSCloseCode, web

from tardis_fast import _core
from tardis_fast._core import ConfigError, SampleMarket
from tardis_fast.server.socket import Socket

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_INTERVAL_SECONDS = 0.1
"""How often messages are sent."""
_LONGEST_GAP_MICROS = 60_000_000
"""Who was not served for longer, as this machine was asleep, had better connect again."""
_FETCHED = {"depth": "depthSnapshot", "openInterest": "openInterest"}
"""What is asked for over HTTP, and the channel it is in the archive."""
_EXCHANGE_INFO = {
    "rateLimits": [
        {
            "rateLimitType": "REQUEST_WEIGHT",
            "interval": "MINUTE",
            "intervalNum": 1,
            "limit": 100_000,
        }
    ]
}


def live_variables(address: str) -> dict[str, str]:
    """Return the variables that lead live streams to `address`, which is host and port.

    An exchange that the environment puts elsewhere stays there.
    """
    variables: dict[str, str] = {}
    for exchange in SampleMarket.exchanges():
        name = exchange.upper().replace("-", "_")
        made_up = {
            f"WSS_URL_{name}": f"ws://{address}/ws/{exchange}",
            f"REST_URL_{name}": f"http://{address}/rest/{exchange}",
        }
        if not os.environ.keys() & made_up.keys():
            variables |= made_up
    return variables


class SampleExchanges:
    """Answers the clients of the exchanges."""

    def __init__(self, market: SampleMarket, threads: ThreadPoolExecutor) -> None:
        self._market = market
        self._threads = threads
        self._connections: set[asyncio.Task[None]] = set()

    def add_routes(self, application: web.Application) -> None:
        """Have the exchanges in an application."""
        application.router.add_get("/ws/{exchange}", self._socket)
        application.router.add_get("/rest/{exchange}/exchangeInfo", self._exchange_info)
        application.router.add_get("/rest/{exchange}/{question}", self._answer)
        application.on_shutdown.append(self._close_all)

    async def _close_all(self, _: web.Application) -> None:
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        exchange = request.match_info["exchange"]
        try:
            stream = self._market.connect(exchange, _now())
        except ConfigError as error:
            return web.Response(status=HTTPStatus.NOT_FOUND, text=str(error))
        socket = Socket(request)
        await socket.open()
        task = asyncio.create_task(self._serve(exchange, stream, socket))
        self._connections.add(task)
        try:
            await task
        except ConnectionError:
            pass
        finally:
            task.cancel()
            self._connections.discard(task)
        return socket.response

    async def _serve(self, exchange: str, stream: _core.SampleStream, socket: Socket) -> None:
        """Send what the client subscribes to, as it happens, until it goes."""
        said: list[str] = []
        reading = asyncio.create_task(socket.read(said.append))
        loop = asyncio.get_running_loop()
        before = _now()
        try:
            while not reading.done():
                now = _now()
                if now - before > _LONGEST_GAP_MICROS:
                    await socket.close(WSCloseCode.GOING_AWAY, "the market went on without you")
                    return
                before = now
                frames = await loop.run_in_executor(self._threads, stream.frames, now)
                await socket.send(frames)
                for message in said[:]:
                    await self._subscribe(exchange, stream, socket, message)
                    said.remove(message)
                await asyncio.wait({reading}, timeout=_INTERVAL_SECONDS)
        finally:
            reading.cancel()

    async def _subscribe(
        self, exchange: str, stream: _core.SampleStream, socket: Socket, message: str
    ) -> None:
        """Answer a client's message, and begin to send what it asks for."""
        try:
            filters = _core.subscribed_filters(exchange, message)
        except ConfigError as error:
            await socket.response.send_json({"error": str(error)})
            return
        acknowledgement = _acknowledgement(exchange, message)
        if acknowledgement is not None:
            await socket.response.send_json(acknowledgement)
        if filters is not None:
            loop = asyncio.get_running_loop()
            await socket.send(await loop.run_in_executor(self._threads, stream.subscribe, filters))

    async def _exchange_info(self, _: web.Request) -> web.Response:
        return web.json_response(_EXCHANGE_INFO)

    async def _answer(self, request: web.Request) -> web.Response:
        """Answer a question for the order book or the open interest of a symbol."""
        channel = _FETCHED.get(request.match_info["question"])
        if channel is None:
            raise web.HTTPNotFound
        filters = json.dumps([{"channel": channel, "symbols": [request.query.get("symbol", "")]}])
        arguments = (request.match_info["exchange"], _now(), filters)
        loop = asyncio.get_running_loop()
        try:
            body = await loop.run_in_executor(self._threads, self._market.state, *arguments)
        except ConfigError as error:
            return web.json_response({"code": -1121, "msg": str(error)}, status=400)
        if not body:
            return web.json_response({"code": -1121, "msg": "Invalid symbol."}, status=400)
        return web.Response(body=body, content_type="application/json")


def _acknowledgement(exchange: str, message: str) -> dict[str, Any] | None:
    """Return what the exchange says to a message first; nothing to what it passes over."""
    try:
        said = json.loads(message)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    if exchange == "bitmex":
        return {"success": True, "request": said}
    if exchange == "deribit":
        return {"jsonrpc": "2.0", "id": said.get("id"), "result": "ok"}
    return {"result": None, "id": said.get("id")}


def _now() -> int:
    return time.time_ns() // 1_000
