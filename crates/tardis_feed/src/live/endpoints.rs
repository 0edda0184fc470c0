//! Where exchanges are, and what else the environment says about speaking with them.
//!
//! `WSS_URL_BINANCE_FUTURES` and `REST_URL_BINANCE_FUTURES` put another address in the place of an
//! exchange's own. One without a path takes the exchange's own path, so that a feed with several
//! connections finds each of them. One that ends in a path of the exchange takes the one that each
//! connection needs in its place. Any other is used as it is.

use std::collections::HashMap;

use reqwest::Url;

use super::feed::Feed;
use super::feeds::feeds;
use super::pacing::LivePacing;
use crate::error::FeedError;

/// Addresses that are not the exchanges' own, limits, and how quickly things happen.
#[derive(Clone, Debug, Default)]
pub struct LiveEndpoints {
    by_exchange: HashMap<&'static str, Settings>,
    /// Waits and intervals.
    pub pacing: LivePacing,
}

/// What the environment says about an exchange.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    socket: Option<Url>,
    rest: Option<Url>,
    /// The weight of requests that may be sent in a minute; otherwise the exchange is asked.
    pub(super) weight_limit: Option<u64>,
    /// How much of it is left to others.
    pub(super) weight_reserve: Option<u64>,
    /// How many order books are fetched at once.
    pub(super) concurrency: Option<u64>,
    /// The wait after each of them.
    pub(super) snapshot_delay_ms: Option<u64>,
    /// How often open interest is fetched.
    pub(super) open_interest_ms: Option<u64>,
}

impl LiveEndpoints {
    /// Reads the environment.
    pub fn from_env() -> Result<Self, FeedError> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads variables from elsewhere, by their names in the environment.
    pub fn from_variables(get: impl Fn(&str) -> Option<String>) -> Result<Self, FeedError> {
        let get = |name: &str| get(name).filter(|value| !value.trim().is_empty());
        let number = |name: String| get(&name).and_then(|value| value.trim().parse::<u64>().ok());
        let mut by_exchange = HashMap::new();
        for (exchange, _) in feeds() {
            let name = exchange.to_uppercase().replace('-', "_");
            let address = |kind: &str, schemes: [&str; 2]| {
                let variable = format!("{kind}_{name}");
                get(&variable).map(|value| address(&variable, value.trim(), schemes)).transpose()
            };
            let settings = Settings {
                socket: address("WSS_URL", ["ws", "wss"])?,
                rest: address("REST_URL", ["http", "https"])?,
                weight_limit: number(format!("{name}_REQUEST_WEIGHT_LIMIT")).filter(|it| *it > 0),
                weight_reserve: number(format!("{name}_MIN_AVAILABLE_WEIGHT_BUFFER")),
                concurrency: number(format!("{name}_CONCURRENCY_LIMIT")).map(|it| it.max(1)),
                snapshot_delay_ms: number(format!("{name}_SNAPSHOTS_DELAY_MS")),
                open_interest_ms: number(format!("{name}_OPEN_INTEREST_POLLING_INTERVAL_MS")),
            };
            by_exchange.insert(exchange, settings);
        }
        Ok(Self { by_exchange, pacing: LivePacing::default() })
    }

    pub(super) fn settings(&self, exchange: &str) -> Settings {
        self.by_exchange.get(exchange).cloned().unwrap_or_default()
    }
}

impl Settings {
    /// Where a connection of `feed` goes whose own address is `own`.
    pub(super) fn socket_url(&self, feed: &dyn Feed, own: &str) -> String {
        replaced(self.socket.as_ref(), own, feed.paths())
    }

    /// Where questions go that would go to `own`; without a slash at its end.
    pub(super) fn rest_url(&self, own: &str) -> String {
        replaced(self.rest.as_ref(), own, &[]).trim_end_matches('/').to_owned()
    }
}

/// `own`, or what the environment has in its place.
fn replaced(other: Option<&Url>, own: &str, paths: &[&str]) -> String {
    let (Some(other), Ok(own_url)) = (other, Url::parse(own)) else { return own.to_owned() };
    let path = other.path().trim_end_matches('/');
    let kept = if path.is_empty() {
        Some("")
    } else {
        paths.iter().find_map(|known| path.strip_suffix(known))
    };
    let Some(kept) = kept else { return other.to_string() };
    let mut url = other.clone();
    url.set_path(&format!("{kept}{}", own_url.path()));
    if other.query().is_none() {
        url.set_query(own_url.query());
    }
    url.to_string()
}

fn address(variable: &str, value: &str, schemes: [&str; 2]) -> Result<Url, FeedError> {
    // The text is left out of the error: there may be a password in it.
    let unusable = |reason: String| FeedError::Option {
        option: "the address of an exchange",
        reason: format!("the environment's {variable} {reason}"),
    };
    let url = Url::parse(value).map_err(|error| unusable(format!("is no URL ({error})")))?;
    if !schemes.contains(&url.scheme()) {
        let [plain, safe] = schemes;
        return Err(unusable(format!("must begin with {safe}:// or {plain}://")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(unusable("must not hold a user or password".to_owned()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::super::feeds::feed;
    use super::*;

    fn endpoints(name: &str, value: &str) -> Result<LiveEndpoints, FeedError> {
        LiveEndpoints::from_variables(|asked| (asked == name).then(|| value.to_owned()))
    }

    fn socket(exchange: &str, own: &str, name: &str, value: &str) -> String {
        let settings = endpoints(name, value).unwrap().settings(exchange);
        settings.socket_url(feed(exchange).unwrap(), own)
    }

    #[test]
    fn addresses_are_replaced_as_far_as_they_are_given() {
        let own = "wss://fstream.binance.com/market/stream";
        for (given, expected) in [
            ("ws://127.0.0.1:9", "ws://127.0.0.1:9/market/stream"),
            ("ws://127.0.0.1:9/", "ws://127.0.0.1:9/market/stream"),
            ("ws://127.0.0.1:9/public/stream", "ws://127.0.0.1:9/market/stream"),
            ("ws://h/proxy/public/stream", "ws://h/proxy/market/stream"),
            ("wss://h/stream", "wss://h/market/stream"),
            ("ws://h/other?x=1", "ws://h/other?x=1"),
        ] {
            let found = socket("binance-futures", own, "WSS_URL_BINANCE_FUTURES", given);
            assert_eq!(found, expected, "{given}");
        }
        let own = "wss://stream.binance.com/stream?timeUnit=microsecond";
        let found = socket("binance", own, "WSS_URL_BINANCE", "ws://127.0.0.1:9");
        assert_eq!(found, "ws://127.0.0.1:9/stream?timeUnit=microsecond");
        assert_eq!(socket("binance", own, "WSS_URL_KRAKEN", "ws://127.0.0.1:9"), own);
        let rest = |value| {
            let settings = endpoints("REST_URL_BINANCE", value).unwrap().settings("binance");
            settings.rest_url("https://api.binance.com/api/v1")
        };
        assert_eq!(rest("http://127.0.0.1:9"), "http://127.0.0.1:9/api/v1");
        assert_eq!(rest("http://127.0.0.1:9/v3/"), "http://127.0.0.1:9/v3");
    }

    #[test]
    fn bad_addresses_are_refused_without_showing_secrets() {
        for (bad, expected) in [
            ("hunter2", "is no URL"),
            ("http://hunter2", "must begin with wss:// or ws://"),
            ("ws://me:hunter2@h/", "must not hold a user or password"),
        ] {
            let error = endpoints("WSS_URL_OKEX_SWAP", bad).unwrap_err().to_string();
            assert!(error.contains("WSS_URL_OKEX_SWAP") && error.contains(expected), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn limits_are_read() {
        let settings = endpoints("BINANCE_US_REQUEST_WEIGHT_LIMIT", "50").unwrap();
        assert_eq!(settings.settings("binance-us").weight_limit, Some(50));
        assert_eq!(settings.settings("binance").weight_limit, None);
        let zero = endpoints("BINANCE_CONCURRENCY_LIMIT", "0").unwrap();
        assert_eq!(zero.settings("binance").concurrency, Some(1));
    }
}
