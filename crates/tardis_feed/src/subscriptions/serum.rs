//! Serum, and those who took its feed over: levels of detail and trades, each several types of messages.

use serde_json::Value;

use super::Dialect;
use super::message::{Misread, Reading, filters, says, symbols, text};

pub(super) const DIALECT: Dialect =
    Dialect { read, example: r#"{"op":"subscribe","channel":"level2","markets":["SOL/USDC"]}"# };

fn read(message: &Value) -> Reading {
    if !says(message, "op", "subscribe") {
        return Ok(None);
    }
    let types: &[&str] = match text(message, "channel")? {
        "trades" => &["recent_trades", "trade"],
        "level1" => &["quote"],
        "level2" => &["l2snapshot", "l2update"],
        "level3" => &["l3snapshot", "open", "fill", "change", "done"],
        channel => return Err(Misread::Channel(channel.to_owned())),
    };
    Ok(Some(filters(types, &symbols(message, "markets")?)))
}

#[cfg(test)]
mod tests {
    use super::super::assert_meanings;

    #[test]
    fn channels_stand_for_types_of_messages() {
        assert_meanings(
            "serum",
            &[
                (
                    r#"{"op":"subscribe","channel":"trades","markets":["A/B"]}"#,
                    "recent_trades=A/B trade=A/B",
                ),
                (
                    r#"{"op":"subscribe","channel":"level1","markets":["A/B","C/D"]}"#,
                    "quote=A/B,C/D",
                ),
                (
                    r#"{"op":"subscribe","channel":"level3","markets":["A/B"]}"#,
                    "l3snapshot=A/B open=A/B fill=A/B change=A/B done=A/B",
                ),
                (r#"{"op":"subscribe","channel":"level4","markets":["A/B"]}"#, "error"),
                (r#"{"op":"unsubscribe","channel":"trades","markets":["A/B"]}"#, "nothing"),
            ],
        );
        assert_meanings(
            "mango",
            &[(
                r#"{"op":"subscribe","channel":"level2","markets":["A-PERP"]}"#,
                "l2snapshot=A-PERP l2update=A-PERP",
            )],
        );
        assert_meanings(
            "star-atlas",
            &[(
                r#"{"op":"subscribe","channel":"level2","markets":["A/B"]}"#,
                "l2snapshot=A/B l2update=A/B",
            )],
        );
    }
}
