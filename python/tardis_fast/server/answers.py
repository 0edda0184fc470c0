"""What is answered to whom: every endpoint, over HTTP and over WebSocket."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from aiohttp import WSCloseCode, web

from tardis_fast import _core
from tardis_fast._core import ConfigError
from tardis_fast.chunks import chunks_async
from tardis_fast.page import page_bytes
from tardis_fast.server import metrics
from tardis_fast.server.access import Access
from tardis_fast.server.body import Body
from tardis_fast.server.refusals import close_code_of, refusal, refusal_of, told
from tardis_fast.server.request_log import RequestLog
from tardis_fast.server.sessions import Session, Sessions
from tardis_fast.server.siblings import Siblings, merged_metrics, merged_status
from tardis_fast.server.socket import Socket, client_of
from tardis_fast.server.status import health, status
from tardis_fast.server.ws_replay import ReplayGroups

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from tardis_fast.options import ServerOptions
    from tardis_fast.publisher import Publisher

_PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)
_STOPPING = "the server is shutting down"

LOG = logging.getLogger("tardis_fast.server")


class Answers:
    """Answers requests for one archive, and publishes what it answers if there is a publisher."""

    def __init__(
        self,
        archive: _core.Archive,
        options: ServerOptions,
        publisher: Publisher | None,
        live_variables: Mapping[str, str] | None = None,
    ) -> None:
        self._archive = archive
        self._publisher = publisher
        self._access = Access(options.token)
        self._slow_client_timeout = options.slow_client_timeout
        self._log = RequestLog(LOG if options.request_log else None)
        self.sessions = Sessions(options.max_sessions)
        self._metrics = metrics.Metrics(self.sessions, publisher)
        self._is_stopping = False
        self._replay_groups = ReplayGroups(archive, self.sessions, _new_id)
        self._live_variables = dict(live_variables or {})
        self._plain: dict[str, Callable[[web.BaseRequest], web.StreamResponse]] = {
            "/health-check": lambda _: web.json_response(health()),
            "/": lambda _: _page(HTTPStatus.OK),
        }
        self._figures = {"/status": self._status, "/metrics": self._metrics_text}
        self.siblings: Siblings | None = None
        """The other processes, in a cluster."""
        self._replays = {"/replay": self._open_raw, "/replay-normalized": self._open_normalized}
        self._sockets: dict[str, Callable[[Socket, web.BaseRequest], Awaitable[None]]] = {
            "/ws-replay": self._ws_replay,
            "/ws-replay-normalized": self._ws_replay_normalized,
            "/ws-stream-normalized": self._ws_stream_normalized,
        }

    async def http(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request on the main port, which takes WebSockets too."""
        if _is_upgrade(request):
            return await self.websocket(request)
        began = time.monotonic()
        response = await self._http(request)
        self._log.plain(request, response.status, time.monotonic() - began)
        if response.status >= HTTPStatus.BAD_REQUEST:
            self._metrics.refused += 1
        return response

    async def _http(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        known = (*self._plain, *self._figures, *self._replays, *self._sockets)
        if request.method != "GET" or path not in known:
            return refusal(HTTPStatus.NOT_FOUND, f"there is no {request.method} {path[:200]}")
        if path != "/health-check" and not self._access.allows(request):
            return _unauthorized(path)
        if path in self._sockets:
            return _upgrade_required()
        if path in self._plain:
            return self._plain[path](request)
        if path in self._figures:
            return await self._figures[path]()
        return await self._replay(request, path)

    async def _replay(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        if self._is_stopping:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, _STOPPING)
        try:
            session = self._replays[path](_options_of(request), path, request)
            return await self._stream(request, session)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - each becomes an answer
            return refusal_of(error)

    async def websocket_port(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request on the port that takes WebSockets only."""
        return await self.websocket(request) if _is_upgrade(request) else _upgrade_required()

    async def websocket(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a WebSocket's handshake, and what follows."""
        if not self._access.allows(request):
            return _unauthorized(request.path)
        socket = Socket(request)
        await socket.open()
        path = request.path.lower()
        route = self._sockets.get(path)
        began = time.monotonic()
        try:
            if route is None:
                await socket.close(WSCloseCode.POLICY_VIOLATION, f"there is no {path}")
            elif self._is_stopping:
                await socket.close(WSCloseCode.GOING_AWAY, _STOPPING)
            else:
                await route(socket, request)
        except ConnectionError:
            pass
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            await socket.close(WSCloseCode.GOING_AWAY, _STOPPING)
        except Exception as error:  # noqa: BLE001 - each becomes a close
            self._log.failed(request, error)
            await socket.close(close_code_of(error), told(error))
        self._log.socket(request, socket.response.close_code, time.monotonic() - began)
        return socket.response

    async def stop(self) -> None:
        """Begin nothing more, and end what runs: clients see that it ended early."""
        self._is_stopping = True
        tasks = [task for session in self.sessions.running.values() for task in session.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Sessions

    def _open_raw(self, options: str, endpoint: str, request: web.BaseRequest) -> Session:
        core = _core.Session.raw(options, self._archive)
        return _session(core, options, endpoint, request)

    def _open_normalized(self, options: str, endpoint: str, request: web.BaseRequest) -> Session:
        core = _core.Session.normalized(options, self._archive)
        return self._published(_session(core, options, endpoint, request), "replay")

    def _published(self, session: Session, origin: str) -> Session:
        """Have the session's messages published, if there is a publisher."""
        if self._publisher is not None:
            name = "request_id" if session.transport == "http" else "session_id"
            meta = {name: session.id, "transport": session.transport, "route": session.endpoint}
            self._publisher.publish_session(session.core, origin=origin, meta=meta)
        return session

    async def _stream(self, request: web.BaseRequest, session: Session) -> web.StreamResponse:
        """Send a session as the body of an answer."""
        with self.sessions.running_session(session):
            session.tasks.append(_this_task())
            chunks = chunks_async(session.core)
            first = await anext(chunks, None)
            response = web.StreamResponse(
                headers={"Content-Type": "application/x-json-stream", "X-Request-Id": session.id}
            )
            writer = await response.prepare(request)
            if first is not None:
                try:
                    await response.write(first.lines)
                    self.sessions.sent(session, first, frames=False)
                    await self._send_rest(Body(request, response, writer), session, chunks)
                except Exception as error:
                    # Without its last chunk, so that the client can tell.
                    if request.transport is not None:
                        request.transport.close()
                    self._log.failed(request, error)
                    raise ConnectionResetError("the replay ended early") from error
        with suppress(ConnectionError):
            await response.write_eof()
        return response

    async def _send_rest(
        self, body: Body, session: Session, chunks: AsyncIterator[_core.Chunk]
    ) -> None:
        async for chunk in chunks:
            await body.send(chunk.lines)
            self.sessions.sent(session, chunk, frames=False)

    async def _ws_replay_normalized(self, socket: Socket, request: web.BaseRequest) -> None:
        options = _options_of(request)
        core = _core.Session.normalized(options, self._archive, frames=True)
        session = _session(core, options, "/ws-replay-normalized", request, transport="ws")
        self._published(session, "replay")
        await self._send_frames(socket, session)
        await socket.close(WSCloseCode.OK, "WS replay-normalized finished")

    async def _ws_replay(self, socket: Socket, request: web.BaseRequest) -> None:
        await self._replay_groups.serve(socket, dict(request.query))

    async def _ws_stream_normalized(self, socket: Socket, request: web.BaseRequest) -> None:
        options = _options_of(request)
        core = _core.Session.live(options, frames=True, variables=self._live_variables)
        endpoint = "/ws-stream-normalized"
        session = _session(core, options, endpoint, request, transport="ws", is_live=True)
        self._published(session, "realtime")
        try:
            await self._send_frames(socket, session, self._slow_client_timeout)
        except asyncio.TimeoutError:
            await socket.close(WSCloseCode.POLICY_VIOLATION, "Too much backpressure")
        else:
            await socket.close(WSCloseCode.OK, "WS stream-normalized finished")

    async def _send_frames(
        self, socket: Socket, session: Session, patience: float | None = None
    ) -> None:
        reading = asyncio.create_task(socket.read())
        try:
            with self.sessions.running_session(session):
                session.tasks.append(_this_task())
                async for chunk in chunks_async(session.core):
                    await socket.send(chunk.lines, patience)
                    self.sessions.sent(session, chunk, frames=True)
        finally:
            reading.cancel()

    # What the server says of itself

    def figures(self) -> dict[str, Any]:
        """Return what this process says of itself."""
        return {
            "status": status(self.sessions, self._publisher, self._metrics.refused),
            "metrics": self._metrics.text().decode(),
        }

    async def _status(self) -> web.Response:
        if self.siblings is None:
            return web.json_response(status(self.sessions, self._publisher, self._metrics.refused))
        each = [one["status"] for one in await self.siblings.figures()]
        return web.json_response(merged_status(each))

    async def _metrics_text(self) -> web.Response:
        if self.siblings is None:
            text = self._metrics.text()
        else:
            text = merged_metrics([one["metrics"] for one in await self.siblings.figures()])
        return web.Response(body=text, headers={"Content-Type": metrics.CONTENT_TYPE})


def _page(code: int) -> web.Response:
    headers = {"Content-Security-Policy": _PAGE_POLICY, "Cache-Control": "no-cache"}
    return web.Response(body=page_bytes(), status=code, content_type="text/html", headers=headers)


def _unauthorized(path: str) -> web.Response:
    code = HTTPStatus.UNAUTHORIZED
    text = "give the server's token: Authorization: Bearer TOKEN"
    # The page has no secrets, and asks whoever opens it for the token.
    response = _page(code) if path == "/" else refusal(code, text)
    response.headers["WWW-Authenticate"] = 'Bearer realm="tardis-fast"'
    return response


def _is_upgrade(request: web.BaseRequest) -> bool:
    return request.headers.get("Upgrade", "").lower() == "websocket"


def _upgrade_required() -> web.Response:
    response = refusal(HTTPStatus.UPGRADE_REQUIRED, "connect with a WebSocket client")
    response.headers["Upgrade"] = "websocket"
    return response


def _options_of(request: web.BaseRequest) -> str:
    options = request.query.get("options")
    if options is None:
        raise ConfigError(
            "the query parameter `options` is missing: give it as URL-encoded JSON, for example "
            '?options={"exchange":"bitmex","from":"2019-06-01","to":"2019-06-02",…}'
        )
    return options


def _new_id() -> str:
    return uuid.uuid4().hex


def _session(
    core: _core.Session,
    options: str,
    endpoint: str,
    request: web.BaseRequest,
    **facts: Any,  # noqa: ANN401 - fields of Session
) -> Session:
    read = json.loads(options)
    streams: list[Mapping[str, Any]] = read if isinstance(read, list) else [read]
    return Session(
        id=_new_id(),
        endpoint=endpoint,
        client=client_of(request),
        options=streams,
        core=core,
        **{"transport": "http"} | facts,
    )


def _this_task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a request is answered outside of a task")
    return task
