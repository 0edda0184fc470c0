//! Polymarket: the tokens of markets, with all that happens to them.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filters, says, symbols};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"type":"market","assets_ids":["2174101397"]}"# };

const ALWAYS: &[&str] = &["book", "price_change", "last_trade_price", "tick_size_change"];
const ON_WISH: &[&str] = &["best_bid_ask", "new_market", "market_resolved"];

fn read(message: &Value) -> Reading {
    let is_first = says(message, "type", "market") || says(message, "type", "MARKET");
    if !is_first && !says(message, "operation", "subscribe") {
        return Ok(None);
    }
    let tokens = symbols(message, "assets_ids")?;
    let mut asked = filters(ALWAYS, &tokens);
    if message.get("custom_feature_enabled") == Some(&Value::Bool(true)) {
        asked.extend(filters(ON_WISH, &tokens));
    }
    Ok(Some(asked))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn some_channels_must_be_wished_for() {
        assert_meanings(
            "polymarket",
            &[
                (
                    r#"{"type":"market","assets_ids":["1","2"]}"#,
                    "book=1,2 price_change=1,2 last_trade_price=1,2 tick_size_change=1,2",
                ),
                (
                    r#"{"type":"market","assets_ids":[],"custom_feature_enabled":true}"#,
                    "book price_change last_trade_price tick_size_change best_bid_ask new_market market_resolved",
                ),
                (
                    r#"{"operation":"subscribe","assets_ids":["3"]}"#,
                    "book=3 price_change=3 last_trade_price=3 tick_size_change=3",
                ),
                (r#"{"type":"market","assets_ids":[3]}"#, "error"),
                (r#"{"operation":"unsubscribe","assets_ids":["3"]}"#, "nothing"),
                ("PING", "nothing"),
            ],
        );
    }
}
