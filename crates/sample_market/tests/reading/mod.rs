//! Reading lines as a client of the archive does, apart from how they are written.

// Each test file is a program of its own and uses a part of this.
#![allow(dead_code)]

use market_data::Timestamp;
use sample_market::{SampleMarket, SampleOptions};
use serde_json::Value;

/// A line of a minute.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    Message { local: String, text: String, json: Value },
    Disconnect,
}

/// The lines of one minute of everything.
pub(crate) fn minute_text(market: &SampleMarket, exchange: &str, minute: Timestamp) -> String {
    let mut out = Vec::new();
    market.minute(exchange, minute, &[], &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

pub(crate) fn read(text: &str) -> Vec<Line> {
    text.lines()
        .map(|line| {
            if line.is_empty() {
                return Line::Disconnect;
            }
            let (local, message) = line.split_at(28);
            Line::Message {
                local: local.to_owned(),
                text: line.to_owned(),
                json: serde_json::from_str(message.strip_prefix(' ').unwrap()).unwrap(),
            }
        })
        .collect()
}

/// The minute so many minutes after 2020-02-01 00:00.
pub(crate) fn minute(number: i64) -> Timestamp {
    Timestamp::of_minute(2020, 2, 1, 0, number)
}

/// Channel and symbol of a message.
pub(crate) fn address(exchange: &str, json: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match exchange {
        "bitmex" => (text(&json["table"]), text(&json["data"][0]["symbol"])),
        "binance-futures" => {
            let stream = text(&json["stream"]);
            let mut parts = stream.split('@');
            let symbol = parts.next().unwrap().to_uppercase();
            (parts.next().unwrap().to_owned(), symbol)
        }
        _ => {
            let channel = text(&json["params"]["channel"]);
            let mut parts = channel.split('.');
            (parts.next().unwrap().to_owned(), parts.next().unwrap().to_owned())
        }
    }
}

/// A market with a disconnect in every third minute.
pub(crate) fn shaky_market() -> SampleMarket {
    SampleMarket::new(SampleOptions { disconnects_per_hour: 20.0, ..SampleOptions::default() })
}
