//! Huobi (HTX): topics of a symbol and a channel between points, `market.btcusdt.trade.detail`; on
//! derivatives also `public.BTC-USD.funding_rate`.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filter, says, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"sub":"market.btcusdt.trade.detail","id":"1"}"# };

fn read(message: &Value) -> Reading {
    let topic = if says(message, "op", "sub") {
        text(message, "topic")?
    } else if message.get("sub").is_some() {
        text(message, "sub")?
    } else {
        return Ok(None);
    };
    let mut words = topic.split('.').skip(1);
    let (Some(symbol), Some(channel)) = (words.next(), words.next()) else {
        return Err(Misread::Channel(topic.to_owned()));
    };
    // Books of few levels are a channel of their own.
    let channel = match (channel, words.next()) {
        ("mbp", Some("20")) => "mbp.20",
        _ => channel,
    };
    Ok(Some(vec![filter(channel, Some(symbol).filter(|symbol| *symbol != "*"))]))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn the_channel_is_behind_the_symbol() {
        assert_meanings(
            "huobi",
            &[
                (r#"{"sub":"market.btcusdt.trade.detail","id":"1"}"#, "trade=btcusdt"),
                (r#"{"sub":"market.btcusdt.mbp.150"}"#, "mbp=btcusdt"),
                (r#"{"sub":"market.btcusdt.mbp.20"}"#, "mbp.20=btcusdt"),
                (r#"{"sub":"market.btcusdt.depth.step0"}"#, "depth=btcusdt"),
                (r#"{"sub":"market.btcusdt.kline.1min"}"#, "error"),
                (r#"{"sub":"market.overview"}"#, "error"),
                (r#"{"sub":1}"#, "error"),
                (r#"{"unsub":"market.btcusdt.trade.detail"}"#, "nothing"),
                (r#"{"req":"market.btcusdt.trade.detail"}"#, "nothing"),
                (r#"{"pong":1492420473027}"#, "nothing"),
            ],
        );
        assert_meanings(
            "huobi-dm",
            &[
                (
                    r#"{"sub":"market.BTC_CQ.depth.size_150.high_freq","data_type":"incremental"}"#,
                    "depth=BTC_CQ",
                ),
                (r#"{"op":"sub","topic":"public.BTC.contract_info"}"#, "contract_info=BTC"),
            ],
        );
        assert_meanings(
            "huobi-dm-swap",
            &[(
                r#"{"op":"sub","cid":"1","topic":"public.*.liquidation_orders"}"#,
                "liquidation_orders",
            )],
        );
        assert_meanings(
            "huobi-dm-linear-swap",
            &[
                (r#"{"op":"sub","topic":"public.BTC-USDT.funding_rate"}"#, "funding_rate=BTC-USDT"),
                (r#"{"op":"ping","ts":1}"#, "nothing"),
            ],
        );
        assert_meanings(
            "huobi-dm-options",
            &[(r#"{"sub":"market.BTC-USDT-X.trade.detail"}"#, "trade=BTC-USDT-X")],
        );
    }
}
