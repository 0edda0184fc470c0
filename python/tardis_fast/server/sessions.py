"""The sessions of a server: which run, how far they are, and how many there may be."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections import Counter, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tardis_fast import _core

State = Literal["running", "finished", "failed", "cancelled"]

_ENDED_KEPT = 50
"""Sessions that are still shown after their end."""
MESSAGES_SHOWN = 8
"""Messages that are shown, the last of all sessions."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TooManySessionsError(Exception):
    """As many sessions run as may."""


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(timezone.utc)


def moment(micros: int) -> datetime:
    """Return the time so many microseconds after the beginning of 1970."""
    return _EPOCH + timedelta(microseconds=micros)


def iso(at: datetime | None) -> str | None:
    """Return a time as JSON has it."""
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


@dataclass(eq=False)
class Session:
    """A replay or a stream that a client asked for."""

    id: str
    endpoint: str
    transport: Literal["http", "ws"]
    client: str
    options: list[Mapping[str, Any]]
    """What was asked for, one object a stream."""
    core: _core.Session
    is_live: bool = False
    started_at: datetime = field(default_factory=now)
    ended_at: datetime | None = None
    state: State = "running"
    error: str | None = None
    messages: int = 0
    bytes: int = 0
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    """Who sends it: a task, or several where connections are synchronised."""

    def to_json(self) -> dict[str, Any]:
        """Return what the page shows of it."""
        progress = json.loads(self.core.progress())
        if "market_time_us" in progress:
            reached = progress.pop("market_time_us")
            progress["market_time"] = iso(None if reached is None else moment(reached))
        return {
            "id": self.id,
            "endpoint": self.endpoint,
            "transport": self.transport,
            "client": self.client,
            "state": self.state,
            "startedAt": iso(self.started_at),
            "endedAt": iso(self.ended_at),
            "exchanges": self._all("exchange"),
            "symbols": self._all("symbols"),
            "dataTypes": self._all("dataTypes"),
            "from": min(self._all("from"), default=None),
            "to": max(self._all("to"), default=None),
            "messages": self.messages,
            "bytes": self.bytes,
            "progress": None if self.is_live else progress,
            "live": progress if self.is_live else None,
            "error": self.error,
        }

    def _all(self, option: str) -> list[str]:
        """Return the different values of an option, in their order."""
        values: dict[str, None] = {}
        for options in self.options:
            value = options.get(option) or ()
            values |= dict.fromkeys([value] if isinstance(value, str) else value)
        return list(values)


class Sessions:
    """The sessions of one process."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.running: dict[str, Session] = {}
        self.ended: deque[Session] = deque(maxlen=_ENDED_KEPT)
        self.last_chunks: deque[tuple[bytes, bool]] = deque(maxlen=MESSAGES_SHOWN)
        """Those with the last normalized messages, and whether they are frames."""
        self.by_outcome: Counter[tuple[str, State]] = Counter()
        """Ended sessions by endpoint and state."""
        self.messages: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self._numbers = itertools.count(1)

    @contextmanager
    def running_session(self, session: Session) -> Iterator[Session]:
        """Count a session as running inside of the block, which says by its end how it ended."""
        if len(self.running) >= self.most:
            raise TooManySessionsError
        key = f"{session.id}-{next(self._numbers)}"
        self.running[key] = session
        try:
            yield session
        except (asyncio.CancelledError, ConnectionError):
            session.state = "cancelled"
            raise
        except Exception as error:
            session.state, session.error = "failed", str(error)
            raise
        else:
            session.state = "finished"
        finally:
            session.core.close()
            session.ended_at = now()
            del self.running[key]
            self.ended.append(session)
            self.by_outcome[session.endpoint, session.state] += 1

    def sent(self, session: Session, chunk: _core.Chunk, *, frames: bool) -> None:
        """Count a chunk that was sent."""
        size = len(chunk.lines)
        session.messages += chunk.messages
        session.bytes += size
        self.messages[session.endpoint] += chunk.messages
        self.bytes[session.endpoint] += size
        if session.endpoint.endswith("normalized"):
            if chunk.messages >= MESSAGES_SHOWN:
                self.last_chunks.clear()
            self.last_chunks.append((chunk.lines, frames))
