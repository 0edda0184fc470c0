//! Coinbase: channels that stand for several types of messages, which are what the archive goes by.

use market_data::Filter;
use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filters, items, says, symbols, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"type":"subscribe","product_ids":["BTC-USD"],"channels":["level2","matches"]}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "type", "subscribe") {
        return Ok(None);
    }
    let of_all = symbols(message, "product_ids")?;
    let mut asked: Vec<Filter> = Vec::new();
    let mut unrecorded = None;
    for channel in items(message, "channels")? {
        let (name, products) = match channel {
            Value::String(name) => (&**name, Vec::new()),
            object => (text(object, "name")?, symbols(object, "product_ids")?),
        };
        let products = if products.is_empty() { &of_all } else { &products };
        match types(name) {
            Some(types) => asked.extend(filters(types, products)),
            // Many ask for heartbeats in passing: that is no reason to refuse the rest.
            None if name == "heartbeat" || name == "status" => unrecorded = Some(name),
            None => return Err(Misread::Channel(name.to_owned())),
        }
    }
    match unrecorded {
        Some(name) if asked.is_empty() => Err(Misread::Channel(name.to_owned())),
        _ => Ok(Some(asked)),
    }
}

/// The types of messages that a channel has.
fn types(channel: &str) -> Option<&'static [&'static str]> {
    Some(match channel {
        "full" => &["received", "open", "done", "match", "change", "full_snapshot"],
        "level2" | "level2_batch" => &["snapshot", "l2update"],
        "matches" => &["match", "last_match"],
        "ticker" | "ticker_batch" => &["ticker"],
        "rfq_matches" => &["rfq_matches"],
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn channels_stand_for_types_of_messages() {
        assert_meanings(
            "coinbase",
            &[
                (
                    r#"{"type":"subscribe","product_ids":["BTC-USD","ETH-USD"],"channels":["level2","heartbeat",{"name":"ticker","product_ids":["ETH-BTC"]}]}"#,
                    "snapshot=BTC-USD,ETH-USD l2update=BTC-USD,ETH-USD ticker=ETH-BTC",
                ),
                (
                    r#"{"type":"subscribe","channels":[{"name":"matches","product_ids":["BTC-USD"]}]}"#,
                    "match=BTC-USD last_match=BTC-USD",
                ),
                (
                    r#"{"type":"subscribe","product_ids":["BTC-USD"],"channels":[{"name":"level2_batch"}]}"#,
                    "snapshot=BTC-USD l2update=BTC-USD",
                ),
                (
                    r#"{"type":"subscribe","product_ids":["A-B"],"channels":["full"],"signature":"s"}"#,
                    "received=A-B open=A-B done=A-B match=A-B change=A-B full_snapshot=A-B",
                ),
                (r#"{"type":"subscribe","channels":["ticker"]}"#, "ticker"),
                (r#"{"type":"subscribe","channels":["heartbeat"]}"#, "error"),
                (r#"{"type":"subscribe","channels":["level3"]}"#, "error"),
                (r#"{"type":"subscribe","product_ids":["BTC-USD"]}"#, "error"),
                (r#"{"type":"unsubscribe","channels":["ticker"]}"#, "nothing"),
            ],
        );
    }
}
