"""Our side: `tardis_fast.Publisher`, in a process of its own."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING, Any, Literal

from publishing.figures import Clock, Figures
from tardis_fast import Publisher

if TYPE_CHECKING:
    from publishing.trades import Trades

_CONNECT_SECONDS = 60.0


def publish(
    bus: str,
    options: dict[str, Any],
    trades: Trades,
    events: int,
    form: Literal["columns", "lines"],
) -> Figures:
    """Publish trades to a bus, from Arrow columns or from JSON lines."""
    chunks: list[Any] = trades.batches(events) if form == "columns" else trades.chunks(events)
    with tempfile.TemporaryDirectory() as state:
        buses: dict[str, Any] = {bus: options}
        publisher = Publisher(state_dir=state, **buses)
        with publisher:
            _wait_for_connection(publisher, bus)
            clock = Clock()
            for chunk in chunks:
                publisher.publish(chunk)
            publisher.flush()
            figures = clock.figures(events)
            stats = publisher.stats()[bus]
    if stats.acknowledged != events or stats.spilled_total:
        raise RuntimeError(f"not all events went straight to {bus}: {stats}")
    return figures


def _wait_for_connection(publisher: Publisher, bus: str) -> None:
    deadline = time.monotonic() + _CONNECT_SECONDS
    while not publisher.stats()[bus].connected:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{bus}: no connection: {publisher.stats()[bus].last_error}")
        time.sleep(0.01)
