//! Lighter: a channel and the number of a market, `order_book/0`.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"type":"subscribe","channel":"order_book/0"}"# };

fn read(message: &Value) -> Reading {
    if !says(message, "type", "subscribe") {
        return Ok(None);
    }
    let topic = text(message, "channel")?;
    let (channel, market) = topic.split_once('/').unwrap_or((topic, "all"));
    Ok(Some(vec![filter(channel, Some(market).filter(|market| *market != "all"))]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn a_market_may_be_all() {
        assert_meanings(
            "lighter",
            &[
                (r#"{"type":"subscribe","channel":"order_book/0"}"#, "order_book=0"),
                (r#"{"type":"subscribe","channel":"market_stats/all"}"#, "market_stats"),
                (r#"{"type":"subscribe","channel":"ticker/2048"}"#, "ticker=2048"),
                (r#"{"type":"subscribe","channel":"account_all/1"}"#, "error"),
                (r#"{"type":"pong"}"#, "nothing"),
            ],
        );
    }
}
