//! Bitget: objects with a channel and an instrument, by the names of the second or the third version.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, items, says, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"op":"subscribe","args":[{"instType":"spot","topic":"books","symbol":"BTCUSDT"}]}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "op", "subscribe") {
        return Ok(None);
    }
    let filters = items(message, "args")?.iter().map(|argument| {
        let channel = text(argument, "channel").or_else(|_| text(argument, "topic"))?;
        let symbol = text(argument, "instId").or_else(|_| text(argument, "symbol"));
        Ok(filter(channel, symbol.ok().filter(|symbol| *symbol != "default")))
    });
    filters.collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn both_versions_are_read() {
        assert_meanings(
            "bitget",
            &[
                (
                    r#"{"op":"subscribe","args":[{"instType":"SPOT","channel":"trade","instId":"BTCUSDT"}]}"#,
                    "trade=BTCUSDT",
                ),
                (
                    r#"{"op":"subscribe","args":[{"instType":"spot","topic":"publicTrade","symbol":"BTCUSDT"},{"instType":"spot","topic":"books1","symbol":"BTCUSDT"}]}"#,
                    "publicTrade=BTCUSDT books1=BTCUSDT",
                ),
                (r#"{"op":"subscribe","args":[{"instId":"BTCUSDT"}]}"#, "error"),
                (r#"{"op":"unsubscribe","args":[]}"#, "nothing"),
                ("ping", "nothing"),
            ],
        );
        assert_meanings(
            "bitget-futures",
            &[
                (
                    r#"{"op":"subscribe","args":[{"instType":"usdt-futures","topic":"liquidation"}]}"#,
                    "liquidation",
                ),
                (
                    r#"{"op":"subscribe","args":[{"instType":"USDT-FUTURES","channel":"ticker","instId":"default"}]}"#,
                    "ticker",
                ),
            ],
        );
    }
}
