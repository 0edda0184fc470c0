"""Events in NATS: JetStream streams and plain subscribers, read with nats-py."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import nats
import pytest
from nats.js.api import StorageType, StreamConfig

from bus.nats.nats_messages import messages, with_jetstream
from bus.sample_events import (
    SECRET,
    Arrival,
    all_that_was_said,
    case_of,
    expected_arrivals,
    in_sequence,
    publish_samples,
)
from bus.trades import in_order, numbers_by_symbol, reasons, trade, trades
from tardis_fast import PAYLOAD_CASES, ConfigError, Publisher, check_buses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from brokers.nats import NatsBroker
    from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

PATIENCE = 60


def new_name() -> str:
    return f"test-{uuid.uuid4().hex}"


def options(broker: NatsBroker, subject: str, **more: Any) -> dict[str, Any]:
    return {"servers": broker.address, "subject": subject, **more}


def add_stream(broker: NatsBroker, name: str, *subjects: str, **config: Any) -> StreamConfig:
    """Make a stream, and return its configuration."""
    wanted = StreamConfig(name=name, subjects=list(subjects), **config)
    made = with_jetstream(broker, lambda jetstream: jetstream.add_stream(wanted))
    return made.config  # type: ignore[no-any-return]


def stream_config(broker: NatsBroker, name: str) -> StreamConfig:
    found = with_jetstream(broker, lambda jetstream: jetstream.stream_info(name))
    return found.config  # type: ignore[no-any-return]


def numbers(broker: NatsBroker, stream: str, **login: Any) -> dict[str, list[int]]:
    found = messages(broker, stream, **login).values()
    return numbers_by_symbol(arrival.data for arrivals in found for arrival in arrivals)


def publish(bus: Mapping[str, Any], state_dir: Path, lines: bytes) -> list[str]:
    """Publish, wait, and return why events became dead letters; the rest must have arrived."""
    with Publisher(nats=bus, state_dir=state_dir) as publisher:
        publisher.publish(lines)
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["nats"]
    why = reasons(stats)
    assert (stats.dead_lettered, stats.is_balanced) == (len(why), True)
    assert stats.acknowledged == stats.accepted - len(why)
    return why


def headers_of(event: NormalizedEvent) -> dict[str, str]:
    case, data_type = case_of(event), event.meta["data_type"]
    return {"payloadCase": case, "dataType": data_type, "env": "test", "note": "a:b,c"}


def without_id(arrivals: list[Arrival]) -> list[Arrival]:
    """Take the ids out of the headers, after a look at them."""
    rest = []
    for arrival in arrivals:
        headers = dict(arrival.headers)
        assert headers.pop("Nats-Msg-Id") == hashlib.sha256(arrival.data).hexdigest()[:32]
        rest.append(Arrival(arrival.data, headers))
    return in_sequence(rest)


@pytest.mark.parametrize("include", [PAYLOAD_CASES, ("trade", "quote", "disconnect")])
@pytest.mark.parametrize("is_template", [False, True])
def test_every_case_arrives_where_it_is_routed_with_all_headers(
    nats_broker: NatsBroker,
    tmp_path: Path,
    include: Collection[str],
    is_template: bool,  # noqa: FBT001
) -> None:
    base = new_name()
    routes = {"trade": f"{base}.t", "liquidation": f"{base}.t", "quote": f"{base}.q.one"}
    bus = options(
        nats_broker,
        f"{base}.all",
        subject_routing=routes,
        include_payloads=list(include),
        static_headers={"env": "test", "note": "a:b,c"},
        stream=base,
    )
    if is_template:
        bus["subject_template"] = base + ".of.{{exchange}}.{{symbol}}.{{meta.desk}}"

    def subject(event: NormalizedEvent) -> str:
        other = f"{base}.of.{event.exchange}.{event.symbol or '_'}._"
        return routes.get(case_of(event), other if is_template else f"{base}.all")

    with Publisher(nats=bus, state_dir=tmp_path) as publisher:
        publish_samples(publisher, PATIENCE)
        stats = publisher.stats()["nats"]
    expected = expected_arrivals(include, subject, headers_of)
    assert len(expected) >= 3
    assert stats.acknowledged == stats.accepted == sum(map(len, expected.values()))
    found = messages(nats_broker, base)
    assert {name: without_id(arrivals) for name, arrivals in found.items()} == expected


def test_events_of_a_key_arrive_in_order(nats_broker: NatsBroker, tmp_path: Path) -> None:
    name = new_name()
    bus = options(nats_broker, f"{name}.all", stream=name, max_batch_size=50)
    assert publish(bus, tmp_path, trades(symbols=10, each=100)) == []
    assert len(messages(nats_broker, name)[f"{name}.all"]) == 1_000
    assert numbers(nats_broker, name) == in_order(10, 100)


def test_symbols_are_cleaned_for_subjects(nats_broker: NatsBroker, tmp_path: Path) -> None:
    name = new_name()
    bus = options(nats_broker, f"{name}.all", stream=name)
    bus["subject_template"] = name + ".{{symbol}}.x"
    dirty = ["BTC.USD", "A B", "ETH*", "SOL>", "tab\there", "BTC-比特币", ""]
    lines = b"".join(trade(symbol, number) for number, symbol in enumerate(dirty))
    assert publish(bus, tmp_path, lines) == []
    found = messages(nats_broker, name)
    clean = ["BTC_USD", "A_B", "ETH_", "SOL_", "tab_here", "BTC-比特币", "_"]
    assert {subject: found[subject][0].event.symbol for subject in found} == {
        f"{name}.{token}.x": symbol for token, symbol in zip(clean, dirty, strict=True)
    }


def test_a_missing_stream_is_made(nats_broker: NatsBroker, tmp_path: Path) -> None:
    name = new_name()
    bus = options(
        nats_broker, f"{name}.all", subject_routing={"quote": f"{name}.quotes"}, stream=name
    )
    assert publish(bus, tmp_path, trade("S", 1)) == []
    made = stream_config(nats_broker, name)
    assert sorted(made.subjects or []) == [f"{name}.all", f"{name}.quotes"]
    assert made.storage == StorageType.FILE


def test_an_existing_stream_is_left_alone(
    nats_broker: NatsBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = new_name()
    before = add_stream(
        nats_broker, name, f"{name}.all", storage=StorageType.MEMORY, max_msgs=7, description="mine"
    )
    routes = {"liquidation": f"{name}.forced"}
    bus = options(nats_broker, f"{name}.all", subject_routing=routes, stream=name)
    lines = trades(symbols=1, each=10) + trade("S", 1, type="liquidation")
    (reason,) = publish(bus, tmp_path, lines)
    assert reason == (f"no stream takes `{name}.forced`; make one, or name one with --nats-stream")
    assert stream_config(nats_broker, name) == before
    assert numbers(nats_broker, name) == {"S0": list(range(3, 10))}
    (check,) = check_buses(nats=bus)
    assert check.ok
    assert check.warnings == (
        f"the stream `{name}` does not take `{name}.forced`; add it to its subjects",
    )
    assert check.warnings[0] in [record.getMessage() for record in caplog.records]


def test_a_subject_that_no_stream_takes_stops_no_other(
    nats_broker: NatsBroker, tmp_path: Path
) -> None:
    name = new_name()
    add_stream(nats_broker, name, f"{name}.all")
    routes = {"liquidation": f"{name}.forced"}
    bus = options(nats_broker, f"{name}.all", subject_routing=routes)
    no_stream = f"no stream takes `{name}.forced`; make one, or name one with --nats-stream"
    (check,) = check_buses(nats=bus)
    assert (check.ok, check.warnings) == (True, (no_stream,))
    with Publisher(nats=bus, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 9, type="liquidation") + trades(symbols=3, each=10))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["nats"]
        assert (stats.acknowledged, stats.dead_lettered) == (30, 1)
        assert reasons(stats) == [no_stream]
        # Once there is one, events go to it without a restart.
        add_stream(nats_broker, f"{name}-forced", f"{name}.forced")
        publisher.publish(trade("S", 1, type="liquidation"))
        assert publisher.flush(PATIENCE)
        assert publisher.stats()["nats"].acknowledged == 31
    assert numbers(nats_broker, name) == in_order(3, 10)
    (arrival,) = messages(nats_broker, f"{name}-forced")[f"{name}.forced"]
    assert arrival.event.WhichOneof("payload") == "liquidation"


def test_a_stream_that_is_deleted_is_made_again(nats_broker: NatsBroker, tmp_path: Path) -> None:
    name = new_name()
    with Publisher(
        nats=options(nats_broker, f"{name}.all", stream=name), state_dir=tmp_path
    ) as publisher:
        publisher.publish(trade("S", 0))
        assert publisher.flush(PATIENCE)
        with_jetstream(nats_broker, lambda jetstream: jetstream.delete_stream(name))
        publisher.publish(trades(symbols=3, each=10))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["nats"]
    assert (stats.acknowledged, stats.dead_lettered) == (31, 0)
    assert numbers(nats_broker, name) == in_order(3, 10)


def test_a_full_stream_is_waited_for(nats_broker: NatsBroker, tmp_path: Path) -> None:
    name = new_name()
    config = add_stream(nats_broker, name, f"{name}.all", max_msgs=10, discard="new")
    with Publisher(nats=options(nats_broker, f"{name}.all"), state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=1, each=30))
        assert not publisher.flush(1)
        stats = publisher.stats()["nats"]
        assert (stats.acknowledged, stats.dead_lettered) == (10, 0)
        config.max_msgs = 100
        with_jetstream(nats_broker, lambda jetstream: jetstream.update_stream(config))
        assert publisher.flush(PATIENCE)
    assert numbers(nats_broker, name) == in_order(1, 30)


@pytest.mark.parametrize("is_known", [True, False])
def test_an_event_that_is_too_large_is_a_dead_letter_and_the_rest_goes_on(
    own_nats: Callable[..., NatsBroker],
    tmp_path: Path,
    is_known: bool,  # noqa: FBT001
) -> None:
    broker = own_nats(settings={"max_payload": 4096})
    if not is_known:
        broker.stop()
    bus = options(broker, "events.all", stream="EVENTS")
    with Publisher(nats=bus, state_dir=tmp_path) as publisher:
        if is_known:
            publisher.publish(trade("S", 0))
            assert publisher.flush(PATIENCE)
        # What the server takes is known once it has answered.
        publisher.publish(trade("S", 1) + trade("L", "9" * 5_000) + trade("S", 2))
        if not is_known:
            assert not publisher.flush(0.5)
            broker.start()
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["nats"]
    (reason,) = reasons(stats)
    assert "the server takes at most 4096 (max_payload)" in reason
    assert stats.is_balanced
    assert numbers(broker, "EVENTS") == {"S": [0, 1, 2] if is_known else [1, 2]}


def test_the_largest_message_still_fits(
    own_nats: Callable[..., NatsBroker], tmp_path: Path
) -> None:
    broker = own_nats(settings={"max_payload": 4096})
    bus = options(broker, "events.all", stream="EVENTS", static_headers={"env": "test"})
    with Publisher(nats=bus, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 0))
        assert publisher.flush(PATIENCE)
        for length in range(3_840, 3_900):
            publisher.publish(trade("L", "9" * length))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["nats"]
    # None is sent that the server refuses, which would cost the connection.
    assert (stats.acknowledged + stats.dead_lettered, stats.retried) == (61, 0)
    assert 0 < stats.dead_lettered < 60
    assert len(messages(broker, "EVENTS")["events.all"]) == stats.acknowledged


def test_the_same_spill_sent_twice_is_taken_once(
    own_nats: Callable[..., NatsBroker], tmp_path: Path
) -> None:
    broker = own_nats()
    broker.stop()
    bus = options(broker, "events.all", stream="EVENTS")
    first, second = tmp_path / "first", tmp_path / "second"
    publisher = Publisher(nats=bus, state_dir=first)
    publisher.publish(trades(symbols=5, each=20))
    assert publisher.close(0)["nats"].left == 100
    # As after a process that died before it noted the answers.
    shutil.copytree(first, second)
    broker.start()
    for state_dir in (first, second):
        with Publisher(nats=bus, state_dir=state_dir) as publisher:
            assert publisher.flush(PATIENCE)
            assert publisher.stats()["nats"].acknowledged == 100
    assert len(messages(broker, "EVENTS")["events.all"]) == 100
    assert numbers(broker, "EVENTS") == in_order(5, 20)


def test_core_mode_warns_and_reaches_subscribers(
    nats_broker: NatsBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = new_name()
    bus = options(
        nats_broker,
        f"{base}.all",
        mode="core",
        subject_routing={"trade": f"{base}.t", "quote": f"{base}.q"},
        static_headers={"env": "test", "note": "a:b,c"},
    )
    routes = {"trade": f"{base}.t", "quote": f"{base}.q"}
    expected = expected_arrivals(
        PAYLOAD_CASES, lambda event: routes.get(case_of(event), f"{base}.all"), headers_of
    )

    def send() -> None:
        with Publisher(nats=bus, state_dir=tmp_path) as publisher:
            publish_samples(publisher, PATIENCE)
            stats = publisher.stats()["nats"]
        assert (stats.acknowledged, stats.dead_lettered) == (33, 0)

    async def listen() -> dict[str, list[Arrival]]:
        client = await nats.connect(nats_broker.url)
        subscription = await client.subscribe(f"{base}.>")
        await client.flush()
        await asyncio.to_thread(send)
        found: dict[str, list[Arrival]] = {}
        for _ in range(33):
            message = await subscription.next_msg(timeout=PATIENCE)
            arrival = Arrival(message.data, dict(message.headers or {}))
            found.setdefault(message.subject, []).append(arrival)
        await client.close()
        return found

    found = asyncio.run(listen())
    assert {subject: without_id(arrivals) for subject, arrivals in found.items()} == expected
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [vars(record)["event_kind"] for record in warnings] == ["best_effort"]
    assert "core mode is best effort" in warnings[0].getMessage()


@pytest.mark.parametrize(
    "login", [{"user": "market", "password": SECRET}, {"token": SECRET}], ids=["user", "token"]
)
def test_logging_in(
    own_nats: Callable[..., NatsBroker],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    login: dict[str, str],
) -> None:
    broker = own_nats(**login)
    bus = options(broker, "events.all", stream="EVENTS", **login)
    with caplog.at_level("DEBUG"):
        assert publish(bus, tmp_path, trade("S", 1)) == []
        (check,) = check_buses(nats=bus)
    assert (check.ok, check.peer, check.error) == (True, broker.address, None)
    assert numbers(broker, "EVENTS", **login) == {"S": [1]}
    assert SECRET not in all_that_was_said(caplog, check)


@pytest.mark.parametrize(
    "login",
    [{}, {"user": "market", "password": SECRET}, {"token": SECRET}],
    ids=["nobody", "user", "token"],
)
def test_a_login_that_is_refused_is_said_without_the_password(
    own_nats: Callable[..., NatsBroker],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    login: dict[str, str],
) -> None:
    broker = own_nats(user="market", password="right")
    bus = options(broker, "events.all", stream="EVENTS", **login)
    with caplog.at_level("DEBUG"), Publisher(nats=bus, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 1))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["nats"]
        (check,) = check_buses(nats=bus)
    assert (stats.dead_lettered, stats.is_balanced, stats.connected) == (1, True, False)
    (reason,) = reasons(stats)
    assert reason.startswith(f"{broker.address}: authorization violation")
    assert (check.ok, check.peer, check.error) == (False, None, reason)
    said = all_that_was_said(caplog, publisher, stats, check, reason)
    assert "failing" in said
    assert SECRET not in said


@pytest.mark.parametrize("content", [None, f"no credentials, but {SECRET}"])
def test_credentials_that_cannot_be_read_are_named(
    nats_broker: NatsBroker,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    content: str | None,
) -> None:
    file = tmp_path / "market.creds"
    if content is not None:
        file.write_text(content)
    bus = options(nats_broker, "events.all", creds=str(file))
    with caplog.at_level("DEBUG"):
        (reason,) = publish(bus, tmp_path / "state", trade("S", 1))
        (check,) = check_buses(nats=bus)
    assert reason.startswith(f"--nats-creds: `{file}` cannot be used: ")
    assert (check.ok, check.error) == (False, reason)
    assert SECRET not in all_that_was_said(caplog, check, reason)


def test_what_a_user_may_not_publish_is_a_dead_letter_and_the_rest_goes_on(
    own_nats: Callable[..., NatsBroker], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    permissions = {"publish": {"deny": ["events.forced"]}}
    user = {"user": "market", "password": SECRET, "permissions": permissions}
    broker = own_nats(settings={"authorization": {"users": [user]}})
    routes = {"liquidation": "events.forced"}
    login = {"user": "market", "password": SECRET}
    bus = options(broker, "events.all", stream="EVENTS", subject_routing=routes, **login)
    lines = trade("S", 9, type="liquidation") + trades(symbols=3, each=10)
    with caplog.at_level("DEBUG"):
        (reason,) = publish(bus, tmp_path, lines)
    assert "permissions violation" in reason.lower()
    assert "events.forced" in reason
    assert numbers(broker, "EVENTS", **login) == in_order(3, 10)
    assert SECRET not in all_that_was_said(caplog, reason)


def test_tls(
    own_nats: Callable[..., NatsBroker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = own_nats(tls=True, token=SECRET)
    assert broker.certificates is not None
    by_switch = options(broker, "events.all", mode="core", tls=True, token=SECRET)
    by_scheme = by_switch | {"servers": broker.url, "tls": False}
    with caplog.at_level("DEBUG"):
        # Nobody vouches for it but the authority of this run.
        checks = [*check_buses(nats=by_switch), *check_buses(nats=by_scheme)]
        assert [check.ok for check in checks] == [False, False]
        assert all("UnknownIssuer" in str(check.error) for check in checks)
        monkeypatch.setenv("SSL_CERT_FILE", str(broker.certificates.authority))
        for number, bus in enumerate((by_switch, by_scheme)):
            assert publish(bus, tmp_path / str(number), trade("S", number)) == []
            checks += check_buses(nats=bus)
    assert [(check.ok, check.peer) for check in checks[2:]] == [(True, broker.address)] * 2
    assert SECRET not in all_that_was_said(caplog, *checks)


def test_a_server_without_tls_is_not_told_the_token(
    own_nats: Callable[..., NatsBroker],
) -> None:
    broker = own_nats(token=SECRET)
    (check,) = check_buses(nats=options(broker, "events.all", tls=True, token=SECRET))
    assert not check.ok
    assert str(check.error).startswith(f"{broker.address}: ")
    assert SECRET not in f"{check}"


def test_a_server_without_jetstream_is_said(
    own_nats: Callable[..., NatsBroker], tmp_path: Path
) -> None:
    broker = own_nats(settings={"jetstream": False})
    bus = options(broker, "events.all")
    remedy = "JetStream is not enabled; start the server with it, or give --nats-mode core"
    assert publish(bus, tmp_path / "jetstream", trade("S", 1)) == [remedy]
    (check,) = check_buses(nats=bus)
    assert (check.ok, check.error) == (False, remedy)
    assert publish(bus | {"mode": "core"}, tmp_path / "core", trade("S", 1)) == []


def test_a_killed_server_gets_everything_later_and_once(
    own_nats: Callable[..., NatsBroker], tmp_path: Path
) -> None:
    broker = own_nats()
    bus = options(broker, "events.all", stream="EVENTS")
    with Publisher(nats=bus, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=4, each=50))
        assert publisher.flush(PATIENCE)
        broker.kill()
        publisher.publish(b"".join(trade("T", number) for number in range(300)))
        assert not publisher.flush(0.5)
        broker.start()
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["nats"]
    assert (stats.acknowledged, stats.dead_lettered, stats.is_balanced) == (500, 0, True)
    assert numbers(broker, "EVENTS") == in_order(4, 50) | {"T": list(range(300))}
    assert len(messages(broker, "EVENTS")["events.all"]) == 500


def test_checking_tells_who_answered_or_why_nobody_did(
    nats_broker: NatsBroker, own_nats: Callable[..., NatsBroker]
) -> None:
    name = new_name()
    (check,) = check_buses(nats=options(nats_broker, f"{name}.all", stream=name))
    assert (check.bus, check.ok, check.peer) == ("nats", True, nats_broker.address)
    assert (check.warnings, check.error) == ((), None)
    gone = own_nats()
    gone.stop()
    (check,) = check_buses(nats=options(gone, f"{name}.all"))
    assert (check.bus, check.ok, check.peer) == ("nats", False, None)
    assert str(check.error).startswith(f"{gone.address}: ")
    assert "refused" in str(check.error)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"subject": None}, "--nats-subject: it is missing"),
        ({"subject": "a.>"}, "--nats-subject: `a.>` has a wildcard"),
        ({"subject_template": "a..{{symbol}}"}, "--nats-subject-template: "),
        ({"subject_routing": "trades:x"}, "unknown payload case `trades`"),
        ({"include_payloads": "trades"}, "--nats-include-payloads: unknown payload case"),
        ({"servers": f"nats://u:{SECRET}@h"}, "--nats-servers: `***` has a user or password"),
        ({"user": "market"}, "--nats-pass: it is missing"),
        ({"password": SECRET}, "--nats-user: it is missing"),
        ({"token": SECRET, "creds": "x"}, "--nats-token: it contradicts --nats-creds"),
        ({"static_headers": "Nats-Msg-Id:x"}, "--nats-static-headers: `Nats-Msg-Id`"),
        ({"mode": "plain"}, "--nats-mode: `plain` is no mode"),
        ({"mode": "core", "stream": "S"}, "--nats-stream: it contradicts --nats-mode core"),
        ({"stream": "a.b"}, "--nats-stream: `a.b` is no stream name"),
        ({"max_batch_size": 10_001}, "--nats-max-batch-size: 10001 is out of range"),
    ],
)
def test_wrong_options_are_refused_at_start(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    given = {"servers": "127.0.0.1:1", "subject": "events.all"} | wrong
    bus = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigError) as refusal:
        Publisher(nats=bus, state_dir=tmp_path)
    assert text in str(refusal.value)
    assert SECRET not in str(refusal.value)
