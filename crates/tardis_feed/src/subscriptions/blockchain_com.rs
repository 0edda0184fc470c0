//! Blockchain.com: a channel and a symbol.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"action":"subscribe","channel":"l2","symbol":"BTC-USD"}"# };

fn read(message: &Value) -> Reading {
    if !says(message, "action", "subscribe") {
        return Ok(None);
    }
    Ok(Some(vec![filter(text(message, "channel")?, symbols(message, "symbol")?)]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn a_channel_has_one_symbol() {
        assert_meanings(
            "blockchain-com",
            &[
                (
                    r#"{"action":"subscribe","channel":"trades","symbol":"BTC-USD"}"#,
                    "trades=BTC-USD",
                ),
                (r#"{"action":"subscribe","channel":"heartbeat"}"#, "error"),
                (r#"{"action":"unsubscribe","channel":"trades","symbol":"BTC-USD"}"#, "nothing"),
            ],
        );
    }
}
