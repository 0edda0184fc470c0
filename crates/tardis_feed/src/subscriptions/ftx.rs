//! FTX: a channel and a market.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"op":"subscribe","channel":"trades","market":"BTC-PERP"}"# };

fn read(message: &Value) -> Reading {
    if !says(message, "op", "subscribe") {
        return Ok(None);
    }
    Ok(Some(vec![filter(text(message, "channel")?, symbols(message, "market")?)]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn a_channel_may_have_a_market() {
        assert_meanings(
            "ftx",
            &[
                (
                    r#"{"op":"subscribe","channel":"orderbook","market":"BTC-PERP"}"#,
                    "orderbook=BTC-PERP",
                ),
                (
                    r#"{"op":"subscribe","channel":"orderbookGrouped","market":"BTC-PERP","grouping":500}"#,
                    "orderbookGrouped=BTC-PERP",
                ),
                (r#"{"op":"subscribe","channel":"markets"}"#, "markets"),
                (r#"{"op":"subscribe","channel":"fills"}"#, "error"),
                (r#"{"op":"ping"}"#, "nothing"),
            ],
        );
        assert_meanings(
            "ftx-us",
            &[(r#"{"op":"subscribe","channel":"trades","market":"BTC/USD"}"#, "trades=BTC/USD")],
        );
    }
}
