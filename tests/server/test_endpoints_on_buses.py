"""What clients were sent and what the buses hold are the same messages, on real brokers.

One machine publishes to all buses at once; each endpoint is asked once, then every bus is read.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from websockets.sync.client import connect

from bus.kafka.kafka_topics import consume, new_topic
from bus.kinesis import kinesis_streams
from bus.lake import lake_table
from bus.nats import nats_messages
from bus.redis.redis_entries import entries
from bus.sample_events import default_key
from bus.sqs import sqs_queues
from server.client import PATIENCE, path_with
from server.running import RunningMachine
from server.stand_in_exchange import WELCOME, StandInExchange, Visit, book, refuse, trades
from tardis_fast import SampleMarket, TardisMachine, decode_to_json
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent, Origin
from tardis_fast.sample_api import SampleApiThread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from brokers.kafka import KafkaBroker
    from brokers.kinesis import KinesisBroker
    from brokers.nats import NatsBroker
    from brokers.redis import RedisBroker
    from brokers.sqs import SqsBroker

    Held = dict[str, list[bytes]]

pytestmark = pytest.mark.broker

BUSES = ("kafka", "kinesis", "sqs", "nats", "redis", "lake")
REPLAY = "/replay-normalized"
WS_REPLAY = "/ws-replay-normalized"
LIVE = "/ws-stream-normalized"
BASE, TRADES = "base", "trades"
PARTITIONS = 3
REPLAYED = [
    {
        "exchange": exchange,
        "symbols": [symbol],
        "from": "2020-02-01",
        "to": "2020-02-01T00:01",
        "dataTypes": ["trade", "book_change", "quote_10s", "trade_bar_10s"],
        "withDisconnectMessages": True,
    }
    for exchange, symbol in (("bitmex", "XBTUSD"), ("deribit", "BTC-PERPETUAL"))
]
STREAMED = {"exchange": "bitmex", "symbols": ["XBTUSD"], "dataTypes": ["trade", "book_change"]}
CONTROLS = {"withDisconnectMessages": True, "withErrorMessages": True}
PARTIAL = book("partial", (1, "Sell", 100, 62_001.0), (2, "Buy", 50, 62_000.0))


@dataclass(frozen=True)
class Sent:
    """What a client was sent by a session."""

    id: str
    route: str
    lines: list[str]


def restart(visit: Visit) -> None:
    """Be an exchange that closes its connections after a while."""
    visit.say(PARTIAL, trades(1, 2))
    visit.leave(1012, "restart")


def fall_silent(visit: Visit) -> None:
    """Be an exchange whose connection is dead, which nobody says."""
    visit.say(PARTIAL, trades(3), book("update", (1, "Sell", 70, 62_001.0)))
    visit.stay()


def go_on(visit: Visit) -> None:
    """Be an exchange without news that keeps its connection alive."""
    visit.say(PARTIAL, trades(4))
    while visit.is_open:
        visit.say(WELCOME)
        time.sleep(0.2)


ACTS = (restart, refuse, fall_silent, go_on)
STREAMED_TYPES = [
    *("book_change", "trade", "trade", "disconnect", "error"),
    *("book_change", "trade", "book_change", "error", "disconnect"),
    *("book_change", "trade"),
]
"""What the acts come to."""


class Places:
    """Where the buses publish: trades to one place, all else to another."""

    def __init__(  # noqa: PLR0913, PLR0917 - one of each kind
        self,
        kafka: KafkaBroker,
        kinesis: KinesisBroker,
        sqs: SqsBroker,
        nats: NatsBroker,
        redis: RedisBroker,
        lake: Path,
    ) -> None:
        name = f"test-{uuid.uuid4().hex}"
        topics = {BASE: new_topic(kafka, PARTITIONS), TRADES: new_topic(kafka, PARTITIONS)}
        streams = {place: kinesis_streams.new_stream(kinesis) for place in (BASE, TRADES)}
        queues = {place: sqs_queues.new_queue(sqs, fifo=True) for place in (BASE, TRADES)}
        subjects = {place: f"{name}.{place}" for place in (BASE, TRADES)}
        self.options: dict[str, Any] = {
            "kafka": {
                "brokers": kafka.address,
                "topic": topics[BASE],
                "topic_routing": {"trade": topics[TRADES]},
            },
            "kinesis": kinesis_streams.options(
                kinesis.url, streams[BASE], stream_routing=f"trade:{streams[TRADES]}"
            ),
            "sqs": sqs_queues.options(
                sqs.url, queues[BASE], queue_routing=f"trade:{queues[TRADES]}"
            ),
            "nats": {
                "servers": nats.address,
                "subject": subjects[BASE],
                "subject_routing": {"trade": subjects[TRADES]},
                "stream": name,
            },
            "redis": {
                "url": redis.url,
                "stream": subjects[BASE],
                "stream_routing": {"trade": subjects[TRADES]},
            },
            "lake": {"dir": str(lake)},
        }

        def kafka_events(topic: str) -> list[bytes]:
            return [message.value() or b"" for message in consume(kafka, topic, PARTITIONS)]

        def nats_events() -> Held:
            found = nats_messages.messages(nats, name)
            return {place: [one.data for one in found[subjects[place]]] for place in subjects}

        def lake_events() -> Held:
            found: Held = {BASE: [], TRADES: []}
            for partition, events in lake_table.events(lake).items():
                found[TRADES if "payload_case=trade/" in partition else BASE] += events
            return found

        def each(places: dict[str, str], read: Callable[[str], list[bytes]]) -> Callable[[], Held]:
            return lambda: {place: read(where) for place, where in places.items()}

        self.readers: dict[str, Callable[[], Held]] = {
            "kafka": each(topics, kafka_events),
            "kinesis": each(
                streams,
                lambda stream: [
                    record["Data"] for record in kinesis_streams.records(kinesis, stream)
                ],
            ),
            "sqs": each(queues, lambda url: sqs_queues.bodies(sqs_queues.messages(sqs, url))),
            "nats": nats_events,
            "redis": each(subjects, lambda stream: [one.data for one in entries(redis, stream)]),
            "lake": lake_events,
        }


def stream(machine: RunningMachine, count: int, **more: Any) -> list[str]:
    """Take messages of a live stream, then leave."""
    url = f"ws://127.0.0.1:{machine.port + 1}" + path_with(LIVE, STREAMED | more)
    with connect(url) as socket:
        return [str(socket.recv(PATIENCE)) for _ in range(count)]


def last_session(machine: RunningMachine) -> str:
    """Return the id of the session that ended last."""
    sessions = machine.status()["sessions"]
    return str(next(one["id"] for one in sessions if one["state"] != "running"))


@pytest.fixture(scope="module")
def published(  # noqa: PLR0913, PLR0917 - one of each kind
    kafka_broker: KafkaBroker,
    kinesis_broker: KinesisBroker,
    sqs_broker: SqsBroker,
    nats_broker: NatsBroker,
    redis_broker: RedisBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[Sent], dict[str, Held]]:
    """Ask every endpoint, and return what was sent and what the buses hold."""
    directory = tmp_path_factory.mktemp("all-buses")
    places = Places(
        kafka_broker, kinesis_broker, sqs_broker, nats_broker, redis_broker, directory / "lake"
    )
    market = SampleMarket(messages_per_second=2, book_levels=5)
    sent: list[Sent] = []
    with (
        SampleApiThread(market) as api,
        StandInExchange(2, *ACTS) as watched,
        StandInExchange(2, *ACTS) as unwatched,
        pytest.MonkeyPatch.context() as environment,
        RunningMachine(
            TardisMachine(
                cache_dir=directory / "cache",
                archive={"endpoint": api.endpoint},
                state_dir=directory / "state",
                **places.options,
            )
        ) as machine,
    ):
        status, headers, body = machine.replay(REPLAY, REPLAYED)
        assert status == 200
        sent.append(Sent(headers["X-Request-Id"], REPLAY, body.decode().splitlines()))
        lines, code, _ = machine.frames(WS_REPLAY, REPLAYED)
        assert code == 1000
        sent.append(Sent(last_session(machine), WS_REPLAY, lines))
        calm = [name for name in STREAMED_TYPES if name not in {"error", "disconnect"}]
        for exchange, options, types in (
            (watched, CONTROLS, STREAMED_TYPES),
            (unwatched, {}, calm),
        ):
            for name, value in exchange.variables.items():
                environment.setitem(os.environ, name, value)
            lines = stream(machine, len(types), timeoutIntervalMS=1_000, **options)
            assert [json.loads(line)["type"] for line in lines] == types
            machine.wait_until_idle()
            sent.append(Sent(last_session(machine), LIVE, lines))
        publisher = machine.machine.publisher
        assert publisher is not None
        assert publisher.flush(PATIENCE)
        assert all(bus.is_balanced and not bus.dead_lettered for bus in publisher.stats().values())
    return sent, {bus: read() for bus, read in places.readers.items()}


def events_of(held: Held, sent: Sent) -> Held:
    """Return the events of a session by place, in the order of the bus."""
    name = "request_id" if sent.route == REPLAY else "session_id"
    return {
        place: [data for data in events if NormalizedEvent.FromString(data).meta[name] == sent.id]
        for place, events in held.items()
    }


def seq(data: bytes) -> int:
    return NormalizedEvent.FromString(data).event_seq


@pytest.mark.parametrize("bus", BUSES)
@pytest.mark.parametrize("endpoint", [0, 1, 2], ids=[REPLAY, WS_REPLAY, LIVE])
def test_a_bus_holds_what_the_client_was_sent(
    published: tuple[list[Sent], dict[str, Held]], bus: str, endpoint: int
) -> None:
    sent, held = published[0][endpoint], published[1][bus]
    found = events_of(held, sent)
    in_order = sorted((data for events in found.values() for data in events), key=seq)
    assert [seq(data) for data in in_order] == list(range(1, len(in_order) + 1))
    lines = decode_to_json(pa.array(in_order, pa.binary())).decode().splitlines()
    assert lines == sent.lines
    kinds = {json.loads(line)["type"] for line in sent.lines}
    assert {"trade", "book_change"} < kinds


@pytest.mark.parametrize("bus", BUSES)
def test_events_are_in_their_places_in_the_order_of_their_keys(
    published: tuple[list[Sent], dict[str, Held]], bus: str
) -> None:
    for sent in published[0]:
        for place, events in events_of(published[1][bus], sent).items():
            seen: defaultdict[str, int] = defaultdict(int)
            assert events
            for data in events:
                event = NormalizedEvent.FromString(data)
                assert (event.WhichOneof("payload") == "trade") == (place == TRADES)
                assert event.event_seq > seen[default_key(event)]
                seen[default_key(event)] = event.event_seq


@pytest.mark.parametrize("bus", BUSES)
def test_every_event_says_where_it_comes_from(
    published: tuple[list[Sent], dict[str, Held]], bus: str
) -> None:
    sessions = {sent.id: sent for sent in published[0]}
    counted = 0
    for events in published[1][bus].values():
        for data in events:
            event = NormalizedEvent.FromString(data)
            meta = event.meta
            is_http = "request_id" in meta
            sent = sessions[meta["request_id" if is_http else "session_id"]]
            assert ("session_id" in meta) != is_http
            assert (meta["transport"] == "http") == is_http
            assert meta["route"] == sent.route
            live = sent.route == LIVE
            assert event.origin == (Origin.ORIGIN_REALTIME if live else Origin.ORIGIN_REPLAY)
            assert event.source == "tardis-fast"
            counted += 1
    assert counted > 200


@pytest.mark.parametrize("bus", BUSES)
def test_lost_connections_and_errors_are_published_even_if_the_client_wants_none(
    published: tuple[list[Sent], dict[str, Held]], bus: str
) -> None:
    found = []
    for sent in published[0][2:]:
        events = sorted(events_of(published[1][bus], sent)[BASE], key=seq)
        controls = [
            event
            for event in map(NormalizedEvent.FromString, events)
            if event.WhichOneof("payload") in {"error", "disconnect"}
        ]
        assert [control.WhichOneof("payload") for control in controls] == [
            *("disconnect", "error"),
            *("error", "disconnect"),
        ]
        closed, refused, stale, silent = controls
        assert (closed.disconnect.close_code, closed.disconnect.reason) == (1012, "restart")
        assert refused.error.details.endswith("answered 503")
        assert stale.error.details.endswith("sent no messages for 1000 ms")
        assert silent.disconnect.reason == stale.error.details
        assert refused.error.subsequent_errors == stale.error.subsequent_errors == 1
        found.append(len(events))
    assert found[0] == found[1]
