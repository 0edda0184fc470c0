//! Bitfinex: a message for each channel of a symbol, after one that asks for times and numbers with
//! every message.

use market_data::Filter;
use serde::Deserialize;
use serde_json::json;

use super::super::feed::{ConnectionPlan, Feed, Incoming, SymbolsNeeded, mentions, named_symbols};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[("bitfinex", &Bitfinex), ("bitfinex-derivatives", &Bitfinex)];

const TIMESTAMPS: u32 = 1 << 15;
const SEQUENCE_NUMBERS: u32 = 1 << 16;
/// How many levels of a book are sent.
const LEVELS: u32 = 100;

struct Bitfinex;

#[derive(Deserialize)]
struct Said<'a> {
    event: Option<&'a str>,
}

impl Feed for Bitfinex {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let flags = TIMESTAMPS | SEQUENCE_NUMBERS;
        let mut subscribe = vec![json!({"event": "conf", "flags": flags}).to_string()];
        for filter in filters {
            // Those of all symbols are in one channel.
            if filter.channel == "liquidations" {
                let all = json!({"event": "subscribe", "channel": "status", "key": "liq:global"});
                subscribe.push(all.to_string());
                continue;
            }
            for symbol in named_symbols(filter)? {
                let channel = &*filter.channel;
                let symbol = format!("t{symbol}");
                let wish = match channel {
                    "status" => json!({
                        "event": "subscribe",
                        "channel": channel,
                        "key": format!("deriv:{symbol}"),
                    }),
                    "book" => json!({
                        "event": "subscribe",
                        "channel": channel,
                        "symbol": symbol,
                        "len": LEVELS,
                        "prec": "P0",
                        "freq": "F0",
                    }),
                    _ => json!({"event": "subscribe", "channel": channel, "symbol": symbol}),
                };
                subscribe.push(wish.to_string());
            }
        }
        let url = "wss://api-pub.bitfinex.com/ws/2";
        Ok(vec![ConnectionPlan { url, subscribe, ..ConnectionPlan::default() }])
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if message.starts_with(b"[") {
            // `[77,"hb",5,1604000000000]`
            return if mentions(message, &["\"hb\""]) {
                Incoming::Heartbeat
            } else {
                Incoming::Data
            };
        }
        match serde_json::from_slice::<Said<'_>>(message) {
            Ok(Said { event: Some("error") }) => Incoming::Refusal,
            _ => Incoming::Data,
        }
    }
}
