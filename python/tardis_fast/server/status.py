"""What the server says of itself: the health check, and the figures of the page."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Any

from tardis_fast import __version__
from tardis_fast.server import process
from tardis_fast.server.sessions import MESSAGES_SHOWN, Sessions, iso, moment, now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tardis_fast.publisher import BusStats, Publisher

_TWO_BYTE_LENGTH, _EIGHT_BYTE_LENGTH = 126, 127


def health() -> dict[str, Any]:
    """Return the answer to the health check."""
    memory = process.memory_mb()
    return {
        "status": "Healthy",
        "uptimeHours": round(process.uptime_seconds() / 3600, 2),
        "timestampMs": int(time.time() * 1000),
        "memoryInfo": {
            "rssMB": memory.get("VmRSS", 0.0),
            "heapTotalMB": memory.get("VmData", 0.0),
            "heapUsedMB": memory.get("RssAnon", 0.0),
            "externalMB": memory.get("RssFile", 0.0),
        },
    }


def status(sessions: Sessions, publisher: Publisher | None, refused: int) -> dict[str, Any]:
    """Return what the page shows."""
    shown = [*sessions.running.values(), *reversed(sessions.ended)]
    stats = {} if publisher is None else publisher.stats()
    return {
        "name": "tardis-fast",
        "version": __version__,
        "now": iso(now()),
        "uptimeSeconds": round(process.uptime_seconds(), 3),
        "processes": 1,
        "memoryMB": process.memory_mb().get("VmRSS", 0.0),
        "cpuSeconds": round(process.cpu_seconds(), 3),
        "totals": {
            "requests": sum(sessions.by_outcome.values()) + len(sessions.running),
            "refused": refused,
            "messages": sum(sessions.messages.values()),
            "bytes": sum(sessions.bytes.values()),
            "sessionsRunning": len(sessions.running),
            "sessionsMax": sessions.most,
        },
        "sessions": [session.to_json() for session in shown],
        "buses": [_bus(name, figures) for name, figures in stats.items()],
        "events": list(_last_messages(sessions)),
    }


def _bus(name: str, figures: BusStats) -> dict[str, Any]:
    at = None if figures.last_error_us is None else moment(figures.last_error_us)
    return {"name": name} | dataclasses.asdict(figures) | {"last_error_at": iso(at)}


def _last_messages(sessions: Sessions) -> Iterator[Any]:
    """Give the last messages that clients were sent, the newest last."""
    texts: list[bytes] = []
    for chunk, is_frames in reversed(sessions.last_chunks):
        messages = list(_frame_messages(chunk)) if is_frames else chunk.splitlines()
        texts = messages[-(MESSAGES_SHOWN - len(texts)) :] + texts
        if len(texts) == MESSAGES_SHOWN:
            break
    return (json.loads(text) for text in texts)


def _frame_messages(frames: bytes) -> Iterator[bytes]:
    """Give the messages of WebSocket frames that the core wrote: whole, not masked."""
    position = 0
    while position < len(frames):
        length = frames[position + 1]
        position += 2
        if length >= _TWO_BYTE_LENGTH:
            size = 8 if length == _EIGHT_BYTE_LENGTH else 2
            length = int.from_bytes(frames[position : position + size], "big")
            position += size
        yield frames[position : position + length]
        position += length
