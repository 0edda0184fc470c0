//! `bitFlyer`: a channel and a product in one word, `lightning_ticker_BTC_JPY`.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, part, says, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"method":"subscribe","params":{"channel":"lightning_executions_BTC_JPY"}}"#,
};

/// One begins with another: the longer comes first.
const CHANNELS: &[&str] =
    &["lightning_board_snapshot", "lightning_board", "lightning_ticker", "lightning_executions"];

fn read(message: &Value) -> Reading {
    if !says(message, "method", "subscribe") {
        return Ok(None);
    }
    let name = text(part(message, "params")?, "channel")?;
    let asked = CHANNELS.iter().find_map(|channel| {
        let product = name.strip_prefix(channel)?.strip_prefix('_')?;
        Some(filter(channel, [product]))
    });
    asked.map(|filter| Some(vec![filter])).ok_or_else(|| Misread::Channel(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn the_longest_channel_is_meant() {
        assert_meanings(
            "bitflyer",
            &[
                (
                    r#"{"method":"subscribe","params":{"channel":"lightning_board_snapshot_BTC_JPY"}}"#,
                    "lightning_board_snapshot=BTC_JPY",
                ),
                (
                    r#"{"method":"subscribe","params":{"channel":"lightning_board_FX_BTC_JPY"}}"#,
                    "lightning_board=FX_BTC_JPY",
                ),
                (r#"{"method":"subscribe","params":{"channel":"lightning_fun_BTC_JPY"}}"#, "error"),
                (r#"{"method":"subscribe"}"#, "error"),
                (
                    r#"{"method":"unsubscribe","params":{"channel":"lightning_board_BTC_JPY"}}"#,
                    "nothing",
                ),
            ],
        );
    }
}
