//! `BitMEX`: topics of a channel and perhaps a symbol, `trade:XBTUSD`. `CoinFLEX` writes the same.

use serde_json::Value;

use super::Dialect;
use super::message::{Reading, says, texts, topic_filter};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"op":"subscribe","args":["trade:XBTUSD","orderBookL2:XBTUSD"]}"# };

pub(super) const COINFLEX: Dialect =
    Dialect { read, example: r#"{"op":"subscribe","args":["futures/depth:BTC-USD-SWAP-LIN"]}"# };

fn read(message: &Value) -> Reading {
    if !says(message, "op", "subscribe") {
        return Ok(None);
    }
    let topics = texts(message, "args")?;
    Ok(Some(topics.into_iter().map(|topic| topic_filter(topic, ':')).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn topics_are_one_text_or_a_list() {
        assert_meanings(
            "bitmex",
            &[
                (r#"{"op":"subscribe","args":["trade:XBTUSD"]}"#, "trade=XBTUSD"),
                (r#"{"op":"subscribe","args":"orderBookL2_25:ETHUSD"}"#, "orderBookL2_25=ETHUSD"),
                (
                    r#"{"args":["instrument","quote:.BXBT"],"op":"subscribe"}"#,
                    "instrument quote=.BXBT",
                ),
                (r#"{"op":"subscribe","args":["trades:XBTUSD"]}"#, "error"),
                (r#"{"op":"subscribe","args":[]}"#, "error"),
                (r#"{"op":"subscribe","args":[1]}"#, "error"),
                (r#"{"op":"subscribe"}"#, "error"),
                (r#"{"op":"unsubscribe","args":["trade:XBTUSD"]}"#, "nothing"),
                (r#"{"op":"authKeyExpires","args":["key",1,"signature"]}"#, "nothing"),
                ("ping", "nothing"),
                ("[]", "nothing"),
            ],
        );
        let topics = r#"{"op":"subscribe","tag":1,"args":["futures/depth:BTC-USD","trade:A-B"]}"#;
        assert_meanings("coinflex", &[(topics, "futures/depth=BTC-USD trade=A-B")]);
    }
}
