"""Live streams of the sample market through the server: what real exchanges' clients would get."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tardis_fast.sample_api import SampleApiThread

if TYPE_CHECKING:
    from collections.abc import Callable

    from server.running import RunningMachine

SYMBOLS = {
    "bitmex": {"XBTUSD", "ETHUSD"},
    "binance-futures": {"BTCUSDT", "ETHUSDT"},
    "deribit": {"BTC-PERPETUAL", "ETH-PERPETUAL"},
}
PATIENCE = 60


def options(exchange: str, *data_types: str) -> dict[str, Any]:
    return {
        "exchange": exchange,
        "symbols": sorted(SYMBOLS[exchange]),
        "dataTypes": data_types,
        "withErrorMessages": True,
        "withDisconnectMessages": True,
    }


def stream(
    machine: RunningMachine, asked: Any, is_enough: Callable[[list[dict[str, Any]]], bool]
) -> list[dict[str, Any]]:
    """Read a live stream until there is enough of it."""
    url = f"ws://127.0.0.1:{machine.port + 1}/ws-stream-normalized?options="
    messages: list[dict[str, Any]] = []
    until = time.monotonic() + PATIENCE
    with connect(url + quote(json.dumps(asked)), max_size=None) as socket:
        while not is_enough(messages):
            assert time.monotonic() < until, messages[-5:]
            messages.append(json.loads(socket.recv(PATIENCE)))
    return messages


def kinds(messages: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return which type of message there is of which symbol; snapshots are a type of their own.

    Errors and disconnects, which have no symbol, are there as they are.
    """
    return {
        (
            "book_start" if message.get("isSnapshot") else message["type"],
            message.get("symbol", str(message)),
        )
        for message in messages
    }


@pytest.mark.parametrize("exchange", SYMBOLS)
def test_an_exchange_sends_snapshots_changes_trades_and_tickers(
    sample_machine: RunningMachine, exchange: str
) -> None:
    asked = options(exchange, "trade", "book_change", "derivative_ticker")
    types = ("book_start", "book_change", "trade", "derivative_ticker")
    wanted = {(kind, symbol) for kind in types for symbol in SYMBOLS[exchange]}
    messages = stream(sample_machine, asked, lambda found: kinds(found) >= wanted)
    assert kinds(messages) == wanted, "neither errors nor other symbols"
    assert {message["exchange"] for message in messages} == {exchange}
    started = set()
    for message in messages:
        if message["type"] == "book_change":
            assert message["isSnapshot"] == (message["symbol"] not in started)
            started.add(message["symbol"])
    times = [message["localTimestamp"] for message in messages]
    assert times == sorted(times)


def test_books_of_all_exchanges_in_one_stream_agree(sample_machine: RunningMachine) -> None:
    asked = [options(exchange, "book_snapshot_3_200ms") for exchange in SYMBOLS]
    wanted = {("book_snapshot", symbol) for symbols in SYMBOLS.values() for symbol in symbols}

    def is_enough(found: list[dict[str, Any]]) -> bool:
        full = [one for one in found if len(one.get("bids", ())) == len(one.get("asks", ())) == 3]
        return kinds(full) >= wanted

    messages = stream(sample_machine, asked, is_enough)
    assert kinds(messages) == wanted
    last = {message["symbol"]: message["bids"][0].get("price") for message in messages}
    bitcoins = [last[symbol] for symbol in ("XBTUSD", "BTCUSDT", "BTC-PERPETUAL")]
    assert max(bitcoins) - min(bitcoins) < 0.01 * min(bitcoins), "one asset has one price"


def test_what_the_exchanges_do_not_have_is_refused() -> None:
    with SampleApiThread() as api:
        host = api.endpoint.removeprefix("http://").removesuffix("/v1")
        with pytest.raises(InvalidStatus) as refused, connect(f"ws://{host}/ws/kraken"):
            pass
        assert refused.value.response.status_code == 404
        with connect(f"ws://{host}/ws/bitmex") as socket:
            socket.send("ping")
            socket.send('{"op":"subscribe","args":["nothing:XBTUSD"]}')
            assert "nothing" in json.loads(socket.recv(PATIENCE))["error"]
            socket.send('{"op":"subscribe","args":["quote:XBTUSD"]}')
            assert json.loads(socket.recv(PATIENCE))["success"] is True
            assert json.loads(socket.recv(PATIENCE))["table"] == "quote"
        depth = f"http://{host}/rest/binance-futures/depth?symbol="
        with urlopen(f"{depth}BTCUSDT") as answer:  # noqa: S310 - HTTP
            assert len(json.load(answer)["bids"]) > 100
        with pytest.raises(HTTPError) as unknown:
            urlopen(f"{depth}NONE")  # noqa: S310 - HTTP
        with unknown.value:
            assert json.load(unknown.value)["msg"] == "Invalid symbol."
