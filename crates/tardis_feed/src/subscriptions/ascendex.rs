//! `AscendEX`: a channel and a symbol, `trades:BTC/USDT`; snapshots are requested.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filter, says, symbols, text, topic_filter};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"op":"sub","ch":"trades:BTC/USDT"}"# };

fn read(message: &Value) -> Reading {
    if says(message, "op", "sub") {
        return Ok(Some(vec![topic_filter(text(message, "ch")?, ':')]));
    }
    if says(message, "op", "req") {
        let symbols = message.get("args").map_or(Ok(Vec::new()), |args| symbols(args, "symbol"))?;
        return Ok(Some(vec![filter(text(message, "action")?, symbols)]));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn subscriptions_and_requests_are_read() {
        assert_meanings(
            "ascendex",
            &[
                (r#"{"op":"sub","ch":"trades:BTC/USDT"}"#, "trades=BTC/USDT"),
                (r#"{"op":"sub","id":"1","ch":"futures-pricing-data"}"#, "futures-pricing-data"),
                (
                    r#"{"op":"req","action":"depth-snapshot-realtime","args":{"symbol":"BTC/USDT"}}"#,
                    "depth-snapshot-realtime=BTC/USDT",
                ),
                (r#"{"op":"sub","ch":"bar:1:BTC/USDT"}"#, "error"),
                (r#"{"op":"unsub","ch":"trades:BTC/USDT"}"#, "nothing"),
                (r#"{"op":"pong"}"#, "nothing"),
            ],
        );
    }
}
