//! Messages as JSON: field order, numbers, times and escapes as JavaScript writes them.

use std::borrow::Cow;

use crate::eight_bytes::end_of_plain;
use crate::message::{
    BarKind, BookLevel, BookTickerField, Message, OptionSummary, OptionType, Side, TradeBar,
};
use crate::number::{write_integer, write_number};
use crate::recent_numbers::RecentNumbers;
use crate::time::Timestamp;

/// A field's name as it is written: with the comma before it, its quotes and the colon. Where there
/// are only a few values, with the value too.
#[derive(Clone, Copy)]
struct Key(&'static str);

/// The [`Key`] of a name.
macro_rules! key {
    ($name:literal) => {
        Key(concat!(",\"", $name, "\":"))
    };
}

/// How a message's object begins: its type, and the name of the field after that.
fn opening(message: &Message<'_>) -> &'static str {
    match message {
        Message::Trade(_) => r#"{"type":"trade","symbol":"#,
        Message::BookChange(_) => r#"{"type":"book_change","symbol":"#,
        Message::DerivativeTicker(_) => r#"{"type":"derivative_ticker","symbol":"#,
        Message::Liquidation(_) => r#"{"type":"liquidation","symbol":"#,
        Message::OptionSummary(_) => r#"{"type":"option_summary","symbol":"#,
        Message::BookTicker(_) => r#"{"type":"book_ticker","symbol":"#,
        Message::BookSnapshot(_) => r#"{"type":"book_snapshot","symbol":"#,
        Message::TradeBar(_) => r#"{"type":"trade_bar","symbol":"#,
        Message::Error(_) => r#"{"type":"error","exchange":"#,
        Message::Disconnect(_) => r#"{"type":"disconnect","exchange":"#,
    }
}

/// Writes `message` as one JSON object, without a newline.
pub fn write_message(out: &mut Vec<u8>, message: &Message<'_>) {
    let mut object = Object { out };
    object.out.extend_from_slice(opening(message).as_bytes());
    match message {
        Message::Trade(trade) | Message::Liquidation(trade) => {
            object.instrument(&trade.symbol, &trade.exchange);
            if let Some(id) = &trade.id {
                object.text(key!("id"), id);
            }
            object.repeated_number(key!("price"), trade.price);
            object.number(key!("amount"), trade.amount);
            object.key(match trade.side {
                Side::Buy => Key(r#","side":"buy""#),
                Side::Sell => Key(r#","side":"sell""#),
                Side::Unknown => Key(r#","side":"unknown""#),
            });
            object.time(key!("timestamp"), trade.timestamp);
            object.time(key!("localTimestamp"), trade.local_timestamp);
        }
        Message::BookChange(change) => {
            object.instrument(&change.symbol, &change.exchange);
            object.bool(key!("isSnapshot"), change.is_snapshot);
            object.changed_levels(key!("bids"), &change.bids);
            object.changed_levels(key!("asks"), &change.asks);
            object.time(key!("timestamp"), change.timestamp);
            object.time(key!("localTimestamp"), change.local_timestamp);
        }
        Message::DerivativeTicker(ticker) => {
            object.instrument(&ticker.symbol, &ticker.exchange);
            object.optional_number(key!("lastPrice"), ticker.last_price);
            object.optional_number(key!("openInterest"), ticker.open_interest);
            object.optional_number(key!("fundingRate"), ticker.funding_rate);
            object.optional_time(key!("fundingTimestamp"), ticker.funding_timestamp);
            object.optional_number(key!("predictedFundingRate"), ticker.predicted_funding_rate);
            object.optional_number(key!("indexPrice"), ticker.index_price);
            object.optional_number(key!("markPrice"), ticker.mark_price);
            object.time(key!("timestamp"), ticker.timestamp);
            object.time(key!("localTimestamp"), ticker.local_timestamp);
        }
        Message::OptionSummary(summary) => option_summary(&mut object, summary),
        Message::BookTicker(ticker) => {
            object.instrument(&ticker.symbol, &ticker.exchange);
            for field in ticker.order.fields() {
                let key = match field {
                    BookTickerField::AskAmount => key!("askAmount"),
                    BookTickerField::AskPrice => key!("askPrice"),
                    BookTickerField::BidPrice => key!("bidPrice"),
                    BookTickerField::BidAmount => key!("bidAmount"),
                };
                object.optional_number(key, ticker.value(field));
            }
            object.time(key!("timestamp"), ticker.timestamp);
            object.time(key!("localTimestamp"), ticker.local_timestamp);
        }
        Message::BookSnapshot(snapshot) => {
            object.instrument(&snapshot.symbol, &snapshot.exchange);
            object.text(key!("name"), &snapshot.name);
            object.integer(key!("depth"), snapshot.depth);
            object.integer(key!("interval"), snapshot.interval);
            object.optional_number(key!("grouping"), snapshot.grouping);
            object.levels(key!("bids"), &snapshot.bids);
            object.levels(key!("asks"), &snapshot.asks);
            object.time(key!("timestamp"), snapshot.timestamp);
            object.time(key!("localTimestamp"), snapshot.local_timestamp);
        }
        Message::TradeBar(bar) => trade_bar(&mut object, bar),
        Message::Error(error) => {
            write_text(object.out, &error.exchange);
            object.time(key!("localTimestamp"), error.local_timestamp);
            object.text(key!("details"), &error.details);
            object.integer(key!("subSequentErrorsCount"), error.subsequent_errors);
        }
        Message::Disconnect(disconnect) => {
            write_text(object.out, &disconnect.exchange);
            object.time(key!("localTimestamp"), disconnect.local_timestamp);
            if let Some(symbols) = &disconnect.symbols {
                object.texts(key!("symbols"), symbols);
            }
        }
    }
    object.end();
}

fn trade_bar(object: &mut Object<'_>, bar: &TradeBar<'_>) {
    object.instrument(&bar.symbol, &bar.exchange);
    object.text(key!("name"), &bar.name);
    object.integer(key!("interval"), bar.interval);
    let kind = match bar.kind {
        BarKind::Time => "time",
        BarKind::Tick => "tick",
        BarKind::Volume => "volume",
    };
    object.text(key!("kind"), kind);
    object.number(key!("open"), bar.open);
    object.number(key!("high"), bar.high);
    object.number(key!("low"), bar.low);
    object.number(key!("close"), bar.close);
    object.number(key!("volume"), bar.volume);
    object.number(key!("buyVolume"), bar.buy_volume);
    object.number(key!("sellVolume"), bar.sell_volume);
    object.integer(key!("trades"), bar.trades);
    object.number(key!("vwap"), bar.vwap);
    object.time(key!("openTimestamp"), bar.open_timestamp);
    object.time(key!("closeTimestamp"), bar.close_timestamp);
    object.time(key!("localTimestamp"), bar.local_timestamp);
    object.time(key!("timestamp"), bar.timestamp);
}

fn option_summary(object: &mut Object<'_>, summary: &OptionSummary<'_>) {
    object.instrument(&summary.symbol, &summary.exchange);
    match summary.option_type {
        Some(OptionType::Call) => object.text(key!("optionType"), "call"),
        Some(OptionType::Put) => object.text(key!("optionType"), "put"),
        None => {}
    }
    object.optional_number(key!("strikePrice"), summary.strike_price);
    object.optional_time(key!("expirationDate"), summary.expiration_date);
    for (key, value) in [
        (key!("bestBidPrice"), summary.best_bid_price),
        (key!("bestBidAmount"), summary.best_bid_amount),
        (key!("bestBidIV"), summary.best_bid_iv),
        (key!("bestAskPrice"), summary.best_ask_price),
        (key!("bestAskAmount"), summary.best_ask_amount),
        (key!("bestAskIV"), summary.best_ask_iv),
        (key!("lastPrice"), summary.last_price),
        (key!("openInterest"), summary.open_interest),
        (key!("markPrice"), summary.mark_price),
        (key!("markIV"), summary.mark_iv),
        (key!("delta"), summary.delta),
        (key!("gamma"), summary.gamma),
        (key!("vega"), summary.vega),
        (key!("theta"), summary.theta),
        (key!("rho"), summary.rho),
        (key!("underlyingPrice"), summary.underlying_price),
    ] {
        object.optional_number(key, value);
    }
    if let Some(index) = &summary.underlying_index {
        object.text(key!("underlyingIndex"), index);
    }
    object.time(key!("timestamp"), summary.timestamp);
    object.time(key!("localTimestamp"), summary.local_timestamp);
}

/// An object being written: fields in the order of the calls.
struct Object<'a> {
    out: &'a mut Vec<u8>,
}

#[allow(clippy::inline_always)] // so that a key's length is known where it is written
impl Object<'_> {
    fn end(self) {
        self.out.push(b'}');
    }

    #[inline(always)]
    fn key(&mut self, key: Key) {
        self.out.extend_from_slice(key.0.as_bytes());
    }

    /// The symbol, whose name stands in the opening, and the exchange.
    #[inline(always)]
    fn instrument(&mut self, symbol: &str, exchange: &str) {
        write_text(self.out, symbol);
        self.text(key!("exchange"), exchange);
    }

    #[inline(always)]
    fn text(&mut self, key: Key, value: &str) {
        self.key(key);
        write_text(self.out, value);
    }

    #[inline]
    fn texts(&mut self, key: Key, values: &[Cow<'_, str>]) {
        self.key(key);
        write_list(self.out, values, |out, value| write_text(out, value));
    }

    #[inline(always)]
    fn bool(&mut self, key: Key, value: bool) {
        self.key(key);
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    #[inline(always)]
    fn integer(&mut self, key: Key, value: impl Into<u64>) {
        self.key(key);
        write_integer(self.out, value.into());
    }

    #[inline(always)]
    fn number(&mut self, key: Key, value: f64) {
        self.key(key);
        write_number(self.out, value);
    }

    #[inline(always)]
    fn optional_number(&mut self, key: Key, value: Option<f64>) {
        if let Some(value) = value {
            self.number(key, value);
        }
    }

    #[inline(always)]
    fn time(&mut self, key: Key, value: Timestamp) {
        self.key(key);
        if value.micros().is_none() {
            self.out.extend_from_slice(b"null");
        } else {
            self.out.push(b'"');
            value.write(self.out);
            self.out.push(b'"');
        }
    }

    #[inline(always)]
    fn optional_time(&mut self, key: Key, value: Option<Timestamp>) {
        if let Some(value) = value {
            self.time(key, value);
        }
    }

    /// A number that is likely to be written again soon.
    #[inline(always)]
    fn repeated_number(&mut self, key: Key, value: f64) {
        self.key(key);
        RecentNumbers::with(|recent| recent.write(self.out, value));
    }

    /// Levels of a snapshot: most of them are those of the snapshot before.
    #[inline]
    fn levels(&mut self, key: Key, levels: &[Option<BookLevel>]) {
        self.key(key);
        RecentNumbers::with(|recent| {
            write_list(self.out, levels, |out, level| {
                out.push(b'{');
                if let Some(level) = level {
                    out.extend_from_slice(b"\"price\":");
                    recent.write(out, level.price);
                    out.extend_from_slice(b",\"amount\":");
                    recent.write(out, level.amount);
                }
                out.push(b'}');
            });
        });
    }

    /// Levels that changed: amounts are new, prices are not.
    #[inline]
    fn changed_levels(&mut self, key: Key, levels: &[BookLevel]) {
        self.key(key);
        if levels.is_empty() {
            self.out.extend_from_slice(b"[]");
            return;
        }
        RecentNumbers::with(|recent| {
            write_list(self.out, levels, |out, level| {
                out.extend_from_slice(b"{\"price\":");
                recent.write(out, level.price);
                out.extend_from_slice(b",\"amount\":");
                write_number(out, level.amount);
                out.push(b'}');
            });
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
    if end_of_plain(text.as_bytes(), 0) == text.len() {
        out.extend_from_slice(text.as_bytes());
    } else {
        write_escaped(out, text);
    }
    out.push(b'"');
}

#[inline]
fn must_be_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

#[cold]
fn write_escaped(out: &mut Vec<u8>, text: &str) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !must_be_escaped(byte) {
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
}
