//! Derivative tickers, put together from mark prices, daily tickers, open interest and, for
//! coin-margined futures, index prices.

use hashbrown::HashMap;
use serde::Deserialize;

use crate::exchanges::binance::read;
use crate::mapper::{MapError, Sink};
use crate::pending_tickers::PendingTickers;
use crate::raw::{Numeric, Text, date_of_micros, date_of_millis};
use crate::time::Timestamp;

/// What was said about each symbol and each pair.
pub(super) struct Tickers {
    exchange: &'static str,
    pending: PendingTickers,
    /// By pair: an index price is about all futures of it.
    index_prices: HashMap<String, f64>,
}

#[derive(Deserialize)]
struct RawIndexPrice<'a> {
    #[serde(borrow, rename = "i")]
    pair: Text<'a>,
    #[serde(rename = "p", default)]
    price: Numeric,
}

/// A mark price, a daily ticker or open interest: `event` says which, and is missing in the last.
#[derive(Deserialize)]
struct RawTicker<'a> {
    #[serde(borrow, rename = "e")]
    event: Option<Text<'a>>,
    #[serde(rename = "s")]
    symbol: Option<Text<'a>>,
    #[serde(rename = "symbol")]
    full_symbol: Option<Text<'a>>,
    #[serde(rename = "E", default)]
    time: Numeric,
    #[serde(rename = "p", default)]
    mark_price: Numeric,
    #[serde(rename = "i", default)]
    index_price: Numeric,
    #[serde(rename = "r", default)]
    funding_rate: Numeric,
    #[serde(rename = "T", default)]
    funding_time: Numeric,
    #[serde(rename = "c", default)]
    last_price: Numeric,
    #[serde(rename = "openInterest", default)]
    open_interest: Numeric,
}

/// Whether a channel says something about derivative tickers.
pub(super) fn is_channel(channel: &str) -> bool {
    matches!(channel, "ticker" | "openInterest")
        || channel.starts_with("markPrice")
        || channel.starts_with("indexPrice")
}

/// The pair of a symbol: `BTCUSD` for `BTCUSD_200925`.
pub(super) fn pair(symbol: &str) -> &str {
    symbol.split_once('_').map_or(symbol, |(pair, _)| pair)
}

impl Tickers {
    pub(super) fn new(exchange: &'static str) -> Self {
        Self { exchange, pending: PendingTickers::new(exchange), index_prices: HashMap::new() }
    }

    pub(super) fn map(
        &mut self,
        message: &[u8],
        channel: &str,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        if channel.starts_with("indexPrice") {
            let index: RawIndexPrice<'_> = read(self.exchange, message)?;
            *self.index_prices.entry_ref(&*index.pair).or_default() = index.price.number();
        } else {
            self.map_ticker(&read(self.exchange, message)?, local_timestamp, out);
        }
        Ok(())
    }

    fn map_ticker(
        &mut self,
        message: &RawTicker<'_>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let Some(symbol) = message.symbol.as_ref().or(message.full_symbol.as_ref()) else { return };
        let ticker = self.pending.of(symbol);
        if !self.index_prices.is_empty() {
            ticker.update_index_price(self.index_prices.get(pair(symbol)).copied());
        }
        match message.event.as_deref() {
            Some("markPriceUpdate") => {
                // Futures with an expiry have no funding: an empty rate, or 0 as its time.
                let has_funding = message.funding_rate.is_there()
                    && message.funding_rate != Numeric::Empty
                    && message.funding_time != Numeric::Value(0.0);
                if has_funding {
                    ticker.update_funding_rate(Some(message.funding_rate.number()));
                    ticker.update_funding_timestamp(Some(date_of_millis(message.funding_time)));
                }
                ticker.update_index_price(message.index_price.number_if_there());
                ticker.update_mark_price(Some(message.mark_price.number()));
                ticker.update_timestamp(date_of_micros(message.time));
            }
            Some("24hrTicker") => {
                ticker.update_last_price(Some(message.last_price.number()));
                ticker.update_timestamp(date_of_micros(message.time));
            }
            _ => {}
        }
        ticker.update_open_interest(message.open_interest.number_if_there());
        ticker.send_if_changed(local_timestamp, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::binance::tests::Mapping;

    /// What a line says between the exchange and the times.
    fn values(line: &str) -> &str {
        let start = line.find("\"exchange\":").map_or(0, |at| at + 12);
        let start = line[start..].find(',').map_or(start, |at| start + at + 1);
        let end = line.find(",\"timestamp\"").unwrap_or(line.len());
        line.get(start..end).unwrap_or_default()
    }

    fn mark_price(symbol: &str, rest: &str) -> String {
        format!(
            r#"{{"stream":"x@markPrice@1s","data":{{"e":"markPriceUpdate","E":1,"s":"{symbol}","p":"5"{rest}}}}}"#
        )
    }

    #[test]
    fn futures_with_an_expiry_have_no_funding() {
        let mut mapping = Mapping::of_history("binance-delivery");
        let without = [
            mark_price("A_200925", r#","r":"","T":0"#),
            mark_price("B_200925", r#","r":"0.1","T":0"#),
            mark_price("C_200925", r#","r":"","T":1592265600000"#),
        ];
        for message in &without {
            assert_eq!(values(&mapping.line(message)), r#""markPrice":5"#, "{message}");
        }
        let with = mark_price("A_PERP", r#","r":"-0.0001","T":1592265600000"#);
        assert_eq!(
            values(&mapping.line(&with)),
            r#""fundingRate":-0.0001,"fundingTimestamp":"2020-06-16T00:00:00.000Z","markPrice":5"#
        );
        assert_eq!(mapping.line(&with), "");
    }

    #[test]
    fn an_index_price_is_about_all_futures_of_its_pair() {
        let mut mapping = Mapping::of_history("binance-delivery");
        let index = r#"{"stream":"btcusd@indexPrice@1s","data":{"e":"indexPriceUpdate","E":1,"i":"BTCUSD","p":"7.5"}}"#;
        assert_eq!(mapping.line(index), "");
        for symbol in ["BTCUSD_PERP", "BTCUSD_200925"] {
            let line = mapping.line(&mark_price(symbol, ""));
            assert_eq!(values(&line), r#""indexPrice":7.5,"markPrice":5"#);
        }
        let line = mapping.line(&mark_price("ETHUSD_PERP", r#","i":"6""#));
        assert_eq!(values(&line), r#""indexPrice":6,"markPrice":5"#);
    }

    #[test]
    fn a_funding_time_that_is_missing_is_new_every_time() {
        let mut mapping = Mapping::of_history("binance-futures");
        let message = mark_price("AB", r#","r":"0.1""#);
        for _ in 0..2 {
            let line = mapping.line(&message);
            assert_eq!(values(&line), r#""fundingRate":0.1,"fundingTimestamp":null,"markPrice":5"#);
        }
    }

    #[test]
    fn open_interest_comes_without_a_time() {
        let mut mapping = Mapping::of_history("binance-futures");
        let open_interest = r#"{"stream":"ab@openInterest","generated":true,"data":{"symbol":"AB","openInterest":"3.5"}}"#;
        assert_eq!(
            mapping.line(open_interest),
            r#"{"type":"derivative_ticker","symbol":"AB","exchange":"binance-futures","openInterest":3.5,"timestamp":"2024-01-01T00:00:00.000001Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
        );
        assert_eq!(mapping.line(open_interest), "");
    }
}
