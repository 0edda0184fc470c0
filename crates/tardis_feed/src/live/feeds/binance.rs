//! Binance: spot, its exchange in the United States, and futures. Streams are named like
//! `btcusdt@depth@100ms`. Order books and open interest are not sent: they are fetched over HTTP.

use market_data::Filter;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::super::feed::{ConnectionPlan, Feed, Incoming, Rest, SymbolsNeeded, named_symbols};
use super::Entry;

pub(super) const FEEDS: &[Entry] = &[
    ("binance", &SPOT),
    ("binance-us", &US),
    ("binance-futures", &FUTURES),
    ("binance-delivery", &DELIVERY),
];

/// The channels of futures that one of its two addresses has; the other has all others.
const PUBLIC_CHANNELS: [&str; 4] = ["bookTicker", "depth", "depthSnapshot", "trade"];

/// The address of a connection, and which channels it has.
type Place = (&'static str, fn(&str) -> bool);

struct Binance {
    connections: &'static [Place],
    paths: &'static [&'static str],
    /// How often channels are sent, where there is a choice.
    paces: &'static [(&'static str, &'static str)],
    rest: Rest,
}

static SPOT: Binance = Binance {
    connections: &[("wss://stream.binance.com/stream?timeUnit=microsecond", any)],
    paths: &[],
    paces: &[("depth", "100ms")],
    rest: Rest { url: "https://api.binance.com/api/v1", depth_weight: 10 },
};

static US: Binance = Binance {
    connections: &[("wss://stream.binance.us:9443/stream", any)],
    paths: &[],
    paces: &[("depth", "100ms")],
    rest: Rest { url: "https://api.binance.us/api/v1", depth_weight: 10 },
};

static FUTURES: Binance = Binance {
    connections: &[
        ("wss://fstream.binance.com/public/stream", |channel| PUBLIC_CHANNELS.contains(&channel)),
        ("wss://fstream.binance.com/market/stream", |channel| !PUBLIC_CHANNELS.contains(&channel)),
    ],
    paths: &["/public/stream", "/market/stream", "/stream"],
    paces: &[("depth", "0ms"), ("markPrice", "1s")],
    rest: Rest { url: "https://fapi.binance.com/fapi/v1", depth_weight: 20 },
};

static DELIVERY: Binance = Binance {
    connections: &[("wss://dstream.binance.com/stream", any)],
    paths: &[],
    paces: &[("depth", "0ms"), ("indexPrice", "1s"), ("markPrice", "1s")],
    rest: Rest { url: "https://dapi.binance.com/dapi/v1", depth_weight: 20 },
};

fn any(_channel: &str) -> bool {
    true
}

#[derive(Deserialize)]
struct Said {
    stream: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
    /// `null` where all went well.
    #[serde(default, deserialize_with = "is_null")]
    result: bool,
}

fn is_null<'de, D: serde::Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    Option::<IgnoredAny>::deserialize(value).map(|value| value.is_none())
}

impl Feed for Binance {
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded> {
        let mut plans = Vec::new();
        for (url, has) in self.connections {
            let mut plan = ConnectionPlan { url, ..ConnectionPlan::default() };
            for filter in filters.iter().filter(|filter| has(&filter.channel)) {
                let symbols = named_symbols(filter)?;
                match &*filter.channel {
                    "depthSnapshot" => plan.depth_snapshots = symbols.to_vec(),
                    "openInterest" => plan.open_interest = symbols.to_vec(),
                    channel => plan.subscribe.push(self.subscribe(
                        channel,
                        symbols,
                        plan.subscribe.len() + 1,
                    )),
                }
            }
            if !plan.subscribe.is_empty() {
                plans.push(plan);
            }
        }
        Ok(plans)
    }

    fn read(&self, message: &[u8]) -> Incoming {
        if message.starts_with(b"{\"stream\":\"") {
            return Incoming::Data;
        }
        match serde_json::from_slice::<Said>(message) {
            Ok(said) if said.result => Incoming::Data,
            Ok(said) if said.stream.is_none() || said.error.is_some() => Incoming::Refusal,
            _ => Incoming::Data,
        }
    }

    fn paths(&self) -> &'static [&'static str] {
        self.paths
    }

    fn rest(&self) -> Option<Rest> {
        Some(self.rest)
    }
}

impl Binance {
    fn subscribe(&self, channel: &str, symbols: &[String], id: usize) -> String {
        let pace = self.paces.iter().find(|(paced, _)| *paced == channel);
        let stream = |symbol: &String| match pace {
            Some((_, pace)) => format!("{symbol}@{channel}@{pace}"),
            None => format!("{symbol}@{channel}"),
        };
        let streams: Vec<String> = symbols.iter().map(stream).collect();
        json!({"method": "SUBSCRIBE", "params": streams, "id": id}).to_string()
    }
}
