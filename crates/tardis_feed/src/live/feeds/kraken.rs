//! Kraken: a message for each channel.

use market_data::Filter;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::super::feed::{
    ConnectionPlan, Feed, Incoming, Ping, SymbolsNeeded, mentions, named_symbols,
};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[("kraken", &Kraken)];

/// How many levels of a book are sent.
const DEPTH: u32 = 1_000;

struct Kraken;

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(rename = "errorMessage")]
    error: Option<IgnoredAny>,
    success: Option<bool>,
    channel: Option<&'a str>,
    event: Option<&'a str>,
    method: Option<&'a str>,
}

impl Feed for Kraken {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut subscribe = Vec::with_capacity(filters.len());
        for filter in filters {
            let channel = &*filter.channel;
            let mut params = json!({"channel": channel, "symbol": named_symbols(filter)?});
            match channel {
                "book" => params["depth"] = json!(DEPTH),
                // With every change of the best prices, not only with trades.
                "ticker" => params["event_trigger"] = json!("bbo"),
                _ => {}
            }
            subscribe.push(json!({"method": "subscribe", "params": params}).to_string());
        }
        let url = "wss://ws.kraken.com/v2";
        Ok(vec![ConnectionPlan { url, subscribe, ..ConnectionPlan::default() }])
    }

    fn read(&self, message: &[u8]) -> Incoming {
        let words = ["\"success\"", "\"errorMessage\"", "\"heartbeat\"", "\"pong\""];
        if !mentions(message, &words) {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said<'_>>(message) {
            Ok(said) if said.error.is_some() || said.success == Some(false) => Incoming::Refusal,
            Ok(said)
                if said.channel == Some("heartbeat")
                    || said.event == Some("heartbeat")
                    || said.method == Some("pong") =>
            {
                Incoming::Heartbeat
            }
            _ => Incoming::Data,
        }
    }

    fn ping(&self) -> Ping {
        Ping::Text(r#"{"method":"ping"}"#)
    }
}
