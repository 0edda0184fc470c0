//! Coinbase: all channels in one message. What the archive calls `snapshot` and `l2update` is one
//! channel, which is sent in batches to those who do not log in.

use market_data::Filter;
use serde::Deserialize;
use serde_json::json;

use super::super::feed::{ConnectionPlan, Feed, Incoming, SymbolsNeeded, mentions, named_symbols};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[("coinbase", &Coinbase)];

struct Coinbase;

#[derive(Deserialize)]
struct Said<'a> {
    r#type: Option<&'a str>,
}

impl Feed for Coinbase {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut channels: Vec<(&str, Vec<&String>)> = Vec::new();
        for filter in filters {
            let name = match &*filter.channel {
                "snapshot" | "l2update" => "level2_batch",
                "match" | "last_match" => "matches",
                _ => "ticker",
            };
            let symbols = named_symbols(filter)?;
            let Some((_, named)) = channels.iter_mut().find(|(known, _)| *known == name) else {
                channels.push((name, symbols.iter().collect()));
                continue;
            };
            for symbol in symbols {
                if !named.contains(&symbol) {
                    named.push(symbol);
                }
            }
        }
        let channels: Vec<_> = channels
            .into_iter()
            .map(|(name, symbols)| json!({"name": name, "product_ids": symbols}))
            .collect();
        Ok(vec![ConnectionPlan {
            url: "wss://ws-feed.exchange.coinbase.com",
            subscribe: vec![json!({"type": "subscribe", "channels": channels}).to_string()],
            ..ConnectionPlan::default()
        }])
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if !mentions(message, &["\"error\""]) {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said<'_>>(message) {
            Ok(Said { r#type: Some("error") }) => Incoming::Refusal,
            _ => Incoming::Data,
        }
    }
}
