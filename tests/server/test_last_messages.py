"""The last messages that clients were sent are shown, whatever chunks they came in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from server.running import RunningMachine

SHOWN = 8
MANY = {
    "exchange": "bitmex",
    "symbols": ["XBTUSD"],
    "from": "2020-02-01",
    "to": "2020-02-01T00:02",
    "dataTypes": ["trade", "book_change"],
}
FEW = MANY | {"dataTypes": ["trade_bar_1m"]}
"""Fewer messages than are shown."""


def over_http(server: RunningMachine, options: dict[str, Any]) -> list[Any]:
    """Return the messages of a replay over HTTP."""
    _, _, body = server.replay("/replay-normalized", options)
    return [json.loads(line) for line in body.splitlines()]


def over_websocket(server: RunningMachine, options: dict[str, Any]) -> list[Any]:
    """Return the messages of a replay over WebSocket."""
    messages, _, _ = server.frames("/ws-replay-normalized", options)
    return [json.loads(message) for message in messages]


def test_the_last_messages_of_all_sessions_are_shown(sample_machine: RunningMachine) -> None:
    sent: list[Any] = []
    for read, options in (
        (over_http, MANY),
        (over_websocket, FEW),
        (over_http, FEW),
        (over_websocket, MANY),
        (over_http, FEW),
    ):
        messages = read(sample_machine, options)
        assert (len(messages) < SHOWN) == (options is FEW)
        sent += messages
        sample_machine.wait_until_idle()
        assert sample_machine.status()["events"] == sent[-SHOWN:]
