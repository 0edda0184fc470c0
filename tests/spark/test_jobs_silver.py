"""Silver and Gold in plain Parquet: what identifies an event, and what is missing between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bus.trades import trade
from spark.jobs import rows_of, run_job, write_bronze
from tardis_fast import BronzeEncoder
from tardis_fast.spark.completeness import count_sessions
from tardis_fast.spark.tables import Tables

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BOOK = {
    "type": "book_change",
    "symbol": "XBTUSD",
    "exchange": "bitmex",
    "isSnapshot": True,
    "bids": [{"price": 99.5, "amount": 3}, {"price": 99, "amount": 0}],
    "asks": [{"price": 100, "amount": 0.25}],
    "timestamp": "2024-03-01T00:00:01.200Z",
    "localTimestamp": "2024-03-01T00:00:01.234567Z",
}


def events(lines: bytes, **options: str) -> list[bytes]:
    """Return the events of messages, all of them made at one time."""
    meta = {"session_id": options.pop("session")} if "session" in options else {}
    made = int(options.pop("made", "1"))
    encoder = BronzeEncoder(meta=meta, **options)  # type: ignore[arg-type] # of literal types
    return [bytes(event) for event in encoder.encode_json(lines, ingest_micros=made).to_pylist()]


@pytest.fixture(scope="module")
def parquet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Write events of three kinds of identity in two batches, with a Silver run after each."""
    tables = Tables(spark, str(tmp_path_factory.mktemp("parquet")), "parquet")
    numbered = events(trade("A", 1) + trade("A", 2, price=0.5), session="s-1", made="20")
    book = events(json.dumps(BOOK).encode() + b"\n", session="s-2", book_changes="message")
    anonymous = events(trade("B", "", id="", amount=2))
    fine = events(trade("A", 3, amount=0.123456789), session="s-3")
    write_bronze(tables, [*numbered, *numbered, *book, *anonymous, *fine], 0)
    run_job("silver", tables)
    # The same trade from another session, made earlier, and another trade under the same id.
    other = events(trade("A", 1), session="s-4", made="10")
    reused = events(trade("A", 1, price=7), session="s-5")
    write_bronze(tables, [*other, *reused, *book, *anonymous, *fine], 1)
    run_job("silver", tables)
    run_job("gold", tables, "--bars", "1m")
    return tables


def test_trades_are_known_by_the_venues_id_in_any_session(parquet: Tables) -> None:
    rows = rows_of(parquet, "silver/trade", "symbol", "trade_id", "price_e8", "session")
    assert sorted(map(tuple, rows), key=str) == [
        ("A", "1", 100_000_000, "s-4"),
        ("A", "1", 700_000_000, "s-5"),
        ("A", "2", 50_000_000, "s-1"),
        ("B", None, 100_000_000, None),
    ]


def test_whole_book_changes_become_a_row_for_each_level(parquet: Tables) -> None:
    rows = rows_of(
        parquet, "silver/book_change", "part", "parts", "side", "action", "price_e8", "qty_e8"
    )
    assert [tuple(row) for row in rows] == [
        (0, 3, "SIDE_BUY", "ACTION_UPSERT", 9_950_000_000, 300_000_000),
        (1, 3, "SIDE_BUY", "ACTION_DELETE", 9_900_000_000, 0),
        (2, 3, "SIDE_SELL", "ACTION_UPSERT", 10_000_000_000, 25_000_000),
    ]


def test_a_figure_with_too_many_digits_is_in_quarantine_once(parquet: Tables) -> None:
    (row,) = rows_of(parquet, "silver/quarantine")
    assert row["quarantine_reason"] == "qty has more than 8 decimals: 0.123456789"
    assert (row["payload_case"], row["session"], row["event_seq"]) == ("trade", "s-3", 1)


def test_gold_is_made_of_silver(parquet: Tables) -> None:
    bars = rows_of(parquet, "gold/bars", "symbol", "open_e8", "high_e8", "low_e8", "trades")
    assert [tuple(row) for row in bars] == [
        ("A", 50_000_000, 700_000_000, 50_000_000, 3),
        ("B", 100_000_000, 100_000_000, 100_000_000, 1),
    ]
    sessions = {row["session"]: row for row in rows_of(parquet, "gold/sessions")}
    assert (sessions["s-1"]["events"], sessions["s-1"]["duplicates"]) == (2, 2)


def test_gaps_are_found_where_events_are_missing(spark: SparkSession, tmp_path: Path) -> None:
    tables = Tables(spark, str(tmp_path), "parquet")
    made = events(b"".join(trade("A", number) for number in range(1, 9)), session="s")
    write_bronze(tables, [made[1], made[2], made[5], made[7]], 0)
    (row,) = count_sessions(tables.table("bronze/events").read()).collect()
    assert [(gap["first_seq"], gap["last_seq"]) for gap in row["gaps"]] == [(1, 1), (4, 5), (7, 7)]
    assert (row["missing"], row["events"], row["last_seq"]) == (4, 4, 8)
