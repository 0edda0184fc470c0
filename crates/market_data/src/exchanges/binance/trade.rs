//! Trades and liquidations.

use std::borrow::Cow;

use serde::Deserialize;

use crate::mapper::Sink;
use crate::message::{Message, Side, Trade};
use crate::raw::{Id, Numeric, Text, date_of_micros};
use crate::time::Timestamp;

#[derive(Deserialize)]
pub(super) struct RawTrade<'a> {
    #[serde(borrow, rename = "s")]
    symbol: Text<'a>,
    #[serde(rename = "t", default)]
    id: Id<'a>,
    #[serde(rename = "p", default)]
    price: Numeric,
    #[serde(rename = "q", default)]
    amount: Numeric,
    #[serde(rename = "T", default)]
    time: Numeric,
    #[serde(rename = "m", default)]
    is_buyer_maker: Numeric,
    #[serde(rename = "X")]
    execution: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct RawLiquidation<'a> {
    #[serde(borrow, rename = "o")]
    order: RawOrder<'a>,
}

#[derive(Deserialize)]
struct RawOrder<'a> {
    #[serde(borrow, rename = "s")]
    symbol: Text<'a>,
    #[serde(rename = "S", default)]
    side: Text<'a>,
    #[serde(rename = "p", default)]
    price: Numeric,
    #[serde(rename = "z", default)]
    filled: Numeric,
    #[serde(rename = "X")]
    status: Option<Text<'a>>,
    #[serde(rename = "T", default)]
    time: Numeric,
}

/// Sends the trade, unless it was made outside of the order book.
pub(super) fn send(
    exchange: &'static str,
    trade: &RawTrade<'_>,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) {
    if matches!(trade.execution.as_deref(), Some("INSURANCE_FUND" | "ADL" | "NA")) {
        return;
    }
    out.take(&Message::Trade(Trade {
        symbol: trade.symbol.lend(),
        exchange: Cow::Borrowed(exchange),
        id: Some(trade.id.lend(&mut itoa::Buffer::new())),
        price: trade.price.number(),
        amount: trade.amount.number(),
        side: if trade.is_buyer_maker.is_truthy() { Side::Sell } else { Side::Buy },
        timestamp: date_of_micros(trade.time),
        local_timestamp,
    }));
}

pub(super) fn send_liquidation(
    exchange: &'static str,
    RawLiquidation { order }: &RawLiquidation<'_>,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) {
    if order.status.as_deref() != Some("FILLED") {
        return;
    }
    out.take(&Message::Liquidation(Trade {
        symbol: order.symbol.lend(),
        exchange: Cow::Borrowed(exchange),
        id: None,
        price: order.price.number(),
        amount: order.filled.number(),
        side: if &*order.side == "SELL" { Side::Sell } else { Side::Buy },
        timestamp: date_of_micros(order.time),
        local_timestamp,
    }));
}

#[cfg(test)]
mod tests {
    use crate::exchanges::binance::tests::Mapping;

    #[test]
    fn trades_may_have_microseconds_and_another_order_of_fields() {
        let trade = r#"{"data":{"m":true,"T":1735689600123456,"q":"2","p":"1e-7","t":7,"s":"AB"},"stream":"ab@trade"}"#;
        assert_eq!(
            Mapping::of_history("binance-us").line(trade),
            r#"{"type":"trade","symbol":"AB","exchange":"binance-us","id":"7","price":1e-7,"amount":2,"side":"sell","timestamp":"2025-01-01T00:00:00.123456Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
        );
    }

    #[test]
    fn trades_outside_of_the_book_are_passed_over() {
        let mut mapping = Mapping::of_history("binance-futures");
        for (execution, is_sent) in
            [("INSURANCE_FUND", false), ("ADL", false), ("NA", false), ("MARKET", true)]
        {
            let trade = format!(
                r#"{{"stream":"ab@trade","data":{{"s":"AB","t":1,"p":"1","q":"2","X":"{execution}","T":1,"m":false}}}}"#
            );
            assert_eq!(mapping.map(&trade).unwrap().is_some(), is_sent, "{execution}");
        }
    }

    #[test]
    fn liquidations_count_once_they_are_filled() {
        let mut mapping = Mapping::of_history("binance-delivery");
        let order = |status: &str| {
            format!(
                r#"{{"stream":"ab@forceOrder","data":{{"e":"forceOrder","o":{{"s":"AB","S":"SELL","q":"5","p":"3","ap":"4","X":"{status}","l":"1","z":"2","T":1}}}}}}"#
            )
        };
        assert_eq!(mapping.line(&order("NEW")), "");
        assert_eq!(
            mapping.line(&order("FILLED")),
            r#"{"type":"liquidation","symbol":"AB","exchange":"binance-delivery","price":3,"amount":2,"side":"sell","timestamp":"1970-01-01T00:00:00.001Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
        );
    }
}
