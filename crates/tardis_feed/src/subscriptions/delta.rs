//! Delta: channels, each with its symbols. Marks are subscribed to, and kept in the archive, under the
//! symbol or under `MARK:` and the symbol: both are asked for.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, items, part, says, symbols, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"type":"subscribe","payload":{"channels":[{"name":"all_trades","symbols":["BTCUSD"]}]}}"#,
};

const MARK: &str = "MARK:";

fn read(message: &Value) -> Reading {
    if !says(message, "type", "subscribe") {
        return Ok(None);
    }
    let channels = items(part(message, "payload")?, "channels")?.iter().map(|channel| {
        let name = text(channel, "name")?;
        let symbols = symbols(channel, "symbols")?.into_iter().filter(|symbol| *symbol != "all");
        let mut filter = filter(name, symbols);
        if name == "mark_price" {
            filter.symbols = filter.symbols.map(with_and_without_mark);
        }
        Ok(filter)
    });
    channels.collect::<Result<_, _>>().map(Some)
}

fn with_and_without_mark(symbols: Vec<String>) -> Vec<String> {
    let both = |symbol: String| {
        let plain = symbol.strip_prefix(MARK).unwrap_or(&symbol);
        [plain.to_owned(), format!("{MARK}{plain}")]
    };
    symbols.into_iter().flat_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn marks_are_found_under_both_names() {
        assert_meanings(
            "delta",
            &[
                (
                    r#"{"type":"subscribe","payload":{"channels":[{"name":"v2/ticker","symbols":["BTCUSD"]},{"name":"all_trades","symbols":["all"]}]}}"#,
                    "v2/ticker=BTCUSD all_trades",
                ),
                (
                    r#"{"type":"subscribe","payload":{"channels":[{"name":"mark_price","symbols":["A","MARK:B"]}]}}"#,
                    "mark_price=A,MARK:A,B,MARK:B",
                ),
                (
                    r#"{"type":"subscribe","payload":{"channels":[{"name":"announcements"}]}}"#,
                    "announcements",
                ),
                (
                    r#"{"type":"subscribe","payload":{"channels":[{"name":"candlestick_1m","symbols":["A"]}]}}"#,
                    "error",
                ),
                (r#"{"type":"subscribe"}"#, "error"),
                (r#"{"type":"enable_heartbeat"}"#, "nothing"),
            ],
        );
    }
}
