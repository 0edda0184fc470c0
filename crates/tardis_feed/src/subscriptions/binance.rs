//! Binance: streams of a symbol, a channel and perhaps a speed, `btcusdt@depth@100ms`. Aster writes
//! the same.
//!
//! Snapshots of books come from another place than the streams: the archive has them beside the
//! updates, and who asks for these gets both.

use market_data::Filter;
use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, texts, with_companion};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"method":"SUBSCRIBE","params":["btcusdt@trade","btcusdt@depth@100ms"],"id":1}"#,
};

pub(super) const OPTIONS: Dialect = Dialect {
    read,
    example: r#"{"method":"SUBSCRIBE","params":["btc-261225-100000-c@optionTrade"],"id":1}"#,
};

/// Streams of all symbols that keep their mark in the archive.
const MARKED: &[&str] = &["!contractInfo", "!optionSymbol"];

fn read(message: &Value) -> Reading {
    let streams = read_streams(message)?;
    Ok(streams.map(|streams| with_companion(streams, "depth", "depthSnapshot")))
}

/// The streams alone: other exchanges write them in the same way.
pub(super) fn read_streams(message: &Value) -> Reading {
    if !says(message, "method", "SUBSCRIBE") && !says(message, "method", "subscribe") {
        return Ok(None);
    }
    Ok(Some(texts(message, "params")?.into_iter().map(stream_filter).collect()))
}

fn stream_filter(stream: &str) -> Filter {
    let mut words = stream.split('@');
    let first = words.next().unwrap_or_default();
    match first.strip_prefix('!') {
        Some(_) if MARKED.contains(&first) => filter(first, []),
        Some(channel) => filter(channel, []),
        None => match words.next() {
            Some(channel) => filter(channel, [first]),
            None => filter(first, []),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn streams_are_read_with_and_without_a_speed() {
        let spot = [
            (r#"{"method":"SUBSCRIBE","params":["btcusdt@trade"],"id":1}"#, "trade=btcusdt"),
            (
                r#"{"method":"SUBSCRIBE","params":["btcusdt@depth@100ms","bnbbtc@aggTrade"]}"#,
                "depth=btcusdt depthSnapshot=btcusdt aggTrade=bnbbtc",
            ),
            (
                r#"{"method":"SUBSCRIBE","params":"ethusdt@depth"}"#,
                "depth=ethusdt depthSnapshot=ethusdt",
            ),
            (
                r#"{"method":"SUBSCRIBE","params":["!bookTicker","!ticker@arr"]}"#,
                "bookTicker ticker",
            ),
            (r#"{"method":"SUBSCRIBE","params":["btcusdt@kline_1m"]}"#, "error"),
            (r#"{"method":"SUBSCRIBE","params":["btcusdt@depth20@100ms"]}"#, "error"),
            (r#"{"method":"SUBSCRIBE","params":["btcusdt"]}"#, "error"),
            (r#"{"method":"SUBSCRIBE","params":[]}"#, "error"),
            (r#"{"method":"UNSUBSCRIBE","params":["btcusdt@trade"],"id":1}"#, "nothing"),
            (r#"{"method":"LIST_SUBSCRIPTIONS","id":3}"#, "nothing"),
            ("pong", "nothing"),
        ];
        for exchange in ["binance", "binance-us", "binance-jersey", "aster"] {
            assert_meanings(exchange, &spot);
        }
    }

    #[test]
    fn derivatives_have_more_channels() {
        let both = [
            (
                r#"{"method":"SUBSCRIBE","params":["btcusdt@markPrice@1s","btcusdt@forceOrder"]}"#,
                "markPrice=btcusdt forceOrder=btcusdt",
            ),
            (
                r#"{"method":"SUBSCRIBE","params":["btcusdt@depth@0ms"]}"#,
                "depth=btcusdt depthSnapshot=btcusdt",
            ),
            (
                r#"{"method":"SUBSCRIBE","params":["!forceOrder@arr","!contractInfo"]}"#,
                "forceOrder !contractInfo",
            ),
        ];
        assert_meanings("binance-futures", &both);
        assert_meanings("binance-delivery", &both);
        let all = r#"{"method":"SUBSCRIBE","params":["!markPrice@arr@1s"]}"#;
        assert_meanings("binance-futures", &[(all, "markPrice")]);
        let index = r#"{"method":"SUBSCRIBE","params":["btcusd@indexPrice@1s"]}"#;
        assert_meanings("binance-delivery", &[(index, "indexPrice=btcusd")]);
        assert_meanings("aster-futures", &[(all, "markPrice")]);
        let options = r#"{"method":"SUBSCRIBE","params":["btc-x-c@depth20@100ms","!optionSymbol","btcusdt@optionOpenInterest@261225"]}"#;
        let meaning = "depth20=btc-x-c !optionSymbol optionOpenInterest=btcusdt";
        assert_meanings("binance-european-options", &[(options, meaning)]);
    }
}
