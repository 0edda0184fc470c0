"""How rows go from Spark to Kafka: ours, and the two ways in which most people write it."""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer
from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it

import tardis_fast.spark
from publishing.python_publishers import encode, key_of, producer_options
from publishing.trades import META
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import (
    ORIGIN_REPLAY,
    SIDE_BUY,
    SIDE_SELL,
    NormalizedEvent,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, Row

    EncodeRow = Callable[[Row], tuple[str, bytes]]
    """A row's key and event."""

_TIMES = ("local_ts", "ingest_ts", "event_ts")
_HEADERS: list[tuple[str, str | bytes | None]] = [("payloadCase", b"trade"), ("dataType", b"trade")]
_POLL_ROWS = 1_000
TEXT_COLUMN = "value"
"""Where rows are messages as JSON instead of columns."""

_producers: dict[int, Producer] = {}
"""Of this process, by its number: a fork's is not its parent's."""


def ours(df: DataFrame, options: dict[str, Any]) -> None:
    """Hand whole batches to `tardis_fast.spark.publish`, which finds out what they are."""
    tardis_fast.spark.publish(df, kafka=options, bronze={"origin": "replay", "meta": META})


def row_udf(df: DataFrame, options: dict[str, Any]) -> None:
    """Call a Python function for each row, which encodes and produces it (a)."""
    rows = _with_micros(df)
    send = F.udf(partial(_send, options, _encoder(df)), "int")
    sent = rows.select(send(F.struct(*rows.columns)).alias("sent"))
    sent.agg(F.sum("sent")).collect()


def each_partition(df: DataFrame, options: dict[str, Any]) -> None:
    """Loop over the rows of a partition, with a producer for it that is flushed at its end (b)."""
    _with_micros(df).foreachPartition(partial(_send_all, options, _encoder(df)))


CONTENDERS: dict[str, Callable[[DataFrame, dict[str, Any]], None]] = {
    "ours": ours,
    "(a) UDF per row": row_udf,
    "(b) foreachPartition": each_partition,
}


def _send(options: dict[str, Any], encode_row: EncodeRow, row: Row) -> int:
    pid = os.getpid()
    if pid not in _producers:
        _producers[pid] = Producer(producer_options(options))
    return _produce(_producers[pid], options["topic"], *encode_row(row))


def _send_all(options: dict[str, Any], encode_row: EncodeRow, rows: Iterator[Row]) -> None:
    producer = Producer(producer_options(options))
    for number, row in enumerate(rows):
        _produce(producer, options["topic"], *encode_row(row))
        if number % _POLL_ROWS == 0:
            producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("not all events were acknowledged")


def _with_micros(df: DataFrame) -> DataFrame:
    """Have Spark turn times into numbers, which is kinder than doing it in Python."""
    if TEXT_COLUMN in df.columns:
        return df
    return df.withColumns({name: F.unix_micros(name) for name in _TIMES})


def _produce(producer: Producer, topic: str, key: str, value: bytes) -> int:
    while True:
        try:
            producer.produce(topic, value, key, headers=_HEADERS)
            break
        except BufferError:
            producer.poll(0.01)
    return 1


def _encoder(df: DataFrame) -> EncodeRow:
    return _encode_text if TEXT_COLUMN in df.columns else _encode_columns


def _encode_columns(row: Row) -> tuple[str, bytes]:
    return key_of(row), encode(row)


def _encode_text(row: Row) -> tuple[str, bytes]:
    message = json.loads(row[TEXT_COLUMN])
    event = NormalizedEvent(
        source="tardis-fast",
        exchange=message["exchange"],
        symbol=message["symbol"],
        origin=ORIGIN_REPLAY,
        meta={**META, "data_type": "trade"},
    )
    event.local_ts.FromJsonString(message["localTimestamp"])
    event.ingest_ts.GetCurrentTime()
    trade = event.trade
    trade.trade_id = message["id"]
    trade.price_str = str(message["price"])
    trade.qty_str = str(message["amount"])
    trade.side = SIDE_BUY if message["side"] == "buy" else SIDE_SELL
    trade.event_ts.FromJsonString(message["timestamp"])
    return key_of(message), event.SerializeToString()
