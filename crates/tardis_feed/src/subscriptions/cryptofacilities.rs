//! Crypto Facilities (Kraken Futures): a feed and its products. What is sent first has a channel of its
//! own.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text, with_companion};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"event":"subscribe","feed":"trade","product_ids":["PI_XBTUSD"]}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "event", "subscribe") {
        return Ok(None);
    }
    let asked = vec![filter(text(message, "feed")?, symbols(message, "product_ids")?)];
    let asked = with_companion(asked, "book", "book_snapshot");
    Ok(Some(with_companion(asked, "trade", "trade_snapshot")))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn books_and_trades_begin_with_snapshots() {
        assert_meanings(
            "cryptofacilities",
            &[
                (
                    r#"{"event":"subscribe","feed":"book","product_ids":["PI_XBTUSD"]}"#,
                    "book=PI_XBTUSD book_snapshot=PI_XBTUSD",
                ),
                (
                    r#"{"event":"subscribe","feed":"trade","product_ids":["A","B"]}"#,
                    "trade=A,B trade_snapshot=A,B",
                ),
                (r#"{"event":"subscribe","feed":"heartbeat"}"#, "heartbeat"),
                (r#"{"event":"subscribe","feed":"ticker_lite","product_ids":["A"]}"#, "error"),
                (r#"{"event":"challenge","api_key":"k"}"#, "nothing"),
            ],
        );
    }
}
