//! Crypto.com: channels of several words between points, `book.BTC_USDT.50`.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, part, says, texts};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"id":1,"method":"subscribe","params":{"channels":["trade.BTC_USDT"]}}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "method", "subscribe") {
        return Ok(None);
    }
    let channels = texts(part(message, "params")?, "channels")?;
    let filters = channels.into_iter().map(|name| {
        let mut words = name.split('.');
        filter(words.next().unwrap_or_default(), words.next())
    });
    Ok(Some(filters.collect()))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn the_symbol_is_the_second_word() {
        assert_meanings(
            "crypto-com",
            &[
                (
                    r#"{"id":1,"method":"subscribe","params":{"channels":["book.BTC_USDT.50","trade.BTC_USDT"]}}"#,
                    "book=BTC_USDT trade=BTC_USDT",
                ),
                (
                    r#"{"method":"subscribe","params":{"channels":["index.BTCUSD-INDEX"]}}"#,
                    "index=BTCUSD-INDEX",
                ),
                (r#"{"method":"subscribe","params":{"channels":["user.order"]}}"#, "error"),
                (r#"{"id":1,"method":"public/respond-heartbeat"}"#, "nothing"),
            ],
        );
    }
}
