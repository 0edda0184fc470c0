//! The objects of the second API. Numbers are numbers, times are texts with microseconds.

use std::borrow::Cow;

use serde::Deserialize;
use smallvec::SmallVec;

use super::NAME;
use crate::mapper::{MapError, Sink};
use crate::message::{BookChange, BookLevel, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::raw::{self, Numeric, Rows, Text, iso_date_with_micros};
use crate::time::Timestamp;

#[derive(Deserialize)]
struct Channel<'a> {
    #[serde(borrow, default)]
    channel: Text<'a>,
}

#[derive(Deserialize)]
struct Envelope<'a, T> {
    #[serde(borrow, default, rename = "type")]
    action: Text<'a>,
    data: Rows<T>,
}

#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    trade_id: Text<'a>,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    qty: Numeric,
    timestamp: Text<'a>,
}

#[derive(Deserialize)]
struct RawBook<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    bids: Option<Levels>,
    asks: Option<Levels>,
    timestamp: Text<'a>,
}

type Levels = SmallVec<[RawLevel; 8]>;

#[derive(Deserialize)]
struct RawLevel {
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    qty: Numeric,
}

#[derive(Deserialize)]
struct RawTicker<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    #[serde(default)]
    bid: Numeric,
    #[serde(default)]
    bid_qty: Numeric,
    #[serde(default)]
    ask: Numeric,
    #[serde(default)]
    ask_qty: Numeric,
    timestamp: Text<'a>,
}

/// The channel of `message`; empty for answers to requests.
pub(super) fn channel(message: &[u8]) -> Result<Cow<'_, str>, MapError> {
    match raw::leading_text(message, "channel") {
        Some(channel) => Ok(Cow::Borrowed(channel)),
        None => Ok(raw::read::<Channel<'_>>(NAME, message)?.channel.0),
    }
}

pub(super) fn map_trades(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawTrade<'_>> = raw::read(NAME, message)?;
    // A snapshot has trades from before the subscription.
    if &*message.action != "update" {
        return Ok(());
    }
    for row in &message.data {
        out.take(&Message::Trade(Trade {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            id: Some(row.trade_id.lend()),
            price: row.price.number(),
            amount: row.qty.number(),
            side: match &*row.side {
                "buy" => Side::Buy,
                "sell" => Side::Sell,
                _ => Side::Unknown,
            },
            timestamp: iso_date_with_micros(&row.timestamp),
            local_timestamp,
        }));
    }
    Ok(())
}

pub(super) fn map_book(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawBook<'_>> = raw::read(NAME, message)?;
    for row in &message.data {
        out.take(&Message::BookChange(BookChange {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            is_snapshot: &*message.action == "snapshot",
            bids: Cow::Borrowed(&levels(row.bids.as_ref())),
            asks: Cow::Borrowed(&levels(row.asks.as_ref())),
            timestamp: iso_date_with_micros(&row.timestamp),
            local_timestamp,
        }));
    }
    Ok(())
}

fn levels(side: Option<&Levels>) -> SmallVec<[BookLevel; 8]> {
    let level = |row: &RawLevel| BookLevel { price: row.price.number(), amount: row.qty.number() };
    side.into_iter().flatten().map(level).collect()
}

pub(super) fn map_tickers(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawTicker<'_>> = raw::read(NAME, message)?;
    for row in &message.data {
        let timestamp = iso_date_with_micros(&row.timestamp);
        // A market without quotes yet says 1970.
        if timestamp.micros().is_some_and(|micros| (0..1_000).contains(&micros)) {
            continue;
        }
        out.take(&Message::BookTicker(BookTicker {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            ask_amount: quoted(row.ask_qty),
            ask_price: quoted(row.ask),
            bid_price: quoted(row.bid),
            bid_amount: quoted(row.bid_qty),
            order: BookTickerOrder::DEFAULT,
            timestamp,
            local_timestamp,
        }));
    }
    Ok(())
}

/// A value of a quote: 0 is none, and `null` one that could not be read.
fn quoted(value: Numeric) -> Option<f64> {
    match value {
        Numeric::Null => Some(f64::NAN),
        _ => value.number_if_there().filter(|number| *number != 0.0),
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    const AT: &str = "2026-08-01T00:00:00.000Z";

    #[test]
    fn every_row_of_a_message_counts() {
        let messages = [
            r#"{"type":"update","channel":"trade","data":[{"symbol":"BTC/USD","side":"sell","price":100.10,"qty":2.5e-7,"ord_type":"limit","trade_id":123,"timestamp":"2026-07-10T00:00:00.123456Z"},{"symbol":"BTC/USD","side":"buy","price":100.2,"qty":1,"trade_id":124,"timestamp":"2026-07-10T00:00:00.123Z"}]}"#,
            r#"{"channel":"book","type":"update","data":[{"symbol":"BTC/USD","bids":[{"price":99.9,"qty":0.00000000}],"checksum":1,"timestamp":"2026-07-10T00:00:01.223456Z"}]}"#,
            r#"{"channel":"ticker","type":"snapshot","data":[{"symbol":"A/USD","bid":0,"bid_qty":0,"ask":1,"ask_qty":2,"timestamp":"1970-01-01T00:00:00.000000Z"},{"symbol":"B/USD","bid":0.0,"bid_qty":0,"ask":1.5,"ask_qty":2,"timestamp":"2026-07-10T00:00:02.123456Z"}]}"#,
        ];
        let local = r#""localTimestamp":"2024-01-01T00:00:00.000001Z"}"#;
        let expected = [
            r#"{"type":"trade","symbol":"BTC/USD","exchange":"kraken","id":"123","price":100.1,"amount":2.5e-7,"side":"sell","timestamp":"2026-07-10T00:00:00.123456Z","#,
            r#"{"type":"trade","symbol":"BTC/USD","exchange":"kraken","id":"124","price":100.2,"amount":1,"side":"buy","timestamp":"2026-07-10T00:00:00.123000Z","#,
            r#"{"type":"book_change","symbol":"BTC/USD","exchange":"kraken","isSnapshot":false,"bids":[{"price":99.9,"amount":0}],"asks":[],"timestamp":"2026-07-10T00:00:01.223456Z","#,
            r#"{"type":"book_ticker","symbol":"B/USD","exchange":"kraken","askAmount":2,"askPrice":1.5,"timestamp":"2026-07-10T00:00:02.123456Z","#,
        ];
        assert_eq!(
            map_all("kraken", AT, &messages).concat(),
            expected.map(|start| format!("{start}{local}"))
        );
    }

    #[test]
    fn trades_from_before_the_subscription_are_passed_over() {
        let messages = [
            r#"{"channel":"trade","type":"snapshot","data":[{"symbol":"BTC/USD","side":"buy","price":100.1,"qty":0.25,"trade_id":122,"timestamp":"2026-07-10T00:00:00.023456Z"}]}"#,
            r#"{"method":"subscribe","result":{"channel":"trade","snapshot":true,"symbol":"BTC/USD"},"success":true}"#,
            r#"{"channel":"status","type":"update","data":[{"system":"online","api_version":"v2"}]}"#,
        ];
        assert!(map_all("kraken", AT, &messages).concat().is_empty());
    }
}
