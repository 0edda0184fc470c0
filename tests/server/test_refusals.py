"""What cannot be answered is refused as the contract says, and the server goes on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from server.running import RunningMachine
from tardis_fast import TardisMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

GOOD = {
    "exchange": "bitmex",
    "symbols": ["XBTUSD"],
    "from": "2020-02-01",
    "to": "2020-02-01T00:01",
    "dataTypes": ["trade"],
}
BAD: dict[str, tuple[Any, str]] = {
    "bad JSON": ("{", "the options are not JSON: "),
    "no object": (7, "the options must be a JSON object or a list of objects, found a number"),
    "nothing": ({}, "the option `exchange` is missing: give an exchange such as"),
    "unknown exchange": (GOOD | {"exchange": "mtgox"}, 'the option `exchange` cannot be "mtgox": '),
    "unknown data type": (
        GOOD | {"dataTypes": ["bars"]},
        "the option `dataTypes` is not usable: data type `bars`",
    ),
    "depth 0": (
        GOOD | {"dataTypes": ["book_snapshot_0_1s"]},
        "the option `dataTypes` is not usable: data type `book_snapshot_0_1s`",
    ),
    "from after to": (
        GOOD | {"from": "2020-02-02"},
        "the option `to` (2020-02-01T00:01:00.000Z) is before `from` (2020-02-02T",
    ),
    "no date": (GOOD | {"from": "soon"}, 'the option `from` cannot be "soon": give a date'),
    "one bad of two": ([GOOD, GOOD | {"to": 3}], "the option `to` cannot be 3: give a text"),
}


def in_query(options: Any) -> str:
    text = options if isinstance(options, str) else json.dumps(options)
    return f"?options={quote(text)}"


@pytest.mark.parametrize("name", BAD)
def test_bad_options_are_named(sample_machine: RunningMachine, name: str) -> None:
    options, expected = BAD[name]
    status, headers, body = sample_machine.get(f"/replay-normalized{in_query(options)}")
    message = json.loads(body)["message"]
    assert (status, headers["Content-Type"]) == (400, "application/json; charset=utf-8")
    assert message.startswith(expected), message
    messages, code, reason = sample_machine.frames("/ws-replay-normalized", options)
    assert (messages, code) == ([], 1011)
    assert reason == message.encode()[:123].decode(errors="ignore")
    if not isinstance(options, list) and "data type" not in name and name != "depth 0":
        status, _, body = sample_machine.get(f"/replay{in_query(options)}")
        assert status == 400, body


def test_missing_options_are_named(sample_machine: RunningMachine) -> None:
    for path in ("/replay", "/replay-normalized"):
        status, _, body = sample_machine.get(path)
        assert status == 400
        assert json.loads(body)["message"].startswith("the query parameter `options` is missing")
    _, code, reason = sample_machine.frames("/ws-replay-normalized", None)
    assert (code, reason[:37]) == (1011, "the query parameter `options` is miss")


def test_unknown_paths_and_methods_are_not_found(sample_machine: RunningMachine) -> None:
    query = in_query(GOOD)
    for method, path in [
        ("GET", "/replays"),
        ("GET", "/replay-normalized/x"),
        ("POST", f"/replay-normalized{query}"),
        ("HEAD", "/health-check"),
        ("OPTIONS", "/"),
        ("DELETE", "/status"),
    ]:
        status, _, _ = sample_machine.get(path, method=method)
        assert status == 404, (method, path)
    assert sample_machine.frames("/ws-nothing", GOOD)[1] == 1008
    assert sample_machine.frames("/replay", GOOD, port=sample_machine.port)[1] == 1008


def test_a_plain_get_where_websockets_are_taken_is_told_to_upgrade(
    sample_machine: RunningMachine,
) -> None:
    for path, port in [
        ("/", sample_machine.port + 1),
        ("/replay", sample_machine.port + 1),
        ("/ws-replay-normalized", sample_machine.port),
    ]:
        status, headers, _ = sample_machine.get(path, port=port)
        assert (status, headers["Upgrade"]) == (426, "websocket")


def test_paths_may_end_in_a_slash_and_websocket_paths_have_any_case(
    sample_machine: RunningMachine,
) -> None:
    plain = sample_machine.replay("/replay-normalized", GOOD)
    assert plain[0] == 200
    assert plain[2].count(b"\n") > 10
    assert sample_machine.replay("/replay-normalized/", GOOD)[2] == plain[2]
    frames = sample_machine.frames("/WS-Replay-Normalized", GOOD)
    assert frames[1:] == (1000, "WS replay-normalized finished")
    assert "".join(f"{frame}\n" for frame in frames[0]).encode() == plain[2]


@pytest.mark.parametrize(
    "options",
    [
        [],
        GOOD | {"to": "2020-02-01"},
        GOOD | {"symbols": ["NOTHING"]},
        GOOD | {"unheard": "of", "to": "2020-02-01T00:00:59"},
    ],
)
def test_nothing_to_send_is_an_empty_answer(sample_machine: RunningMachine, options: Any) -> None:
    status, headers, body = sample_machine.replay("/replay-normalized", options)
    assert (status, headers["Content-Type"], body) == (200, "application/x-json-stream", b"")
    assert sample_machine.frames("/ws-replay-normalized", options) == (
        [],
        1000,
        "WS replay-normalized finished",
    )


def test_what_the_archive_refuses_keeps_its_status_and_text(sample_machine: RunningMachine) -> None:
    options = GOOD | {"exchange": "okex-swap", "symbols": []}
    status, _, body = sample_machine.replay("/replay-normalized", options)
    assert status == 400
    assert "okex-swap" in json.loads(body)["message"]


@pytest.fixture(scope="module")
def guarded_machine() -> Iterator[RunningMachine]:
    """Serve the sample market to those who know the token, one session at a time."""
    server = {"sample": True, "auth_token": "open sesame", "max_sessions": 1}
    with RunningMachine(TardisMachine(server=server)) as running:
        yield running


def test_without_the_token_only_the_health_check_is_answered(
    guarded_machine: RunningMachine,
) -> None:
    query = in_query(GOOD)
    token = {"Authorization": "Bearer open sesame"}
    for path in ("/", "/status", "/metrics", f"/replay-normalized{query}", "/ws-replay-normalized"):
        for headers in ({}, {"Authorization": "Bearer shut"}, {"Authorization": "open sesame"}):
            status, answered, body = guarded_machine.get(path, headers=headers)
            assert status == 401, path
            assert answered["WWW-Authenticate"].startswith("Bearer")
            assert b"open sesame" not in body
    assert guarded_machine.get("/health-check")[0] == 200
    assert guarded_machine.get("/status", headers=token)[0] == 200
    assert guarded_machine.get(f"/replay-normalized{query}", headers=token)[0] == 200
    with pytest.raises(Exception, match="401"):
        guarded_machine.frames("/ws-replay-normalized", GOOD)
    assert guarded_machine.frames("/ws-replay-normalized", GOOD, headers=token)[1] == 1000
