//! Binance DEX: a topic and its symbols. Snapshots of books are kept beside their updates.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text, with_companion};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"method":"subscribe","topic":"trades","symbols":["BNB_BTCB-1DE"]}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "method", "subscribe") {
        return Ok(None);
    }
    let asked = vec![filter(text(message, "topic")?, symbols(message, "symbols")?)];
    Ok(Some(with_companion(asked, "marketDiff", "depthSnapshot")))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn updates_come_with_snapshots() {
        assert_meanings(
            "binance-dex",
            &[
                (
                    r#"{"method":"subscribe","topic":"trades","symbols":["A_B","C_D"]}"#,
                    "trades=A_B,C_D",
                ),
                (
                    r#"{"method":"subscribe","topic":"marketDiff","symbols":["A_B"]}"#,
                    "marketDiff=A_B depthSnapshot=A_B",
                ),
                (r#"{"method":"subscribe","symbols":["A_B"]}"#, "error"),
                (r#"{"method":"keepAlive"}"#, "nothing"),
            ],
        );
    }
}
