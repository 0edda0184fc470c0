"""A server of the page that says what a test wants it to say."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from aiohttp import web
from typing_extensions import Self

from brokers.ports import free_port
from tardis_fast.page import page_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from types import TracebackType

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)


class MadeUpServer:
    """Serves the page, and as status what `status` returns for the number of the request.

    Used with `with`; it runs in a thread of its own, which ends with it.
    """

    def __init__(self, status: Callable[[int], dict[str, Any]]) -> None:
        self.status = status
        self.asked = 0
        """How many times the status was asked for, with the right token if there is one."""
        self.token: str | None = None
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/"
        self._runner: web.AppRunner | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="made-up-server")

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Listen no more, and again afterwards."""
        self._run(self._stop())
        try:
            yield
        finally:
            self._run(self._start())

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=20)

    async def _start(self) -> None:
        application = web.Application()
        application.router.add_get("/", self._page)
        application.router.add_get("/status", self._status)
        self._runner = web.AppRunner(application, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def _stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _page(self, _: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
        return web.Response(body=page_bytes(), content_type="text/html", headers=headers)

    async def _status(self, request: web.Request) -> web.Response:
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"error": "a token is needed"}, status=401)
        self.asked += 1
        return web.json_response(self.status(self.asked))
