"""A stand-in for an exchange that speaks as BitMEX does, on this computer."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from typing_extensions import Self
from websockets.exceptions import ConnectionClosed
from websockets.protocol import State
from websockets.sync.server import serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from websockets.http11 import Request, Response
    from websockets.sync.server import ServerConnection

    Act = Callable[["Visit"], None]

WELCOME = {"info": "Welcome to the BitMEX Realtime API.", "version": "2.0.0"}


class Visit:
    """A connection that was made to the exchange, after its subscriptions were acknowledged."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    @property
    def is_open(self) -> bool:
        """Whether the client is still there."""
        return self._connection.state is State.OPEN

    def say(self, *messages: object) -> None:
        """Send messages."""
        with suppress(ConnectionClosed):
            for message in messages:
                self._connection.send(json.dumps(message))

    def leave(self, code: int, reason: str = "") -> None:
        """Close."""
        self._connection.close(code, reason)

    def stay(self) -> None:
        """Say nothing until the client leaves."""
        with suppress(ConnectionClosed):
            for _ in self._connection:
                pass


def refuse(_: Visit) -> None:
    """Stand for an exchange that answers no handshake."""


class StandInExchange:
    """An exchange that does one act a connection, and the last act for all that follow."""

    def __init__(self, subscriptions: int, *acts: Act) -> None:
        """Wait for so many topics on each connection before its act begins."""
        self._subscriptions = subscriptions
        self._acts = acts
        self.visits = 0
        self.topics: list[str] = []
        self._server = serve(self._receive, "127.0.0.1", 0, process_request=self._greet)
        self._thread = threading.Thread(target=self._server.serve_forever, name="exchange")

    @property
    def variables(self) -> dict[str, str]:
        """Where it is, as the environment says it."""
        return {"WSS_URL_BITMEX": f"ws://127.0.0.1:{self._server.socket.getsockname()[1]}"}

    def _greet(self, connection: ServerConnection, _: Request) -> Response | None:
        self.visits += 1
        if self._act(self.visits) is refuse:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "closed for today\n")
        return None

    def _act(self, visit: int) -> Act:
        return self._acts[min(visit, len(self._acts)) - 1]

    def _receive(self, connection: ServerConnection) -> None:
        act = self._act(self.visits)
        visit = Visit(connection)
        visit.say(WELCOME)
        asked = 0
        while asked < self._subscriptions:
            request: Any = json.loads(connection.recv())
            for topic in request["args"]:
                visit.say({"success": True, "subscribe": topic, "request": request})
                self.topics.append(topic)
                asked += 1
        act(visit)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()


def book(action: str, *levels: tuple[int, str, float, float]) -> dict[str, Any]:
    """Return a message about the order book; levels are id, side, size and price."""
    return {
        "table": "orderBookL2",
        "action": action,
        "data": [
            {
                "symbol": "XBTUSD",
                "id": number,
                "side": side,
                "size": size,
                "price": price,
                "timestamp": "2024-03-01T00:00:00.100Z",
            }
            for number, side, size, price in levels
        ],
    }


def trades(*sizes: float) -> dict[str, Any]:
    """Return a message about trades."""
    return {
        "table": "trade",
        "action": "insert",
        "data": [
            {
                "timestamp": "2024-03-01T00:00:00.200Z",
                "symbol": "XBTUSD",
                "side": "Buy",
                "size": size,
                "price": 62_000.5,
                "tickDirection": "PlusTick",
                "trdMatchID": f"00000000-0000-0000-0000-{int(size):012}",
            }
            for size in sizes
        ],
    }
