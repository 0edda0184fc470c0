//! Hyperliquid: a message for each channel of a coin.

use std::time::Duration;

use market_data::Filter;
use serde::Deserialize;
use serde_json::json;

use super::super::feed::{
    ConnectionPlan, Feed, Incoming, Ping, SymbolsNeeded, mentions, named_symbols,
};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[("hyperliquid", &Hyperliquid)];

/// It takes two thousand messages a minute: more than so many are sent one after the other.
const AT_ONCE: usize = 200;
const THROTTLE: Duration = Duration::from_millis(40);

struct Hyperliquid;

#[derive(Deserialize)]
struct Said<'a> {
    channel: Option<&'a str>,
}

impl Feed for Hyperliquid {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut subscribe = Vec::new();
        for filter in filters {
            for symbol in named_symbols(filter)? {
                let subscription = match &*filter.channel {
                    "fastBook" => json!({"type": "l2Book", "coin": symbol, "fast": true}),
                    channel => json!({"type": channel, "coin": symbol}),
                };
                let wish = json!({"method": "subscribe", "subscription": subscription});
                subscribe.push(wish.to_string());
            }
        }
        Ok(vec![ConnectionPlan {
            url: "wss://api.hyperliquid.xyz/ws",
            throttle: if subscribe.len() > AT_ONCE { THROTTLE } else { Duration::ZERO },
            subscribe,
            ..ConnectionPlan::default()
        }])
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if !mentions(message, &["\"error\"", "\"pong\""]) {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said<'_>>(message) {
            Ok(Said { channel: Some("error") }) => Incoming::Refusal,
            Ok(Said { channel: Some("pong") }) => Incoming::Heartbeat,
            _ => Incoming::Data,
        }
    }

    fn ping(&self) -> Ping {
        Ping::Text(r#"{"method":"ping"}"#)
    }
}
