"""Clients of a server that are not ours."""

from __future__ import annotations

import http.client
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PATIENCE = 120
"""Seconds within which every answer comes, however busy the machine."""


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait for what needs no more than time."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def path_with(path: str, options: Any) -> str:
    """Return a path with options in its query."""
    return f"{path}?options={quote(options if isinstance(options, str) else json.dumps(options))}"


class Client:
    """Asks a server on a port of this computer."""

    @property
    def port(self) -> int:
        """The port of HTTP."""
        raise NotImplementedError

    def status(self) -> Any:
        """Return what the server says of itself."""
        return json.loads(self.get("/status")[2])

    def wait_until_idle(self) -> None:
        """Wait until no session runs."""
        wait_until(lambda: self.status()["totals"]["sessionsRunning"] == 0)

    def get(
        self,
        path: str,
        *,
        method: str = "GET",
        port: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask over HTTP; returns status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def replay(self, path: str, options: Any) -> tuple[int, dict[str, str], bytes]:
        """Ask for a replay over HTTP."""
        return self.get(path_with(path, options))

    def frames(
        self,
        path: str,
        options: Any,
        *,
        port: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[list[str], int, str]:
        """Ask over WebSocket; returns its messages, and code and reason of its close."""
        target = path if options is None else path_with(path, options)
        url = f"ws://127.0.0.1:{port or self.port + 1}{target}"
        messages = []
        with connect(
            url, max_size=None, additional_headers=dict(headers or {}), open_timeout=60
        ) as socket:
            try:
                while True:
                    messages.append(str(socket.recv(PATIENCE)))
            except ConnectionClosed:
                pass
            return messages, socket.close_code or 0, socket.close_reason or ""
