//! Bitnomial: channels and products; a book is its snapshots and the levels that change.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filters, items, says, symbols, text};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"type":"subscribe","product_codes":["BUSZ25"],"channels":["book","trade"]}"#,
};

fn read(message: &Value) -> Reading {
    if !says(message, "type", "subscribe") {
        return Ok(None);
    }
    let of_all = symbols(message, "product_codes")?;
    let mut asked = Vec::new();
    for channel in items(message, "channels")? {
        let (name, products) = match channel {
            Value::String(name) => (&**name, Vec::new()),
            object => (text(object, "name")?, symbols(object, "product_codes")?),
        };
        let products = if products.is_empty() { &of_all } else { &products };
        let channels: &[&str] = match name {
            "book" => &["book", "level"],
            "trade" => &["trade"],
            "block" => &["block"],
            "status" => &["status"],
            _ => return Err(Misread::Channel(name.to_owned())),
        };
        asked.extend(filters(channels, products));
    }
    Ok(Some(asked))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn a_book_has_two_channels() {
        assert_meanings(
            "bitnomial",
            &[
                (
                    r#"{"type":"subscribe","product_codes":["A"],"channels":["book",{"name":"trade","product_codes":["B"]}]}"#,
                    "book=A level=A trade=B",
                ),
                (r#"{"type":"subscribe","product_codes":[],"channels":["block"]}"#, "block"),
                (r#"{"type":"subscribe","channels":["ticker"]}"#, "error"),
                (r#"{"type":"unsubscribe","channels":["book"]}"#, "nothing"),
            ],
        );
    }
}
