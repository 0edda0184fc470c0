"""Events in Redis streams, read with redis-py."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from bus.redis.redis_entries import entries
from bus.sample_events import (
    SECRET,
    all_that_was_said,
    case_of,
    default_key,
    expected_arrivals,
    in_sequence,
    publish_samples,
)
from bus.trades import in_order, numbers_by_symbol, reasons, trade, trades
from tardis_fast import PAYLOAD_CASES, ConfigError, Publisher, check_buses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from brokers.redis import RedisBroker
    from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

PATIENCE = 60


def new_stream() -> str:
    return f"test:{uuid.uuid4().hex}"


def options(broker: RedisBroker, stream: str, **more: Any) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": broker.port, "stream": stream, **more}


def numbers(broker: RedisBroker, stream: str, db: int = 0) -> dict[str, list[int]]:
    return numbers_by_symbol(entry.data for entry in entries(broker, stream, db))


def publish(redis: Mapping[str, Any], state_dir: Path, lines: bytes) -> list[str]:
    """Publish, wait, and return why events became dead letters; the rest must have arrived."""
    with Publisher(redis=redis, state_dir=state_dir) as publisher:
        publisher.publish(lines)
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["redis"]
    why = reasons(stats)
    assert (stats.dead_lettered, stats.is_balanced) == (len(why), True)
    assert stats.acknowledged == stats.accepted - len(why)
    return why


@pytest.mark.parametrize("include", [PAYLOAD_CASES, ("trade", "quote", "disconnect")])
def test_every_case_arrives_where_it_is_routed_with_all_fields(
    redis_broker: RedisBroker, tmp_path: Path, include: Collection[str]
) -> None:
    base = new_stream()
    routes = {"trade": f"{base}:t", "liquidation": f"{base}:t", "quote": f"{base}:q"}
    redis = options(
        redis_broker,
        base,
        stream_routing=routes,
        include_payloads=list(include),
        key_template="{{payloadCase}}/{{exchange}}/{{symbol}}/{{meta.desk}}",
        static_headers={"env": "test", "note": "a:b,c"},
    )

    def fields(event: NormalizedEvent) -> dict[str, str]:
        return {
            "key": f"{case_of(event)}/{event.exchange}/{event.symbol}/",
            "payloadCase": case_of(event),
            "dataType": event.meta["data_type"],
            "env": "test",
            "note": "a:b,c",
        }

    with Publisher(redis=redis, state_dir=tmp_path) as publisher:
        publish_samples(publisher, PATIENCE)
        stats = publisher.stats()["redis"]
    expected = expected_arrivals(include, lambda event: routes.get(case_of(event), base), fields)
    assert set(expected) == {base, *routes.values()}
    assert stats.acknowledged == stats.accepted == sum(map(len, expected.values()))
    found = {stream: in_sequence(entries(redis_broker, stream)) for stream in expected}
    assert found == expected
    assert list(found[base][0].headers) == ["key", "payloadCase", "dataType", "env", "note"]


def test_events_of_a_key_arrive_in_order(redis_broker: RedisBroker, tmp_path: Path) -> None:
    stream = new_stream()
    redis = options(redis_broker, stream, max_batch_size=50)
    assert publish(redis, tmp_path, trades(symbols=20, each=200)) == []
    assert numbers(redis_broker, stream) == in_order(20, 200)
    assert len(entries(redis_broker, stream)) == 4_000


def test_streams_are_made_from_the_event(redis_broker: RedisBroker, tmp_path: Path) -> None:
    base = new_stream()
    redis = options(
        redis_broker,
        base + ":{{exchange}}:{{symbol}}",
        stream_routing={"liquidation": base + ":forced:{{symbol}}"},
    )
    with Publisher(redis=redis, state_dir=tmp_path) as publisher:
        publish_samples(publisher, PATIENCE)

    def stream(event: NormalizedEvent) -> str:
        if case_of(event) == "liquidation":
            return f"{base}:forced:{event.symbol}"
        # A lost connection is of no symbol.
        return f"{base}:{event.exchange}:{event.symbol or '_'}"

    def fields(event: NormalizedEvent) -> dict[str, str]:
        case, data_type = case_of(event), event.meta["data_type"]
        return {"key": default_key(event), "payloadCase": case, "dataType": data_type}

    expected = expected_arrivals(PAYLOAD_CASES, stream, fields)
    with Redis.from_url(redis_broker.url) as client:
        assert {name.decode() for name in client.scan_iter(f"{base}*")} == set(expected)
    assert {name: in_sequence(entries(redis_broker, name)) for name in expected} == expected


def test_streams_are_trimmed_to_about_their_length(
    redis_broker: RedisBroker, tmp_path: Path
) -> None:
    stream = new_stream()
    redis = options(redis_broker, stream, max_len=100)
    assert publish(redis, tmp_path, trades(symbols=1, each=5_000)) == []
    found = numbers(redis_broker, stream)["S0"]
    # About: Redis drops whole nodes of at most a hundred entries.
    assert 100 <= len(found) <= 300
    assert found == list(range(5_000))[-len(found) :]


def test_a_database_of_its_own(redis_broker: RedisBroker, tmp_path: Path) -> None:
    stream = new_stream()
    assert publish(options(redis_broker, stream, db=3), tmp_path / "parts", trade("S", 1)) == []
    url = {"url": f"{redis_broker.url}/3", "stream": stream}
    assert publish(url, tmp_path / "url", trade("S", 2)) == []
    assert numbers(redis_broker, stream, db=3) == {"S": [1, 2]}
    assert numbers(redis_broker, stream) == {}
    (check,) = check_buses(redis=options(redis_broker, stream, db=99))
    assert not check.ok
    assert "DB index is out of range" in str(check.error)


@pytest.mark.parametrize("user", [None, "market"])
def test_logging_in(
    own_redis: Callable[..., RedisBroker],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    user: str | None,
) -> None:
    broker = own_redis(password=SECRET, user=user)
    stream = new_stream()
    parts = options(broker, stream, password=SECRET) | ({"username": user} if user else {})
    url = {"url": broker.url, "stream": stream}
    with caplog.at_level("DEBUG"):
        assert publish(parts, tmp_path / "parts", trade("S", 1)) == []
        assert publish(url, tmp_path / "url", trade("S", 2)) == []
        checks = [*check_buses(redis=parts), *check_buses(redis=url)]
    assert [(check.ok, check.peer, check.error) for check in checks] == [
        (True, broker.address, None)
    ] * 2
    assert numbers(broker, stream) == {"S": [1, 2]}
    assert SECRET not in all_that_was_said(caplog, *checks)


@pytest.mark.parametrize(
    ("login", "text"),
    [
        ({}, "NOAUTH"),
        ({"password": SECRET}, "Password authentication failed"),
        ({"password": SECRET, "username": "nobody"}, "Password authentication failed"),
    ],
)
def test_a_login_that_is_refused_is_said_without_the_password(
    own_redis: Callable[..., RedisBroker],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    login: dict[str, str],
    text: str,
) -> None:
    broker = own_redis(password="right")
    stream = new_stream()
    by_parts = options(broker, stream, **login)
    name = f"{login.get('username', '')}:{SECRET}@" if login else ""
    by_url = {"url": f"redis://{name}{broker.address}", "stream": stream}
    for number, redis in enumerate((by_parts, by_url)):
        caplog.clear()
        directory = tmp_path / str(number)
        with caplog.at_level("DEBUG"), Publisher(redis=redis, state_dir=directory) as publisher:
            publisher.publish(trade("S", 1))
            assert publisher.flush(PATIENCE)
            stats = publisher.stats()["redis"]
            (check,) = check_buses(redis=redis)
        assert (stats.dead_lettered, stats.is_balanced, stats.connected) == (1, True, False)
        (reason,) = reasons(stats)
        assert reason.startswith(f"{broker.address}: ")
        assert text in reason
        assert (check.ok, check.peer) == (False, None)
        assert str(check.error) == reason
        said = all_that_was_said(caplog, publisher, stats, check, reason)
        assert "failing" in said
        assert SECRET not in said


def test_what_a_user_may_not_do_is_a_dead_letter_and_the_rest_goes_on(
    own_redis: Callable[..., RedisBroker], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = own_redis()
    with Redis.from_url(broker.url) as client:
        client.acl_setuser(
            "market",
            enabled=True,
            passwords=[f"+{SECRET}"],
            keys=["market:*"],
            commands=["+xadd", "+ping", "+multi", "+exec"],
        )
    redis = options(
        broker,
        "market:all",
        stream_routing={"liquidation": "other:forced"},
        username="market",
        password=SECRET,
    )
    lines = trade("S", 0) + trade("S", 1, type="liquidation") + trades(symbols=3, each=20)
    with caplog.at_level("DEBUG"):
        (reason,) = publish(redis, tmp_path, lines)
        (check,) = check_buses(redis=redis)
    assert reason.startswith("NOPERM")
    assert (check.ok, check.warnings) == (True, ())
    assert numbers(broker, "market:all") == {"S": [0], **in_order(3, 20)}
    assert entries(broker, "other:forced") == []
    assert SECRET not in all_that_was_said(caplog, reason, check)


def test_without_transactions_a_warning_is_given_and_events_arrive(
    own_redis: Callable[..., RedisBroker], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = own_redis()
    with Redis.from_url(broker.url) as client:
        client.acl_setuser(
            "market",
            enabled=True,
            passwords=[f"+{SECRET}"],
            keys=["*"],
            commands=["+xadd", "+ping"],
        )
        client.set("plain", "no stream")
    redis = options(
        broker,
        "events",
        stream_routing={"liquidation": "plain"},
        username="market",
        password=SECRET,
    )
    lines = trade("S", 1, type="liquidation") + trades(symbols=3, each=50)
    with caplog.at_level("DEBUG"):
        (reason,) = publish(redis, tmp_path, lines)
        (check,) = check_buses(redis=redis)
    assert reason.startswith("WRONGTYPE")
    (warning,) = check.warnings
    assert warning.startswith("the server refuses MULTI")
    assert warning in [record.getMessage() for record in caplog.records]
    assert numbers(broker, "events") == in_order(3, 50)
    assert SECRET not in all_that_was_said(caplog, reason, check)


def test_a_key_of_another_type_stops_no_other_stream(
    redis_broker: RedisBroker, tmp_path: Path
) -> None:
    stream, plain = new_stream(), new_stream()
    with Redis.from_url(redis_broker.url) as client:
        client.set(plain, "no stream")
        redis = options(redis_broker, stream, stream_routing={"liquidation": plain})
        lines = b"".join(trade("S", n) + trade("S", n, type="liquidation") for n in range(10))
        why = publish(redis, tmp_path, lines)
        assert client.get(plain) == b"no stream"
    assert len(why) == 10
    assert all(reason.startswith("WRONGTYPE") for reason in why)
    assert numbers(redis_broker, stream) == {"S": list(range(10))}


def test_an_event_that_is_too_large_is_a_dead_letter_and_the_rest_goes_on(
    own_redis: Callable[..., RedisBroker], tmp_path: Path
) -> None:
    broker = own_redis(settings={"proto-max-bulk-len": "1mb"})
    lines = trade("S", 0) + trade("L", "9" * (1 << 21)) + trade("S", 1)
    (reason,) = publish(options(broker, "events"), tmp_path, lines)
    assert "bulk" in reason or "bytes" in reason
    assert numbers(broker, "events") == {"S": [0, 1]}


def test_a_server_without_memory_is_waited_for(
    own_redis: Callable[..., RedisBroker], tmp_path: Path
) -> None:
    broker = own_redis()
    with (
        Redis.from_url(broker.url) as client,
        Publisher(redis=options(broker, "events"), state_dir=tmp_path) as publisher,
    ):
        client.config_set("maxmemory", 1)
        publisher.publish(trades(symbols=5, each=20))
        assert not publisher.flush(1)
        stats = publisher.stats()["redis"]
        assert (stats.acknowledged, stats.dead_lettered) == (0, 0)
        assert str(stats.last_error).startswith("OOM")
        client.config_set("maxmemory", 0)
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["redis"]
    assert (stats.acknowledged, stats.dead_lettered) == (100, 0)
    assert numbers(broker, "events") == in_order(5, 20)
    assert len(entries(broker, "events")) == 100


def test_a_killed_server_gets_everything_later(
    own_redis: Callable[..., RedisBroker], tmp_path: Path
) -> None:
    broker = own_redis()
    with Publisher(redis=options(broker, "events"), state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=4, each=100))
        assert publisher.flush(PATIENCE)
        broker.kill()
        publisher.publish(trades(symbols=4, each=300))
        assert not publisher.flush(0.5)
        broker.start()
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["redis"]
    assert (stats.acknowledged, stats.dead_lettered, stats.is_balanced) == (1_600, 0, True)
    assert numbers(broker, "events") == in_order(4, 300)


def test_tls(
    own_redis: Callable[..., RedisBroker],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = own_redis(password=SECRET)
    parts = options(broker, "events", port=broker.tls_port, tls=True, password=SECRET)
    url = {"url": broker.tls_url, "stream": "events"}
    with caplog.at_level("DEBUG"):
        # Nobody vouches for it but the authority of this run.
        checks = [*check_buses(redis=parts), *check_buses(redis=url)]
        assert [check.ok for check in checks] == [False, False]
        assert all("UnknownIssuer" in str(check.error) for check in checks)
        # That another authority cannot be read does no harm.
        bundle = tmp_path / "authorities.pem"
        unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        bundle.write_text(unreadable + broker.certificates.authority.read_text("utf-8"), "utf-8")
        monkeypatch.setenv("SSL_CERT_FILE", str(bundle))
        for number, redis in enumerate((parts, url)):
            assert publish(redis, tmp_path / str(number), trade("S", number)) == []
            checks += check_buses(redis=redis)
    assert [check.ok for check in checks[2:]] == [True, True]
    assert checks[2].peer == f"127.0.0.1:{broker.tls_port}"
    assert numbers(broker, "events") == {"S": [0, 1]}
    assert SECRET not in all_that_was_said(caplog, *checks)


def test_checking_tells_who_answered_or_why_nobody_did(
    redis_broker: RedisBroker, own_redis: Callable[..., RedisBroker]
) -> None:
    (check,) = check_buses(redis=options(redis_broker, "events"))
    assert (check.bus, check.ok, check.peer) == ("redis", True, redis_broker.address)
    assert (check.warnings, check.error) == ((), None)
    gone = own_redis()
    gone.stop()
    (check,) = check_buses(redis=options(gone, "events"))
    assert (check.bus, check.ok, check.peer) == ("redis", False, None)
    assert str(check.error).startswith(f"{gone.address}: ")
    assert "refused" in str(check.error)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"stream": ""}, "--redis-stream: "),
        ({"url": f"redis://:{SECRET}@h"}, "--redis-url: it contradicts --redis-host"),
        ({"url": f"http://:{SECRET}@h", "host": None, "port": None}, "--redis-url: `***`"),
        ({"username": "market"}, "--redis-password: it is missing"),
        ({"host": "redis://h"}, "--redis-host: `redis://h` is no host"),
        ({"stream_routing": "trades:x"}, "unknown payload case `trades`"),
        ({"include_payloads": "trades"}, "--redis-include-payloads: unknown payload case"),
        ({"key_template": "{{sybol}}"}, "--redis-key-template: unknown placeholder"),
        ({"static_headers": "data:x"}, "--redis-static-headers: `data`"),
        ({"max_len": 0}, "--redis-max-len: 0 is out of range"),
        ({"max_batch_size": 10_001}, "--redis-max-batch-size: 10001 is out of range"),
    ],
)
def test_wrong_options_are_refused_at_start(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    given = {"host": "127.0.0.1", "port": 1, "stream": "events"} | wrong
    redis = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigError) as refusal:
        Publisher(redis=redis, state_dir=tmp_path)
    assert text in str(refusal.value)
    assert SECRET not in str(refusal.value)
