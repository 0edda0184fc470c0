//! Hyperliquid: a type and a coin.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"method":"subscribe","subscription":{"type":"l2Book","coin":"BTC"}}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "method", "subscribe") {
        return Ok(None);
    }
    // Some write the subscription's fields beside the method.
    let subscription = message.get("subscription").unwrap_or(message);
    let coins = symbols(subscription, "coin")?;
    let is_fast = subscription.get("fast") == Some(&Value::Bool(true));
    // Pairs of the spot market are numbered (`@107`) or written out (`PURR/USDC`).
    let is_spot = coins.iter().any(|coin| coin.starts_with('@') || coin.contains('/'));
    let channel = match text(subscription, "type")? {
        "l2Book" if is_fast => "fastBook",
        "activeAssetCtx" if is_spot => "activeSpotAssetCtx",
        channel => channel,
    };
    Ok(Some(vec![filter(channel, coins)]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn fast_books_and_spot_pairs_have_channels_of_their_own() {
        assert_meanings(
            "hyperliquid",
            &[
                (
                    r#"{"method":"subscribe","subscription":{"type":"l2Book","coin":"BTC"}}"#,
                    "l2Book=BTC",
                ),
                (
                    r#"{"method":"subscribe","subscription":{"type":"l2Book","coin":"BTC","fast":true}}"#,
                    "fastBook=BTC",
                ),
                (
                    r#"{"method":"subscribe","subscription":{"type":"l2Book","coin":"BTC","fast":false,"nSigFigs":null}}"#,
                    "l2Book=BTC",
                ),
                (r#"{"method":"subscribe","type":"trades","coin":"ETH"}"#, "trades=ETH"),
                (
                    r#"{"method":"subscribe","subscription":{"type":"activeAssetCtx","coin":"HYPE"}}"#,
                    "activeAssetCtx=HYPE",
                ),
                (
                    r#"{"method":"subscribe","subscription":{"type":"activeAssetCtx","coin":"@107"}}"#,
                    "activeSpotAssetCtx=@107",
                ),
                (r#"{"method":"subscribe","subscription":{"type":"bbo"}}"#, "bbo"),
                (r#"{"method":"subscribe","subscription":{"type":"allMids"}}"#, "error"),
                (r#"{"method":"subscribe"}"#, "error"),
                (
                    r#"{"method":"unsubscribe","subscription":{"type":"bbo","coin":"BTC"}}"#,
                    "nothing",
                ),
                (r#"{"method":"ping"}"#, "nothing"),
            ],
        );
    }
}
