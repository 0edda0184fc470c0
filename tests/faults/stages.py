"""The stages by the name of their bus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brokers.kafka import KafkaBroker
from brokers.kinesis import KinesisBroker
from brokers.nats import NatsBroker
from brokers.redis import RedisBroker
from brokers.sqs import SqsBroker
from faults.stage import (
    KafkaStage,
    KinesisStage,
    LibrdkafkaStage,
    NatsStage,
    RedisStage,
    SqsStage,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from brokers.broker import Broker
    from brokers.toxiproxy import Toxiproxy
    from faults.stage import Stage

_KINDS: dict[str, tuple[Callable[[Path], Broker], Callable[[Any, Any], Stage]]] = {
    "kafka": (KafkaBroker, KafkaStage),
    "librdkafka": (KafkaBroker, LibrdkafkaStage),
    "redis": (RedisBroker, RedisStage),
    "nats": (NatsBroker, NatsStage),
    "sqs": (SqsBroker, SqsStage),
    "kinesis": (lambda directory: KinesisBroker(directory, shards=4), KinesisStage),
}
BUSES = tuple(_KINDS)


def own_stage(bus: str, directory: Path, proxies: Toxiproxy) -> Stage:
    """Start a broker of its own and a proxy before it."""
    make_broker, make_stage = _KINDS[bus]
    directory.mkdir(parents=True, exist_ok=True)
    broker = make_broker(directory)
    broker.start()
    if isinstance(broker, KafkaBroker):
        proxy = proxies.proxy(broker.proxied_upstream, broker.proxied_address)
    else:
        proxy = proxies.proxy(getattr(broker, "address"))  # noqa: B009 - all but the base have one
    return make_stage(broker, proxy)
