"""What is in the streams of JetStream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import nats

from bus.sample_events import Arrival

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from nats.js import JetStreamContext

    from brokers.nats import NatsBroker


def with_jetstream(
    broker: NatsBroker, act: Callable[[JetStreamContext], Coroutine[Any, Any, Any]], **login: Any
) -> Any:
    """Connect, act, and return what came of it."""

    async def run() -> Any:
        client = await nats.connect(broker.url, **login)
        try:
            return await act(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(run())


def messages(broker: NatsBroker, stream: str, **login: Any) -> dict[str, list[Arrival]]:
    """Read all messages of a stream, in its order, by subject."""

    async def read(jetstream: JetStreamContext) -> dict[str, list[Arrival]]:
        state = (await jetstream.stream_info(stream)).state
        found: dict[str, list[Arrival]] = {}
        for sequence in range(state.first_seq, state.last_seq + 1):
            message = await jetstream.get_msg(stream, sequence)
            arrival = Arrival(message.data or b"", dict(message.headers or {}))
            found.setdefault(str(message.subject), []).append(arrival)
        return found

    found: dict[str, list[Arrival]] = with_jetstream(broker, read, **login)
    return found
