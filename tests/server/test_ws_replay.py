"""`/ws-replay`: clients subscribe as at the exchange, alone or in step with others."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from server.running import RunningMachine

FINISHED = (1000, "WS replay finished")
BITMEX = {"op": "subscribe", "args": ["trade:XBTUSD", "orderBookL2:XBTUSD"]}
DERIBIT = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "public/subscribe",
    "params": {"channels": ["trades.BTC-PERPETUAL.raw"]},
}
RANGE = {"from": "2020-02-01", "to": "2020-02-01T00:02"}


class Client:
    """A client in a thread of its own, as those that are in step need."""

    def __init__(self, running: RunningMachine, messages: Sequence[object], **query: str) -> None:
        self._url = f"ws://127.0.0.1:{running.port + 1}/ws-replay?{urlencode(query)}"
        self._to_send = messages
        self.received: list[str] = []
        self.closed = (0, "")
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with connect(self._url, max_size=None) as socket:
            for message in self._to_send:
                socket.send(message if isinstance(message, str) else json.dumps(message))
            try:
                while True:
                    self.received.append(str(socket.recv(60)))
            except ConnectionClosed:
                self.closed = (socket.close_code or 0, socket.close_reason or "")

    def wait(self) -> Client:
        """Wait for its end."""
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self


def raw_messages(running: RunningMachine, exchange: str, *filters: object) -> list[tuple[str, str]]:
    """Return what `/replay` gives for the same, as time and text."""
    options = {"exchange": exchange, "filters": list(filters)} | RANGE
    _, _, body = running.replay("/replay", options)
    start, middle = len('{"localTimestamp":"'), len('","message":')
    lines = body.decode().splitlines()
    return [(line[start : start + 28], line[start + 28 + middle : -1]) for line in lines]


def test_a_client_gets_the_messages_it_subscribed_to(sample_machine: RunningMachine) -> None:
    sent = ["ping", {"op": "authKeyExpires"}, BITMEX]
    client = Client(sample_machine, sent, exchange="bitmex", **RANGE).wait()
    expected = raw_messages(
        sample_machine,
        "bitmex",
        {"channel": "trade", "symbols": ["XBTUSD"]},
        {"channel": "orderBookL2", "symbols": ["XBTUSD"]},
    )
    assert client.closed == FINISHED
    assert len(client.received) > 100
    assert client.received == [text for _, text in expected]


def test_connections_of_a_session_start_together_and_each_gets_its_own(
    sample_machine: RunningMachine,
) -> None:
    common = RANGE | {"session": "in step"}
    clients = [
        Client(sample_machine, [BITMEX], exchange="bitmex", **common),
        Client(sample_machine, [DERIBIT], exchange="deribit", **common),
    ]
    bitmex, deribit = (client.wait() for client in clients)
    assert bitmex.closed == deribit.closed == FINISHED
    trades = raw_messages(
        sample_machine, "deribit", {"channel": "trades", "symbols": ["BTC-PERPETUAL"]}
    )
    assert deribit.received == [text for _, text in trades]
    assert deribit.received
    assert all("XBTUSD" in message for message in bitmex.received)


@pytest.mark.parametrize(
    ("query", "messages", "reason"),
    [
        ({"exchange": "mtgox"}, [], "Exchange mtgox is not supported via /ws-replay Websocket API"),
        ({"exchange": "bitmex"}, ["hello"], "No subscriptions received for websocket connection"),
        (
            {"exchange": "bitmex"},
            [{"op": "subscribe", "args": ["nothing:XBTUSD"]}],
            "No subscriptions received for websocket connection: ",
        ),
        ({"exchange": "bitmex", "from": "soon"}, [BITMEX], 'the option `from` cannot be "soon"'),
        ({"exchange": "bitmex", "to": "2020-01-01"}, [BITMEX], "the option `to` (2020-01-01T00"),
    ],
)
def test_what_cannot_be_replayed_is_closed_with_the_reason(
    sample_machine: RunningMachine, query: dict[str, str], messages: list[object], reason: str
) -> None:
    client = Client(sample_machine, messages, **RANGE | query).wait()
    assert (client.received, client.closed[0]) == ([], 1011)
    assert client.closed[1].startswith(reason), client.closed[1]


def test_a_client_that_leaves_leaves_the_others_alone(sample_machine: RunningMachine) -> None:
    common = RANGE | {"session": "one leaves"}
    url = f"ws://127.0.0.1:{sample_machine.port + 1}/ws-replay?"
    with connect(url + urlencode({"exchange": "deribit"} | common)) as leaving:
        leaving.send(json.dumps(DERIBIT))
        stays = Client(sample_machine, [BITMEX], exchange="bitmex", **common)
    assert stays.wait().closed == FINISHED
    assert len(stays.received) > 100
