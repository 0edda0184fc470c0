"""What is published to Kafka arrives: whole, in order per key, where it was routed."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from bus.kafka.kafka_topics import consume, create_topic, new_topic
from tardis_fast import ConfigError, DeadLetterReader, Publisher
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from confluent_kafka import Message

    from brokers.kafka import KafkaBroker
    from brokers.toxiproxy import Proxy

QUIET: dict[str, Any] = {"log_level": 0}
SYMBOLS = ("XBTUSD", "ETHUSD", "SOLUSD")
ENOUGH = 120.0
"""Seconds within which everything is delivered, however slow the machine."""


def trades(numbers: Iterable[int], text: str = "") -> bytes:
    """Return trades as JSON lines; the id is the number, the symbols take turns."""
    return b"".join(
        json.dumps(
            {
                "type": "trade",
                "symbol": SYMBOLS[number % len(SYMBOLS)],
                "exchange": "bitmex",
                "id": f"{number}{text}",
                "price": 62350.5,
                "amount": 100,
                "side": "buy",
                "timestamp": "2024-03-01T00:00:01.200Z",
                "localTimestamp": "2024-03-01T00:00:01.234567Z",
            }
        ).encode()
        + b"\n"
        for number in numbers
    )


DISCONNECT = (
    b'{"type":"disconnect","exchange":"bitmex","localTimestamp":"2024-03-01T00:00:02.000000Z"}\n'
)


def event_of(message: Message) -> NormalizedEvent:
    return NormalizedEvent.FromString(message.value() or b"")


def numbers_by_key(messages: list[Message]) -> dict[bytes, list[int]]:
    found: dict[bytes, list[int]] = {}
    for message in messages:
        key = message.key() or b""
        found.setdefault(bytes(key), []).append(int(event_of(message).trade.trade_id))
    return found


def expected_by_key(count: int) -> dict[bytes, list[int]]:
    return {
        f"bitmex|{symbol}|trade".encode(): list(range(place, count, len(SYMBOLS)))
        for place, symbol in enumerate(SYMBOLS)
    }


def without_doubles(numbers: dict[bytes, list[int]]) -> dict[bytes, list[int]]:
    return {key: list(dict.fromkeys(of_key)) for key, of_key in numbers.items()}


def options(address: str, topic: str, **more: Any) -> dict[str, Any]:
    return {"brokers": address, "topic": topic, **more}


@pytest.fixture(params=["direct", "librdkafka"])
def client(request: pytest.FixtureRequest) -> str:
    """Name each of the clients that publish."""
    return str(request.param)


def test_events_arrive_whole_and_in_order_per_key(
    kafka_broker: KafkaBroker, tmp_path: Path, client: str
) -> None:
    topic = new_topic(kafka_broker, partitions=4)
    count = 60_000
    kafka = options(kafka_broker.address, topic, client=client)
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        for first in range(0, count, 5_000):
            publisher.publish(trades(range(first, first + 5_000)))
        assert publisher.flush(ENOUGH)
        stats = publisher.stats()["kafka"]
    assert (stats.accepted, stats.acknowledged, stats.is_balanced) == (count, count, True)
    messages = consume(kafka_broker, topic, partitions=4)
    assert numbers_by_key(messages) == expected_by_key(count)


def test_headers_and_keys(kafka_broker: KafkaBroker, tmp_path: Path, client: str) -> None:
    topic = new_topic(kafka_broker)
    kafka = options(
        kafka_broker.address,
        topic,
        client=client,
        key_template="{{symbol}}",
        static_headers={"env": "test", "note": "a:b,c"},
        meta_headers_prefix="meta-",
    )
    with Publisher(kafka=kafka, state_dir=tmp_path, meta={"desk": "7"}) as publisher:
        publisher.publish(trades([0]) + DISCONNECT)
        assert publisher.flush(ENOUGH)
    trade, disconnect = consume(kafka_broker, topic)
    headers = dict(trade.headers() or [])
    assert list(headers)[:4] == ["payloadCase", "dataType", "env", "note"]
    assert headers["payloadCase"] == b"trade"
    assert headers["dataType"] == b"trade"
    assert headers["note"] == b"a:b,c"
    assert headers["meta-desk"] == b"7"
    assert headers["meta-data_type"] == b"trade"
    assert trade.key() == b"XBTUSD"
    # A lost connection is of no symbol: an empty key is none.
    assert dict(disconnect.headers() or [])["payloadCase"] == b"disconnect"
    assert disconnect.key() is None


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_can_be_read(
    kafka_broker: KafkaBroker, tmp_path: Path, compression: str
) -> None:
    topic = new_topic(kafka_broker)
    kafka = options(kafka_broker.address, topic, compression=compression)
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        publisher.publish(trades(range(300)))
        assert publisher.flush(ENOUGH)
    assert numbers_by_key(consume(kafka_broker, topic)) == expected_by_key(300)


def test_cases_go_to_their_topics(kafka_broker: KafkaBroker, tmp_path: Path) -> None:
    base, own = new_topic(kafka_broker), new_topic(kafka_broker)
    kafka = options(kafka_broker.address, base, topic_routing={"disconnect": own})
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        publisher.publish(trades([0]) + DISCONNECT)
        assert publisher.flush(ENOUGH)
    cases = [
        [event_of(message).WhichOneof("payload") for message in consume(kafka_broker, topic)]
        for topic in (base, own)
    ]
    assert cases == [["trade"], ["disconnect"]]


def test_a_missing_topic_does_not_stop_the_others(
    kafka_broker: KafkaBroker, tmp_path: Path, client: str
) -> None:
    topic, missing = new_topic(kafka_broker), f"missing-{uuid.uuid4().hex}"
    routing = {"disconnect": missing}
    kafka = options(kafka_broker.address, topic, client=client, topic_routing=routing)
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        publisher.publish(DISCONNECT + trades(range(30)))
        assert publisher.flush(ENOUGH)
        stats = publisher.stats()["kafka"]
        assert (stats.acknowledged, stats.dead_lettered) == (30, 1)
        # Once it is there, events go to it without a restart.
        create_topic(kafka_broker, missing)
        while publisher.stats()["kafka"].acknowledged == stats.acknowledged:
            publisher.publish(DISCONNECT)
            assert publisher.flush(ENOUGH)
    assert numbers_by_key(consume(kafka_broker, topic)) == expected_by_key(30)
    assert len(consume(kafka_broker, missing)) >= 1


def test_an_event_that_is_too_large_is_a_dead_letter(
    kafka_broker: KafkaBroker, tmp_path: Path, client: str
) -> None:
    topic = new_topic(kafka_broker)
    config = {"message.max.bytes": 2_000}
    kafka = options(kafka_broker.address, topic, client=client, config=config)
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        publisher.publish(trades([0]) + trades([1], "x" * 3_000) + trades([2]))
        assert publisher.flush(ENOUGH)
        stats = publisher.stats()["kafka"]
    assert (stats.acknowledged, stats.dead_lettered) == (2, 1)
    assert len(consume(kafka_broker, topic)) == 2


def test_batches_that_a_topic_finds_too_large_are_sent_in_parts(
    kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    topic = new_topic(kafka_broker, max_message_bytes="20000")
    count = 3_000
    kafka = options(kafka_broker.address, topic, client="direct", compression="none")
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        publisher.publish(trades(range(count)) + trades([count], "x" * 30_000))
        publisher.publish(trades(range(count, 2 * count)))
        assert publisher.flush(ENOUGH)
        stats = publisher.stats()["kafka"]
    assert (stats.acknowledged, stats.dead_lettered) == (2 * count, 1)
    assert numbers_by_key(consume(kafka_broker, topic)) == expected_by_key(2 * count)


def test_a_listener_that_wants_a_login_is_told_from_one_that_is_away(
    kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    for address in (kafka_broker.sasl_address, kafka_broker.ssl_address):
        kafka = options(address, "events")
        with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
            publisher.publish(trades([0]))
            assert not publisher.flush(2)
            error = publisher.stats()["kafka"].last_error
            assert error is not None
            assert "want --kafka-ssl or --kafka-sasl-mechanism?" in error
            publisher.close(0)


@pytest.mark.parametrize("mechanism", ["plain", "scram-sha-256", "scram-sha-512"])
@pytest.mark.parametrize("ssl", [False, True])
def test_logging_in(kafka_broker: KafkaBroker, tmp_path: Path, mechanism: str, ssl: bool) -> None:  # noqa: FBT001
    topic = new_topic(kafka_broker)
    security: dict[str, Any] = {
        "sasl_mechanism": mechanism,
        "sasl_username": kafka_broker.login.user,
        "sasl_password": kafka_broker.login.password,
    }
    if ssl:
        security |= {"ssl": True, "ssl_ca": str(kafka_broker.certificates.authority)}
    address = kafka_broker.sasl_ssl_address if ssl else kafka_broker.sasl_address
    with Publisher(kafka=options(address, topic, **security), state_dir=tmp_path) as publisher:
        publisher.publish(trades([0]))
        assert publisher.flush(ENOUGH)
    assert len(consume(kafka_broker, topic)) == 1


def reason_of_failure(publisher: Publisher) -> str:
    """Publish a trade that must become a dead letter, and return the reason."""
    publisher.publish(trades([0]))
    assert publisher.flush(ENOUGH)
    stats = publisher.stats()["kafka"]
    assert (stats.dead_lettered, stats.is_balanced) == (1, True)
    assert stats.dead_letter_file is not None
    (batch,) = DeadLetterReader(stats.dead_letter_file)
    (reason,) = batch.column("reason").to_pylist()
    return str(reason)


def test_a_wrong_password_is_said_without_it(
    kafka_broker: KafkaBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kafka = options(
        kafka_broker.sasl_address,
        new_topic(kafka_broker),
        sasl_mechanism="plain",
        sasl_username="market",
        sasl_password="not-the-password",
    )
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        reason = reason_of_failure(publisher)
    assert "refuses user `market` by PLAIN" in reason
    assert "not-the-password" not in reason + caplog.text


def test_a_broker_that_nobody_vouches_for_is_not_trusted(
    kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    kafka = options(kafka_broker.ssl_address, new_topic(kafka_broker), ssl=True)
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        reason = reason_of_failure(publisher)
    assert "certificate verify failed" in reason


@pytest.mark.parametrize("idempotent", [True, False])
def test_order_is_kept_when_the_broker_is_killed(
    own_kafka: Callable[..., KafkaBroker],
    tmp_path: Path,
    client: str,
    idempotent: bool,  # noqa: FBT001
) -> None:
    broker = own_kafka()
    topic = new_topic(broker)
    count = 30_000
    kafka = options(broker.address, topic, client=client, idempotent=idempotent)
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        for first in range(0, count, 1_000):
            publisher.publish(trades(range(first, first + 1_000)))
            if first == count // 3:
                broker.kill()
        broker.start()
        assert publisher.flush(ENOUGH)
        stats = publisher.stats()["kafka"]
    assert (stats.acknowledged, stats.dead_lettered, stats.is_balanced) == (count, 0, True)
    found = numbers_by_key(consume(broker, topic))
    assert (found if idempotent else without_doubles(found)) == expected_by_key(count)


def test_a_frozen_broker_is_waited_for_and_closing_ends(
    own_kafka: Callable[..., KafkaBroker], tmp_path: Path, client: str
) -> None:
    broker = own_kafka()
    topic = new_topic(broker)
    kafka = options(broker.address, topic, client=client)
    publisher = Publisher(kafka=kafka, state_dir=tmp_path)
    publisher.publish(trades(range(100)))
    assert publisher.flush(ENOUGH)
    broker.pause()
    publisher.publish(trades(range(100, 400)))
    assert not publisher.flush(0.5)
    # What the frozen broker may or may not have is kept, and sent by the next publisher.
    assert publisher.close(0.5)["kafka"].left == 300
    broker.resume()
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        publisher.publish(trades(range(400, 450)))
        assert publisher.flush(ENOUGH)
    found = numbers_by_key(consume(broker, topic))
    assert without_doubles(found) == expected_by_key(450)


def test_cut_connections_lose_nothing(
    kafka_broker: KafkaBroker, kafka_proxy: Proxy, tmp_path: Path, client: str
) -> None:
    topic = new_topic(kafka_broker)
    count = 20_000
    kafka = options(kafka_broker.proxied_address, topic, client=client)
    with Publisher(kafka=kafka, state_dir=tmp_path) as publisher:
        for first in range(0, count, 1_000):
            publisher.publish(trades(range(first, first + 1_000)))
            if first % 5_000 == 0:
                kafka_proxy.down()
                kafka_proxy.up()
        assert publisher.flush(ENOUGH)
    assert numbers_by_key(consume(kafka_broker, topic)) == expected_by_key(count)


def test_options_are_refused_before_anything_is_connected(tmp_path: Path) -> None:
    kafka = options("127.0.0.1:9", "events", acks="1", idempotent=True)
    with pytest.raises(ConfigError, match=r"--kafka-idempotent: it contradicts --kafka-acks"):
        Publisher(kafka=kafka, state_dir=tmp_path)
