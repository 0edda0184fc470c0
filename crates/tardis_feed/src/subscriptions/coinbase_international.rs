//! Coinbase International: channels and products.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, filters, says, symbols, texts};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"type":"SUBSCRIBE","product_ids":["BTC-PERP"],"channels":["LEVEL2","MATCH"]}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "type", "SUBSCRIBE") {
        return Ok(None);
    }
    Ok(Some(filters(&texts(message, "channels")?, &symbols(message, "product_ids")?)))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn every_channel_has_all_products() {
        assert_meanings(
            "coinbase-international",
            &[
                (
                    r#"{"type":"SUBSCRIBE","product_ids":["A","B"],"channels":["LEVEL1","RISK"],"key":"k"}"#,
                    "LEVEL1=A,B RISK=A,B",
                ),
                (r#"{"type":"SUBSCRIBE","channels":["INSTRUMENTS"]}"#, "INSTRUMENTS"),
                (r#"{"type":"SUBSCRIBE","channels":["LEVEL3"]}"#, "error"),
                (r#"{"type":"UNSUBSCRIBE","channels":["LEVEL1"]}"#, "nothing"),
            ],
        );
    }
}
