//! `HitBTC`: a method for each channel, which sends a snapshot and updates.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filters, part, says, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"method":"subscribeOrderbook","params":{"symbol":"ETHBTC"},"id":1}"#,
};

fn read(message: &Value) -> Reading {
    let channels = if says(message, "method", "subscribeTrades") {
        &["snapshotTrades", "updateTrades"]
    } else if says(message, "method", "subscribeOrderbook") {
        &["snapshotOrderbook", "updateOrderbook"]
    } else {
        return Ok(None);
    };
    Ok(Some(filters(channels, &[text(part(message, "params")?, "symbol")?])))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn a_method_has_two_channels() {
        assert_meanings(
            "hitbtc",
            &[
                (
                    r#"{"method":"subscribeTrades","params":{"symbol":"ETHBTC","limit":100},"id":1}"#,
                    "snapshotTrades=ETHBTC updateTrades=ETHBTC",
                ),
                (
                    r#"{"method":"subscribeOrderbook","params":{"symbol":"ETHBTC"}}"#,
                    "snapshotOrderbook=ETHBTC updateOrderbook=ETHBTC",
                ),
                (r#"{"method":"subscribeTrades"}"#, "error"),
                (r#"{"method":"unsubscribeTrades","params":{"symbol":"ETHBTC"}}"#, "nothing"),
                (r#"{"method":"getSymbol","params":{"symbol":"ETHBTC"}}"#, "nothing"),
            ],
        );
    }
}
