"""Events in Kinesis: kinesis-mock, and a stand-in where records must fail on demand."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from brokers import aws
from bus.aws_stand_in import AwsStandIn, Failures, Refusal
from bus.kinesis.kinesis_streams import new_stream, options, records
from bus.trades import in_order, numbers_by_symbol, reasons, trade, trades
from tardis_fast import ConfigError, Publisher, check_buses
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from brokers.kinesis import KinesisBroker

PATIENCE = 60


def data(found: list[dict[str, Any]]) -> list[bytes]:
    return [record["Data"] for record in found]


@pytest.fixture
def stand_in() -> Iterator[AwsStandIn]:
    """Start a server that fails what a test says."""
    with AwsStandIn() as server:
        yield server


def sent_data(taken: list[dict[str, Any]]) -> list[bytes]:
    return [base64.b64decode(record["Data"]) for record in taken]


@pytest.mark.parametrize("ordering", ["key", "batch"])
def test_every_event_arrives_in_the_order_of_its_key(
    kinesis_broker: KinesisBroker, tmp_path: Path, ordering: str
) -> None:
    stream = new_stream(kinesis_broker, shards=3)
    kinesis = options(kinesis_broker.url, stream, ordering=ordering)
    with Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=20, each=10))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["kinesis"]
        assert (stats.accepted, stats.acknowledged, stats.dead_lettered) == (200, 200, 0)
    found = records(kinesis_broker, stream)
    assert numbers_by_symbol(data(found)) == in_order(20, 10)
    assert {record["PartitionKey"] for record in found} == {
        f"bitmex|S{symbol}|trade" for symbol in range(20)
    }


def test_routes_filter_keys_and_static_headers(
    kinesis_broker: KinesisBroker, tmp_path: Path
) -> None:
    base, other = new_stream(kinesis_broker), new_stream(kinesis_broker)
    kinesis = options(
        kinesis_broker.url,
        base,
        stream_routing=f"liquidation:{other}",
        include_payloads="trade,liquidation",
        partition_key_template="{{meta.desk}}{{symbol}}",
        static_headers={"env": "prod", "team": "data"},
    )
    long = "x" * 300
    with Publisher(kinesis=kinesis, state_dir=tmp_path, meta={"env": "test"}) as publisher:
        publisher.publish(trade("S", 1) + trade("S", 2, type="liquidation") + trade(long, 3))
        publisher.publish(
            b'{"type":"disconnect","exchange":"bitmex","localTimestamp":"2024-03-01T00:00:01.200Z"}'
        )
        assert publisher.flush(PATIENCE)
        assert publisher.stats()["kinesis"].acknowledged == 3
    (liquidation,) = records(kinesis_broker, other)
    event = NormalizedEvent.FromString(liquidation["Data"])
    assert event.WhichOneof("payload") == "liquidation"
    assert (event.meta["env"], event.meta["team"]) == ("prod", "data")
    assert event.meta["data_type"] == "liquidation"
    keys = sorted(record["PartitionKey"] for record in records(kinesis_broker, base))
    assert keys[0] == "S"
    assert len(keys[1]) == 256
    assert keys[1].startswith("x" * 223 + "~")


def test_a_missing_stream_stops_no_other(kinesis_broker: KinesisBroker, tmp_path: Path) -> None:
    stream = new_stream(kinesis_broker)
    kinesis = options(kinesis_broker.url, stream, stream_routing="liquidation:no-such-stream")
    (check,) = check_buses(kinesis=kinesis)
    assert check.ok
    assert "`no-such-stream`: ResourceNotFoundException" in check.warnings[0]
    with Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 0, type="liquidation") + trade("S", 0))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["kinesis"]
    assert (stats.acknowledged, stats.dead_lettered) == (1, 1)
    (reason,) = reasons(stats)
    assert reason.startswith("ResourceNotFoundException")
    assert "correct --kinesis-stream and --kinesis-stream-routing" in reason
    assert numbers_by_symbol(data(records(kinesis_broker, stream))) == {"S": [0]}


def test_an_event_that_is_too_large_is_a_dead_letter(
    kinesis_broker: KinesisBroker, tmp_path: Path
) -> None:
    stream = new_stream(kinesis_broker)
    kinesis = options(kinesis_broker.url, stream)
    with Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", "9" * (1 << 20)) + trade("S", 1))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["kinesis"]
    assert (stats.acknowledged, stats.dead_lettered) == (1, 1)
    assert "a record of Kinesis has at most 1048576" in reasons(stats)[0]


def test_a_server_that_stops_answering_gets_everything_later(
    own_kinesis: Callable[..., KinesisBroker], tmp_path: Path
) -> None:
    broker = own_kinesis()
    stream = new_stream(broker)
    kinesis = options(broker.url, stream)
    with Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=3, each=3))
        assert publisher.flush(PATIENCE)
        broker.pause()
        publisher.publish(trades(symbols=3, each=6))
        assert not publisher.flush(1)
        broker.resume()
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["kinesis"]
    assert (stats.acknowledged, stats.dead_lettered) == (27, 0)
    assert numbers_by_symbol(data(records(broker, stream))) == in_order(3, 6)


def test_events_wait_for_a_server_behind_a_broken_line(
    kinesis_broker: KinesisBroker, proxy_to: Callable[..., Any], tmp_path: Path
) -> None:
    proxy = proxy_to(kinesis_broker.address)
    proxy.down()
    stream = new_stream(kinesis_broker)
    kinesis = options(f"http://{proxy.address}", stream)
    with Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=2, each=5))
        assert not publisher.flush(1)
        proxy.up()
        assert publisher.flush(PATIENCE)
    assert numbers_by_symbol(data(records(kinesis_broker, stream))) == in_order(2, 5)


def test_stand_in_only_failed_records_are_sent_again_and_in_order(
    stand_in: AwsStandIn, tmp_path: Path
) -> None:
    throttled = "ProvisionedThroughputExceededException"
    stand_in.script += [Failures({0: throttled, 2: "InternalFailure"}), Failures({0: throttled})]
    kinesis = options(stand_in.url, "bronze", max_batch_delay_ms=200)
    with Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=40, each=4))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["kinesis"]
    assert (stats.acknowledged, stats.retried, stats.dead_lettered) == (160, 3, 0)
    assert len(stand_in.taken) == 160
    assert sum(map(len, stand_in.sent)) == 163
    assert numbers_by_symbol(sent_data(stand_in.taken)) == in_order(40, 4)
    for request in stand_in.sent:
        keys = [record["PartitionKey"] for record in request]
        assert len(keys) == len(set(keys))


def test_stand_in_a_throttled_request_is_sent_again(stand_in: AwsStandIn, tmp_path: Path) -> None:
    stand_in.script += [
        Refusal(400, "ProvisionedThroughputExceededException"),
        Refusal(500, "InternalFailure"),
        Refusal(503, "ServiceUnavailable"),
    ]
    kinesis = options(stand_in.url, "bronze", ordering="batch")
    with Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=5, each=5))
        assert publisher.flush(PATIENCE)
        assert publisher.stats()["kinesis"].dead_lettered == 0
    assert numbers_by_symbol(sent_data(stand_in.taken)) == in_order(5, 5)


def test_stand_in_keys_that_are_refused_are_told_without_being_shown(
    stand_in: AwsStandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    canonical = "The Canonical String for this request should have been x-amz-security-token:hush"
    stand_in.script.append(Refusal(403, "InvalidSignatureException", canonical))
    kinesis = options(stand_in.url, "bronze") | {
        "access_key_id": "hush-id",
        "secret_access_key": "hush-key",
        "session_token": "hush-token",
    }
    with caplog.at_level("DEBUG"), Publisher(kinesis=kinesis, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 1))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["kinesis"]
        assert "hush" not in f"{publisher!r} {stats!r}"
    (reason,) = reasons(stats)
    assert "--kinesis-access-key-id" in reason
    assert "hush" not in reason + caplog.text


def test_without_keys_or_region_the_reason_names_flags_and_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    (check,) = check_buses(kinesis={"stream": "bronze", "region": aws.REGION})
    assert not check.ok
    assert str(check.error).startswith(
        "no keys: give --kinesis-access-key-id and --kinesis-secret-access-key, or let the default "
        "chain of AWS find keys"
    )
    (check,) = check_buses(
        kinesis={"stream": "bronze", "access_key_id": "a", "secret_access_key": "b"}
    )
    assert check.error == (
        "no region: give --kinesis-region, set AWS_REGION, or name one in the profile"
    )


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"stream": ""}, "--kinesis-stream: "),
        ({"stream_routing": "trades:x"}, "unknown payload case `trades`"),
        ({"session_token": None, "secret_access_key": None}, "--kinesis-access-key-id is given"),
        ({"static_headers": "data_type:x"}, "--kinesis-static-headers: `data_type`"),
        ({"max_batch_size": 501}, "--kinesis-max-batch-size: 501 is out of range; give 1 to 500"),
        ({"ordering": "none"}, "--kinesis-ordering: `none`"),
        ({"endpoint_url": "localhost"}, "--kinesis-endpoint-url: `localhost`"),
    ],
)
def test_wrong_options_are_refused_at_start(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    given = options("http://127.0.0.1:1", "bronze") | wrong
    kinesis = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigError) as refusal:
        Publisher(kinesis=kinesis, state_dir=tmp_path)
    assert text in str(refusal.value)
