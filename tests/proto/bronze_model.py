"""The mapping from a normalized message to its Bronze events, written down a second time.

Plain Python over the generated classes, straight from the schema's documentation. The tests hold
the Rust encoder's bytes against it.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from tardis_fast.proto.lakehouse.bronze.v1 import normalized_event_pb2 as pb

Message = Mapping[str, Any]

SIDES = {"buy": pb.SIDE_BUY, "sell": pb.SIDE_SELL, "unknown": pb.SIDE_UNSPECIFIED}
KINDS = {"time": pb.BAR_KIND_TIME, "tick": pb.BAR_KIND_TICK, "volume": pb.BAR_KIND_VOLUME}
OPTION_TYPES = {"call": pb.OPTION_TYPE_CALL, "put": pb.OPTION_TYPE_PUT}
LETTERS = {"askAmount": "a", "askPrice": "A", "bidPrice": "B", "bidAmount": "b"}


def decimal(value: float | None) -> str:
    """Return plain text; JSON's `null` is a number that could not be read."""
    if value is None:
        return "NaN"
    if isinstance(value, float) and (math.isinf(value) or math.isnan(value)):
        raise ValueError(value)
    text = format(Decimal(repr(float(value))), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def optional(message: Message, name: str) -> str:
    """Return a number's text, empty if it is absent."""
    return decimal(message[name]) if name in message else ""


def put_time(target: Timestamp, text: str | None) -> bool:
    """Set `target` unless the time could not be read; return whether it has microseconds."""
    if text is None:
        return False
    moment = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    target.seconds = int(moment.replace(microsecond=0).timestamp())
    target.nanos = moment.microsecond * 1_000
    target.SetInParent()
    return len(text) == len("2020-01-01T00:00:00.000000Z")


def events(
    message: Message,
    *,
    meta: Mapping[str, str],
    first_seq: int,
    ingest_micros: int,
    per_level: bool,
) -> Iterator[pb.NormalizedEvent]:
    """Yield the events of a message."""
    kind = message["type"]
    parts = len(message.get("bids", ())) + len(message.get("asks", ()))
    levels = parts if kind == "book_change" and per_level and parts else 1
    for part in range(levels):
        event = pb.NormalizedEvent(
            source="tardis-fast",
            exchange=message["exchange"],
            symbol=message.get("symbol", ""),
            event_seq=first_seq + part,
            origin=pb.ORIGIN_ARCHIVE,
            meta={**meta, "data_type": kind},
        )
        local = message["localTimestamp"]
        has_micros = put_time(event.local_ts, local)
        event.local_ts_millis_only = local is not None and not has_micros
        event.ingest_ts.seconds, micros = divmod(ingest_micros, 1_000_000)
        event.ingest_ts.nanos = micros * 1_000
        if "name" in message:
            event.meta["data_name"] = message["name"]
        if kind == "book_change":
            event.meta["is_snapshot"] = "true" if message["isSnapshot"] else "false"
            put_book_change(event.book_change, message, part, parts if per_level else 0)
        else:
            PAYLOADS[kind](event, message)
        yield event


def put_book_change(change: pb.BookChange, message: Message, part: int, parts: int) -> None:
    """Fill in one level, or the whole message if there are no parts."""
    change.SetInParent()
    change.is_snapshot = message["isSnapshot"]
    change.event_ts_has_micros = put_time(change.event_ts, message["timestamp"])
    bids, asks = message["bids"], message["asks"]
    if parts:
        is_bid = part < len(bids)
        change.level = part if is_bid else part - len(bids)
        level = bids[part] if is_bid else asks[change.level]
        change.side = pb.SIDE_BUY if is_bid else pb.SIDE_SELL
        change.action = pb.ACTION_DELETE if level["amount"] == 0 else pb.ACTION_UPSERT
        change.price_str = decimal(level["price"])
        change.qty_str = decimal(level["amount"])
        change.part, change.parts = part, parts
    else:
        for target, levels in ((change.bids, bids), (change.asks, asks)):
            for level in levels:
                target.add(price_str=decimal(level["price"]), qty_str=decimal(level["amount"]))


def put_trade(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in a trade."""
    trade = event.trade
    trade.trade_id = message.get("id", "")
    trade.trade_id_is_empty = message.get("id") == ""
    trade.price_str = decimal(message["price"])
    trade.qty_str = decimal(message["amount"])
    trade.side = SIDES[message["side"]]
    trade.event_ts_has_micros = put_time(trade.event_ts, message["timestamp"])


def put_liquidation(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in a liquidation."""
    liquidation = event.liquidation
    liquidation.order_id = message.get("id", "")
    liquidation.order_id_is_empty = message.get("id") == ""
    liquidation.price_str = decimal(message["price"])
    liquidation.qty_str = decimal(message["amount"])
    liquidation.side = SIDES[message["side"]]
    liquidation.event_ts_has_micros = put_time(liquidation.event_ts, message["timestamp"])


def put_snapshot(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in a snapshot, a grouped one or a quote."""
    name = message["name"]
    snapshot: pb.BookSnapshot | pb.GroupedBookSnapshot
    if "grouping" in message:
        snapshot = event.grouped_book_snapshot
        snapshot.grouping_str = decimal(message["grouping"])
        if snapshot.grouping_str.isdigit() and int(snapshot.grouping_str) < 2**32:
            snapshot.grouping = int(snapshot.grouping_str)
    elif name == "quote" or name.startswith("quote_"):
        put_quote(event.quote, message)
        return
    else:
        snapshot = event.book_snapshot
    snapshot.depth = message["depth"]
    snapshot.interval = message["interval"]
    snapshot.interval_ms = min(message["interval"], 2**32 - 1)
    snapshot.name = name
    for target, levels in ((snapshot.bids, message["bids"]), (snapshot.asks, message["asks"])):
        for level in levels:
            target.add(price_str=optional(level, "price"), qty_str=optional(level, "amount"))
    snapshot.event_ts_has_micros = put_time(snapshot.event_ts, message["timestamp"])


def put_quote(quote: pb.Quote, message: Message) -> None:
    """Fill in a quote."""
    (bid,), (ask,) = message["bids"], message["asks"]
    quote.name = message["name"]
    quote.interval = message["interval"]
    quote.bid_price_str = optional(bid, "price")
    quote.bid_qty_str = optional(bid, "amount")
    quote.ask_price_str = optional(ask, "price")
    quote.ask_qty_str = optional(ask, "amount")
    quote.event_ts_has_micros = put_time(quote.event_ts, message["timestamp"])


def put_book_ticker(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in a book ticker."""
    ticker = event.book_ticker
    ticker.best_bid_price_str = optional(message, "bidPrice")
    ticker.best_bid_qty_str = optional(message, "bidAmount")
    ticker.best_ask_price_str = optional(message, "askPrice")
    ticker.best_ask_qty_str = optional(message, "askAmount")
    order = "".join(LETTERS[name] for name in message if name in LETTERS)
    rest = iter("aABb")
    if not all(letter in rest for letter in order):
        ticker.field_order = order + "".join(letter for letter in "aABb" if letter not in order)
    ticker.event_ts_has_micros = put_time(ticker.event_ts, message["timestamp"])


def put_derivative_ticker(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in a derivative ticker."""
    ticker = event.derivative_ticker
    ticker.SetInParent()
    ticker.last_price_str = optional(message, "lastPrice")
    ticker.open_interest_str = optional(message, "openInterest")
    ticker.funding_rate_str = optional(message, "fundingRate")
    ticker.predicted_funding_rate_str = optional(message, "predictedFundingRate")
    ticker.index_price_str = optional(message, "indexPrice")
    ticker.mark_price_str = optional(message, "markPrice")
    if "fundingTimestamp" in message:
        funding = message["fundingTimestamp"]
        ticker.funding_ts_is_invalid = funding is None
        ticker.funding_ts_has_micros = put_time(ticker.funding_ts, funding)
    ticker.event_ts_has_micros = put_time(ticker.event_ts, message["timestamp"])


def put_option_summary(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in an option summary."""
    summary = event.option_summary
    summary.SetInParent()
    for field, name in OPTION_NUMBERS.items():
        setattr(summary, field, optional(message, name))
    if "optionType" in message:
        summary.option_type = OPTION_TYPES[message["optionType"]]
    if "underlyingIndex" in message:
        summary.underlying_index = message["underlyingIndex"]
    if "expirationDate" in message:
        expiration = message["expirationDate"]
        summary.expiration_ts_is_invalid = expiration is None
        summary.expiration_ts_has_micros = put_time(summary.expiration_ts, expiration)
    summary.event_ts_has_micros = put_time(summary.event_ts, message["timestamp"])


OPTION_NUMBERS = {
    "iv_str": "markIV",
    "delta_str": "delta",
    "gamma_str": "gamma",
    "theta_str": "theta",
    "vega_str": "vega",
    "rho_str": "rho",
    "oi_str": "openInterest",
    "strike_price_str": "strikePrice",
    "best_bid_price_str": "bestBidPrice",
    "best_bid_qty_str": "bestBidAmount",
    "best_bid_iv_str": "bestBidIV",
    "best_ask_price_str": "bestAskPrice",
    "best_ask_qty_str": "bestAskAmount",
    "best_ask_iv_str": "bestAskIV",
    "last_price_str": "lastPrice",
    "mark_price_str": "markPrice",
    "underlying_price_str": "underlyingPrice",
}


def put_trade_bar(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in a trade bar."""
    bar = event.trade_bar
    bar.kind = KINDS[message["kind"]]
    bar.interval = message["interval"]
    bar.name = message["name"]
    bar.trade_count = message["trades"]
    for field, name in BAR_NUMBERS.items():
        setattr(bar, field, decimal(message[name]))
    bar.end_ts_has_micros = put_time(bar.end_ts, message["timestamp"])
    bar.open_ts_has_micros = put_time(bar.open_ts, message["openTimestamp"])
    bar.close_ts_has_micros = put_time(bar.close_ts, message["closeTimestamp"])
    if bar.kind == pb.BAR_KIND_TIME:
        bar.interval_ms = min(message["interval"], 2**32 - 1)
        if message["timestamp"] is not None:
            end = bar.end_ts.seconds * 1_000_000 + bar.end_ts.nanos // 1_000
            bar.event_ts.seconds, micros = divmod(end - message["interval"] * 1_000, 1_000_000)
            bar.event_ts.nanos = micros * 1_000
            bar.event_ts.SetInParent()
    else:
        put_time(bar.event_ts, message["openTimestamp"])


BAR_NUMBERS = {
    "open_str": "open",
    "high_str": "high",
    "low_str": "low",
    "close_str": "close",
    "volume_str": "volume",
    "buy_volume_str": "buyVolume",
    "sell_volume_str": "sellVolume",
    "vwap_str": "vwap",
}


def put_error(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in an error."""
    event.error.SetInParent()
    event.error.details = message["details"]
    event.error.subsequent_errors = message["subSequentErrorsCount"]


def put_disconnect(event: pb.NormalizedEvent, message: Message) -> None:
    """Fill in a disconnect."""
    event.disconnect.SetInParent()
    if "symbols" in message:
        event.meta["symbols"] = ",".join(message["symbols"])
        event.disconnect.symbols.values.extend(message["symbols"])
        event.disconnect.symbols.SetInParent()


PAYLOADS = {
    "trade": put_trade,
    "liquidation": put_liquidation,
    "book_snapshot": put_snapshot,
    "book_ticker": put_book_ticker,
    "derivative_ticker": put_derivative_ticker,
    "option_summary": put_option_summary,
    "trade_bar": put_trade_bar,
    "error": put_error,
    "disconnect": put_disconnect,
}
