"""Topics of tests, and what is in them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

if TYPE_CHECKING:
    from confluent_kafka import Message

    from brokers.kafka import KafkaBroker

QUIET: dict[str, Any] = {"log_level": 0}


def new_topic(broker: KafkaBroker, partitions: int = 1, **config: str) -> str:
    topic = f"test-{uuid.uuid4().hex}"
    create_topic(broker, topic, partitions, **config)
    return topic


def create_topic(broker: KafkaBroker, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
    wanted = NewTopic(
        topic, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()}
    )
    for created in admin.create_topics([wanted]).values():
        created.result(30)


def consume(broker: KafkaBroker, topic: str, partitions: int = 1) -> list[Message]:
    """Return all messages of a topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": topic,
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    messages, ended = [], 0
    while ended < partitions:
        for message in consumer.consume(10_000, timeout=1):
            if message.error() is None:
                messages.append(message)
            else:
                ended += 1
    consumer.close()
    return messages
