//! Bybit's spot markets: the v5 formats, and the older ones that they replaced.

use std::borrow::Cow;

use serde::Deserialize;

use super::bybit::v5::V5;
use super::bybit::{V5_FROM, topic};
use crate::exchange::{Exchange, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{BookChange, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::raw::{self, Levels, Moment, Numeric, Text};
use crate::time::Timestamp;

const NAME: &str = "bybit-spot";

pub(super) const EXCHANGES: &[Exchange] = &[Exchange {
    id: NAME,
    normalizers: &[
        Normalizer {
            kind: Kind::Trades,
            periods: &[
                Period::until(V5_FROM, Wanted::upper(&["trade"])),
                Period::open(Wanted::upper(&["publicTrade"])),
            ],
        },
        Normalizer {
            kind: Kind::BookChanges,
            periods: &[
                Period::until(V5_FROM, Wanted::upper(&["depth"])),
                Period::open(Wanted::upper(&["orderbook.50"])),
            ],
        },
        Normalizer {
            kind: Kind::BookTickers,
            periods: &[
                Period::until(V5_FROM, Wanted::upper(&["bookTicker"])),
                Period::open(Wanted::upper(&["orderbook.1"])),
            ],
        },
    ],
    mapper: |setup| Box::new(BybitSpot { setup: *setup, v5: V5::new(NAME) }),
}];

struct BybitSpot {
    setup: MapperSetup,
    v5: V5,
}

/// A message from before v5; answers to requests have a topic too, but no data.
#[derive(Deserialize)]
struct Envelope<'a, T> {
    #[serde(borrow, default)]
    params: Params<'a>,
    data: Option<T>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    symbol: Text<'a>,
}

#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow, rename = "v")]
    id: Option<Text<'a>>,
    #[serde(default, rename = "t")]
    time: Moment,
    #[serde(default, rename = "p")]
    price: Numeric,
    #[serde(default, rename = "q")]
    amount: Numeric,
    #[serde(default, rename = "m")]
    is_buy: bool,
}

#[derive(Deserialize)]
struct RawBook {
    #[serde(default, rename = "t")]
    time: Moment,
    #[serde(rename = "b")]
    bids: Levels,
    #[serde(rename = "a")]
    asks: Levels,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTicker {
    #[serde(default)]
    bid_price: Numeric,
    #[serde(default)]
    bid_qty: Numeric,
    #[serde(default)]
    ask_price: Numeric,
    #[serde(default)]
    ask_qty: Numeric,
    #[serde(default)]
    time: Moment,
}

impl Mapper for BybitSpot {
    fn map(
        &mut self,
        message: &[u8],
        local: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let topic = topic(NAME, message)?;
        let period = |kind| self.setup.period(kind);
        match &*topic {
            "trade" if period(Kind::Trades) == Some(0) => map_trade(message, local, out),
            "depth" if period(Kind::BookChanges) == Some(0) => map_book(message, local, out),
            "bookTicker" if period(Kind::BookTickers) == Some(0) => {
                map_book_ticker(message, local, out)
            }
            topic if topic.starts_with("publicTrade.") && period(Kind::Trades) == Some(1) => {
                self.v5.map_trades(message, local, out)
            }
            topic if topic.starts_with("orderbook.50.") && period(Kind::BookChanges) == Some(1) => {
                self.v5.map_book(message, local, out)
            }
            topic if topic.starts_with("orderbook.1.") && period(Kind::BookTickers) == Some(1) => {
                self.v5.map_best_levels(message, local, out)
            }
            _ => Ok(()),
        }
    }
}

fn map_trade(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawTrade<'_>> = raw::read(NAME, message)?;
    let Some(row) = &message.data else { return Ok(()) };
    out.take(&Message::Trade(Trade {
        symbol: message.params.symbol.lend(),
        exchange: Cow::Borrowed(NAME),
        id: row.id.as_ref().map(Text::lend),
        price: row.price.number(),
        amount: row.amount.number(),
        side: if row.is_buy { Side::Buy } else { Side::Sell },
        timestamp: row.time.0,
        local_timestamp,
    }));
    Ok(())
}

fn map_book(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawBook> = raw::read(NAME, message)?;
    let Some(row) = &message.data else { return Ok(()) };
    out.take(&Message::BookChange(BookChange {
        symbol: message.params.symbol.lend(),
        exchange: Cow::Borrowed(NAME),
        // Every message has the whole book.
        is_snapshot: true,
        bids: Cow::Borrowed(&row.bids.0),
        asks: Cow::Borrowed(&row.asks.0),
        timestamp: row.time.0,
        local_timestamp,
    }));
    Ok(())
}

fn map_book_ticker(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawTicker> = raw::read(NAME, message)?;
    let Some(row) = &message.data else { return Ok(()) };
    out.take(&Message::BookTicker(BookTicker {
        symbol: message.params.symbol.lend(),
        exchange: Cow::Borrowed(NAME),
        ask_amount: row.ask_qty.number_if_there(),
        ask_price: row.ask_price.number_if_there(),
        bid_price: row.bid_price.number_if_there(),
        bid_amount: row.bid_qty.number_if_there(),
        order: BookTickerOrder::DEFAULT,
        timestamp: row.time.0,
        local_timestamp,
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    const TRADE: &str = r#"{"topic":"trade","params":{"symbol":"XRP3SUSDT","binary":"false","symbolName":"XRP3SUSDT"},"data":{"v":"2220000000006443832","t":1659312000387,"p":"6.3957","q":"3.5962","m":false}}"#;
    const TICKER: &str = r#"{"params":{"symbol":"BATUSDT","binary":"false","symbolName":"BATUSDT"},"topic":"bookTicker","data":{"symbol":"BATUSDT","bidPrice":"0.3985","bidQty":"","time":1659311999973}}"#;

    #[test]
    fn sides_and_missing_quotes_are_told() {
        let answer = r#"{"topic":"trade","event":"sub","params":{"symbol":"XRP3SUSDT","binary":"false"},"code":"0","msg":"Success"}"#;
        let found = map_all("bybit-spot", "2022-08-01T00:00:00.000Z", &[TRADE, TICKER, answer]);
        assert_eq!(
            found.concat(),
            [
                r#"{"type":"trade","symbol":"XRP3SUSDT","exchange":"bybit-spot","id":"2220000000006443832","price":6.3957,"amount":3.5962,"side":"sell","timestamp":"2022-08-01T00:00:00.387Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#,
                r#"{"type":"book_ticker","symbol":"BATUSDT","exchange":"bybit-spot","bidPrice":0.3985,"bidAmount":0,"timestamp":"2022-07-31T23:59:59.973Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#,
            ]
        );
    }

    #[test]
    fn old_formats_end_with_v5() {
        let trade = r#"{"topic":"publicTrade.BTCUSDT","ts":1680652847526,"type":"snapshot","data":[{"i":"2290000000050703789","T":1680652847524,"p":"28165.38","v":"0.041732","S":"Sell","s":"BTCUSDT","BT":false}]}"#;
        let quote = r#"{"topic":"orderbook.1.BTCUSDT","ts":1680652806504,"type":"snapshot","data":{"s":"BTCUSDT","b":[["28165.07","0.175231"]],"a":[["28165.08","0.996816"]],"u":20404754,"seq":4281281856}}"#;
        let counts = |at: &str| -> Vec<usize> {
            map_all("bybit-spot", at, &[TRADE, TICKER, trade, quote]).iter().map(Vec::len).collect()
        };
        assert_eq!(counts("2023-04-04T23:59:59.999Z"), [1, 1, 0, 0]);
        assert_eq!(counts("2023-04-05T00:00:00.000Z"), [0, 0, 1, 1]);
    }
}
