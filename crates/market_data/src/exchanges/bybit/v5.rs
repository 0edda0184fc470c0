//! The v5 formats, which Bybit's markets share.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use super::{closing_side, taker_side};
use crate::mapper::{MapError, Sink};
use crate::message::{BookChange, BookLevel, BookTicker, BookTickerOrder, Message, Trade};
use crate::pending_tickers::PendingTickers;
use crate::raw::{self, Levels, Moment, Numeric, Rows, Text, date_of_millis, number_of_text};
use crate::time::Timestamp;

/// Maps what all markets have.
pub(in crate::exchanges) struct V5 {
    exchange: &'static str,
    best_levels: HashMap<String, BestLevels>,
}

/// The best bid and ask of a symbol, as far as they are known.
#[derive(Clone, Copy, Default)]
struct BestLevels {
    bid: Option<BookLevel>,
    ask: Option<BookLevel>,
}

#[derive(Deserialize)]
struct Envelope<'a, T> {
    #[serde(borrow, default, rename = "type")]
    action: Text<'a>,
    #[serde(default)]
    ts: Moment,
    data: T,
}

/// A trade or a liquidation.
#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow, rename = "s")]
    symbol: Text<'a>,
    #[serde(rename = "i")]
    id: Option<Text<'a>>,
    #[serde(default, rename = "S")]
    side: Text<'a>,
    #[serde(default, rename = "p")]
    price: Numeric,
    #[serde(default, rename = "v")]
    amount: Numeric,
    #[serde(default, rename = "T")]
    time: Moment,
}

#[derive(Deserialize)]
struct RawBook<'a, T> {
    #[serde(borrow, rename = "s")]
    symbol: Text<'a>,
    #[serde(rename = "b")]
    bids: T,
    #[serde(rename = "a")]
    asks: T,
}

/// Price and amount as texts.
type RawLevel<'a> = Rows<Text<'a>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTicker<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    #[serde(default)]
    last_price: Numeric,
    #[serde(default)]
    mark_price: Numeric,
    #[serde(default)]
    index_price: Numeric,
    #[serde(default)]
    open_interest: Numeric,
    #[serde(default)]
    next_funding_time: Numeric,
    #[serde(default)]
    funding_rate: Numeric,
}

#[derive(Deserialize)]
struct RawLiquidation<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    size: Numeric,
}

impl V5 {
    pub(in crate::exchanges) fn new(exchange: &'static str) -> Self {
        Self { exchange, best_levels: HashMap::new() }
    }

    pub(in crate::exchanges) fn map_trades(
        &self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let message: Envelope<'_, Rows<RawTrade<'_>>> = raw::read(self.exchange, message)?;
        for row in &message.data {
            out.take(&Message::Trade(Trade {
                symbol: row.symbol.lend(),
                exchange: Cow::Borrowed(self.exchange),
                id: row.id.as_ref().map(Text::lend),
                price: row.price.number(),
                amount: row.amount.number(),
                side: taker_side(&row.side),
                timestamp: row.time.0,
                local_timestamp,
            }));
        }
        Ok(())
    }

    pub(in crate::exchanges) fn map_book(
        &self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let message: Envelope<'_, RawBook<'_, Levels>> = raw::read(self.exchange, message)?;
        out.take(&Message::BookChange(BookChange {
            symbol: message.data.symbol.lend(),
            exchange: Cow::Borrowed(self.exchange),
            is_snapshot: &*message.action == "snapshot",
            bids: Cow::Borrowed(&message.data.bids.0),
            asks: Cow::Borrowed(&message.data.asks.0),
            timestamp: message.ts.0,
            local_timestamp,
        }));
        Ok(())
    }

    /// Maps a book of depth 1 to a book ticker. A side that an update says nothing about stays as
    /// it was; updates before the first snapshot are passed over.
    pub(in crate::exchanges) fn map_best_levels(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let message: Envelope<'_, RawBook<'_, Rows<RawLevel<'_>>>> =
            raw::read(self.exchange, message)?;
        let symbol = &message.data.symbol;
        let known = if &*message.action == "snapshot" {
            let known = self.best_levels.entry_ref(&**symbol).or_default();
            *known = BestLevels::default();
            known
        } else if let Some(known) = self.best_levels.get_mut(&**symbol) {
            known
        } else {
            return Ok(());
        };
        known.bid = best(&message.data.bids).or(known.bid);
        known.ask = best(&message.data.asks).or(known.ask);
        out.take(&Message::BookTicker(BookTicker {
            symbol: symbol.lend(),
            exchange: Cow::Borrowed(self.exchange),
            ask_amount: known.ask.map(|level| level.amount),
            ask_price: known.ask.map(|level| level.price),
            bid_price: known.bid.map(|level| level.price),
            bid_amount: known.bid.map(|level| level.amount),
            order: BookTickerOrder::DEFAULT,
            timestamp: message.ts.0,
            local_timestamp,
        }));
        Ok(())
    }
}

/// The first level that is not removed. Only the very text `0` removes a level.
fn best(levels: &[RawLevel<'_>]) -> Option<BookLevel> {
    let is_kept = |level: &&RawLevel<'_>| level.get(1).is_none_or(|amount| &**amount != "0");
    let level = levels.iter().find(is_kept)?;
    let number = |at: usize| level.get(at).map_or(f64::NAN, |text| number_of_text(text));
    Some(BookLevel { price: number(0), amount: number(1) })
}

/// Updates have only what changed.
pub(super) fn map_ticker(
    exchange: &'static str,
    message: &[u8],
    tickers: &mut PendingTickers,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawTicker<'_>> = raw::read(exchange, message)?;
    let row = &message.data;
    let ticker = tickers.of(&row.symbol);
    // Futures that expire have empty fields for funding.
    let given = |value: Numeric| value.number_if_there().filter(|_| value != Numeric::Empty);
    ticker.update_funding_rate(given(row.funding_rate));
    let funding_time = given(row.next_funding_time);
    ticker.update_funding_timestamp(funding_time.map(|time| date_of_millis(Numeric::Value(time))));
    ticker.update_index_price(given(row.index_price));
    ticker.update_mark_price(given(row.mark_price));
    ticker.update_open_interest(given(row.open_interest));
    ticker.update_last_price(given(row.last_price));
    ticker.update_timestamp(message.ts.0);
    ticker.send_if_changed(local_timestamp, out);
    Ok(())
}

pub(super) fn map_liquidation(
    exchange: &'static str,
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawLiquidation<'_>> = raw::read(exchange, message)?;
    let row = &message.data;
    out.take(&Message::Liquidation(Trade {
        symbol: row.symbol.lend(),
        exchange: Cow::Borrowed(exchange),
        id: None,
        price: row.price.number(),
        amount: row.size.number(),
        side: closing_side(&row.side),
        timestamp: message.ts.0,
        local_timestamp,
    }));
    Ok(())
}

pub(super) fn map_all_liquidations(
    exchange: &'static str,
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, Rows<RawTrade<'_>>> = raw::read(exchange, message)?;
    for row in &message.data {
        out.take(&Message::Liquidation(Trade {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(exchange),
            id: None,
            price: row.price.number(),
            amount: row.amount.number(),
            side: closing_side(&row.side),
            timestamp: row.time.0,
            local_timestamp,
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    const AT: &str = "2024-01-01T00:00:00.000Z";

    fn quote(action: &str, bids: &str, asks: &str) -> String {
        format!(
            r#"{{"topic":"orderbook.1.BTCUSDT","type":"{action}","ts":1682092584425,"data":{{"s":"BTCUSDT","b":{bids},"a":{asks},"u":1188472,"seq":11155892580}}}}"#
        )
    }

    /// What comes between the exchange and the time.
    fn values(message: &str) -> &str {
        let (_, rest) = message.split_once(r#""exchange":"bybit","#).unwrap();
        rest.split_once(r#""timestamp":"#).unwrap().0
    }

    #[test]
    fn book_tickers_wait_for_a_snapshot_and_keep_the_other_side() {
        let messages = [
            quote("delta", r#"[["27994.60","0.5"]]"#, "[]"),
            quote("snapshot", r#"[["27994.60","0.5"]]"#, r#"[["27994.80","2"]]"#),
            quote("delta", r#"[["27994.60","0"]]"#, r#"[["27994.80","0"],["27994.90",3,"7"]]"#),
            quote("delta", r#"[["27994.50","0.000"]]"#, "[]"),
            quote("snapshot", r#"[["27994.00","7"]]"#, "[]"),
            quote("delta", "[]", "[]"),
        ];
        let found = map_all("bybit", AT, &messages.each_ref().map(|message| &**message));
        assert!(found[0].is_empty());
        let found: Vec<&str> = found[1..].iter().map(|found| values(&found[0])).collect();
        assert_eq!(
            found,
            [
                r#""askAmount":2,"askPrice":27994.8,"bidPrice":27994.6,"bidAmount":0.5,"#,
                r#""askAmount":3,"askPrice":27994.9,"bidPrice":27994.6,"bidAmount":0.5,"#,
                r#""askAmount":3,"askPrice":27994.9,"bidPrice":27994.5,"bidAmount":0,"#,
                r#""bidPrice":27994,"bidAmount":7,"#,
                r#""bidPrice":27994,"bidAmount":7,"#,
            ]
        );
    }

    #[test]
    fn tickers_keep_what_an_update_does_not_say() {
        let messages = [
            r#"{"topic":"tickers.BTCUSDU23","type":"snapshot","data":{"symbol":"BTCUSDU23","lastPrice":"29026.00","markPrice":"29023.60","indexPrice":"","openInterest":"4547176","nextFundingTime":"","fundingRate":""},"cs":1,"ts":1680673822577}"#,
            r#"{"topic":"tickers.BTCUSDU23","type":"delta","data":{"symbol":"BTCUSDU23","lastPrice":"29026.00","bid1Size":"3100"},"cs":2,"ts":1680673822677}"#,
            r#"{"topic":"tickers.BTCUSDU23","type":"delta","data":{"symbol":"BTCUSDU23","fundingRate":"0","nextFundingTime":"1680681600000"},"cs":3,"ts":1680673822600}"#,
        ];
        let found = map_all("bybit", AT, &messages);
        assert_eq!(
            values(&found[0][0]),
            r#""lastPrice":29026,"openInterest":4547176,"markPrice":29023.6,"#
        );
        assert!(found[1].is_empty());
        assert_eq!(
            values(&found[2][0]),
            r#""lastPrice":29026,"openInterest":4547176,"fundingRate":0,"fundingTimestamp":"2023-04-05T08:00:00.000Z","markPrice":29023.6,"#
        );
        assert!(found[2][0].contains(r#""timestamp":"2023-04-05T05:50:22.677Z""#));
    }

    #[test]
    fn liquidations_have_the_side_that_closes_the_position() {
        let message = r#"{"data":{"price":"0.03803","side":"Buy","size":"1637","symbol":"GALAUSDT","updatedTime":1673251091800},"topic":"liquidation.GALAUSDT","ts":1673251091822,"type":"snapshot"}"#;
        assert_eq!(
            map_all("bybit", AT, &[message])[0],
            [
                r#"{"type":"liquidation","symbol":"GALAUSDT","exchange":"bybit","price":0.03803,"amount":1637,"side":"sell","timestamp":"2023-01-09T07:58:11.822Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
            ]
        );
    }
}
