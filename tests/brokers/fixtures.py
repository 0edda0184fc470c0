"""Brokers for tests, known to all of them.

`…_broker` is shared by the whole run and started by the first test that asks for it; a test leaves
it as it found it, and names topics, streams and queues of its own. `own_…` makes brokers for one
test, with options if it likes, which it may kill, pause and restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from brokers.kafka import KafkaBroker
from brokers.kinesis import KinesisBroker
from brokers.nats import NatsBroker
from brokers.redis import RedisBroker
from brokers.sqs import SqsBroker
from brokers.toxiproxy import Proxy, Toxiproxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from brokers.broker import Broker

AnyBroker = TypeVar("AnyBroker", bound="Broker")


def _shared(
    kind: Callable[[Path], AnyBroker], directories: pytest.TempPathFactory
) -> Iterator[AnyBroker]:
    broker = kind(directories.mktemp("shared-broker"))
    broker.start()
    yield broker
    broker.stop()


def _own(
    kind: Callable[..., AnyBroker], directories: pytest.TempPathFactory
) -> Iterator[Callable[..., AnyBroker]]:
    started: list[AnyBroker] = []

    def start(**options: object) -> AnyBroker:
        broker = kind(directories.mktemp("own-broker"), **options)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        # Nobody will read its data again, so it need not end in good order.
        if broker.running:
            broker.kill()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """Start the run's Kafka broker."""
    yield from _shared(KafkaBroker, tmp_path_factory)


@pytest.fixture(scope="session")
def redis_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisBroker]:
    """Start the run's Redis server."""
    yield from _shared(RedisBroker, tmp_path_factory)


@pytest.fixture(scope="session")
def nats_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsBroker]:
    """Start the run's NATS server."""
    yield from _shared(NatsBroker, tmp_path_factory)


@pytest.fixture(scope="session")
def sqs_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqsBroker]:
    """Start the run's SQS server."""
    yield from _shared(SqsBroker, tmp_path_factory)


@pytest.fixture(scope="session")
def kinesis_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KinesisBroker]:
    """Start the run's Kinesis server."""
    yield from _shared(KinesisBroker, tmp_path_factory)


@pytest.fixture(scope="session")
def toxiproxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toxiproxy]:
    """Start the run's Toxiproxy."""
    yield from _shared(Toxiproxy, tmp_path_factory)


@pytest.fixture
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., KafkaBroker]]:
    """Return a way to start Kafka brokers, for one test."""
    yield from _own(KafkaBroker, tmp_path_factory)


@pytest.fixture
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RedisBroker]]:
    """Return a way to start Redis servers, for one test."""
    yield from _own(RedisBroker, tmp_path_factory)


@pytest.fixture
def own_nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., NatsBroker]]:
    """Return a way to start NATS servers, for one test."""
    yield from _own(NatsBroker, tmp_path_factory)


@pytest.fixture
def own_sqs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., SqsBroker]]:
    """Return a way to start SQS servers, for one test."""
    yield from _own(SqsBroker, tmp_path_factory)


@pytest.fixture
def own_kinesis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., KinesisBroker]]:
    """Return a way to start Kinesis servers, for one test."""
    yield from _own(KinesisBroker, tmp_path_factory)


@pytest.fixture
def proxy_to(toxiproxy: Toxiproxy) -> Iterator[Callable[..., Proxy]]:
    """Return a way to put proxies in front of addresses, for one test."""
    made: list[Proxy] = []

    def make(upstream: str, listen: str | None = None) -> Proxy:
        made.append(toxiproxy.proxy(upstream, listen))
        return made[-1]

    yield make
    for proxy in made:
        proxy.delete()


@pytest.fixture
def kafka_proxy(kafka_broker: KafkaBroker, proxy_to: Callable[..., Proxy]) -> Proxy:
    """Put a proxy before the run's Kafka broker, which tells clients to stay with the proxy."""
    return proxy_to(kafka_broker.proxied_upstream, kafka_broker.proxied_address)
