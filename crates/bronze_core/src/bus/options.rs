//! Option values that all buses share.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::config_error::{ConfigError, ConfigFault};
use crate::payload_filter::PayloadFilter;
use crate::route::Route;
use crate::static_pairs::StaticPairs;

/// A text that no log, error or debug output shows.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text, for the one place that hands it to a broker.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Names as text between commas, or each for itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Names {
    /// `a,b`.
    Text(String),
    /// One by one.
    List(Vec<String>),
}

/// Pairs as text, or each for itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Pairs {
    /// `a:b,c:d`.
    Text(String),
    /// One by one.
    List(Vec<(String, String)>),
}

impl Default for Names {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Default for Pairs {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl Names {
    /// The allow list that `flag` gave.
    pub fn payload_filter(&self, flag: &str) -> Result<PayloadFilter, ConfigError> {
        match self {
            Self::Text(text) => PayloadFilter::parse(flag, text),
            Self::List(names) => PayloadFilter::of_names(flag, names),
        }
    }
}

impl Pairs {
    /// Adds the routes that `flag` gave.
    pub fn add_to(&self, route: Route, flag: &str) -> Result<Route, ConfigError> {
        match self {
            Self::Text(text) => route.with_routes(flag, text),
            Self::List(pairs) => {
                route.with_pairs(flag, pairs.iter().map(|(case, to)| (case.as_str(), to.as_str())))
            }
        }
    }

    /// The static headers or attributes that `flag` gave.
    pub fn static_pairs(&self, flag: &str) -> Result<StaticPairs, ConfigError> {
        match self {
            Self::Text(text) => StaticPairs::parse(flag, text),
            Self::List(pairs) => StaticPairs::of_pairs(flag, pairs.iter().cloned()),
        }
    }
}

/// How requests are filled, where the operator says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BatchOptions {
    /// Events in a request.
    pub max_batch_size: Option<u64>,
    /// Milliseconds an event waits for others.
    pub max_batch_delay_ms: Option<u64>,
}

impl BatchOptions {
    /// Events in a request: what `PREFIX-max-batch-size` says, else `default`; at most `most`, which
    /// is the broker's own limit.
    pub fn events(&self, prefix: &str, default: usize, most: usize) -> Result<usize, ConfigError> {
        let Some(size) = self.max_batch_size else { return Ok(default) };
        let flag = format!("{prefix}-max-batch-size");
        usize::try_from(size)
            .ok()
            .filter(|size| (1..=most).contains(size))
            .ok_or_else(|| ConfigFault::out_of_range(size, 1, most as u64).of(&flag))
    }

    /// How long an event waits: what `PREFIX-max-batch-delay-ms` says, else `default`.
    pub fn linger(&self, prefix: &str, default: Duration) -> Result<Duration, ConfigError> {
        const MOST: u64 = 60_000;
        match self.max_batch_delay_ms {
            None => Ok(default),
            Some(delay) if delay <= MOST => Ok(Duration::from_millis(delay)),
            Some(delay) => Err(ConfigFault::out_of_range(delay, 0, MOST)
                .of(&format!("{prefix}-max-batch-delay-ms"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload_case::PayloadCase;

    #[test]
    fn a_secret_shows_nothing() {
        let secret = Secret::from("hunter2");
        assert_eq!((format!("{secret:?}"), secret.expose()), ("***".to_owned(), "hunter2"));
    }

    #[test]
    fn text_and_lists_mean_the_same() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let text = Pairs::Text("trade:a,quote:b".to_owned());
        let list = Pairs::List(vec![pair("trade", "a"), pair("quote", "b")]);
        let base = || Route::to("--x", "base").unwrap();
        assert_eq!(text.add_to(base(), "--r").unwrap(), list.add_to(base(), "--r").unwrap());
        assert_eq!(text.static_pairs("--h").unwrap(), list.static_pairs("--h").unwrap());
        let names = Names::List(vec!["trade".to_owned()]).payload_filter("--i").unwrap();
        assert_eq!(names, Names::Text("trade".to_owned()).payload_filter("--i").unwrap());
        assert!(names.allows(PayloadCase::Trade) && !names.allows(PayloadCase::Quote));
    }

    #[test]
    fn batches_out_of_range_are_refused_by_flag() {
        let options = BatchOptions { max_batch_size: Some(501), max_batch_delay_ms: Some(60_001) };
        assert_eq!(
            options.events("--kinesis", 100, 500).unwrap_err().to_string(),
            "--kinesis-max-batch-size: 501 is out of range; give 1 to 500"
        );
        assert_eq!(
            options.linger("--kinesis", Duration::ZERO).unwrap_err().to_string(),
            "--kinesis-max-batch-delay-ms: 60001 is out of range; give 0 to 60000"
        );
        assert_eq!(BatchOptions::default().events("--x", 7, 9), Ok(7));
    }
}
