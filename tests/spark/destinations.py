"""Where events are published to, for each bus, and what arrived there, read by other clients."""

from __future__ import annotations

import asyncio
import base64
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import nats
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.js.api import ConsumerConfig, DeliverPolicy
from redis import Redis

from brokers import aws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from brokers.kafka import KafkaBroker
    from brokers.kinesis import KinesisBroker
    from brokers.nats import NatsBroker
    from brokers.redis import RedisBroker
    from brokers.sqs import SqsBroker

PARTITIONS = 4
_MOST = 10_000


@dataclass(frozen=True)
class Arrival:
    """An event as it arrived; a part that the bus does not have is empty."""

    data: bytes
    key: str
    case: str
    """The header of the payload case."""


@dataclass(frozen=True)
class Destination:
    """A topic, stream or queue of its own."""

    bus: str
    options: dict[str, Any]
    arrivals: Callable[[], list[Arrival]]
    count: Callable[[], int] = lambda: 0
    """How many there are, where that is known without reading them."""
    has_keys: bool = True
    has_headers: bool = True


def kafka(broker: KafkaBroker, address: str | None = None) -> Destination:
    """Make a topic."""
    topic = _name()
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    for created in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        created.result(60)
    options = {"brokers": address or broker.address, "topic": topic}
    return Destination(
        "kafka",
        options,
        lambda: list(_records(broker, topic)),
        lambda: sum(end for _, end in _ends(_consumer(broker, topic), topic)),
    )


def _consumer(broker: KafkaBroker, topic: str) -> Consumer:
    settings = {"bootstrap.servers": broker.address, "group.id": topic, "log_level": 0}
    return Consumer(settings | {"enable.auto.commit": False})


def _ends(consumer: Consumer, topic: str) -> list[tuple[TopicPartition, int]]:
    places = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
    return [(place, _end(consumer, place)) for place in places]


def _end(consumer: Consumer, place: TopicPartition) -> int:
    """Return where a partition ends; the leader of a new one may not know of it at once."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return int(consumer.get_watermark_offsets(place, timeout=10)[1])
        except KafkaException:  # noqa: PERF203 - a try is what the loop is for
            if time.monotonic() > deadline:
                raise


def _records(broker: KafkaBroker, topic: str) -> Iterator[Arrival]:
    consumer = _consumer(broker, topic)
    for place, end in _ends(consumer, topic):
        consumer.assign([place])
        at = 0
        while at < end:
            for record in consumer.consume(min(_MOST, end - at), timeout=60):
                headers: dict[str, bytes] = dict(record.headers() or [])  # type: ignore[arg-type]
                key = (record.key() or b"").decode()
                yield Arrival(record.value() or b"", key, headers["payloadCase"].decode())
                at = (record.offset() or 0) + 1
    consumer.close()


def redis(broker: RedisBroker) -> Destination:
    """Name a stream."""
    stream = _name()
    options = {"host": "127.0.0.1", "port": broker.port, "stream": stream}
    return Destination("redis", options, lambda: list(_entries(broker, stream)))


def _entries(broker: RedisBroker, stream: str) -> Iterator[Arrival]:
    with Redis.from_url(broker.url) as client:
        read: Any = client.xrange
        last = "-"
        while found := read(stream, min=last, count=_MOST):
            for _, fields in found:
                key, case = fields[b"key"].decode(), fields[b"payloadCase"].decode()
                yield Arrival(fields[b"data"], key, case)
            last = "(" + found[-1][0].decode()


def nats_(broker: NatsBroker) -> Destination:
    """Name a stream of JetStream."""
    stream = _name()
    options = {"servers": broker.url, "subject": f"{stream}.all", "stream": stream}
    return Destination(
        "nats", options, lambda: asyncio.run(_messages(broker, stream)), has_keys=False
    )


async def _messages(broker: NatsBroker, stream: str) -> list[Arrival]:
    client = await nats.connect(broker.url)
    jetstream = client.jetstream()
    config = ConsumerConfig(deliver_policy=DeliverPolicy.ALL)
    reader = await jetstream.pull_subscribe(f"{stream}.all", stream=stream, config=config)
    left = (await jetstream.stream_info(stream)).state.messages
    arrivals: list[Arrival] = []
    while len(arrivals) < left:
        for message in await reader.fetch(min(1_000, left - len(arrivals)), timeout=30):
            headers = message.headers or {}
            arrivals.append(Arrival(message.data, "", headers["payloadCase"]))
            await message.ack()
    await client.close()
    return arrivals


def kinesis(broker: KinesisBroker) -> Destination:
    """Make a stream."""
    client, stream = broker.client(), _name()
    client.create_stream(StreamName=stream, ShardCount=2)
    client.get_waiter("stream_exists").wait(
        StreamName=stream, WaiterConfig={"Delay": 1, "MaxAttempts": 60}
    )

    def arrivals() -> list[Arrival]:
        found = []
        for shard in client.list_shards(StreamName=stream)["Shards"]:
            at = client.get_shard_iterator(
                StreamName=stream, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while records := (answer := client.get_records(ShardIterator=at))["Records"]:
                found += [Arrival(record["Data"], record["PartitionKey"], "") for record in records]
                at = answer["NextShardIterator"]
        return found

    options = {"stream": stream, **_aws(broker.url)}
    return Destination("kinesis", options, arrivals, has_headers=False)


def sqs(broker: SqsBroker) -> Destination:
    """Make a queue."""
    client = broker.client()
    queue = str(client.create_queue(QueueName=_name())["QueueUrl"])

    def arrivals() -> list[Arrival]:
        found = []
        while messages := client.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        ).get("Messages"):
            for message in messages:
                case = message["MessageAttributes"]["payloadCase"]["StringValue"]
                found.append(Arrival(base64.b64decode(message["Body"]), "", case))
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(messages)
            ]
            client.delete_message_batch(QueueUrl=queue, Entries=entries)
        return found

    return Destination("sqs", {"queue_url": queue, **_aws(broker.url)}, arrivals, has_keys=False)


def _aws(url: str) -> dict[str, str]:
    return {
        "region": aws.REGION,
        "access_key_id": aws.ACCESS_KEY,
        "secret_access_key": aws.SECRET_KEY,
        "endpoint_url": url,
    }


def _name() -> str:
    return f"spark-{uuid.uuid4().hex}"
