//! OKX, under its old name `okex`: all channels in one message. All trades come from an address of their own.

use market_data::Filter;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::feed::{
    ConnectionPlan, Feed, Incoming, Ping, SymbolsNeeded, mentions, named_symbols,
};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[
    ("okex", &Okex { ask }),
    ("okex-futures", &Okex { ask }),
    ("okex-swap", &Okex { ask }),
    ("okex-options", &Okex { ask: ask_for_options }),
];

/// What is asked for where no symbols are named.
const INDEXES: [&str; 3] = ["BTC-USD", "ETH-USD", "SOL-USD"];
const FAMILIES: [&str; 5] = ["BTC-USD", "BTC-USD_UM", "ETH-USD", "ETH-USD_UM", "SOL-USD_UM"];

struct Okex {
    /// What a filter asks for.
    ask: fn(&Filter) -> Result<Vec<Value>, SymbolsNeeded>,
}

#[derive(Deserialize)]
struct Said<'a> {
    event: Option<&'a str>,
    #[serde(borrow)]
    msg: Option<std::borrow::Cow<'a, str>>,
}

impl Feed for Okex {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut plans = Vec::new();
        for (url, has_trades) in [
            ("wss://ws.okx.com:8443/ws/v5/public", false),
            ("wss://ws.okx.com:8443/ws/v5/business", true),
        ] {
            let mut asked: Vec<Value> = Vec::new();
            for filter in filters.iter().filter(|it| (it.channel == "trades-all") == has_trades) {
                for wish in (self.ask)(filter)? {
                    if !asked.contains(&wish) {
                        asked.push(wish);
                    }
                }
            }
            if !asked.is_empty() {
                let subscribe = vec![json!({"op": "subscribe", "args": asked}).to_string()];
                plans.push(ConnectionPlan { url, subscribe, ..ConnectionPlan::default() });
            }
        }
        Ok(plans)
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if message == b"pong" {
            return Incoming::Heartbeat;
        }
        if !mentions(message, &["\"event\""]) {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said<'_>>(message) {
            // The rest of what was asked for comes all the same.
            Ok(Said { event: Some("error"), msg: Some(text) })
                if text.contains("channel") && text.contains("doesn't exist") =>
            {
                Incoming::Data
            }
            Ok(Said { event: Some("error"), .. }) => Incoming::Refusal,
            _ => Incoming::Data,
        }
    }

    fn ping(&self) -> Ping {
        Ping::Text("ping")
    }

    fn paths(&self) -> &'static [&'static str] {
        &["/ws/v5/public", "/ws/v5/business"]
    }
}

fn ask(filter: &Filter) -> Result<Vec<Value>, SymbolsNeeded> {
    let channel = &*filter.channel;
    // The archive has this channel, the exchange has it no more.
    if channel == "liquidations" {
        return Ok(Vec::new());
    }
    let wish = |symbol: &String| match channel {
        "liquidation-orders" => {
            let kind = if symbol.ends_with("SWAP") { "SWAP" } else { "FUTURES" };
            json!({"channel": channel, "instType": kind})
        }
        _ => json!({"channel": channel, "instId": symbol}),
    };
    Ok(named_symbols(filter)?.iter().map(wish).collect())
}

fn ask_for_options(filter: &Filter) -> Result<Vec<Value>, SymbolsNeeded> {
    let channel = &*filter.channel;
    let symbols = filter.symbols.as_deref().filter(|symbols| !symbols.is_empty());
    let wishes = match (channel, symbols) {
        ("opt-summary", None) => FAMILIES
            .iter()
            .map(|family| json!({"channel": channel, "instFamily": family}))
            .collect(),
        ("index-tickers", None) => {
            INDEXES.iter().map(|index| json!({"channel": channel, "instId": index})).collect()
        }
        ("opt-summary", Some(symbols)) => symbols
            .iter()
            .map(|symbol| json!({"channel": channel, "instFamily": family(symbol)}))
            .collect(),
        ("index-tickers", Some(symbols)) => symbols
            .iter()
            .map(|symbol| json!({"channel": channel, "instId": index(symbol)}))
            .collect(),
        _ => named_symbols(filter)?
            .iter()
            .map(|symbol| json!({"channel": channel, "instId": symbol}))
            .collect(),
    };
    Ok(wishes)
}

/// The family of an option: `BTC-USD_UM` of `BTC-USD_UM-250328-100000-C`. Families are their own.
fn family(symbol: &str) -> &str {
    let mut parts = symbol.match_indices('-');
    match (parts.next(), parts.next()) {
        (Some(_), Some((end, _))) => &symbol[..end],
        _ => symbol,
    }
}

/// The index under an option: its family without what it is margined in.
fn index(symbol: &str) -> &str {
    let family = family(symbol);
    family.split_once('_').map_or(family, |(index, _)| index)
}
