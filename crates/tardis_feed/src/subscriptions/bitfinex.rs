//! Bitfinex: a channel and a symbol that begins with `t`, which the archive leaves out.

use market_data::Filter;
use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, says, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"event":"subscribe","channel":"trades","symbol":"tBTCUSD"}"# };

fn read(message: &Value) -> Reading {
    if !says(message, "event", "subscribe") {
        return Ok(None);
    }
    let filter = match text(message, "channel")? {
        "status" => status_filter(text(message, "key")?)?,
        "book" if says(message, "prec", "R0") => filter("raw_book", [symbol(message)?]),
        channel => filter(channel, [symbol(message)?]),
    };
    Ok(Some(vec![filter]))
}

fn symbol(message: &Value) -> Result<&str, Misread> {
    text(message, "symbol").or_else(|_| text(message, "pair")).map(without_mark)
}

fn status_filter(key: &str) -> Result<Filter, Misread> {
    match key.split_once(':') {
        Some(("deriv", symbol)) => Ok(filter("status", [without_mark(symbol)])),
        Some(("liq", _)) => Ok(filter("liquidations", [])),
        _ => Err(Misread::Channel(format!("status {key}"))),
    }
}

fn without_mark(symbol: &str) -> &str {
    symbol.strip_prefix('t').unwrap_or(symbol)
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    const BOTH: &[(&str, &str)] = &[
        (r#"{"event":"subscribe","channel":"trades","symbol":"tBTCUSD"}"#, "trades=BTCUSD"),
        (r#"{"event":"subscribe","channel":"ticker","pair":"BTCUSD"}"#, "ticker=BTCUSD"),
        (
            r#"{"event":"subscribe","channel":"book","len":100,"prec":"P0","freq":"F0","symbol":"tBTCUSD"}"#,
            "book=BTCUSD",
        ),
        (
            r#"{"event":"subscribe","channel":"book","prec":"R0","symbol":"tBTCF0:USTF0"}"#,
            "raw_book=BTCF0:USTF0",
        ),
        (r#"{"event":"subscribe","channel":"candles","key":"trade:1m:tBTCUSD"}"#, "error"),
        (r#"{"event":"subscribe","channel":"trades"}"#, "error"),
        (r#"{"event":"subscribe","symbol":"tBTCUSD"}"#, "error"),
        (r#"{"event":"conf","flags":98304}"#, "nothing"),
        (r#"{"event":"ping","cid":1234}"#, "nothing"),
        (r#"{"event":"unsubscribe","chanId":1}"#, "nothing"),
        ("null", "nothing"),
    ];

    #[test]
    fn symbols_lose_their_mark() {
        assert_meanings("bitfinex", BOTH);
        assert_meanings("bitfinex-derivatives", BOTH);
    }

    #[test]
    fn the_status_of_derivatives_has_a_key() {
        let deriv = r#"{"event":"subscribe","channel":"status","key":"deriv:tBTCF0:USTF0"}"#;
        let liquidations = r#"{"event":"subscribe","channel":"status","key":"liq:global"}"#;
        assert_meanings(
            "bitfinex-derivatives",
            &[
                (deriv, "status=BTCF0:USTF0"),
                (liquidations, "liquidations"),
                (r#"{"event":"subscribe","channel":"status","key":"?"}"#, "error"),
            ],
        );
        assert_meanings("bitfinex", &[(deriv, "error"), (liquidations, "error")]);
    }
}
