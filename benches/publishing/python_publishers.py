"""The other side: publishers as a competent user writes them in Python.

An event is built from a dict with the generated classes and serialized; then it goes out by the
usual client of its broker, with the settings, key, headers and fields that ours sends.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any

import nats
from confluent_kafka import Producer
from redis import Redis

from publishing.figures import Clock, Figures
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from publishing.trades import Trades

_PIPELINE = 1_000
"""Commands in a pipeline of Redis."""
_PENDING = 4_000
"""Messages to NATS that may wait for their acknowledgement."""


def publish(bus: str, options: dict[str, Any], trades: Trades, events: int) -> Figures:
    """Publish trades to a bus; the options are those of ours."""
    rows = trades.rows(events)
    _check_encoding(trades, rows[0])
    return _PUBLISHERS[bus](options, rows)


def encode(row: Any) -> bytes:  # noqa: ANN401 - a dict, or a row of Spark
    """Return a row as an encoded event."""
    event = NormalizedEvent(
        source=row["source"],
        exchange=row["exchange"],
        symbol=row["symbol"],
        origin=row["origin"],
        event_seq=row["event_seq"],
        meta=row["meta"],
    )
    _set_time(event.local_ts, row["local_ts"])
    _set_time(event.ingest_ts, row["ingest_ts"])
    trade = event.trade
    trade.trade_id = row["trade_id"]
    trade.price_str = row["price_str"]
    trade.qty_str = row["qty_str"]
    trade.side = row["side"]
    trade.event_ts_has_micros = row["event_ts_has_micros"]
    _set_time(trade.event_ts, row["event_ts"])
    return event.SerializeToString()


def _set_time(timestamp: Any, micros: int) -> None:  # noqa: ANN401 - protobuf's own type
    seconds, micros = divmod(micros, 1_000_000)
    timestamp.seconds = seconds
    timestamp.nanos = micros * 1_000


def _check_encoding(trades: Trades, row: dict[str, Any]) -> None:
    theirs = NormalizedEvent.FromString(encode(row))
    if theirs != NormalizedEvent.FromString(trades.event.read_bytes()):
        raise RuntimeError(f"Python encodes another event than ours: {theirs}")


def key_of(row: Any) -> str:  # noqa: ANN401 - as above
    """Return the key of a row's event."""
    return f"{row['exchange']}|{row['symbol']}|trade"


def producer_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings for confluent-kafka that are those of ours."""
    return {
        "bootstrap.servers": options["brokers"],
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": options["max_batch_delay_ms"],
        "compression.type": options["compression"],
        "partitioner": "murmur2_random",
        "queue.buffering.max.messages": 500_000,
        # Python is called for failures only; the rest is known when flush has returned.
        "delivery.report.only.error": True,
    }


def _to_kafka(options: dict[str, Any], rows: list[dict[str, Any]]) -> Figures:
    topic = options["topic"]
    failures: list[object] = []
    producer = Producer(producer_options(options))
    producer.list_topics(topic, timeout=60)
    headers: list[tuple[str, str | bytes | None]] = [
        ("payloadCase", b"trade"),
        ("dataType", b"trade"),
    ]

    def note(error: object, _: object) -> None:
        failures.append(error)

    clock = Clock()
    for number, row in enumerate(rows):
        value = encode(row)
        while True:
            try:
                producer.produce(topic, value, key_of(row), headers=headers, on_delivery=note)
                break
            except BufferError:
                producer.poll(0.01)
        if number % 1_000 == 0:
            producer.poll(0)
    left = producer.flush(60)
    figures = clock.figures(len(rows))
    if failures or left:
        raise RuntimeError(f"Kafka: {left} events left, failures: {failures[:3]}")
    return figures


def _to_redis(options: dict[str, Any], rows: list[dict[str, Any]]) -> Figures:
    stream = options["stream"]
    with Redis.from_url(options["url"]) as client:
        client.ping()
        clock = Clock()
        for start in range(0, len(rows), _PIPELINE):
            pipeline = client.pipeline(transaction=False)
            for row in rows[start : start + _PIPELINE]:
                pipeline.xadd(
                    stream,
                    {
                        "data": encode(row),
                        "key": key_of(row),
                        "payloadCase": "trade",
                        "dataType": "trade",
                    },
                )
            pipeline.execute()
        return clock.figures(len(rows))


def _to_nats(options: dict[str, Any], rows: list[dict[str, Any]]) -> Figures:
    return asyncio.run(_to_jetstream(options, rows))


async def _to_jetstream(options: dict[str, Any], rows: list[dict[str, Any]]) -> Figures:
    subject = options["subject"]
    client = await nats.connect(options["servers"])
    stream = client.jetstream(publish_async_max_pending=_PENDING)
    failures: list[BaseException] = []

    def note(acknowledged: asyncio.Future[Any]) -> None:
        error = acknowledged.exception()
        if error is not None:
            failures.append(error)

    clock = Clock()
    for row in rows:
        value = encode(row)
        headers = {
            "Nats-Msg-Id": hashlib.sha256(value).hexdigest()[:32],
            "payloadCase": "trade",
            "dataType": "trade",
        }
        acknowledged = await stream.publish_async(subject, value, headers=headers)
        acknowledged.add_done_callback(note)
    await stream.publish_async_completed()
    figures = clock.figures(len(rows))
    await client.close()
    if failures:
        raise RuntimeError(f"NATS: {failures[:3]}")
    return figures


_PUBLISHERS: dict[str, Callable[[dict[str, Any], list[dict[str, Any]]], Figures]] = {
    "kafka": _to_kafka,
    "redis": _to_redis,
    "nats": _to_nats,
}
