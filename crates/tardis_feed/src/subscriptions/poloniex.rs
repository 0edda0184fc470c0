//! Poloniex: until 2022 a command with a pair, since then channels with their symbols.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, filters, says, symbols, text, texts};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"event":"subscribe","channel":["book_lv2"],"symbols":["BTC_USDT"]}"#,
};

fn read(message: &Value) -> Reading {
    if says(message, "command", "subscribe") {
        return Ok(Some(vec![filter("price_aggregated_book", [text(message, "channel")?])]));
    }
    if says(message, "event", "subscribe") {
        let mut symbols = symbols(message, "symbols")?;
        symbols.retain(|symbol| *symbol != "all");
        return Ok(Some(filters(&texts(message, "channel")?, &symbols)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn both_forms_are_read() {
        assert_meanings(
            "poloniex",
            &[
                (r#"{"command":"subscribe","channel":"BTC_ETH"}"#, "price_aggregated_book=BTC_ETH"),
                (
                    r#"{"event":"subscribe","channel":["book_lv2","trades"],"symbols":["A_B","C_D"]}"#,
                    "book_lv2=A_B,C_D trades=A_B,C_D",
                ),
                (r#"{"event":"subscribe","channel":["ticker"],"symbols":["all"]}"#, "ticker"),
                (r#"{"command":"subscribe","channel":1002}"#, "error"),
                (
                    r#"{"event":"subscribe","channel":["candles_minute_1"],"symbols":["A_B"]}"#,
                    "error",
                ),
                (r#"{"event":"ping"}"#, "nothing"),
                (r#"{"command":"unsubscribe","channel":"BTC_ETH"}"#, "nothing"),
            ],
        );
    }
}
