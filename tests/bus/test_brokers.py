"""Every broker does what it is there for, seen by a client that is not ours."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nats
import pytest
from botocore.exceptions import BotoCoreError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from nats.errors import NoServersError
from redis import Redis
from redis.exceptions import AuthenticationError, RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from brokers.broker import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nats.aio.client import Client as NatsClient

    from brokers.kafka import KafkaBroker
    from brokers.kinesis import KinesisBroker
    from brokers.nats import NatsBroker
    from brokers.redis import RedisBroker
    from brokers.sqs import SqsBroker
    from brokers.toxiproxy import Proxy

QUIET: dict[str, Any] = {"log_level": 0}


def new_name() -> str:
    return f"test-{uuid.uuid4().hex}"


def new_topic(broker: KafkaBroker) -> str:
    topic = new_name()
    admin = AdminClient({"bootstrap.servers": broker.address, **QUIET})
    for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        created.result(30)
    return topic


def produce(address: str, topic: str, text: str, **options: Any) -> KafkaError | None:
    """Produce one message; return why it was not delivered."""
    outcome: list[KafkaError | None] = []
    settings = {"bootstrap.servers": address, "message.timeout.ms": 30_000, **QUIET, **options}
    producer = Producer(settings)
    producer.produce(topic, text.encode(), on_delivery=lambda error, _: outcome.append(error))
    producer.flush(60)
    return outcome[0]


def consume(broker: KafkaBroker, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": new_name(), **QUIET})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, timeout=30)
    consumer.close()
    return [(message.value() or b"").decode() for message in messages]


def test_kafka_takes_and_gives_messages(kafka_broker: KafkaBroker) -> None:
    topic = new_topic(kafka_broker)
    assert produce(kafka_broker.address, topic, "a trade") is None
    assert consume(kafka_broker, topic, 1) == ["a trade"]


def test_kafka_creates_no_topic_by_itself(kafka_broker: KafkaBroker) -> None:
    error = produce(kafka_broker.address, new_name(), "lost", **{"message.timeout.ms": 5_000})
    assert error is not None


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("encrypted", [False, True])
def test_kafka_asks_for_a_password(
    kafka_broker: KafkaBroker, mechanism: str, *, encrypted: bool
) -> None:
    topic = new_topic(kafka_broker)
    address = kafka_broker.sasl_ssl_address if encrypted else kafka_broker.sasl_address
    options: dict[str, Any] = {
        "security.protocol": "SASL_SSL" if encrypted else "SASL_PLAINTEXT",
        "ssl.ca.location": str(kafka_broker.certificates.authority),
        "sasl.mechanism": mechanism,
        "sasl.username": kafka_broker.login.user,
        "sasl.password": kafka_broker.login.password,
    }
    assert produce(address, topic, mechanism, **options) is None
    assert consume(kafka_broker, topic, 1) == [mechanism]

    refusals: list[KafkaError] = []
    options |= {"sasl.password": "wrong", "error_cb": refusals.append, "message.timeout.ms": 3_000}
    assert produce(address, topic, "refused", **options) is not None
    assert KafkaError._AUTHENTICATION in {refusal.code() for refusal in refusals}  # noqa: SLF001


def test_kafka_shows_its_certificate(kafka_broker: KafkaBroker) -> None:
    topic = new_topic(kafka_broker)
    options = {"security.protocol": "SSL", "message.timeout.ms": 5_000}
    trusting = options | {"ssl.ca.location": str(kafka_broker.certificates.authority)}
    assert produce(kafka_broker.ssl_address, topic, "sealed", **trusting) is None
    assert produce(kafka_broker.ssl_address, topic, "not trusted", **options) is not None
    assert consume(kafka_broker, topic, 1) == ["sealed"]


def test_kafka_stays_behind_its_proxy(kafka_broker: KafkaBroker, kafka_proxy: Proxy) -> None:
    topic = new_topic(kafka_broker)
    assert produce(kafka_proxy.address, topic, "before") is None
    kafka_proxy.down()
    short = {"message.timeout.ms": 2_000}
    assert produce(kafka_proxy.address, topic, "cut", **short) is not None
    kafka_proxy.up()
    assert produce(kafka_proxy.address, topic, "after") is None
    assert consume(kafka_broker, topic, 2) == ["before", "after"]


def test_kafka_keeps_its_messages_when_killed(own_kafka: Callable[..., KafkaBroker]) -> None:
    broker = own_kafka(settings={"message.max.bytes": "2000000"})
    topic = new_topic(broker)
    assert produce(broker.address, topic, "kept") is None
    broker.kill()
    assert not broker.running
    broker.restart()
    assert consume(broker, topic, 1) == ["kept"]

    broker.pause()
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": broker.address, **QUIET}).list_topics(timeout=1)
    broker.resume()
    assert produce(broker.address, topic, "resumed") is None
    broker.restart()
    assert consume(broker, topic, 2) == ["kept", "resumed"]


def test_redis_takes_and_gives_entries(redis_broker: RedisBroker) -> None:
    stream = new_name()
    with Redis.from_url(redis_broker.url) as client:
        identity = client.xadd(stream, {"payload": "a trade"})
        assert client.xrange(stream) == [(identity, {b"payload": b"a trade"})]


def test_redis_speaks_tls(redis_broker: RedisBroker) -> None:
    authority = str(redis_broker.certificates.authority)
    with Redis.from_url(redis_broker.tls_url, ssl_ca_certs=authority) as client:
        assert client.ping()
    with Redis.from_url(redis_broker.tls_url) as client, pytest.raises(RedisError):
        client.ping()


def test_redis_asks_for_a_password(own_redis: Callable[..., RedisBroker]) -> None:
    broker = own_redis(password="right", user="market")
    for login in ("market:right@", ":right@"):
        with Redis.from_url(f"redis://{login}{broker.address}") as client:
            assert client.ping()
    for login in ("market:wrong@", ":wrong@", ""):
        with (
            Redis.from_url(f"redis://{login}{broker.address}") as client,
            pytest.raises(AuthenticationError),
        ):
            client.ping()


def test_redis_can_be_cut_off(redis_broker: RedisBroker, proxy_to: Callable[..., Proxy]) -> None:
    proxy = proxy_to(redis_broker.address)
    with Redis.from_url(f"redis://{proxy.address}", socket_timeout=1, retry=None) as client:
        assert client.ping()
        proxy.down()
        with pytest.raises(RedisError):
            client.ping()
        proxy.up()
        assert client.ping()
        silence = proxy.add("timeout", timeout=0)
        with pytest.raises(RedisTimeoutError):
            client.ping()
        silence.remove()
        assert client.ping()


def test_redis_keeps_its_entries_when_killed(own_redis: Callable[..., RedisBroker]) -> None:
    broker = own_redis()
    with Redis.from_url(broker.url, socket_timeout=1, retry=None) as client:
        client.xadd("trades", {"payload": "kept"})
        broker.kill()
        with pytest.raises(RedisError):
            client.ping()
        broker.restart()
        assert client.xlen("trades") == 1
        broker.pause()
        with pytest.raises(RedisTimeoutError):
            client.ping()
        broker.resume()
        assert client.ping()


async def connect(address: str, **options: Any) -> NatsClient:
    """Connect, or fail at once."""

    async def ignore(_: Exception) -> None:
        """Keep nats-py from logging what it raises as well."""

    return await nats.connect(
        address,
        allow_reconnect=False,
        max_reconnect_attempts=1,
        reconnect_time_wait=0,
        connect_timeout=5,
        error_cb=ignore,
        **options,
    )


async def publish(address: str, subject: str, text: str, **options: Any) -> int:
    """Publish to a stream, made if need be; return the sequence."""
    client = await connect(address, **options)
    try:
        stream = client.jetstream()
        await stream.add_stream(name="trades", subjects=["trades.>"])
        return (await stream.publish(subject, text.encode())).seq
    finally:
        await client.close()


async def fetch(broker: NatsBroker, subject: str) -> list[str]:
    client = await connect(broker.url)
    try:
        subscription = await client.jetstream().pull_subscribe(subject, stream="trades")
        return [message.data.decode() for message in await subscription.fetch(10, timeout=5)]
    finally:
        await client.close()


def test_nats_takes_and_gives_messages(nats_broker: NatsBroker) -> None:
    subject = f"trades.{new_name()}"
    asyncio.run(publish(nats_broker.url, subject, "a trade"))
    assert asyncio.run(fetch(nats_broker, subject)) == ["a trade"]


def answer_to_login(broker: NatsBroker, login: dict[str, str]) -> bytes:
    """Log in by hand: nats-py leaves the connection open when it is refused."""
    with socket.create_connection(("127.0.0.1", broker.port), timeout=5) as client:
        lines = client.makefile("rb")
        lines.readline()
        options = {"verbose": True, "pedantic": False, **login}
        client.sendall(f"CONNECT {json.dumps(options)}\r\n".encode())
        return lines.readline().strip()


def test_nats_asks_for_a_password(own_nats: Callable[..., NatsBroker]) -> None:
    broker = own_nats(user="market", password="right")
    login = {"user": "market", "password": "right"}
    assert asyncio.run(publish(broker.url, "trades.a", "let in", **login)) == 1
    refusal = answer_to_login(broker, {"user": "market", "pass": "wrong"})
    assert refusal == b"-ERR 'Authorization Violation'"


def test_nats_asks_for_a_token(own_nats: Callable[..., NatsBroker]) -> None:
    broker = own_nats(token="right")
    assert asyncio.run(publish(broker.url, "trades.a", "let in", token="right")) == 1
    assert answer_to_login(broker, {"auth_token": "wrong"}) == b"-ERR 'Authorization Violation'"


def test_nats_speaks_tls(own_nats: Callable[..., NatsBroker]) -> None:
    broker = own_nats(tls=True)
    assert broker.certificates is not None
    trust = ssl.create_default_context(cafile=str(broker.certificates.authority))
    assert asyncio.run(publish(broker.url, "trades.a", "sealed", tls=trust)) == 1


def test_nats_can_be_cut_off(nats_broker: NatsBroker, proxy_to: Callable[..., Proxy]) -> None:
    proxy = proxy_to(nats_broker.address)
    subject = f"trades.{new_name()}"
    asyncio.run(publish(f"nats://{proxy.address}", subject, "before"))
    proxy.down()
    with pytest.raises((NoServersError, OSError)):
        asyncio.run(publish(f"nats://{proxy.address}", subject, "cut"))
    proxy.up()
    asyncio.run(publish(f"nats://{proxy.address}", subject, "after"))
    assert asyncio.run(fetch(nats_broker, subject)) == ["before", "after"]


def test_nats_keeps_its_messages_when_killed(own_nats: Callable[..., NatsBroker]) -> None:
    broker = own_nats()
    assert asyncio.run(publish(broker.url, "trades.a", "kept")) == 1
    broker.kill()
    broker.restart()
    assert asyncio.run(fetch(broker, "trades.a")) == ["kept"]


def test_nats_is_silent_while_paused(own_nats: Callable[..., NatsBroker]) -> None:
    broker = own_nats()
    with socket.create_connection(("127.0.0.1", broker.port), timeout=5) as client:
        assert client.recv(4096).startswith(b"INFO ")
        broker.pause()
        client.sendall(b"CONNECT {}\r\nPING\r\n")
        client.settimeout(1)
        with pytest.raises(TimeoutError):
            client.recv(4096)
        broker.resume()
        client.settimeout(10)
        assert b"+OK" in client.recv(4096)


def test_sqs_takes_and_gives_messages(sqs_broker: SqsBroker) -> None:
    client = sqs_broker.client()
    queue = client.create_queue(QueueName=new_name())["QueueUrl"]
    client.send_message(QueueUrl=queue, MessageBody="a trade")
    messages = client.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    assert [message["Body"] for message in messages] == ["a trade"]


def test_sqs_keeps_order_and_drops_repeats_in_fifo_queues(sqs_broker: SqsBroker) -> None:
    client = sqs_broker.client()
    queue = client.create_queue(QueueName=f"{new_name()}.fifo", Attributes={"FifoQueue": "true"})[
        "QueueUrl"
    ]
    for text in ("first", "second", "second", "third"):
        client.send_message(
            QueueUrl=queue, MessageBody=text, MessageGroupId="trades", MessageDeduplicationId=text
        )
    messages = client.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=5)
    assert [message["Body"] for message in messages["Messages"]] == ["first", "second", "third"]


def test_sqs_has_the_limits_of_sqs(sqs_broker: SqsBroker) -> None:
    client = sqs_broker.client()
    queue = client.create_queue(QueueName=new_name())["QueueUrl"]
    entries = [{"Id": str(number), "MessageBody": "x"} for number in range(11)]
    with pytest.raises(client.exceptions.ClientError):
        client.send_message_batch(QueueUrl=queue, Entries=entries)


def test_sqs_can_be_cut_off_and_paused(
    own_sqs: Callable[..., SqsBroker], proxy_to: Callable[..., Proxy]
) -> None:
    broker = own_sqs()
    proxy = proxy_to(broker.address)
    client = broker.client(f"http://{proxy.address}")
    queue = client.create_queue(QueueName="trades")["QueueUrl"]
    proxy.down()
    with pytest.raises(BotoCoreError):
        client.list_queues()
    proxy.up()
    broker.pause()
    broker.resume()
    assert client.list_queues()["QueueUrls"] == [queue]
    broker.restart()
    assert not client.list_queues().get("QueueUrls")


def put_and_get(client: Any, stream: str, data: bytes) -> list[bytes]:
    """Put one record into a stream of one shard, and read the shard from its beginning."""
    client.put_record(StreamName=stream, PartitionKey="trades", Data=data)
    shard = client.list_shards(StreamName=stream)["Shards"][0]["ShardId"]
    iterator = client.get_shard_iterator(
        StreamName=stream, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    return [record["Data"] for record in client.get_records(ShardIterator=iterator)["Records"]]


def new_kinesis_stream(client: Any) -> str:
    stream = new_name()
    client.create_stream(StreamName=stream, ShardCount=1)
    client.get_waiter("stream_exists").wait(
        StreamName=stream, WaiterConfig={"Delay": 1, "MaxAttempts": 30}
    )
    return stream


def test_kinesis_takes_and_gives_records(kinesis_broker: KinesisBroker) -> None:
    client = kinesis_broker.client()
    assert put_and_get(client, new_kinesis_stream(client), b"a trade") == [b"a trade"]


def test_kinesis_can_be_cut_off_and_paused(
    own_kinesis: Callable[..., KinesisBroker], proxy_to: Callable[..., Proxy]
) -> None:
    broker = own_kinesis()
    proxy = proxy_to(broker.address)
    client = broker.client(f"http://{proxy.address}")
    stream = new_kinesis_stream(client)
    proxy.down()
    with pytest.raises(BotoCoreError):
        client.list_streams()
    proxy.up()
    broker.pause()
    broker.resume()
    assert put_and_get(client, stream, b"a trade") == [b"a trade"]
    broker.restart()
    assert client.list_streams()["StreamNames"] == []


def test_a_broker_that_does_not_start_shows_its_log(own_nats: Callable[..., NatsBroker]) -> None:
    with pytest.raises(BrokerError, match=r"it ended\n(.*\n)*.*no_such_setting"):
        own_nats(settings={"no_such_setting": True})


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_brokers_do_not_outlive_the_tests(tmp_path: Path, end: signal.Signals) -> None:
    # A shell's background job ignores SIGINT, and its children inherit that.
    script = (
        "import signal, sys, time, pathlib, brokers.nats as nats\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "broker = nats.NatsBroker(pathlib.Path(sys.argv[1])); broker.start()\n"
        "print(broker.port, flush=True); time.sleep(600)"
    )
    tests = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    with tests:
        assert tests.stdout is not None
        port = int(tests.stdout.readline())
        tests.send_signal(end)
    for _ in range(600):
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED:
                return
        time.sleep(0.05)
    pytest.fail("the broker still listens")
