//! WOO X: topics of a symbol and a channel, in this order at first and in the other since the third
//! version. Snapshots of books are kept beside their updates.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, says, texts, with_companion};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"cmd":"SUBSCRIBE","params":["trade@PERP_BTC_USDT"]}"# };

fn read(message: &Value) -> Reading {
    let topics = if says(message, "event", "subscribe") {
        texts(message, "topic")
    } else if says(message, "cmd", "SUBSCRIBE") || says(message, "cmd", "subscribe") {
        texts(message, "params").or_else(|_| texts(message, "data"))
    } else {
        return Ok(None);
    }?;
    let asked = topics.into_iter().map(|topic| {
        let mut words = topic.split('@');
        let (Some(first), Some(second)) = (words.next(), words.next()) else {
            return Err(Misread::Channel(topic.to_owned()));
        };
        let is_symbol = first.starts_with("SPOT_") || first.starts_with("PERP_");
        let (symbol, channel) = if is_symbol { (first, second) } else { (second, first) };
        Ok(filter(channel, [symbol]))
    });
    let asked = asked.collect::<Result<_, _>>()?;
    Ok(Some(with_companion(asked, "orderbookupdate", "orderbook")))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn symbols_come_first_or_second() {
        assert_meanings(
            "woo-x",
            &[
                (
                    r#"{"id":"1","event":"subscribe","topic":"PERP_BTC_USDT@trade"}"#,
                    "trade=PERP_BTC_USDT",
                ),
                (
                    r#"{"cmd":"SUBSCRIBE","params":["bbo@SPOT_BTC_USDT","orderbookupdate@SPOT_BTC_USDT@50"]}"#,
                    "bbo=SPOT_BTC_USDT orderbookupdate=SPOT_BTC_USDT orderbook=SPOT_BTC_USDT",
                ),
                (
                    r#"{"cmd":"SUBSCRIBE","success":true,"data":["trade@PERP_BTC_USDT"]}"#,
                    "trade=PERP_BTC_USDT",
                ),
                (r#"{"event":"subscribe","topic":"tickers"}"#, "error"),
                (r#"{"event":"subscribe"}"#, "error"),
                (r#"{"event":"ping"}"#, "nothing"),
            ],
        );
    }
}
