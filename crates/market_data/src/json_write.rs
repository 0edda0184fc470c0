//! Messages as JSON: field order, numbers, times and escapes as JavaScript writes them.

use std::borrow::Cow;

use crate::message::{
    BarKind, BookLevel, BookTickerField, Message, OptionSummary, OptionType, Side, TradeBar,
};
use crate::number::{write_integer, write_number};
use crate::time::Timestamp;

/// Writes `message` as one JSON object, without a newline.
pub fn write_message(out: &mut Vec<u8>, message: &Message<'_>) {
    let mut object = Object::begin(out, message.type_name());
    match message {
        Message::Trade(trade) | Message::Liquidation(trade) => {
            object.instrument(&trade.symbol, &trade.exchange);
            if let Some(id) = &trade.id {
                object.text("id", id);
            }
            object.number("price", trade.price);
            object.number("amount", trade.amount);
            let side = match trade.side {
                Side::Buy => "buy",
                Side::Sell => "sell",
                Side::Unknown => "unknown",
            };
            object.text("side", side);
            object.time("timestamp", trade.timestamp);
            object.time("localTimestamp", trade.local_timestamp);
        }
        Message::BookChange(change) => {
            object.instrument(&change.symbol, &change.exchange);
            object.bool("isSnapshot", change.is_snapshot);
            object.levels("bids", change.bids.iter().map(|level| Some(*level)));
            object.levels("asks", change.asks.iter().map(|level| Some(*level)));
            object.time("timestamp", change.timestamp);
            object.time("localTimestamp", change.local_timestamp);
        }
        Message::DerivativeTicker(ticker) => {
            object.instrument(&ticker.symbol, &ticker.exchange);
            object.optional_number("lastPrice", ticker.last_price);
            object.optional_number("openInterest", ticker.open_interest);
            object.optional_number("fundingRate", ticker.funding_rate);
            object.optional_time("fundingTimestamp", ticker.funding_timestamp);
            object.optional_number("predictedFundingRate", ticker.predicted_funding_rate);
            object.optional_number("indexPrice", ticker.index_price);
            object.optional_number("markPrice", ticker.mark_price);
            object.time("timestamp", ticker.timestamp);
            object.time("localTimestamp", ticker.local_timestamp);
        }
        Message::OptionSummary(summary) => option_summary(&mut object, summary),
        Message::BookTicker(ticker) => {
            object.instrument(&ticker.symbol, &ticker.exchange);
            for field in ticker.order.fields() {
                let name = match field {
                    BookTickerField::AskAmount => "askAmount",
                    BookTickerField::AskPrice => "askPrice",
                    BookTickerField::BidPrice => "bidPrice",
                    BookTickerField::BidAmount => "bidAmount",
                };
                object.optional_number(name, ticker.value(field));
            }
            object.time("timestamp", ticker.timestamp);
            object.time("localTimestamp", ticker.local_timestamp);
        }
        Message::BookSnapshot(snapshot) => {
            object.instrument(&snapshot.symbol, &snapshot.exchange);
            object.text("name", &snapshot.name);
            object.integer("depth", snapshot.depth);
            object.integer("interval", snapshot.interval);
            object.optional_number("grouping", snapshot.grouping);
            object.levels("bids", snapshot.bids.iter().copied());
            object.levels("asks", snapshot.asks.iter().copied());
            object.time("timestamp", snapshot.timestamp);
            object.time("localTimestamp", snapshot.local_timestamp);
        }
        Message::TradeBar(bar) => trade_bar(&mut object, bar),
        Message::Error(error) => {
            object.text("exchange", &error.exchange);
            object.time("localTimestamp", error.local_timestamp);
            object.text("details", &error.details);
            object.integer("subSequentErrorsCount", error.subsequent_errors);
        }
        Message::Disconnect(disconnect) => {
            object.text("exchange", &disconnect.exchange);
            object.time("localTimestamp", disconnect.local_timestamp);
            if let Some(symbols) = &disconnect.symbols {
                object.texts("symbols", symbols);
            }
        }
    }
    object.end();
}

fn trade_bar(object: &mut Object<'_>, bar: &TradeBar<'_>) {
    object.instrument(&bar.symbol, &bar.exchange);
    object.text("name", &bar.name);
    object.integer("interval", bar.interval);
    let kind = match bar.kind {
        BarKind::Time => "time",
        BarKind::Tick => "tick",
        BarKind::Volume => "volume",
    };
    object.text("kind", kind);
    object.number("open", bar.open);
    object.number("high", bar.high);
    object.number("low", bar.low);
    object.number("close", bar.close);
    object.number("volume", bar.volume);
    object.number("buyVolume", bar.buy_volume);
    object.number("sellVolume", bar.sell_volume);
    object.integer("trades", bar.trades);
    object.number("vwap", bar.vwap);
    object.time("openTimestamp", bar.open_timestamp);
    object.time("closeTimestamp", bar.close_timestamp);
    object.time("localTimestamp", bar.local_timestamp);
    object.time("timestamp", bar.timestamp);
}

fn option_summary(object: &mut Object<'_>, summary: &OptionSummary<'_>) {
    object.instrument(&summary.symbol, &summary.exchange);
    match summary.option_type {
        Some(OptionType::Call) => object.text("optionType", "call"),
        Some(OptionType::Put) => object.text("optionType", "put"),
        None => {}
    }
    object.optional_number("strikePrice", summary.strike_price);
    object.optional_time("expirationDate", summary.expiration_date);
    for (name, value) in [
        ("bestBidPrice", summary.best_bid_price),
        ("bestBidAmount", summary.best_bid_amount),
        ("bestBidIV", summary.best_bid_iv),
        ("bestAskPrice", summary.best_ask_price),
        ("bestAskAmount", summary.best_ask_amount),
        ("bestAskIV", summary.best_ask_iv),
        ("lastPrice", summary.last_price),
        ("openInterest", summary.open_interest),
        ("markPrice", summary.mark_price),
        ("markIV", summary.mark_iv),
        ("delta", summary.delta),
        ("gamma", summary.gamma),
        ("vega", summary.vega),
        ("theta", summary.theta),
        ("rho", summary.rho),
        ("underlyingPrice", summary.underlying_price),
    ] {
        object.optional_number(name, value);
    }
    if let Some(index) = &summary.underlying_index {
        object.text("underlyingIndex", index);
    }
    object.time("timestamp", summary.timestamp);
    object.time("localTimestamp", summary.local_timestamp);
}

/// An object being written: fields in the order of the calls.
struct Object<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Object<'a> {
    fn begin(out: &'a mut Vec<u8>, type_name: &str) -> Self {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(type_name.as_bytes());
        out.push(b'"');
        Self { out }
    }

    fn end(self) {
        self.out.push(b'}');
    }

    fn key(&mut self, name: &str) {
        self.out.extend_from_slice(b",\"");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn instrument(&mut self, symbol: &str, exchange: &str) {
        self.text("symbol", symbol);
        self.text("exchange", exchange);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        write_text(self.out, value);
    }

    fn texts(&mut self, name: &str, values: &[Cow<'_, str>]) {
        self.key(name);
        write_list(self.out, values, |out, value| write_text(out, value));
    }

    fn bool(&mut self, name: &str, value: bool) {
        self.key(name);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    fn integer(&mut self, name: &str, value: impl Into<u64>) {
        self.key(name);
        write_integer(self.out, value.into());
    }

    fn number(&mut self, name: &str, value: f64) {
        self.key(name);
        write_number(self.out, value);
    }

    fn optional_number(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.number(name, value);
        }
    }

    fn time(&mut self, name: &str, value: Timestamp) {
        self.key(name);
        if value.micros().is_none() {
            self.out.extend_from_slice(b"null");
        } else {
            self.out.push(b'"');
            value.write(self.out);
            self.out.push(b'"');
        }
    }

    fn optional_time(&mut self, name: &str, value: Option<Timestamp>) {
        if let Some(value) = value {
            self.time(name, value);
        }
    }

    fn levels(&mut self, name: &str, levels: impl IntoIterator<Item = Option<BookLevel>>) {
        self.key(name);
        write_list(self.out, levels, |out, level| {
            out.push(b'{');
            if let Some(level) = level {
                out.extend_from_slice(b"\"price\":");
                write_number(out, level.price);
                out.extend_from_slice(b",\"amount\":");
                write_number(out, level.amount);
            }
            out.push(b'}');
        });
    }
}

fn write_list<T>(
    out: &mut Vec<u8>,
    values: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    out.push(b'[');
    for (position, value) in values.into_iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write(out, value);
    }
    out.push(b']');
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}
