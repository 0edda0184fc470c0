//! Bitstamp: a channel and a pair in one word, `live_trades_btcusd`.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, part, says, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"event":"bts:subscribe","data":{"channel":"live_trades_btcusd"}}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "event", "bts:subscribe") {
        return Ok(None);
    }
    let name = text(part(message, "data")?, "channel")?;
    let (channel, pair) = name.rsplit_once('_').ok_or_else(|| Misread::Channel(name.to_owned()))?;
    Ok(Some(vec![filter(channel, [pair])]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn the_pair_is_the_last_word() {
        assert_meanings(
            "bitstamp",
            &[
                (
                    r#"{"event":"bts:subscribe","data":{"channel":"diff_order_book_btcusd"}}"#,
                    "diff_order_book=btcusd",
                ),
                (
                    r#"{"event":"bts:subscribe","data":{"channel":"live_orders_ethusd"}}"#,
                    "live_orders=ethusd",
                ),
                (r#"{"event":"bts:subscribe","data":{"channel":"order_book_btcusd"}}"#, "error"),
                (r#"{"event":"bts:subscribe"}"#, "error"),
                (
                    r#"{"event":"bts:unsubscribe","data":{"channel":"live_trades_btcusd"}}"#,
                    "nothing",
                ),
            ],
        );
    }
}
