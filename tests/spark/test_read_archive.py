"""`format("tardis")` gives the rows of the HTTP endpoint, in parallel, and reads no more slices."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as f

from tardis_fast import FeedOptions, Stream, decode_to_json, replay_normalized
from tardis_fast.spark import encode_bronze, register
from tardis_fast.spark.replay_plan import Narrowing, Part, plan

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tardis_fast.sample_api import SampleApiThread

START, END = "2024-03-01T00:00", "2024-03-01T00:06"
TRADES = {"exchange": "bitmex", "from": START, "to": END, "data_types": "trade"}


@pytest.fixture
def read(spark: SparkSession, sample_api: SampleApiThread, tmp_path: Path) -> Any:
    """Return a way to read the sample market, with an empty cache."""
    register(spark)

    def load(**options: object) -> DataFrame:
        reader = spark.read.format("tardis").option("endpoint", sample_api.endpoint)
        reader = reader.option("cache_dir", str(tmp_path / "cache"))
        for key, value in options.items():
            reader = reader.option(key, str(value))
        return reader.load()

    return load


def messages(df: DataFrame, input_: str = "auto") -> Counter[str]:
    """Return the messages of rows; each event a message, book changes by level too."""
    import pyarrow as pa  # noqa: PLC0415

    events = [row.event for row in encode_bronze(df, input=input_).collect()]
    lines = decode_to_json(pa.array(events, pa.binary()), per_event=True)
    return Counter(lines.decode().splitlines())


def expected(api: SampleApiThread, cache: Path, *streams: Stream) -> Counter[str]:
    """Return what the endpoint sends for the same request."""
    feed = FeedOptions(endpoint=api.endpoint, cache_dir=cache)
    lines: Counter[str] = Counter()
    for events in replay_normalized(*streams, feed=feed).events():
        lines.update(decode_to_json(events, per_event=True).decode().splitlines())
    return lines


@pytest.mark.parametrize(
    ("exchange", "data_types", "symbols"),
    [
        ("bitmex", ["trade"], None),
        ("bitmex", ["trade", "book_change", "trade_bar_1m"], ["XBTUSD", "ETHUSD"]),
        ("binance-futures", ["book_snapshot_5_1s"], ["BTCUSDT"]),
        ("deribit", ["derivative_ticker"], None),
    ],
)
def test_rows_are_those_of_the_endpoint(  # noqa: PLR0913, PLR0917 - what a request has
    read: Any,
    sample_api: SampleApiThread,
    tmp_path: Path,
    exchange: str,
    data_types: list[str],
    symbols: list[str] | None,
) -> None:
    options = {"exchange": exchange, "from": START, "to": END, "partition_minutes": 2}
    if symbols:
        options["symbols"] = ",".join(symbols)
    rows = read(**options, data_types=",".join(data_types))
    is_narrow = len(data_types) == 1
    assert ("price_str" in rows.columns) == (data_types == ["trade"])
    assert ("book_change" in rows.columns) != is_narrow
    case = {"book_snapshot_5_1s": "narrow:bookSnapshot"}.get(data_types[0], "auto")
    found = messages(rows, case if is_narrow else "auto")
    stream = Stream(exchange, START, END, data_types, symbols)
    wanted = expected(sample_api, tmp_path / "other", stream)
    assert sum(wanted.values()) > 100
    assert found == wanted


def test_several_streams_are_read_together(
    read: Any, sample_api: SampleApiThread, tmp_path: Path
) -> None:
    streams = [
        {"exchange": "bitmex", "from": START, "to": END, "dataTypes": ["trade"]},
        {"exchange": "deribit", "from": START, "to": END, "dataTypes": ["trade"]},
    ]
    rows = read(streams=json.dumps(streams))
    assert {row.exchange for row in rows.select("exchange").distinct().collect()} == {
        "bitmex",
        "deribit",
    }
    wanted = expected(
        sample_api,
        tmp_path / "other",
        *[Stream(stream["exchange"], START, END, ["trade"]) for stream in streams],  # type: ignore[arg-type]
    )
    assert messages(rows) == wanted


def test_partitions_are_read_by_several_tasks(read: Any) -> None:
    rows = read(**TRADES, partition_minutes=1)
    assert rows.rdd.getNumPartitions() == 6
    sessions = rows.select(f.col("meta")["session_id"].alias("session")).distinct().collect()
    assert len(sessions) == 6
    again = read(**TRADES, partition_minutes=1)
    identity = (f.col("meta")["session_id"], "event_seq")
    assert rows.select(*identity).exceptAll(again.select(*identity)).count() == 0


def test_filters_read_no_more_slices_than_needed(read: Any, sample_api: SampleApiThread) -> None:
    rows = read(**TRADES, partition_minutes=1)
    before = sample_api.api.requests
    minutes = f.col("local_ts") >= "2024-03-01 00:02:30"
    narrow = rows.where(minutes & (f.col("local_ts") < "2024-03-01 00:04:00"))
    found = narrow.collect()
    # Minutes 2 and 3; the last minute of a range is asked for first, and is its only one here.
    assert sample_api.api.requests - before == 2
    assert {row.local_ts.minute for row in found} == {2, 3}
    assert min(row.local_ts for row in found).second >= 30

    before = sample_api.api.requests
    books = read(**TRADES | {"data_types": "book_change", "symbols": "XBTUSD,ETHUSD,SOLUSD"})
    one = books.where((f.col("symbol") == "XBTUSD") & (f.col("local_ts") < "2024-03-01 00:03:00"))
    assert {row.symbol for row in one.select("symbol").distinct().collect()} == {"XBTUSD"}
    # A book needs its beginning: minutes 0 to 2, of one symbol; the one between is a slice too.
    assert sample_api.api.requests - before == 3
    assert read(**TRADES).where(f.col("exchange") == "deribit").count() == 0
    assert sample_api.api.requests - before == 3


def test_only_trades_are_cut(tmp_path: Path) -> None:
    del tmp_path
    start = datetime(2024, 3, 1, tzinfo=timezone.utc)
    end = start.replace(hour=3)
    whole = Part("bitmex", ("trade", "book_change", "quote"), ("A", "B"), start, end)
    parts = plan([whole], 60)
    assert [(part.data_types, part.symbols, part.from_date.hour) for part in parts] == [
        (("trade",), ("A", "B"), 0),
        (("trade",), ("A", "B"), 1),
        (("trade",), ("A", "B"), 2),
        (("book_change", "quote"), ("A",), 0),
        (("book_change", "quote"), ("B",), 0),
    ]
    narrowing = Narrowing(symbols=frozenset({"b"}), from_date=start.replace(hour=2))
    narrowed = plan([whole], 60, narrowing)
    assert [(part.symbols, part.from_date.hour) for part in narrowed] == [(("B",), 2), (("B",), 0)]
    stateful = Part("bitfinex", ("trade",), None, start, end)
    assert plan([stateful], 60) == [stateful]
    disconnects = Part("bitmex", ("trade",), ("A", "B"), start, end, with_disconnect_messages=True)
    assert plan([disconnects], 60, narrowing) == [disconnects]


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        ({"data_types": ""}, "data_types: it is missing"),
        ({"from": "yesterday"}, "from: `yesterday` is no date or time"),
        ({"partition_minutes": "0"}, "partition_minutes: `0` is no whole number"),
        ({"symbol": "XBTUSD"}, "did you mean `symbols`"),
        ({"streams": "[]"}, "streams: it contradicts exchange"),
        ({"book_changes": "page"}, "book_changes is `page`"),
    ],
)
def test_options_are_checked_at_once(read: Any, options: dict[str, str], refusal: str) -> None:
    with pytest.raises(Exception, match=refusal):
        read(**TRADES | options)
