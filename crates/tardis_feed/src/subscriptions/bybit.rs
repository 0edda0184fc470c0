//! Bybit: topics of a channel and a symbol between points, `orderbook.50.BTCUSDT`. On the spot market
//! subscriptions were objects of their own until 2023.

use market_data::Filter;
use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text, texts};

pub(super) const DIALECT: Dialect = Dialect {
    read: read_topics,
    example: r#"{"op":"subscribe","args":["publicTrade.BTCUSDT","orderbook.50.BTCUSDT"]}"#,
};

pub(super) const SPOT: Dialect = Dialect {
    read: read_spot,
    example: r#"{"op":"subscribe","args":["publicTrade.BTCUSDT","orderbook.50.BTCUSDT"]}"#,
};

pub(super) const OPTIONS: Dialect = Dialect {
    read: read_options,
    example: r#"{"op":"subscribe","args":["orderbook.25.BTC-26DEC25-100000-C"]}"#,
};

fn read_topics(message: &Value) -> Reading {
    if !says(message, "op", "subscribe") {
        return Ok(None);
    }
    Ok(Some(texts(message, "args")?.into_iter().map(topic_filter).collect()))
}

fn read_spot(message: &Value) -> Reading {
    if !says(message, "event", "sub") {
        return read_topics(message);
    }
    let place = message.get("params").filter(|params| params.get("symbol").is_some());
    let symbols = symbols(place.unwrap_or(message), "symbol")?;
    let symbols = symbols.into_iter().flat_map(|several| several.split(','));
    Ok(Some(vec![filter(text(message, "topic")?, symbols)]))
}

/// Trades of options are subscribed to by coin, and in the archive they are found by instrument: who
/// names a coin gets all of them.
fn read_options(message: &Value) -> Reading {
    let named = |mut filter: Filter| {
        filter.symbols =
            filter.symbols.filter(|symbols| symbols.iter().all(|name| name.contains('-')));
        filter
    };
    let filters = read_topics(message)?;
    Ok(filters.map(|filters| filters.into_iter().map(named).collect()))
}

fn topic_filter(topic: &str) -> Filter {
    let Some((channel, symbols)) = topic.rsplit_once('.') else { return filter(topic, []) };
    // How often it is sent is no part of the channel's name.
    let channel = match channel.rsplit_once('.') {
        Some((name, speed)) if speed.ends_with("ms") => name,
        _ => channel,
    };
    filter(channel, symbols.split('|').filter(|symbol| *symbol != "*"))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn topics_of_all_versions_are_read() {
        assert_meanings(
            "bybit",
            &[
                (
                    r#"{"op":"subscribe","args":["orderbook.50.BTCUSDT","publicTrade.BTCUSDT","tickers.ETHUSD"]}"#,
                    "orderbook.50=BTCUSDT publicTrade=BTCUSDT tickers=ETHUSD",
                ),
                (
                    r#"{"op":"subscribe","args":["allLiquidation.BTCUSDT"]}"#,
                    "allLiquidation=BTCUSDT",
                ),
                (r#"{"op":"subscribe","args":["trade.BTCUSD|XRPUSD"]}"#, "trade=BTCUSD,XRPUSD"),
                (
                    r#"{"op":"subscribe","args":["orderBook_200.100ms.BTCUSD","instrument_info.100ms.*"]}"#,
                    "orderBook_200=BTCUSD instrument_info",
                ),
                (r#"{"op":"subscribe","args":["trade","insurance.BTC"]}"#, "trade insurance=BTC"),
                (
                    r#"{"op":"subscribe","args":["orderBookL2_25.BTCUSD"],"req_id":"1"}"#,
                    "orderBookL2_25=BTCUSD",
                ),
                (r#"{"op":"subscribe","args":["kline.1.BTCUSDT"]}"#, "error"),
                (r#"{"op":"subscribe","args":[]}"#, "error"),
                (r#"{"op":"unsubscribe","args":["trade"]}"#, "nothing"),
                (r#"{"op":"ping"}"#, "nothing"),
                (r#"{"op":"auth","args":["key",1,"signature"]}"#, "nothing"),
            ],
        );
        let options = r#"{"op":"subscribe","args":["orderbook.25.BTC-1AUG25-112000-P-USDT","publicTrade.BTC"]}"#;
        assert_meanings(
            "bybit-options",
            &[(options, "orderbook.25=BTC-1AUG25-112000-P-USDT publicTrade")],
        );
    }

    #[test]
    fn the_spot_market_was_subscribed_to_in_another_form() {
        assert_meanings(
            "bybit-spot",
            &[
                (
                    r#"{"op":"subscribe","args":["orderbook.50.BTCUSDT","publicTrade.BTCUSDT"]}"#,
                    "orderbook.50=BTCUSDT publicTrade=BTCUSDT",
                ),
                (r#"{"event":"sub","topic":"trade","symbol":"BTCUSDT"}"#, "trade=BTCUSDT"),
                (
                    r#"{"topic":"depth","event":"sub","params":{"symbol":"BTCUSDT","binary":false}}"#,
                    "depth=BTCUSDT",
                ),
                (
                    r#"{"symbol":"BTCUSDT,ETHUSDT","topic":"bookTicker","event":"sub","params":{"binary":"false"}}"#,
                    "bookTicker=BTCUSDT,ETHUSDT",
                ),
                (r#"{"event":"sub","symbol":"BTCUSDT"}"#, "error"),
                (r#"{"event":"sub","topic":"diffDepth","symbol":"BTCUSDT"}"#, "error"),
                (r#"{"event":"cancel","topic":"trade","symbol":"BTCUSDT"}"#, "nothing"),
                (r#"{"ping":1535975085052}"#, "nothing"),
            ],
        );
    }
}
