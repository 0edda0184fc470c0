"""Rows of every form are published; what does not fit is refused, or set aside with the reason."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import functions as f

import tardis_fast
from spark.market_lake import trade_line
from tardis_fast import ConfigError, batch_to_events, decode_to_json
from tardis_fast.spark import decode_bronze, encode_bronze, publish, publish_batch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SAMPLES = (files(tardis_fast) / "samples" / "messages.jsonl").read_text("utf-8").splitlines()
HEAD = "exchange,symbol,timestamp,local_timestamp"
PLACE = "bitmex,XBTUSD,1709251201200000,1709251201300123"
DATASETS = {
    "trades": ("id,side,price,amount", "7,buy,100.5,2", "trade"),
    "liquidations": ("id,side,price,amount", "7,sell,100.5,2", "liquidation"),
    "incremental_book_L2": ("is_snapshot,side,price,amount", "false,bid,100.5,2", "bookChange"),
    "quotes": ("ask_amount,ask_price,bid_price,bid_amount", "1,101,100,2", "quote"),
    "book_ticker": ("ask_amount,ask_price,bid_price,bid_amount", "1,101,100,2", "bookTicker"),
    "derivative_ticker": (
        (
            "funding_timestamp,funding_rate,predicted_funding_rate,open_interest,last_price,"
            "index_price,mark_price"
        ),
        "1709280000000000,0.0001,,1000,100,100.5,100.25",
        "derivativeTicker",
    ),
    "options_chain": (
        (
            "type,strike_price,expiration,open_interest,last_price,bid_price,bid_amount,bid_iv,"
            "ask_price,ask_amount,ask_iv,mark_price,mark_iv,underlying_index,underlying_price,delta,"
            "gamma,vega,theta,rho"
        ),
        (
            "call,50000,1711699200000000,10,0.1,0.09,1,55,0.11,2,57,0.1,56,BTC-29MAR24,61000,0.5,"
            "0.00001,30,-20,15"
        ),
        "optionSummary",
    ),
    "book_snapshot_5": (
        ",".join(
            f"asks[{level}].price,asks[{level}].amount,bids[{level}].price,bids[{level}].amount"
            for level in range(5)
        ),
        ",".join(f"{101 + level},1,{100 - level},2" for level in range(5)),
        "bookSnapshot",
    ),
    "book_snapshot_25": (
        ",".join(
            f"asks[{level}].price,asks[{level}].amount,bids[{level}].price,bids[{level}].amount"
            for level in range(25)
        ),
        ",".join(f"{101 + level},1,{100 - level},2" for level in range(25)),
        "bookSnapshot",
    ),
}
ALIKE = {"trades", "liquidations", "quotes", "book_ticker"}
"""Datasets that share their columns with another."""


def texts(spark: SparkSession, lines: Sequence[str | None]) -> DataFrame:
    return spark.createDataFrame([(line,) for line in lines], "value string").coalesce(1)


def published(directory: Path) -> list[dict[str, Any]]:
    """Read the lake back, as messages."""
    lines: list[bytes] = []
    for file in sorted(directory.glob("payload_case=*/date=*/*.parquet")):
        case = file.parts[-3].removeprefix("payload_case=")
        for batch in pq.ParquetFile(file).iter_batches():
            events = batch_to_events(batch, case=case)
            lines += decode_to_json(events, per_event=True).splitlines()
    return [json.loads(line) for line in lines]


def sent(directory: Path) -> list[dict[str, Any]]:
    return sorted(published(directory), key=json.dumps)


def lake(directory: Path) -> Any:
    return {"dir": str(directory), "roll_seconds": 0}


def test_events_columns_and_messages_give_the_same(spark: SparkSession, tmp_path: Path) -> None:
    messages = texts(spark, SAMPLES)
    events = encode_bronze(messages, session="s").cache()
    assert {row.payload_case for row in events.select("payload_case").collect()} == set(
        tardis_fast.PAYLOAD_CASES
    )
    forms: dict[str, DataFrame] = {
        "json": messages,
        "bronze": events.select("event"),
        "wide": decode_bronze(events),
    }
    for name, rows in forms.items():
        ledger = publish(rows, lake=lake(tmp_path / name), session="s").collect()
        assert sum(row.acknowledged for row in ledger) == events.count()
    expected = sent(tmp_path / "bronze")
    assert sent(tmp_path / "json") == expected
    assert sent(tmp_path / "wide") == expected
    for case in ("trade", "bookChange", "quote"):
        narrow = decode_bronze(events.where(f.col("payload_case") == case), case=case)
        publish(narrow, lake=lake(tmp_path / "narrow"))
    assert all(message in expected for message in published(tmp_path / "narrow"))
    assert {message["type"] for message in published(tmp_path / "narrow")} == {
        "trade",
        "book_change",
        "book_snapshot",
    }


def test_every_dataset_is_published_from_csv(spark: SparkSession, tmp_path: Path) -> None:
    for dataset, (columns, row, case) in DATASETS.items():
        file = tmp_path / f"{dataset}.csv.gz"
        file.write_bytes(gzip.compress(f"{HEAD},{columns}\n{PLACE},{row}\n".encode()))
        rows = spark.read.csv(str(file), header=True)
        input_ = "auto"
        if dataset in ALIKE:
            with pytest.raises(ConfigError, match="say which with input="):
                publish(rows, lake=lake(tmp_path / dataset))
            input_ = f"csv:{dataset}"
        event = encode_bronze(rows, input=input_).collect()
        assert [(row.exchange, row.symbol, row.payload_case) for row in event] == [
            ("bitmex", "XBTUSD", case)
        ]
    typed = spark.read.csv(str(tmp_path / "trades.csv.gz"), header=True, inferSchema=True)
    ledger = publish(typed, input="csv:trades", lake=lake(tmp_path / "typed")).collect()
    assert sum(row.acknowledged for row in ledger) == 1
    assert published(tmp_path / "typed") == [
        {
            "type": "trade",
            "symbol": "XBTUSD",
            "exchange": "bitmex",
            "id": "7",
            "price": 100.5,
            "amount": 2,
            "side": "buy",
            "timestamp": "2024-03-01T00:00:01.200Z",
            "localTimestamp": "2024-03-01T00:00:01.300123Z",
        }
    ]


def without_size(reason: str) -> str:
    """Return a reason without the size of an event, which varies with the time it is made."""
    return re.sub(r"has \d+ bytes", "has some bytes", reason)


def test_bad_rows_are_set_aside_with_the_reason(spark: SparkSession, tmp_path: Path) -> None:
    good = trade_line(1)
    old = json.dumps(json.loads(good) | {"localTimestamp": "1970-01-20T18:47:31.200000Z"})
    large = json.dumps(json.loads(good) | {"id": "9" * 5_000})
    wrong = json.dumps(json.loads(good) | {"price": "dear"})
    rows = texts(spark, [good, None, wrong, old, large, trade_line(2)])
    quarantine = str(tmp_path / "quarantine")
    options: dict[str, Any] = {"lake": lake(tmp_path / "lake"), "max_event_bytes": 4_096}
    ledger = publish(rows, quarantine=quarantine, session="first", **options).collect()
    assert [(row.acknowledged, row.quarantined, row.run) for row in ledger] == [(2, 4, "first")]
    assert [message["id"] for message in sent(tmp_path / "lake")] == ["1", "2"]
    kept = spark.read.parquet(quarantine)
    found = kept.where("kind = 'quarantine'").orderBy("row").collect()
    assert [(row.row, json.loads(row.content)["value"]) for row in found] == [
        (1, None),
        (2, wrong),
        (3, old),
        (4, large),
    ]
    reasons = [without_size(row.reason) for row in found]
    assert reasons[0] == "the message is null"
    assert reasons[1].startswith("bad trade message")
    assert reasons[2].startswith("localTimestamp is 1709251200")
    assert reasons[3].endswith("at most 4096 are allowed")
    # Ledgers are kept beside them; another run is told from the first.
    ledger = publish(rows, quarantine=quarantine, session="second", **options).collect()
    assert [row.run for row in ledger] == ["second"]
    with pytest.raises(PythonException, match="partition 0, row 1: the message is null"):
        publish(rows, **options)
    checked = encode_bronze(
        rows, session="first", on_error="quarantine", max_event_bytes=4_096
    ).collect()
    assert [without_size(row.encode_error) for row in checked if row.event is None] == reasons


def test_messages_that_are_no_utf8_are_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    good = [trade_line(number).encode() for number in (1, 2)]
    broken = good[0].replace(b'"type"', b'"type\xff"')
    file = tmp_path / "messages.jsonl"
    file.write_bytes(b"\n".join([good[0], broken, good[1]]))
    quarantine = str(tmp_path / "quarantine")
    publish(spark.read.text(str(file)), lake=lake(tmp_path / "lake"), quarantine=quarantine)
    assert [message["id"] for message in sent(tmp_path / "lake")] == ["1", "2"]
    (found,) = spark.read.parquet(quarantine).where("kind = 'quarantine'").collect()
    assert found.row == 1
    assert "UTF-8" in found.reason
    assert base64.b64decode(json.loads(found.content)["value"]) == broken


def test_columns_with_nulls_are_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    trades = decode_bronze(encode_bronze(texts(spark, [trade_line(1)] * 4)), case="trade")
    number = f.monotonically_increasing_id()
    bad = trades.select(
        *[
            f.when(number != place, f.col(name)).alias(name) if place is not None else f.col(name)
            for name, place in (
                (name, {"exchange": 0, "local_ts": 1, "price_str": 2}.get(name))
                for name in trades.columns
            )
        ]
    )
    quarantine = str(tmp_path / "quarantine")
    publish(bad, lake=lake(tmp_path / "lake"), quarantine=quarantine)
    assert len(published(tmp_path / "lake")) == 1
    found = spark.read.parquet(quarantine).where("kind = 'quarantine'").orderBy("row").collect()
    assert [row.reason for row in found] == [
        "exchange is missing",
        "local_ts is missing",
        "trade.price_str is missing",
    ]


def test_a_schema_that_does_not_fit_is_refused_before_any_job(spark: SparkSession) -> None:
    def refusal(rows: DataFrame, **options: Any) -> str:
        with pytest.raises(ConfigError) as refused:
            publish(rows, **{"lake": {"dir": "never"}} | options)
        return str(refused.value)

    text = refusal(spark.range(1))
    assert "no known form" in text
    assert "- id: bigint" in text
    assert "a binary column `event`" in text
    trades = decode_bronze(encode_bronze(texts(spark, [trade_line(1)])), case="trade")
    wrong = trades.withColumn("price_str", f.col("price_str").cast("double"))
    text = refusal(wrong)
    assert "column `trade.price_str` is Float64" in text
    assert "- price_str: double" in text
    assert "column `id` is not there" in refusal(
        spark.createDataFrame([], f"{HEAD.replace(',', ' string,')} string, price string"),
        input="csv:trades",
    )
    assert "input: `xml` is not known" in refusal(spark.range(1), input="xml")
    assert "no bus is configured" in refusal(trades, lake=None)
    assert "--lake-dir" in refusal(trades, lake={"dir": ""})
    assert "loses events" in refusal(trades, delivery={"overflow": "drop"})
    assert "it needs quarantine=" in refusal(trades, allow_dead_letters=True)


def test_events_that_cannot_be_decoded_are_marked(spark: SparkSession) -> None:
    events = encode_bronze(texts(spark, [trade_line(1)])).select("event").collect()
    rows = spark.createDataFrame(
        [(1, events[0].event), (2, None), (3, bytearray(b"\xff"))], "offset int, value binary"
    )
    with pytest.raises(PythonException, match="null where an event is expected"):
        decode_bronze(rows, "value").collect()
    nulls = decode_bronze(rows, "value", "trade", on_error="null", keep=["offset"])
    assert [(row.offset, row.trade_id) for row in nulls.collect()] == [
        (1, "1"),
        (2, None),
        (3, None),
    ]
    marked = decode_bronze(rows, "value", on_error="quarantine", keep=["offset"]).collect()
    assert [row.exchange for row in marked] == ["bitmex", None, None]
    assert [row.decode_error for row in marked][:2] == [None, "the event is null"]
    assert "end in the middle" in marked[2].decode_error
    assert [row.bad_event for row in marked] == [None, None, bytearray(b"\xff")]
    with pytest.raises(ConfigError, match="expected a binary column `event`"):
        decode_bronze(rows)


def test_a_stream_is_published_batch_by_batch(spark: SparkSession, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    ledgers: list[tuple[int, int]] = []

    def note(ledger: DataFrame, batch: int) -> None:
        ledgers.append((batch, sum(row.acknowledged for row in ledger.collect())))

    def run() -> None:
        query = (
            spark.readStream.text(str(source))
            .writeStream.foreachBatch(publish_batch(lake=lake(tmp_path / "lake"), on_ledger=note))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    (source / "a.txt").write_text("\n".join(trade_line(number) for number in range(3)))
    run()
    (source / "b.txt").write_text(trade_line(3))
    run()
    run()
    assert ledgers == [(0, 3), (1, 1)]
    assert [message["id"] for message in sent(tmp_path / "lake")] == ["0", "1", "2", "3"]
