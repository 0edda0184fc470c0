"""Events in SQS: ElasticMQ, and a stand-in where messages must fail on demand."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from bus.aws_stand_in import AwsStandIn, Failures, Refusal
from bus.sqs.sqs_queues import bodies, messages, new_queue, options
from bus.trades import in_order, numbers_by_symbol, reasons, trade, trades
from tardis_fast import ConfigError, Publisher, check_buses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from brokers.sqs import SqsBroker

PATIENCE = 60
NOBODY = "http://127.0.0.1:1/000000000000/bronze"


def attributes(message: dict[str, Any]) -> dict[str, str]:
    return {
        name: value["StringValue"] for name, value in message.get("MessageAttributes", {}).items()
    }


@pytest.fixture
def stand_in() -> Iterator[AwsStandIn]:
    """Start a server that fails what a test says."""
    with AwsStandIn() as server:
        yield server


def test_every_event_arrives_with_its_attributes(sqs_broker: SqsBroker, tmp_path: Path) -> None:
    url = new_queue(sqs_broker)
    sqs = options(
        sqs_broker.url,
        url,
        static_attributes={"env": "prod"},
        attribute_templates={"pair": "{{exchange}}-{{symbol}}", "none": "{{meta.none}}"},
    )
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=20, each=10))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["sqs"]
        assert (stats.accepted, stats.acknowledged, stats.dead_lettered) == (200, 200, 0)
    found = messages(sqs_broker, url)
    numbers = numbers_by_symbol(bodies(found))
    assert {symbol: sorted(each) for symbol, each in numbers.items()} == in_order(20, 10)
    symbols = {attributes(message).pop("pair") for message in found}
    assert symbols == {f"bitmex-S{symbol}" for symbol in range(20)}
    assert attributes(found[0]) | {"pair": ""} == {
        "payloadCase": "trade",
        "dataType": "trade",
        "contentEncoding": "base64",
        "env": "prod",
        "pair": "",
    }


def test_fifo_queues_keep_the_order_of_a_key_and_take_an_event_once(
    sqs_broker: SqsBroker, tmp_path: Path
) -> None:
    url = new_queue(sqs_broker, fifo=True)
    sqs = options(sqs_broker.url, url)
    events = trades(symbols=7, each=12) + trade("BTC 比", 0)
    for attempt in ("first", "second"):
        # The same bytes again, as after a process that died before it noted the answer.
        with Publisher(sqs=sqs, state_dir=tmp_path / attempt, spill=False) as publisher:
            publisher.publish(events, ingest_micros=1_700_000_000_000_000)
            assert publisher.flush(PATIENCE)
            assert publisher.stats()["sqs"].acknowledged == 85
    found = messages(sqs_broker, url)
    assert len(found) == 85
    data = bodies(found)
    assert numbers_by_symbol(data) == in_order(7, 12) | {"BTC 比": [0]}
    groups = {message["Attributes"]["MessageGroupId"] for message in found}
    (odd,) = groups - {f"bitmex|S{symbol}|trade" for symbol in range(7)}
    assert odd.startswith("bitmex|BTC__|trade~")
    assert [message["Attributes"]["MessageDeduplicationId"] for message in found] == [
        hashlib.sha256(event).hexdigest() for event in data
    ]


def test_routes_and_filter(sqs_broker: SqsBroker, tmp_path: Path) -> None:
    base, other = new_queue(sqs_broker), new_queue(sqs_broker, fifo=True)
    sqs = options(
        sqs_broker.url,
        base,
        queue_routing=f"liquidation:{other}",
        include_payloads=["trade", "liquidation"],
    )
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 1) + trade("S", 2, type="liquidation"))
        publisher.publish(
            b'{"type":"disconnect","exchange":"bitmex","localTimestamp":"2024-03-01T00:00:01.200Z"}'
        )
        assert publisher.flush(PATIENCE)
        assert publisher.stats()["sqs"].acknowledged == 2
    (first,) = messages(sqs_broker, base)
    (second,) = messages(sqs_broker, other)
    assert attributes(first)["payloadCase"] == "trade"
    assert attributes(second)["payloadCase"] == "liquidation"
    assert "MessageGroupId" not in first["Attributes"]


def test_a_missing_queue_stops_no_other(sqs_broker: SqsBroker, tmp_path: Path) -> None:
    url = new_queue(sqs_broker)
    missing = f"{sqs_broker.url}/000000000000/no-such-queue"
    sqs = options(sqs_broker.url, url, queue_routing=f"liquidation:{missing}")
    (check,) = check_buses(sqs=sqs)
    assert check.ok
    assert check.warnings[0].startswith(f"`{missing}`: ")
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 0, type="liquidation") + trade("S", 0))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["sqs"]
    assert (stats.acknowledged, stats.dead_lettered) == (1, 1)
    assert "correct --sqs-queue-url and --sqs-queue-routing" in reasons(stats)[0]
    assert numbers_by_symbol(bodies(messages(sqs_broker, url))) == {"S": [0]}


def test_large_events_go_alone_up_to_what_the_queue_takes(
    sqs_broker: SqsBroker, tmp_path: Path
) -> None:
    url = new_queue(sqs_broker)
    sqs = options(sqs_broker.url, url)
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        # In base64 a third more: the first three need a request each, the last never fits.
        for number in (*(["9" * 150_000] * 3), "9" * 250_000):
            publisher.publish(trade("S", number))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["sqs"]
    assert (stats.acknowledged, stats.dead_lettered) == (3, 1)
    assert "MessageTooLong" in reasons(stats)[0]
    assert len(messages(sqs_broker, url)) == 3


def test_stand_in_a_queue_is_asked_how_much_it_takes(stand_in: AwsStandIn, tmp_path: Path) -> None:
    sqs = options(stand_in.url, f"{stand_in.url}/000000000000/bronze")
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        publisher.publish(trade("S", 1))
        assert publisher.flush(PATIENCE)
        publisher.publish(trade("S", "9" * 250_000))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["sqs"]
    assert (stats.acknowledged, stats.dead_lettered) == (1, 1)
    assert "the queue takes at most 262144" in reasons(stats)[0]
    assert len(stand_in.sent) == 1


def test_a_server_that_stops_answering_gets_everything_later(
    own_sqs: Callable[..., SqsBroker], tmp_path: Path
) -> None:
    broker = own_sqs()
    url = new_queue(broker, fifo=True)
    sqs = options(broker.url, url)
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=3, each=3))
        assert publisher.flush(PATIENCE)
        broker.pause()
        publisher.publish(trades(symbols=3, each=6))
        assert not publisher.flush(1)
        broker.resume()
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["sqs"]
    assert (stats.acknowledged, stats.dead_lettered) == (27, 0)
    assert numbers_by_symbol(bodies(messages(broker, url))) == in_order(3, 6)


def test_events_wait_for_a_server_behind_a_broken_line(
    sqs_broker: SqsBroker, proxy_to: Callable[..., Any], tmp_path: Path
) -> None:
    proxy = proxy_to(sqs_broker.address)
    proxy.down()
    url = new_queue(sqs_broker, fifo=True)
    sqs = options(f"http://{proxy.address}", url)
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=2, each=5))
        assert not publisher.flush(1)
        proxy.up()
        assert publisher.flush(PATIENCE)
    assert numbers_by_symbol(bodies(messages(sqs_broker, url))) == in_order(2, 5)


def test_stand_in_only_failed_messages_are_sent_again_and_in_order(
    stand_in: AwsStandIn, tmp_path: Path
) -> None:
    stand_in.script += [
        Failures({0: "InternalError"}),
        Failures({0: "RequestThrottled"}, is_ours=True),
    ]
    sqs = options(stand_in.url, f"{stand_in.url}/000000000000/bronze.fifo")
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        publisher.publish(trades(symbols=40, each=4))
        assert publisher.flush(PATIENCE)
        stats = publisher.stats()["sqs"]
    assert (stats.acknowledged, stats.retried, stats.dead_lettered) == (160, 2, 0)
    assert len(stand_in.taken) == 160
    assert sum(map(len, stand_in.sent)) == 162
    assert numbers_by_symbol(bodies(stand_in.taken, "MessageBody")) == in_order(40, 4)
    for request in stand_in.sent:
        groups = [message["MessageGroupId"] for message in request]
        assert len(groups) == len(set(groups)) <= 10


def test_stand_in_a_message_that_is_refused_is_a_dead_letter(
    stand_in: AwsStandIn, tmp_path: Path
) -> None:
    stand_in.script += [
        Failures({0: "Odd"}, is_ours=True),
        Refusal(403, "AccessDeniedException", "no"),
    ]
    sqs = options(stand_in.url, f"{stand_in.url}/000000000000/bronze")
    with Publisher(sqs=sqs, state_dir=tmp_path) as publisher:
        for number in range(3):
            publisher.publish(trade("S", number))
            assert publisher.flush(PATIENCE)
        stats = publisher.stats()["sqs"]
    assert (stats.acknowledged, stats.dead_lettered) == (1, 2)
    assert reasons(stats) == [
        "Odd",
        "AccessDeniedException: no; allow sqs:SendMessage to the keys",
    ]
    assert numbers_by_symbol(bodies(stand_in.taken, "MessageBody")) == {"S": [2]}


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"queue_url": ""}, "--sqs-queue-url: "),
        ({"queue_url": "bronze"}, "--sqs-queue-url: `bronze` is no http or https URL"),
        ({"queue_routing": f"trades:{NOBODY}"}, "unknown payload case `trades`"),
        ({"access_key_id": None}, "--sqs-secret-access-key is given without it"),
        ({"static_attributes": "dataType:x"}, "--sqs-static-attributes: `dataType`"),
        ({"static_message_attributes": "AWS.x:y"}, "--sqs-static-attributes: `AWS.x`"),
        ({"attribute_templates": "a:{{b}}"}, "--sqs-attribute-templates: unknown placeholder"),
        ({"static_attributes": "a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1"}, "give at most 7"),
        ({"max_batch_size": 11}, "--sqs-max-batch-size: 11 is out of range; give 1 to 10"),
    ],
)
def test_wrong_options_are_refused_at_start(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    given = options("http://127.0.0.1:1", NOBODY) | wrong
    sqs = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(ConfigError) as refusal:
        Publisher(sqs=sqs, state_dir=tmp_path)
    assert text in str(refusal.value)
