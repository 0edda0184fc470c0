//! Bybit: topics such as `publicTrade.BTCUSDT`, ten in a message. Contracts margined in coins, those
//! margined in dollars and spot have an address each.

use market_data::Filter;
use serde::Deserialize;
use serde_json::json;

use super::super::feed::{
    ConnectionPlan, Feed, Incoming, Ping, SymbolsNeeded, mentions, named_symbols,
};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[("bybit", &DERIVATIVES), ("bybit-spot", &SPOT)];

/// How many topics a message may name.
const TOPICS: usize = 10;

/// The address of a connection, and which symbols it has.
type Place = (&'static str, fn(&str) -> bool);

struct Bybit {
    connections: &'static [Place],
    paths: &'static [&'static str],
}

static DERIVATIVES: Bybit = Bybit {
    connections: &[
        ("wss://stream.bybit.com/v5/public/linear", is_linear),
        ("wss://stream.bybit.com/v5/public/inverse", |symbol| !is_linear(symbol)),
    ],
    paths: &["/v5/public/linear", "/v5/public/inverse"],
};

static SPOT: Bybit =
    Bybit { connections: &[("wss://stream.bybit.com/v5/public/spot", |_| true)], paths: &[] };

/// Whether a contract is margined in dollars.
fn is_linear(symbol: &str) -> bool {
    symbol.ends_with("USDT") || symbol.ends_with("PERP") || symbol.contains('-')
}

#[derive(Deserialize)]
struct Said<'a> {
    success: Option<bool>,
    op: Option<&'a str>,
    #[serde(borrow)]
    ret_msg: Option<std::borrow::Cow<'a, str>>,
}

impl Feed for Bybit {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut plans = Vec::new();
        for (url, has) in self.connections {
            let mut topics = Vec::new();
            for filter in filters {
                let symbols = named_symbols(filter)?.iter().filter(|symbol| has(symbol));
                topics.extend(symbols.map(|symbol| format!("{}.{symbol}", filter.channel)));
            }
            if topics.is_empty() {
                continue;
            }
            let subscribe = topics
                .chunks(TOPICS)
                .map(|topics| json!({"op": "subscribe", "args": topics}).to_string())
                .collect();
            plans.push(ConnectionPlan { url, subscribe, ..ConnectionPlan::default() });
        }
        Ok(plans)
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if !mentions(message, &["\"success\"", "\"op\""]) {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said<'_>>(message) {
            Ok(Said { success: Some(false), .. }) => Incoming::Refusal,
            Ok(said) if said.op == Some("pong") || said.ret_msg.as_deref() == Some("pong") => {
                Incoming::Heartbeat
            }
            _ => Incoming::Data,
        }
    }

    fn ping(&self) -> Ping {
        Ping::Text(r#"{"op":"ping"}"#)
    }

    fn paths(&self) -> &'static [&'static str] {
        self.paths
    }
}
