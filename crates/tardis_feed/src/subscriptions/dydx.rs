//! `dYdX`: a channel and a market.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"type":"subscribe","channel":"v3_trades","id":"BTC-USD"}"# };

pub(super) const V4: Dialect =
    Dialect { read, example: r#"{"type":"subscribe","channel":"v4_trades","id":"BTC-USD"}"# };

fn read(message: &Value) -> Reading {
    if !says(message, "type", "subscribe") {
        return Ok(None);
    }
    Ok(Some(vec![filter(text(message, "channel")?, symbols(message, "id")?)]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn the_markets_themselves_have_no_market() {
        assert_meanings(
            "dydx",
            &[
                (
                    r#"{"type":"subscribe","channel":"v3_orderbook","id":"BTC-USD","includeOffsets":true}"#,
                    "v3_orderbook=BTC-USD",
                ),
                (r#"{"type":"subscribe","channel":"v3_markets"}"#, "v3_markets"),
                (r#"{"type":"subscribe","channel":"v3_accounts"}"#, "error"),
                (r#"{"type":"ping"}"#, "nothing"),
            ],
        );
        assert_meanings(
            "dydx-v4",
            &[(
                r#"{"type":"subscribe","channel":"v4_trades","id":"ETH-USD"}"#,
                "v4_trades=ETH-USD",
            )],
        );
    }
}
