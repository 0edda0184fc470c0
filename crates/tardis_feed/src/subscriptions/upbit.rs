//! Upbit: a list of which some items name a type and its codes.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, symbols, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"[{"ticket":"1"},{"type":"trade","codes":["KRW-BTC"]}]"# };

fn read(message: &Value) -> Reading {
    let Some(items) = message.as_array() else { return Ok(None) };
    let typed = items.iter().filter(|item| item.get("type").is_some());
    let filters = typed.map(|item| Ok(filter(text(item, "type")?, symbols(item, "codes")?)));
    filters.collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn items_without_a_type_are_passed_over() {
        assert_meanings(
            "upbit",
            &[
                (
                    r#"[{"ticket":"1"},{"type":"trade","codes":["KRW-BTC"]},{"type":"orderbook","codes":["KRW-BTC","BTC-XRP"]},{"format":"SIMPLE"}]"#,
                    "trade=KRW-BTC orderbook=KRW-BTC,BTC-XRP",
                ),
                (r#"[{"ticket":"1"}]"#, "error"),
                (r#"[{"type":"candle.1s","codes":["KRW-BTC"]}]"#, "error"),
                (r#"{"type":"trade"}"#, "nothing"),
                ("PING", "nothing"),
            ],
        );
    }
}
