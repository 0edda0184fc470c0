//! Phemex: a method for each channel, with symbols among its parameters.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"id":1,"method":"trade.subscribe","params":["BTCUSD"]}"# };

fn read(message: &Value) -> Reading {
    let method = message.get("method").and_then(Value::as_str);
    let Some(name) = method.and_then(|method| method.strip_suffix(".subscribe")) else {
        return Ok(None);
    };
    let channel = match name {
        "orderbook" => "book",
        "trade" => "trades",
        "trade_p" => "trades_p",
        "orderbook_p" | "market24h" | "spot_market24h" | "perp_market24h_pack_p" => name,
        _ => return Err(Misread::Channel(name.to_owned())),
    };
    // How deep and how often a book is sent follows its symbol, and is no text.
    let params = message.get("params").and_then(Value::as_array);
    let symbols = params.into_iter().flatten().filter_map(Value::as_str);
    Ok(Some(vec![filter(channel, symbols)]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn methods_have_other_names_in_the_archive() {
        assert_meanings(
            "phemex",
            &[
                (r#"{"id":0,"method":"orderbook.subscribe","params":["BTCUSD"]}"#, "book=BTCUSD"),
                (
                    r#"{"id":0,"method":"orderbook_p.subscribe","params":["BTCUSDT",true,0]}"#,
                    "orderbook_p=BTCUSDT",
                ),
                (r#"{"method":"trade.subscribe","params":["A","B"]}"#, "trades=A,B"),
                (r#"{"method":"trade_p.subscribe","params":["A"]}"#, "trades_p=A"),
                (r#"{"method":"market24h.subscribe","params":[]}"#, "market24h"),
                (r#"{"method":"kline.subscribe","params":["A",60]}"#, "error"),
                (r#"{"method":"server.ping","params":[]}"#, "nothing"),
                (r#"{"method":"trade.unsubscribe","params":[]}"#, "nothing"),
            ],
        );
    }
}
