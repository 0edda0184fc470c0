"""A stand-in for the Tardis API and for exchanges that serves the sample market.

No key, no network, any range, and live streams of now.
"""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

from aiohttp import web
from typing_extensions import Self

from tardis_fast._core import ConfigError, SampleMarket
from tardis_fast.sample_exchange import SampleExchanges

if TYPE_CHECKING:
    from types import TracebackType

_THREADS = 2
"""Minutes are made without Python's lock."""
_REMEMBERED_MINUTES = 16
"""Replays ask for their first and last minute each time, to prove that they may."""


class SampleApi:
    """The API and the live exchanges as an application of aiohttp."""

    def __init__(self, market: SampleMarket, *, slice_minutes: int = 10) -> None:
        self._market = market
        self._minute = lru_cache(_REMEMBERED_MINUTES)(market.slice)
        self._slice_minutes = slice_minutes
        self._threads = ThreadPoolExecutor(_THREADS, "sample-api")
        self.requests = 0
        """Slices that were asked for."""

    def application(self) -> web.Application:
        """Return an application to be served."""
        application = web.Application()
        application.router.add_get("/v1/data-feeds/{exchange}", self._slice)
        SampleExchanges(self._market, self._threads).add_routes(application)
        application.on_cleanup.append(self._clean_up)
        return application

    async def _clean_up(self, _: web.Application) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _slice(self, request: web.Request) -> web.Response:
        query = request.query
        accepts_zstd = "zstd" in request.headers.get("Accept-Encoding", "")
        wants_zstd = query.get("compression", "gzip").startswith("zstd")
        compression = "zstd" if accepts_zstd and wants_zstd else "gzip"
        try:
            minutes = int(query.get("sliceSize", "1"))
            offset = int(query.get("offset", "0"))
        except ValueError as error:
            return _refusal(f"offset and sliceSize must be whole numbers: {error}")
        exchange, filters = request.match_info["exchange"], query.get("filters", "[]")
        make = self._minute if minutes == 1 else self._market.slice
        arguments = (exchange, query.get("from", ""), offset, minutes, filters, compression)
        try:
            body = await asyncio.get_running_loop().run_in_executor(self._threads, make, *arguments)
        except ConfigError as error:
            return _refusal(str(error))
        self.requests += 1
        return web.Response(
            body=body,
            headers={
                "Content-Type": "text/plain",
                "Content-Encoding": compression,
                "x-slice-size": str(minutes),
                "x-suggested-slice-size": str(self._slice_minutes),
            },
        )


def _refusal(text: str) -> web.Response:
    return web.json_response({"code": 100, "message": text}, status=400)


class SampleApiThread:
    """The API served from a thread of its own, for programs that have no event loop.

    Used with `with`: inside, `endpoint` is its address.
    """

    def __init__(
        self, market: SampleMarket | None = None, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.api = SampleApi(market or SampleMarket())
        self.endpoint = ""
        self._host = host
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._is_up = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="sample-api", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_up.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        runner = web.AppRunner(self.api.application())
        try:
            self._loop.run_until_complete(self._start(runner))
        except OSError as error:
            self._failure = error
        self._is_up.set()
        if self._failure is None:
            self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _start(self, runner: web.AppRunner) -> None:
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.endpoint = f"http://{host}:{port}/v1"
