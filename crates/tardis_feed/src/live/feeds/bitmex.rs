//! The feed of `bitmex`: topics such as `trade:XBTUSD`, ten in a message; without a symbol a topic has all.

use market_data::Filter;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::super::feed::{ConnectionPlan, Feed, Incoming, SymbolsNeeded, mentions};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[("bitmex", &Bitmex)];

/// How many topics a message may name.
const TOPICS: usize = 10;

struct Bitmex;

#[derive(Deserialize)]
struct Said {
    error: Option<IgnoredAny>,
    subscribe: Option<IgnoredAny>,
    success: Option<bool>,
}

impl Feed for Bitmex {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut subscribe = Vec::new();
        let mut ask = |topics: &[String]| {
            subscribe.push(json!({"op": "subscribe", "args": topics}).to_string());
        };
        for Filter { channel, symbols } in filters {
            match symbols.as_deref().filter(|symbols| !symbols.is_empty()) {
                None => ask(std::slice::from_ref(channel)),
                Some(symbols) => {
                    let topics: Vec<String> =
                        symbols.iter().map(|symbol| format!("{channel}:{symbol}")).collect();
                    topics.chunks(TOPICS).for_each(&mut ask);
                }
            }
        }
        let url = "wss://ws.bitmex.com/realtime";
        Ok(vec![ConnectionPlan { url, subscribe, ..ConnectionPlan::default() }])
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if !mentions(message, &["\"error\"", "\"success\""]) {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said>(message) {
            Ok(said) if said.error.is_some() => Incoming::Refusal,
            Ok(said) if said.subscribe.is_some() && said.success == Some(false) => {
                Incoming::Refusal
            }
            _ => Incoming::Data,
        }
    }
}
