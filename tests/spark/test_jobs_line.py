"""The whole line: sample market, Kafka, Bronze, Silver, Gold; every layer is true to the events."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark.jobs import all_tables, rows_of, run_job
from tardis_fast import (
    BronzeEncoder,
    FeedOptions,
    Publisher,
    SampleMarket,
    Stream,
    replay_normalized,
)
from tardis_fast.proto.lakehouse.bronze.v1.normalized_event_pb2 import NormalizedEvent
from tardis_fast.sample_api import SampleApiThread
from tardis_fast.spark.tables import Tables

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from brokers.kafka import KafkaBroker
    from tardis_fast.publisher import BusStats

pytestmark = pytest.mark.broker

SESSION = "line-1"
DATA_TYPES = ["trade", "book_change", "derivative_ticker", "quote_10s"]
EXTRA = b"""\
{"type":"disconnect","exchange":"bitmex","localTimestamp":"2020-02-01T00:00:30.000001Z"}
{"type":"trade","symbol":"XBTUSD","exchange":"bitmex","id":"large","price":1e12,"amount":1,\
"side":"buy","timestamp":"2020-02-01T00:01:01.200Z","localTimestamp":"2020-02-01T00:01:01.234567Z"}
"""


@dataclass
class Line:
    """What was published, and the tables that came of it."""

    tables: Tables
    broker: KafkaBroker
    topic: str
    events: list[NormalizedEvent]
    arrays: list[pa.Array]
    """The same events, as they were published."""
    ledger: BusStats
    plots: Path

    def run(self) -> None:
        """Run the three jobs."""
        brokers = ("--brokers", self.broker.address, "--topics", self.topic)
        run_job("bronze_ingest", self.tables, *brokers)
        run_job("silver", self.tables)
        run_job("gold", self.tables, "--bars", "10s,1m", "--plots", str(self.plots))

    def publisher(self, state: Path) -> Publisher:
        """Return a publisher to the topic."""
        return Publisher(
            kafka={"brokers": [self.broker.address], "topic": self.topic}, state_dir=state
        )


@pytest.fixture(scope="module")
def line(
    spark: SparkSession, kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory
) -> Line:
    """Publish two minutes of the sample market, and run all jobs once."""
    directory = tmp_path_factory.mktemp("line")
    topic = f"line-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": kafka_broker.address, "log_level": 0})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(30)
    encoder = BronzeEncoder(origin="replay", meta={"session_id": SESSION})
    market = SampleMarket(messages_per_second=4, book_levels=5)
    with SampleApiThread(market) as api:
        feed = FeedOptions(endpoint=api.endpoint, cache_dir=str(directory / "cache"))
        stream = Stream("bitmex", "2020-02-01", "2020-02-01T00:02", DATA_TYPES, ["XBTUSD"])
        lines = b"".join(replay_normalized(stream, feed=feed))
    arrays = [encoder.encode_json(lines), encoder.encode_json(EXTRA)]
    events = [NormalizedEvent.FromString(event.as_py()) for array in arrays for event in array]
    made = Line(
        Tables(spark, str(directory / "tables")),
        kafka_broker,
        topic,
        events,
        arrays,
        None,  # type: ignore[arg-type] # after publishing
        directory / "plots",
    )
    with made.publisher(directory / "state") as publisher:
        for array in arrays:
            publisher.publish(array)
        assert publisher.flush(120)
        made.ledger = publisher.stats()["kafka"]
    producer = Producer({"bootstrap.servers": kafka_broker.address, "log_level": 0})
    for value in (b"\x0a\x7fno event", b"", None):
        producer.produce(topic, value, key=b"bad")
    assert producer.flush(60) == 0
    made.run()
    return made


def test_bronze_has_every_event_once_and_the_ledger_agrees(line: Line) -> None:
    assert line.ledger.acknowledged == line.ledger.accepted == len(line.events)
    rows = rows_of(line.tables, "bronze/events")
    assert Counter(bytes(row["event"]) for row in rows) == Counter(
        event.as_py() for array in line.arrays for event in array
    )
    places = {(row["kafka_partition"], row["kafka_offset"]) for row in rows}
    assert len(places) == len(rows)
    first = min(rows, key=lambda row: row["event_seq"])
    assert (first["exchange"], first["symbol"], first["session"], first["event_seq"]) == (
        "bitmex",
        "XBTUSD",
        SESSION,
        1,
    )
    assert {row["origin"] for row in rows} == {"ORIGIN_REPLAY"}


def test_records_that_are_no_events_are_in_quarantine_with_the_reason(line: Line) -> None:
    rows = rows_of(line.tables, "bronze/quarantine", "kafka_key", "event", "reason")
    reasons = {None if row["event"] is None else bytes(row["event"]): row["reason"] for row in rows}
    assert len(rows) == 3
    assert {bytes(row["kafka_key"]) for row in rows} == {b"bad"}
    assert "the bytes end in the middle of a field" in reasons[b"\x0a\x7fno event"]
    assert reasons[b""] == "the event carries no payload that is known"
    assert "null" in reasons[None]


def test_silver_has_each_event_in_its_table_or_in_quarantine(line: Line) -> None:
    silver = all_tables(line.tables, "silver")
    rows = {name: len(table) for name, table in silver.items() if name != "changes"}
    cases = Counter(str(event.WhichOneof("payload")) for event in line.events)
    assert rows.pop("quarantine") == 1
    assert Counter(rows) == cases - Counter({"trade": 1})
    (misfit,) = silver["quarantine"]
    assert misfit["quarantine_reason"] == "price times 1e8 does not fit 64 bits: 1000000000000"
    assert NormalizedEvent.FromString(bytes(misfit["event"])).trade.trade_id == "large"


def test_figures_of_silver_are_exact(line: Line) -> None:
    found = {
        row["event_seq"]: (row["price_e8"], row["qty_e8"], row["side"])
        for name in ("trade", "book_change")
        for row in rows_of(line.tables, f"silver/{name}")
    }
    assert found == {
        event.event_seq: (e8(level.price_str), e8(level.qty_str), SIDES[level.side])
        for event in line.events
        if (level := level_of(event)) is not None
    }


def test_bars_are_those_of_the_trades(line: Line) -> None:
    expected: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for event in line.events:
        if event.WhichOneof("payload") == "trade" and event.trade.trade_id != "large":
            time = event.trade.event_ts.ToMicroseconds()
            for name, micros in (("10s", 10_000_000), ("1m", 60_000_000)):
                expected[name, time - time % micros].append((time, event.event_seq, event.trade))
    frame = line.tables.table("gold/bars").read()
    bars = frame.selectExpr("*", "unix_micros(start_ts) AS start", "unix_micros(end_ts) AS end")
    found = {(row["interval"], row["start"]): row for row in bars.collect()}
    assert found.keys() == expected.keys()
    for key, group in expected.items():
        trades = [trade for *_, trade in sorted(group, key=lambda one: one[:2])]
        prices = [e8(trade.price_str) for trade in trades]
        amounts = [e8(trade.qty_str) for trade in trades]
        bar = found[key]
        assert (bar["open_e8"], bar["high_e8"], bar["low_e8"], bar["close_e8"]) == (
            prices[0],
            max(prices),
            min(prices),
            prices[-1],
        )
        assert (bar["volume_e8"], bar["trades"]) == (sum(amounts), len(trades))
        assert bar["buy_volume_e8"] + bar["sell_volume_e8"] == sum(amounts)
        exact = sum(p * q for p, q in zip(prices, amounts, strict=True)) / Decimal(sum(amounts))
        assert abs(bar["vwap_e8"] - exact) <= 1
        assert bar["end"] - bar["start"] == (10_000_000 if key[0] == "10s" else 60_000_000)


def test_top_of_book_funding_and_open_interest_come_from_silver(line: Line) -> None:
    tops = rows_of(line.tables, "gold/top_of_book")
    assert {row["name"] for row in tops} == {"quote_10s"}
    assert all(row["spread_e8"] == row["ask_price_e8"] - row["bid_price_e8"] > 0 for row in tops)
    tickers = [
        event.derivative_ticker for event in line.events if event.HasField("derivative_ticker")
    ]
    rates = {e9(row.funding_rate_str) for row in tickers if row.funding_rate_str}
    assert {row["funding_rate_e9"] for row in rows_of(line.tables, "gold/funding")} == rates
    stated = [row for row in tickers if row.open_interest_str]
    series = rows_of(line.tables, "gold/open_interest")
    assert sum(row["updates"] for row in series) == len(stated)
    last = max(series, key=lambda row: row["start_ts"])
    assert last["open_interest_e8"] == e8(stated[-1].open_interest_str)


def test_completeness_counts_what_came_and_plots_it(line: Line) -> None:
    counts = {
        (row["symbol"], row["payload_case"]): (row["records"], row["events"], row["duplicates"])
        for row in rows_of(line.tables, "gold/completeness")
    }
    trades = sum(event.HasField("trade") for event in line.events)
    assert counts["XBTUSD", "trade"] == (trades, trades, 0)
    (session,) = rows_of(line.tables, "gold/sessions")
    assert (session["session"], session["events"]) == (SESSION, len(line.events))
    assert (session["missing"], session["gaps"], session["duplicates"]) == (0, [], 0)
    assert session["disconnects"] == 1
    plot = line.plots / "2020-02-01" / "bitmex" / "XBTUSD.png"
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_running_again_changes_nothing_and_events_that_come_again_are_known(
    line: Line, tmp_path: Path
) -> None:
    bronze = rows_of(line.tables, "bronze/events")
    silver, gold = all_tables(line.tables, "silver"), all_tables(line.tables, "gold")
    line.run()
    assert rows_of(line.tables, "bronze/events") == bronze
    assert all_tables(line.tables, "silver") == silver
    assert all_tables(line.tables, "gold") == gold

    with line.publisher(tmp_path) as publisher:
        again = publisher.publish(line.arrays[0])
        assert publisher.flush(120)
    line.run()
    assert len(rows_of(line.tables, "bronze/events")) == len(bronze) + again
    repeated = all_tables(line.tables, "silver")
    repeated.pop("changes")
    silver.pop("changes")
    assert repeated == silver
    regained = all_tables(line.tables, "gold")
    for name in ("completeness", "sessions"):
        assert sum(row["duplicates"] for row in regained.pop(name)) == again
        gold.pop(name)
    assert regained == gold


SIDES = {0: "SIDE_UNSPECIFIED", 1: "SIDE_BUY", 2: "SIDE_SELL"}


def level_of(event: NormalizedEvent) -> Any:
    """Return what has a price and an amount, and a place in Silver."""
    if event.HasField("trade") and event.trade.trade_id != "large":
        return event.trade
    return event.book_change if event.HasField("book_change") else None


def e8(text: str) -> int:
    """Return a figure times 1e8."""
    return int(Decimal(text).scaleb(8))


def e9(text: str) -> int:
    """Return a figure times 1e9."""
    return int(Decimal(text).scaleb(9))
