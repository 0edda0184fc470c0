//! Bullish: topics, whose messages have names of their own in the archive.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, part, says, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"jsonrpc":"2.0","type":"command","method":"subscribe","id":"1","params":{"topic":"l2Orderbook","symbol":"BTCUSDC"}}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "method", "subscribe") {
        return Ok(None);
    }
    let params = part(message, "params")?;
    let channel = match text(params, "topic")? {
        "l2Orderbook" => "V1TALevel2",
        "l1Orderbook" => "V1TALevel1",
        "anonymousTrades" => "V1TAAnonymousTradeUpdate",
        "tick" => "V1TATickerResponse",
        "indexPrice" => "V1TAIndexPrice",
        topic => return Err(Misread::Channel(topic.to_owned())),
    };
    let symbol = text(params, "symbol").or_else(|_| text(params, "assetSymbol"));
    Ok(Some(vec![filter(channel, symbol.ok())]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn topics_have_other_names_in_the_archive() {
        assert_meanings(
            "bullish",
            &[
                (
                    r#"{"method":"subscribe","params":{"topic":"l2Orderbook","symbol":"BTCUSDC"}}"#,
                    "V1TALevel2=BTCUSDC",
                ),
                (
                    r#"{"method":"subscribe","params":{"topic":"l1Orderbook","symbol":"BTCUSDC"}}"#,
                    "V1TALevel1=BTCUSDC",
                ),
                (
                    r#"{"method":"subscribe","params":{"topic":"anonymousTrades","symbol":"BTCUSDC"}}"#,
                    "V1TAAnonymousTradeUpdate=BTCUSDC",
                ),
                (
                    r#"{"method":"subscribe","params":{"topic":"tick","symbol":"BTC-USDC-PERP"}}"#,
                    "V1TATickerResponse=BTC-USDC-PERP",
                ),
                (
                    r#"{"method":"subscribe","params":{"topic":"indexPrice","assetSymbol":"BTC"}}"#,
                    "V1TAIndexPrice=BTC",
                ),
                (r#"{"method":"subscribe","params":{"topic":"heartbeat"}}"#, "error"),
                (r#"{"method":"keepalivePing","params":{}}"#, "nothing"),
            ],
        );
    }
}
