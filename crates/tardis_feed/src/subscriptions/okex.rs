//! OKX: topics such as `spot/trade:BTC-USDT` until 2021, since then objects with a channel and an
//! instrument, a family of them or a type.
//!
//! Liquidations are given out in two ways, which the archive keeps as two channels: who asks for the
//! one gets the other too.

use market_data::Filter;
use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, says, text, topic_filter, with_companion};

pub(super) const DIALECT: Dialect = Dialect {
    read,
    example: r#"{"op":"subscribe","args":[{"channel":"books","instId":"BTC-USDT"}]}"#,
};

pub(super) const SPREADS: Dialect = Dialect {
    read,
    example: r#"{"op":"subscribe","args":[{"channel":"sprd-books5","sprdId":"BTC-USDT_BTC-USDT-SWAP"}]}"#,
};

/// Where an argument may name what it is about, the narrowest first. A type of instruments is not
/// among them: it means all of the exchange.
const NAMES: &[&str] = &["instId", "sprdId", "instFamily", "uly", "ccy"];

fn read(message: &Value) -> Reading {
    if !says(message, "op", "subscribe") {
        return Ok(None);
    }
    let filters = match message.get("args") {
        Some(Value::Array(arguments)) => arguments.iter().map(argument_filter).collect(),
        Some(argument) => argument_filter(argument).map(|filter| vec![filter]),
        None => Err(Misread::Form),
    }?;
    Ok(Some(with_companion(filters, "liquidation-orders", "liquidations")))
}

fn argument_filter(argument: &Value) -> Result<Filter, Misread> {
    if let Value::String(topic) = argument {
        return Ok(topic_filter(topic, ':'));
    }
    let symbol = NAMES.iter().find_map(|name| argument.get(name)?.as_str());
    Ok(filter(text(argument, "channel")?, symbol))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn topics_and_objects_are_read() {
        assert_meanings(
            "okex",
            &[
                (
                    r#"{"op":"subscribe","args":["spot/trade:BTC-USDT","spot/depth_l2_tbt:ETH-USDT"]}"#,
                    "spot/trade=BTC-USDT spot/depth_l2_tbt=ETH-USDT",
                ),
                (r#"{"op":"subscribe","args":"spot/ticker:BTC-USDT"}"#, "spot/ticker=BTC-USDT"),
                (r#"{"op":"subscribe","args":["system/status"]}"#, "system/status"),
                (
                    r#"{"op":"subscribe","args":[{"channel":"books","instId":"BTC-USDT"},{"channel":"trades-all","instId":"BTC-USDT"}]}"#,
                    "books=BTC-USDT trades-all=BTC-USDT",
                ),
                (
                    r#"{"id":"1","op":"subscribe","args":[{"channel":"instruments","instType":"SPOT"},{"channel":"status"}]}"#,
                    "instruments status",
                ),
                (
                    r#"{"op":"subscribe","args":[{"channel":"books5","instId":"BTC-USDT"}]}"#,
                    "error",
                ),
                (r#"{"op":"subscribe","args":[{"instId":"BTC-USDT"}]}"#, "error"),
                (r#"{"op":"subscribe","args":[7]}"#, "error"),
                (r#"{"op":"subscribe"}"#, "error"),
                (r#"{"op":"unsubscribe","args":["spot/trade:BTC-USDT"]}"#, "nothing"),
                (r#"{"op":"login","args":[{"apiKey":"k"}]}"#, "nothing"),
                ("ping", "nothing"),
            ],
        );
    }

    #[test]
    fn derivatives_are_named_by_instrument_family_or_type() {
        let liquidations =
            r#"{"op":"subscribe","args":[{"channel":"liquidation-orders","instType":"FUTURES"}]}"#;
        for (exchange, old) in [("okex-futures", "futures"), ("okex-swap", "swap")] {
            let topic =
                format!(r#"{{"op":"subscribe","args":["{old}/depth:X","index/ticker:BTC-USD"]}}"#);
            let meaning = format!("{old}/depth=X index/ticker=BTC-USD");
            assert_meanings(exchange, &[(&topic, &meaning)]);
            assert_meanings(exchange, &[(liquidations, "liquidation-orders liquidations")]);
        }
        assert_meanings(
            "okex-options",
            &[
                (
                    r#"{"op":"subscribe","args":[{"channel":"opt-summary","instFamily":"BTC-USD"}]}"#,
                    "opt-summary=BTC-USD",
                ),
                (
                    r#"{"op":"subscribe","args":[{"channel":"opt-summary","uly":"BTC-USD"},{"channel":"mark-price","instId":"BTC-USD-X-C"}]}"#,
                    "opt-summary=BTC-USD mark-price=BTC-USD-X-C",
                ),
                (
                    r#"{"op":"subscribe","args":["option/summary:BTC-USD"]}"#,
                    "option/summary=BTC-USD",
                ),
            ],
        );
        let spread = r#"{"op":"subscribe","args":[{"channel":"sprd-books5","sprdId":"A_B"}]}"#;
        assert_meanings("okex-spreads", &[(spread, "sprd-books5=A_B")]);
        let okcoin = r#"{"op":"subscribe","args":["spot/trade:BTC-USD"]}"#;
        assert_meanings("okcoin", &[(okcoin, "spot/trade=BTC-USD")]);
    }
}
