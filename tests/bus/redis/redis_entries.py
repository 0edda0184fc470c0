"""What is in the streams of Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from redis import Redis

from bus.sample_events import Arrival

if TYPE_CHECKING:
    from brokers.redis import RedisBroker


def entries(broker: RedisBroker, stream: str, db: int = 0) -> list[Arrival]:
    """Read all entries of a stream, in its order."""
    with Redis.from_url(broker.url, db=db) as client:
        found: list[tuple[bytes, dict[bytes, bytes]]] = client.xrange(stream)
    arrivals = []
    for _, fields in found:
        data = fields.pop(b"data")
        headers = {name.decode(): text.decode() for name, text in fields.items()}
        arrivals.append(Arrival(data, headers))
    return arrivals
