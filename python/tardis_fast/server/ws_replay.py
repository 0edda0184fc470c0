"""`/ws-replay`: clients subscribe as they would to the exchange, and get its own messages.

Connections of the same session key start together and are kept in step: one replay sends to all of
them, in the order in which the markets gave the messages.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import WSCloseCode

from tardis_fast import _core
from tardis_fast._core import ConfigError
from tardis_fast.chunks import chunks_async
from tardis_fast.server.refusals import close_code_of, told
from tardis_fast.server.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from tardis_fast.server.sessions import Sessions
    from tardis_fast.server.socket import Socket

ENDPOINT = "/ws-replay"
START_SECONDS = 2.0
"""How long after its first connection a session starts."""
_FINISHED = "WS replay finished"


@dataclass(eq=False)
class Connection:
    """A client of a session."""

    socket: Socket
    exchange: str
    start: str
    end: str
    filters: list[dict[str, Any]] = field(default_factory=list)
    misread: str | None = None
    """Why its last subscription was not understood."""
    is_open: bool = True

    def subscribe(self, message: str) -> None:
        """Take a client's message; what is no subscription is passed over."""
        try:
            filters = _core.subscribed_filters(self.exchange, message)
        except ConfigError as error:
            self.misread = str(error)
            return
        if filters is not None:
            self.filters += json.loads(filters)

    def options(self) -> dict[str, Any]:
        """Return what it asks for, as options of a replay."""
        symbols = {symbol for one in self.filters for symbol in one.get("symbols") or ()}
        return {
            "exchange": self.exchange,
            "from": self.start,
            "to": self.end,
            "symbols": sorted(symbols),
            "dataTypes": sorted({one["channel"] for one in self.filters}),
        }


class ReplayGroup:
    """The connections of one session key."""

    def __init__(self, archive: _core.Archive, sessions: Sessions, name: str) -> None:
        self._archive = archive
        self._sessions = sessions
        self._name = name
        self._connections: list[Connection] = []
        self._session: Session | None = None
        self.has_started = False
        self._task = asyncio.create_task(self._run())

    @property
    def is_over(self) -> bool:
        """Whether nobody takes part any more."""
        return self._task.done() or not any(one.is_open for one in self._connections)

    async def join(self, connection: Connection) -> None:
        """Take part until the replay ends; leaving early leaves the others alone."""
        self._connections.append(connection)
        reading = asyncio.create_task(connection.socket.read(connection.subscribe))
        try:
            await asyncio.wait({self._task, reading}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            connection.is_open = False
            reading.cancel()
            if not self._task.done():
                self._leave(connection)

    def _leave(self, connection: Connection) -> None:
        if self._session is not None:
            self._session.core.leave(self._connections.index(connection))
        if self.is_over:
            self._task.cancel()

    async def _run(self) -> None:
        await asyncio.sleep(START_SECONDS)
        self.has_started = True
        try:
            await self._replay()
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - each becomes a close
            await self._close_all(close_code_of(error), told(error))
        else:
            await self._close_all(WSCloseCode.OK, _FINISHED)

    async def _replay(self) -> None:
        for connection in self._connections:
            if not connection.filters:
                reason = connection.misread or json.dumps(connection.options())
                raise ConfigError(f"No subscriptions received for websocket connection: {reason}")
        requests = [
            (one.exchange, one.start, one.end, json.dumps(one.filters)) for one in self._connections
        ]
        session = Session(
            id=self._name,
            endpoint=ENDPOINT,
            transport="ws",
            client=", ".join(one.socket.client for one in self._connections),
            options=[one.options() for one in self._connections],
            core=_core.Session.synchronised(requests, self._archive),
        )
        session.tasks.append(self._task)
        with self._sessions.running_session(session):
            self._session = session
            for number, connection in enumerate(self._connections):
                if not connection.is_open:
                    session.core.leave(number)
            async for chunk in chunks_async(session.core):
                connection = self._connections[chunk.connection]
                if connection.is_open:
                    with suppress(ConnectionError):
                        await connection.socket.send(chunk.lines)
                        self._sessions.sent(session, chunk, frames=True)

    async def _close_all(self, code: int, reason: str) -> None:
        closing = (one.socket.close(code, reason) for one in self._connections if one.is_open)
        await asyncio.gather(*closing)


class ReplayGroups:
    """The groups that wait for their start or run, by session key."""

    def __init__(
        self, archive: _core.Archive, sessions: Sessions, new_name: Callable[[], str]
    ) -> None:
        self._archive = archive
        self._sessions = sessions
        self._new_name = new_name
        self._groups: dict[str, ReplayGroup] = {}

    async def serve(self, socket: Socket, query: dict[str, str]) -> None:
        """Serve a client until its replay ends."""
        exchange = query.get("exchange", "")
        if not _core.can_subscribe(exchange):
            raise ConfigError(
                f"Exchange {exchange} is not supported via /ws-replay Websocket API, please use "
                "HTTP streaming API instead."
            )
        name = query.get("session") or self._new_name()
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = ReplayGroup(self._archive, self._sessions, name)
        elif group.has_started:
            raise ConfigError(
                "trying to add new WS connection to replay session that already started"
            )
        connection = Connection(socket, exchange, query.get("from", ""), query.get("to", ""))
        try:
            await group.join(connection)
        finally:
            if group.is_over and self._groups.get(name) is group:
                del self._groups[name]
