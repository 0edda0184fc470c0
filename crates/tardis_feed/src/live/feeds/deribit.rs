//! Deribit: channels such as `book.BTC-PERPETUAL.100ms`, all in one message. It asks now and then
//! whether anybody is there.

use market_data::Filter;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::super::feed::{ConnectionPlan, Feed, Incoming, SymbolsNeeded, mentions, named_symbols};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[("deribit", &Deribit)];

/// The channels that are sent at intervals.
const PACED: [&str; 4] = ["book", "perpetual", "trades", "ticker"];
/// How often it is to show that it is alive, in seconds.
const HEARTBEAT: u32 = 10;
const HERE: &str = r#"{"jsonrpc":"2.0","method":"public/test","id":0,"params":{}}"#;

struct Deribit;

#[derive(Deserialize)]
struct Said<'a> {
    error: Option<IgnoredAny>,
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    r#type: Option<&'a str>,
}

impl Feed for Deribit {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut channels = Vec::new();
        for filter in filters {
            let channel = &*filter.channel;
            let pace = if PACED.contains(&channel) { ".100ms" } else { "" };
            let symbols = named_symbols(filter)?.iter();
            channels.extend(symbols.map(|symbol| format!("{channel}.{symbol}{pace}")));
        }
        let heartbeat = json!({
            "jsonrpc": "2.0",
            "id": 0,
            "method": "public/set_heartbeat",
            "params": {"interval": HEARTBEAT},
        });
        let subscribe = json!({
            "jsonrpc": "2.0",
            "id": 3,
            "method": "public/subscribe",
            "params": {"channels": channels},
        });
        Ok(vec![ConnectionPlan {
            url: "wss://streams.deribit.com/ws/api/v2",
            greeting: vec![heartbeat.to_string()],
            subscribe: vec![subscribe.to_string()],
            ..ConnectionPlan::default()
        }])
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if !mentions(message, &["\"error\"", "\"heartbeat\"", "\"test_request\""]) {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said<'_>>(message) {
            Ok(Said { error: Some(_), .. }) => Incoming::Refusal,
            Ok(Said { params: Some(Params { r#type: Some("test_request") }), .. }) => {
                Incoming::Question(HERE)
            }
            Ok(Said { method: Some("heartbeat"), .. }) => Incoming::Heartbeat,
            _ => Incoming::Data,
        }
    }
}
