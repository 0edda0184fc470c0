"""The buses of the bench: broker, a fresh destination for every run, and the broker's load tool."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import resource
import shutil
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nats
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from redis import Redis

from brokers.kafka import KafkaBroker
from brokers.nats import NatsBroker
from brokers.program import install_directory
from brokers.redis import RedisBroker
from publishing.figures import Figures
from publishing.trades import PAYLOAD_DELIMITER, Trades

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from brokers.broker import Broker

PARTITIONS = 4
LINGER_MS = 5
COMPRESSION = "lz4"
BATCH_BYTES = 1_000_000
"""librdkafka's own; the Java client is given the same."""
PENDING = 4_000
PIPELINE = 64
CONNECTIONS = (1, 4, 50)
"""Of redis-benchmark, in turn; the best counts."""
_FIELDS = "key binance-futures|COIN00USDT|trade payloadCase trade dataType trade"


class Bus(ABC):
    """A running broker, and how it is published to."""

    name: str
    limit_name: str
    setting: str
    """What all contenders of this bus have in common, for people."""
    times_python: float
    """How many times Python's events a second ours must reach."""
    share_of_python_cpu: float | None = None
    """Which share of Python's CPU ours may use at most."""
    rounds = 4
    """How often every contender has its turn."""
    broker: Broker

    @abstractmethod
    def create(self, destination: str) -> dict[str, Any]:
        """Create a destination; return the bus options that publish to it."""

    @abstractmethod
    def count(self, destination: str) -> int:
        """Return how many events a destination holds."""

    @abstractmethod
    def delete(self, destination: str) -> None:
        """Delete a destination and its events."""

    @abstractmethod
    def limit(self, destination: str, trades: Trades, events: int) -> tuple[Figures, int]:
        """Run the load tool; return its figures and how many events it published."""


class KafkaBus(Bus):
    """Kafka and its ProducerPerformance."""

    name = "kafka"
    limit_name = "ProducerPerformance"
    setting = (
        f"1 topic, {PARTITIONS} partitions, acks=all, idempotent, linger {LINGER_MS} ms, "
        f"batches of {BATCH_BYTES:,} bytes, {COMPRESSION}"
    )
    times_python = 6
    share_of_python_cpu = 1 / 8

    def __init__(self, directory: Path) -> None:
        self.broker: KafkaBroker = KafkaBroker(directory)
        self.broker.start()
        self._admin = AdminClient({"bootstrap.servers": self.broker.address, "log_level": 0})

    def create(self, destination: str) -> dict[str, Any]:
        """Create a topic."""
        topic = NewTopic(destination, num_partitions=PARTITIONS, replication_factor=1)
        self._admin.create_topics([topic])[destination].result()
        return {
            "brokers": self.broker.address,
            "topic": destination,
            "compression": COMPRESSION,
            "max_batch_delay_ms": LINGER_MS,
        }

    def count(self, destination: str) -> int:
        """Sum up the partitions."""
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": "bench"})
        total = 0
        for partition in range(PARTITIONS):
            bounds = consumer.get_watermark_offsets(TopicPartition(destination, partition), 30)
            total += 0 if bounds is None else bounds[1] - bounds[0]
        consumer.close()
        return total

    def delete(self, destination: str) -> None:
        """Delete a topic."""
        self._admin.delete_topics([destination])[destination].result()

    def limit(self, destination: str, trades: Trades, events: int) -> tuple[Figures, int]:
        """Run three times the events, since Java compiles itself during the first."""
        events *= 3
        properties = {
            "bootstrap.servers": self.broker.address,
            "acks": "all",
            "enable.idempotence": "true",
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
            "buffer.memory": 128 * 1024 * 1024,
            "compression.type": COMPRESSION,
        }
        java = ["java", "-Xmx1g", "-cp", str(install_directory() / "kafka" / "*")]
        tool = [*java, "org.apache.kafka.tools.ProducerPerformance", "--topic", destination]
        amount = ["--num-records", str(events), "--throughput", "-1"]
        payloads = ["--payload-file", str(trades.payloads)]
        delimiter = ["--payload-delimiter", PAYLOAD_DELIMITER.decode()]
        pairs = [f"{name}={value}" for name, value in properties.items()]
        text, cpu = _run([*tool, *amount, *payloads, *delimiter, "--producer-props", *pairs])
        # A line for every five seconds, then one for all: the best of them.
        rates = [float(rate) for rate in re.findall(r"([\d.]+) records/sec", text)]
        return Figures(max(rates), cpu / events * 1_000_000), events


class RedisBus(Bus):
    """Redis and its redis-benchmark."""

    name = "redis"
    limit_name = f"redis-benchmark -P {PIPELINE}"
    setting = "1 stream, in memory only (no append-only file)"
    times_python = 5
    # As often for each number of connections as on other buses: whoever has more turns than others
    # has more luck.
    rounds = 4 * len(CONNECTIONS)

    def __init__(self, directory: Path) -> None:
        self.broker: RedisBroker = RedisBroker(directory, settings={"appendonly": "no"})
        self.broker.start()
        self._connections = itertools.cycle(CONNECTIONS)

    def create(self, destination: str) -> dict[str, Any]:
        """Name a stream; Redis makes it."""
        return {"url": self.broker.url, "stream": destination}

    def count(self, destination: str) -> int:
        """Ask for the stream's length."""
        with Redis.from_url(self.broker.url) as client:
            length: Any = client.xlen(destination)
        return int(length)

    def delete(self, destination: str) -> None:
        """Delete the stream."""
        with Redis.from_url(self.broker.url) as client:
            client.delete(destination)

    def limit(self, destination: str, trades: Trades, events: int) -> tuple[Figures, int]:
        """Run with few or many connections."""
        tool = f"redis-benchmark -p {self.broker.port} -q -P {PIPELINE}"
        amount = f"-n {events} -c {next(self._connections)}"
        # The event comes from standard input, as the last argument.
        command = f"{tool} {amount} -x XADD {destination} * {_FIELDS} data"
        text, cpu = _run(command.split(), stdin=trades.event.read_bytes())
        rate = float(re.findall(r"([\d.]+) requests per second", text)[-1])
        return Figures(rate, cpu / events * 1_000_000), events


class NatsBus(Bus):
    """NATS and a load tool of our own around its Go client, in place of `nats bench`."""

    name = "nats"
    limit_name = "nats.go, async publish"
    setting = f"1 stream in a file, {PENDING:,} messages in flight (ours: its default)"
    times_python = 5

    def __init__(self, directory: Path) -> None:
        self.broker: NatsBroker = NatsBroker(directory)
        self.broker.start()
        self._tool = directory / "nats_load"

    def create(self, destination: str) -> dict[str, Any]:
        """Create a stream with one subject."""
        subject = f"{destination}.trades"

        async def make(stream: Any) -> None:  # noqa: ANN401 - of nats-py, untyped
            await stream.add_stream(name=destination, subjects=[subject])

        self._with_jetstream(make)
        return {"servers": self.broker.url, "subject": subject, "stream": destination}

    def count(self, destination: str) -> int:
        """Ask for the stream's state."""

        async def ask(stream: Any) -> int:  # noqa: ANN401
            return int((await stream.stream_info(destination)).state.messages)

        return int(self._with_jetstream(ask))

    def delete(self, destination: str) -> None:
        """Delete the stream."""

        async def remove(stream: Any) -> None:  # noqa: ANN401
            await stream.delete_stream(destination)

        self._with_jetstream(remove)

    def _with_jetstream(self, action: Any) -> Any:  # noqa: ANN401
        async def act() -> Any:  # noqa: ANN401
            client = await nats.connect(self.broker.url)
            try:
                doing: Coroutine[Any, Any, Any] = action(client.jetstream(timeout=60))
                return await doing
            finally:
                await client.close()

        return asyncio.run(act())

    def limit(self, destination: str, trades: Trades, events: int) -> tuple[Figures, int]:
        """Build the tool if that is not done yet, and run it."""
        if not self._tool.exists():
            go = shutil.which("go")
            if go is None:
                raise RuntimeError("the load tool for NATS is written in Go, which is not here")
            source = Path(__file__).resolve().parent.parent / "nats_load"
            subprocess.run([go, "build", "-o", str(self._tool), "."], cwd=source, check=True)
        target = ["-url", self.broker.url, "-subject", f"{destination}.trades"]
        amount = ["-events", str(events), "-payload", str(trades.event), "-pending", str(PENDING)]
        text, _ = _run([str(self._tool), *target, *amount])
        took = json.loads(text)
        figures = Figures(events / took["seconds"], took["cpu"] / events * 1_000_000)
        return figures, events


BUSES: dict[str, type[KafkaBus | RedisBus | NatsBus]] = {
    bus.name: bus for bus in (KafkaBus, RedisBus, NatsBus)
}


def _run(command: list[str], stdin: bytes | None = None) -> tuple[str, float]:
    """Run a program; return what it wrote and the CPU seconds of its whole life."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=stdin, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {text}{done.stderr.decode(errors='replace')}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return text, cpu
