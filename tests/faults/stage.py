"""A bus on stage: its broker, the proxy before it, and a reader that is not ours."""

from __future__ import annotations

import asyncio
import base64
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import nats
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js.api import ConsumerConfig, DeliverPolicy
from redis import Redis
from typing_extensions import override

from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from brokers.broker import Broker
    from brokers.kafka import KafkaBroker
    from brokers.kinesis import KinesisBroker
    from brokers.nats import NatsBroker
    from brokers.redis import RedisBroker
    from brokers.sqs import SqsBroker
    from brokers.toxiproxy import Proxy

PARTITIONS = 4


class Stage(ABC):
    """One bus. What arrived is in `arrived`, as (key, number), in the broker's order."""

    bus: str
    keeps_data = True
    """Whether the broker has its data still after it was killed."""

    def __init__(self, broker: Broker, proxy: Proxy) -> None:
        self.broker = broker
        self.proxy = proxy
        self.arrived: list[tuple[str, int]] = []
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Create what is published to; also after a restart that lost it."""

    @abstractmethod
    def options(self) -> dict[str, Any]:
        """Return the bus options that lead through the proxy."""

    @abstractmethod
    def collect(self) -> None:
        """Read what arrived and was not read yet."""

    def take(self, event: bytes) -> None:
        """Note an event that was read."""
        decoded = NormalizedEvent.FromString(event)
        self.arrived.append((decoded.symbol, int(decoded.trade.trade_id)))

    def restart(self) -> None:
        """Kill the broker and start it again."""
        if self.keeps_data:
            self.broker.kill()
            self.broker.start()
            return
        # What it had acknowledged must be read before it is forgotten.
        self.proxy.down()
        self.collect()
        self.broker.kill()
        self.broker.start()
        self.prepare()
        self.proxy.up()


class KafkaStage(Stage):
    """Kafka, read partition by partition with confluent-kafka."""

    bus = "kafka"
    broker: KafkaBroker

    @override
    def prepare(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.address, "log_level": 0})
        for created in admin.create_topics([NewTopic("faults", PARTITIONS, 1)]).values():
            created.result(60)
        self._next = dict.fromkeys(range(PARTITIONS), 0)

    @override
    def options(self) -> dict[str, Any]:
        return {"brokers": self.proxy.address, "topic": "faults"}

    @override
    def collect(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.address,
                "group.id": "faults",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        for partition, first in self._next.items():
            place = TopicPartition("faults", partition, first)
            end = self._end(consumer, place)
            consumer.assign([place])
            at = first
            while at < end:
                # It waits for as many as it is asked for.
                for message in consumer.consume(min(10_000, end - at), timeout=60):
                    self.take(message.value() or b"")
                    at = (message.offset() or 0) + 1
            self._next[partition] = at
        consumer.close()

    def _end(self, consumer: Consumer, place: TopicPartition) -> int:
        """Return where a partition ends; a broker that just came back may not know at once."""
        deadline = time.monotonic() + 60
        while True:
            try:
                return int(consumer.get_watermark_offsets(place, timeout=10)[1])
            except KafkaException:  # noqa: PERF203 - a try is what the loop is for
                if time.monotonic() > deadline:
                    raise


class LibrdkafkaStage(KafkaStage):
    """The same by librdkafka, which publishes where the direct client does not."""

    @override
    def options(self) -> dict[str, Any]:
        return super().options() | {"client": "librdkafka"}


class RedisStage(Stage):
    """Redis, read with redis-py."""

    bus = "redis"
    broker: RedisBroker

    @override
    def prepare(self) -> None:
        self._last = "-"

    @override
    def options(self) -> dict[str, Any]:
        host, port = self.proxy.address.split(":")
        return {"host": host, "port": int(port), "stream": "faults"}

    @override
    def collect(self) -> None:
        client = Redis.from_url(self.broker.url, decode_responses=False)
        # Its types allow for texts where it gives bytes.
        read: Any = client.xrange
        while entries := read("faults", min=self._last, count=10_000):
            for _, fields in entries:
                self.take(fields[b"data"])
            self._last = "(" + entries[-1][0].decode()
        client.close()


class NatsStage(Stage):
    """NATS JetStream, read with nats-py."""

    bus = "nats"
    broker: NatsBroker

    @override
    def prepare(self) -> None:
        self._next = 1

    @override
    def options(self) -> dict[str, Any]:
        return {
            "servers": f"nats://{self.proxy.address}",
            "subject": "faults.all",
            "stream": "FAULTS",
        }

    @override
    def collect(self) -> None:
        asyncio.run(self._collect())

    async def _collect(self) -> None:
        client = await nats.connect(self.broker.url)
        jetstream = client.jetstream()
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._next
        )
        reader = await jetstream.pull_subscribe("faults.all", stream="FAULTS", config=config)
        last = (await jetstream.stream_info("FAULTS")).state.last_seq
        while self._next <= last:
            try:
                messages = await reader.fetch(1_000, timeout=10)
            except NatsTimeoutError:
                continue
            for message in messages:
                self.take(message.data)
                self._next = message.metadata.sequence.stream + 1
                await message.ack()
        await client.close()


class SqsStage(Stage):
    """A FIFO queue of ElasticMQ, read with boto3."""

    bus = "sqs"
    keeps_data = False
    broker: SqsBroker

    @override
    def prepare(self) -> None:
        client = self.broker.client()
        created = client.create_queue(
            QueueName="faults.fifo", Attributes={"FifoQueue": "true", "VisibilityTimeout": "60"}
        )
        self._queue = str(created["QueueUrl"])

    @override
    def options(self) -> dict[str, Any]:
        return {
            "queue_url": self._queue,
            "region": "eu-west-1",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "endpoint_url": f"http://{self.proxy.address}",
        }

    @override
    def collect(self) -> None:
        client = self.broker.client()
        while True:
            found = client.receive_message(
                QueueUrl=self._queue, MaxNumberOfMessages=10, WaitTimeSeconds=0
            ).get("Messages", [])
            if not found:
                return
            for message in found:
                self.take(base64.b64decode(message["Body"]))
            entries = [
                {"Id": str(number), "ReceiptHandle": message["ReceiptHandle"]}
                for number, message in enumerate(found)
            ]
            client.delete_message_batch(QueueUrl=self._queue, Entries=entries)


class KinesisStage(Stage):
    """A stream of kinesis-mock, read with boto3."""

    bus = "kinesis"
    keeps_data = False
    broker: KinesisBroker

    @override
    def prepare(self) -> None:
        client = self.broker.client()
        client.create_stream(StreamName="faults", ShardCount=2)
        client.get_waiter("stream_exists").wait(
            StreamName="faults", WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )
        self._last: dict[str, str] = {}

    @override
    def options(self) -> dict[str, Any]:
        return {
            "stream": "faults",
            "region": "eu-west-1",
            "access_key_id": "key",
            "secret_access_key": "secret",
            "endpoint_url": f"http://{self.proxy.address}",
        }

    @override
    def collect(self) -> None:
        client = self.broker.client()
        for shard in client.list_shards(StreamName="faults")["Shards"]:
            name = str(shard["ShardId"])
            place: dict[str, Any] = {"ShardIteratorType": "TRIM_HORIZON"}
            if name in self._last:
                place = {
                    "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                    "StartingSequenceNumber": self._last[name],
                }
            iterator = client.get_shard_iterator(StreamName="faults", ShardId=name, **place)
            at = iterator["ShardIterator"]
            while True:
                answer = client.get_records(ShardIterator=at, Limit=10_000)
                for record in answer["Records"]:
                    self.take(record["Data"])
                    self._last[name] = record["SequenceNumber"]
                at = answer["NextShardIterator"]
                if not answer["Records"]:
                    break
