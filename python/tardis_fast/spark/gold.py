"""Silver to Gold: bars, top of book, funding, open interest, and how complete the days are.

A partition (a date and an exchange) is always computed as a whole from Silver and replaces what was
there: computing it again gives the same. A run takes the partitions that Silver says have changed
since the last run, or those of the dates it is given.

All Gold figures are integers in Silver's scales but for ratios. Sums are DECIMAL(38, 0), so that
they always have room.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import functions as f
from pyspark.sql.window import Window

from tardis_fast._core import ConfigError
from tardis_fast.spark.completeness import write_completeness
from tardis_fast.spark.silver import CHANGES
from tardis_fast.spark.streams import run_stream
from tardis_fast.spark.tables import where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import date

    from pyspark.sql import Column, DataFrame

    from tardis_fast.spark.tables import Partition, Tables

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DAY_SECONDS = 86_400
_ORDER = "struct(event_ts, local_ts, session, event_seq)"
"""By the exchange's time, then as received; sessions have no order, but always the same one."""
Dates: TypeAlias = "tuple[date, date]"
"""The first date and the last, both included."""


@dataclass(frozen=True)
class Interval:
    """A length of time that divides a day, so that no bar lies in two partitions."""

    name: str
    seconds: int

    @classmethod
    def of(cls, text: str) -> Interval:
        """Read for example `10s`, `1m`, `4h`, `1d`."""
        match = re.fullmatch("([0-9]+)([smhd])", text)
        seconds = int(match[1]) * _UNITS[match[2]] if match else 0
        if seconds == 0 or _DAY_SECONDS % seconds:
            raise ConfigError(
                f"{text!r} is no interval; give a number and s, m, h or d that divides a day, "
                "for example 10s, 1m, 4h or 1d"
            )
        return cls(text, seconds)

    def start(self, time: str) -> Column:
        """Return the start of the interval that a time lies in."""
        return f.expr(
            f"timestamp_seconds(floor(unix_seconds({time}) / {self.seconds}) * {self.seconds})"
        )


@dataclass(frozen=True)
class GoldOptions:
    """What is made."""

    bars: Sequence[str] = ("1m", "1h")
    """Intervals of bars."""
    sampling: str = "1s"
    """Interval of the top of the book."""
    series: str = "1m"
    """Interval of open interest."""
    dates: Dates | None = None
    """Compute these dates; those that have changed if there are none."""
    plots: str | None = None
    """Directory for the plots of the completeness report."""


def run_gold(tables: Tables, options: GoldOptions | None = None) -> list[Partition]:
    """Compute what has changed, or what is asked for; return the partitions that were computed."""
    options = options or GoldOptions()
    intervals = [Interval.of(text) for text in options.bars]
    done: list[Partition] = []

    def compute(changes: DataFrame, _: int = 0) -> None:
        changed: dict[str, list[Partition]] = {}
        rows = changes.select("changed", "date", "exchange").distinct()
        for row in rows.orderBy("changed", "date", "exchange").collect():
            partition = {"date": row["date"], "exchange": row["exchange"]}
            changed.setdefault(row["changed"], []).append(partition)
            if partition not in done:
                done.append(partition)
        _compute(tables, changed, options, intervals)

    if options.dates is None:
        run_stream(tables.table(CHANGES).read_new(), compute, tables.checkpoint("gold"))
    else:
        compute(tables.table(CHANGES).read().where(f.col("date").between(*options.dates)))
    return done


def _compute(
    tables: Tables,
    changed: dict[str, list[Partition]],
    options: GoldOptions,
    intervals: Sequence[Interval],
) -> None:
    def replace(
        name: str, sources: Sequence[str], make: Callable[[dict[str, DataFrame]], DataFrame]
    ) -> None:
        partitions = _distinct(part for source in sources for part in changed.get(source, ()))
        if not partitions:
            return
        silver = {source: tables.table(f"silver/{source}") for source in sources}
        rows = {
            source: table.read().where(where(partitions))
            for source, table in silver.items()
            if table.exists
        }
        tables.table(f"gold/{name}").replace(make(rows), partitions)

    replace("bars", ["trade"], lambda silver: bars(silver["trade"], intervals))
    replace(
        "top_of_book",
        list(_TOPS),
        lambda silver: top_of_book(silver, Interval.of(options.sampling)),
    )
    replace("funding", ["derivative_ticker"], lambda silver: funding(silver["derivative_ticker"]))
    replace(
        "open_interest",
        ["derivative_ticker"],
        lambda silver: open_interest(silver["derivative_ticker"], Interval.of(options.series)),
    )
    if "bronze" in changed:
        write_completeness(tables, changed["bronze"], options.plots)


def bars(trades: DataFrame, intervals: Sequence[Interval]) -> DataFrame:
    """Return open, high, low, close and volume of trades, for several intervals in one table.

    Trades are ordered by the exchange's time, then by the time of receipt. `vwap_e8` is rounded.
    """
    starts = f.array(
        *(
            f.struct(
                f.lit(interval.name).alias("interval"),
                interval.start("event_ts").alias("start_ts"),
                f.lit(interval.seconds).alias("seconds"),
            )
            for interval in intervals
        )
    )
    rows = trades.where("event_ts IS NOT NULL").withColumn("bar", f.explode(starts))
    order = _ORDER.replace(")", ", trade_id, price_e8)")
    volume, qty = "sum(CAST(qty_e8 AS DECIMAL(38, 0)))", "CAST(qty_e8 AS DECIMAL(19, 0))"
    turnover = f"sum(CAST(price_e8 AS DECIMAL(19, 0)) * {qty})"
    sides = {
        side: f"coalesce({volume} FILTER (WHERE side = 'SIDE_{side}'), 0)"
        for side in ("BUY", "SELL")
    }
    return (
        rows.groupBy("date", "exchange", "symbol", "bar")
        .agg(
            f.expr(f"min_by(price_e8, {order})").alias("open_e8"),
            f.max("price_e8").alias("high_e8"),
            f.min("price_e8").alias("low_e8"),
            f.expr(f"max_by(price_e8, {order})").alias("close_e8"),
            f.expr(f"CAST({volume} AS DECIMAL(38, 0))").alias("volume_e8"),
            f.expr(f"CAST({sides['BUY']} AS DECIMAL(38, 0))").alias("buy_volume_e8"),
            f.expr(f"CAST({sides['SELL']} AS DECIMAL(38, 0))").alias("sell_volume_e8"),
            f.expr(f"CAST(round(try_divide({turnover}, {volume})) AS BIGINT)").alias("vwap_e8"),
            f.count("*").alias("trades"),
        )
        .selectExpr(
            "exchange",
            "symbol",
            "bar.interval",
            "bar.start_ts",
            "timestamp_seconds(unix_seconds(bar.start_ts) + bar.seconds) AS end_ts",
            *("open_e8", "high_e8", "low_e8", "close_e8"),
            *("volume_e8", "buy_volume_e8", "sell_volume_e8", "vwap_e8", "trades", "date"),
        )
    )


_QUOTE = ("bid_price_e8", "bid_qty_e8", "ask_price_e8", "ask_qty_e8")
_TOPS = {
    "quote": ("name", *_QUOTE),
    "book_ticker": ("'book_ticker' AS name", *_QUOTE),
    "book_snapshot": (
        "name",
        "get(bids, 0).price_e8 AS bid_price_e8",
        "get(bids, 0).qty_e8 AS bid_qty_e8",
        "get(asks, 0).price_e8 AS ask_price_e8",
        "get(asks, 0).qty_e8 AS ask_qty_e8",
    ),
}
"""Silver tables that tell the best bid and ask, and how."""


def top_of_book(silver: dict[str, DataFrame], interval: Interval) -> DataFrame:
    """Return the last best bid and ask of each interval, with their spread.

    One series for each name, the data type that told it (`quote`, `book_ticker`, …).
    """
    parts = [
        rows.where("event_ts IS NOT NULL").selectExpr(
            *("date", "exchange", "symbol", "event_ts", "local_ts", "session", "event_seq"),
            *_TOPS[source],
        )
        for source, rows in silver.items()
    ]
    tops = parts[0]
    for part in parts[1:]:
        tops = tops.unionByName(part)
    last = f.expr(f"max_by(struct(event_ts, {', '.join(_QUOTE)}), {_ORDER})")
    return (
        tops.withColumn("start_ts", interval.start("event_ts"))
        .groupBy("date", "exchange", "symbol", "name", "start_ts")
        .agg(last.alias("last"), f.count("*").alias("updates"))
        .selectExpr(
            *("exchange", "symbol", "name", "start_ts", "last.*", "updates", "date"),
        )
        .selectExpr(
            *("exchange", "symbol", "name", "start_ts", "event_ts", *_QUOTE),
            "ask_price_e8 - bid_price_e8 AS spread_e8",
            "try_divide(2e4D * (ask_price_e8 - bid_price_e8), "
            "CAST(ask_price_e8 AS DOUBLE) + bid_price_e8) AS spread_bps",
            *("updates", "date"),
        )
    )


def funding(tickers: DataFrame) -> DataFrame:
    """Return funding at each change of the rate, of the expected rate or of the time of payment.

    The first of each day stands even if it is as on the day before.
    """
    state = f.struct("funding_rate_e9", "predicted_funding_rate_e9", "funding_ts")
    order = Window.partitionBy("date", "exchange", "symbol").orderBy(
        "event_ts", "local_ts", "session", "event_seq"
    )
    told = "coalesce(funding_rate_e9, predicted_funding_rate_e9) IS NOT NULL"
    return (
        tickers.where(f"event_ts IS NOT NULL AND {told}")
        .withColumn("is_same", state.eqNullSafe(f.lag(state).over(order)))
        .where(~f.col("is_same"))
        .select(
            *("exchange", "symbol", "event_ts", "funding_rate_e9", "predicted_funding_rate_e9"),
            *("funding_ts", "mark_price_e8", "index_price_e8", "date"),
        )
    )


def open_interest(tickers: DataFrame, interval: Interval) -> DataFrame:
    """Return the last open interest of each interval, with its highest and lowest."""
    return (
        tickers.where("event_ts IS NOT NULL AND open_interest_e8 IS NOT NULL")
        .withColumn("start_ts", interval.start("event_ts"))
        .groupBy("date", "exchange", "symbol", "start_ts")
        .agg(
            f.expr(f"max_by(open_interest_e8, {_ORDER})").alias("open_interest_e8"),
            f.max("open_interest_e8").alias("highest_e8"),
            f.min("open_interest_e8").alias("lowest_e8"),
            f.expr(f"max_by(mark_price_e8, {_ORDER})").alias("mark_price_e8"),
            f.count("*").alias("updates"),
        )
        .select(
            *("exchange", "symbol", "start_ts", "open_interest_e8", "highest_e8", "lowest_e8"),
            *("mark_price_e8", "updates", "date"),
        )
    )


def _distinct(partitions: Iterable[Partition]) -> list[Partition]:
    found: list[Partition] = []
    for partition in partitions:
        if partition not in found:
            found.append(partition)
    return found
