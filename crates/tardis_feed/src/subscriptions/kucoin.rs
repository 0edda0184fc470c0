//! `KuCoin`: topics such as `/market/level2:BTC-USDT,ETH-USDT`. Snapshots of books are kept beside their
//! updates.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, text, with_companion};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"id":1,"type":"subscribe","topic":"/market/level2:BTC-USDT","response":true}"#,
};

pub(super) const FUTURES: Dialect = Dialect {
    read,
    example: r#"{"id":1,"type":"subscribe","topic":"/contractMarket/level2:XBTUSDM","response":true}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "type", "subscribe") {
        return Ok(None);
    }
    let topic = text(message, "topic")?;
    let topic = topic.strip_prefix('/').unwrap_or(topic);
    let (channel, symbols) = topic.split_once(':').unwrap_or((topic, "all"));
    let asked = vec![filter(channel, symbols.split(',').filter(|symbol| *symbol != "all"))];
    let asked = with_companion(asked, "market/level2", "market/level2Snapshot");
    Ok(Some(with_companion(asked, "contractMarket/level2", "contractMarket/level2Snapshot")))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn topics_have_several_symbols() {
        assert_meanings(
            "kucoin",
            &[
                (
                    r#"{"id":1,"type":"subscribe","topic":"/market/ticker:A-B,C-D","response":true}"#,
                    "market/ticker=A-B,C-D",
                ),
                (r#"{"type":"subscribe","topic":"/market/ticker:all"}"#, "market/ticker"),
                (
                    r#"{"type":"subscribe","topic":"/market/level2:A-B"}"#,
                    "market/level2=A-B market/level2Snapshot=A-B",
                ),
                (r#"{"type":"subscribe","topic":"/spotMarket/level2Depth5:A-B"}"#, "error"),
                (r#"{"type":"subscribe"}"#, "error"),
                (r#"{"type":"unsubscribe","topic":"/market/ticker:all"}"#, "nothing"),
                (r#"{"type":"ping","id":"1"}"#, "nothing"),
            ],
        );
        assert_meanings(
            "kucoin-futures",
            &[
                (
                    r#"{"type":"subscribe","topic":"/contractMarket/level2:A"}"#,
                    "contractMarket/level2=A contractMarket/level2Snapshot=A",
                ),
                (
                    r#"{"type":"subscribe","topic":"/contract/instrument:A"}"#,
                    "contract/instrument=A",
                ),
            ],
        );
    }
}
