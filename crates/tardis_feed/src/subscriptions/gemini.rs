//! Gemini: subscriptions by name until 2026, later streams as Binance writes them, but with symbols
//! that the archive has in capitals.

use market_data::Filter;
use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filters, items, says, symbols, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"type":"subscribe","subscriptions":[{"name":"l2","symbols":["BTCUSD"]}]}"#,
};

/// The messages of a book: its changes, trades and auctions.
const BOOK: &[&str] =
    &["trade", "l2_updates", "auction_open", "auction_indicative", "auction_result"];

fn read(message: &Value) -> Reading {
    if !says(message, "type", "subscribe") {
        let streams = super::binance::read_streams(message)?;
        return Ok(streams.map(with_capitals));
    }
    let mut asked = Vec::new();
    for subscription in items(message, "subscriptions")? {
        match text(subscription, "name")? {
            "l2" => asked.extend(filters(BOOK, &symbols(subscription, "symbols")?)),
            name => return Err(Misread::Channel(name.to_owned())),
        }
    }
    Ok(Some(asked))
}

fn with_capitals(mut filters: Vec<Filter>) -> Vec<Filter> {
    for symbol in filters.iter_mut().filter_map(|filter| filter.symbols.as_mut()).flatten() {
        symbol.make_ascii_uppercase();
    }
    filters
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn both_forms_are_read() {
        assert_meanings(
            "gemini",
            &[
                (
                    r#"{"type":"subscribe","subscriptions":[{"name":"l2","symbols":["A","B"]}]}"#,
                    "trade=A,B l2_updates=A,B auction_open=A,B auction_indicative=A,B auction_result=A,B",
                ),
                (
                    r#"{"method":"SUBSCRIBE","params":["btcusd@depth@100ms","btcusd@bookTicker"],"id":1}"#,
                    "depth=BTCUSD bookTicker=BTCUSD",
                ),
                (r#"{"method":"subscribe","params":["btcusd@trade"],"id":"1"}"#, "trade=BTCUSD"),
                (
                    r#"{"type":"subscribe","subscriptions":[{"name":"candles_1m","symbols":["A"]}]}"#,
                    "error",
                ),
                (
                    r#"{"type":"unsubscribe","subscriptions":[{"name":"l2","symbols":["A"]}]}"#,
                    "nothing",
                ),
            ],
        );
    }
}
