//! Kraken: a channel and its pairs, in the words of the first version (`event`) or of the second
//! (`method`).

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, filters, part, says, symbols, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"event":"subscribe","pair":["XBT/USD"],"subscription":{"name":"book","depth":1000}}"#,
};

fn read(message: &Value) -> Reading {
    if says(message, "event", "subscribe") {
        let pairs = symbols(message, "pair")?;
        return Ok(Some(match text(part(message, "subscription")?, "name")? {
            "*" => filters(&["ticker", "trade", "book", "spread"], &pairs),
            channel => vec![filter(channel, pairs)],
        }));
    }
    if says(message, "method", "subscribe") {
        let params = part(message, "params")?;
        return Ok(Some(vec![filter(text(params, "channel")?, symbols(params, "symbol")?)]));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn both_versions_are_read() {
        assert_meanings(
            "kraken",
            &[
                (
                    r#"{"event":"subscribe","pair":["XBT/USD","XBT/EUR"],"subscription":{"name":"ticker"}}"#,
                    "ticker=XBT/USD,XBT/EUR",
                ),
                (
                    r#"{"event":"subscribe","reqid":1,"pair":["XBT/USD"],"subscription":{"name":"book","depth":1000}}"#,
                    "book=XBT/USD",
                ),
                (
                    r#"{"event":"subscribe","pair":["XBT/USD"],"subscription":{"name":"*"}}"#,
                    "ticker=XBT/USD trade=XBT/USD book=XBT/USD spread=XBT/USD",
                ),
                (
                    r#"{"method":"subscribe","params":{"channel":"book","symbol":["BTC/USD"],"depth":1000},"req_id":1}"#,
                    "book=BTC/USD",
                ),
                (r#"{"method":"subscribe","params":{"channel":"instrument"}}"#, "instrument"),
                (
                    r#"{"event":"subscribe","pair":["XBT/USD"],"subscription":{"name":"ohlc"}}"#,
                    "error",
                ),
                (r#"{"event":"subscribe","pair":["XBT/USD"]}"#, "error"),
                (r#"{"method":"subscribe"}"#, "error"),
                (r#"{"event":"ping","reqid":42}"#, "nothing"),
                (r#"{"method":"ping"}"#, "nothing"),
                (
                    r#"{"event":"unsubscribe","pair":["XBT/USD"],"subscription":{"name":"book"}}"#,
                    "nothing",
                ),
                (r#"{"method":"unsubscribe","params":{"channel":"book"}}"#, "nothing"),
            ],
        );
    }
}
