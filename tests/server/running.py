"""A machine that runs in a thread of its own, and clients that are not ours."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import uvloop
from typing_extensions import Self
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from tardis_fast import TardisMachine


class RunningMachine:
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

    def get(
        self,
        path: str,
        *,
        method: str = "GET",
        port: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask over HTTP; returns status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=120)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def replay(self, path: str, options: Any) -> tuple[int, dict[str, str], bytes]:
        """Ask for a replay over HTTP."""
        return self.get(f"{path}?options={quote(json.dumps(options))}")

    def frames(
        self,
        path: str,
        options: Any,
        *,
        port: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[list[str], int, str]:
        """Ask over WebSocket; returns its messages, and code and reason of its close."""
        url = f"ws://127.0.0.1:{port or self.port + 1}{path}"
        if options is not None:
            url += f"?options={quote(options if isinstance(options, str) else json.dumps(options))}"
        messages = []
        with connect(
            url, max_size=None, additional_headers=dict(headers or {}), open_timeout=60
        ) as socket:
            try:
                while True:
                    messages.append(str(socket.recv(120)))
            except ConnectionClosed:
                pass
            return messages, socket.close_code or 0, socket.close_reason or ""
