//! What a client of a live stream asks for.

use std::time::Duration;

use market_data::{DataType, Exchange, Kinds, exchange};
use serde_json::Value;

use super::feeds::{feed, feeds};
use crate::filters::optimise;
use crate::request::{Options, RequestError, one_of, parse_json, unusable};

/// How long a connection may be silent where the request does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_TIMEOUT_MS: f64 = 86_400_000.0;

/// One of the streams that make up a request for live messages.
#[derive(Clone, Debug)]
pub struct LiveRequest {
    /// The exchange.
    pub exchange: &'static Exchange,
    /// The symbols; `None` = all.
    pub symbols: Option<Vec<String>>,
    /// What to send, in the order in which it was asked for.
    pub data_types: Vec<DataType>,
    /// Whether lost connections are told.
    pub with_disconnect_messages: bool,
    /// Whether errors are told.
    pub with_error_messages: bool,
    /// How long a connection may be silent before it is made again; `None` = for ever.
    pub timeout: Option<Duration>,
}

impl LiveRequest {
    const EXAMPLE: &str = r#"{"exchange":"bitmex","symbols":["XBTUSD"],"dataTypes":["trade"]}"#;

    /// Reads the options of a live stream: one object, or a list of them.
    pub fn parse(json: &str) -> Result<Vec<Self>, RequestError> {
        let value = parse_json(json, Self::EXAMPLE)?;
        match &value {
            Value::Array(several) => several.iter().map(Self::of).collect(),
            one => Ok(vec![Self::of(one)?]),
        }
    }

    fn of(value: &Value) -> Result<Self, RequestError> {
        let options = Options::of(value, "a JSON object or a list of objects")?;
        let id = options.text("exchange")?;
        let (exchange, feed) = exchange(&id)
            .zip(feed(&id))
            .ok_or_else(|| unusable("exchange", &id, one_of(feeds().map(|(known, _)| known))))?;
        let request = Self {
            exchange,
            symbols: options.texts("symbols")?.filter(|symbols| !symbols.is_empty()),
            data_types: options.data_types(exchange)?,
            with_disconnect_messages: options.flag("withDisconnectMessages")?,
            with_error_messages: options.flag("withErrorMessages")?,
            timeout: timeout(&options)?,
        };
        let kinds: Kinds = request.data_types.iter().map(DataType::kind).collect();
        let filters = exchange.filters(kinds, None, request.symbols.as_deref());
        // That it can be asked for is known here, before anything is connected.
        if let Err(needed) = feed.connections(&optimise(&filters)) {
            let remedy = format!("{id} does not stream all symbols, {needed}: give a list of them");
            return Err(RequestError::Missing { option: "symbols", remedy: remedy.into() });
        }
        Ok(request)
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked to be in range
fn timeout(options: &Options<'_>) -> Result<Option<Duration>, RequestError> {
    const OPTION: &str = "timeoutIntervalMS";
    let Some(value) = options.get(OPTION) else { return Ok(Some(DEFAULT_TIMEOUT)) };
    match value.as_f64() {
        Some(millis) if (0.0..=MAX_TIMEOUT_MS).contains(&millis) => {
            Ok((millis > 0.0).then(|| Duration::from_millis((millis as u64).max(1))))
        }
        _ => Err(unusable(OPTION, value, "give a number of milliseconds, or 0 for none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_is_meant() {
        let requests = LiveRequest::parse(
            r#"[{"exchange":"bitmex","symbols":[],"dataTypes":["trade"],"from":"ignored"},
               {"exchange":"deribit","symbols":["BTC-PERPETUAL"],"dataTypes":["book_snapshot_5_10ms"],
                "withDisconnectMessages":true,"withErrorMessages":true,"timeoutIntervalMS":500},
               {"exchange":"kraken","symbols":["XBT/USD"],"dataTypes":["trade"],
                "timeoutIntervalMS":0}]"#,
        )
        .unwrap();
        let [first, second, third] = &*requests else { panic!("three requests") };
        assert_eq!((first.exchange.id, &first.symbols), ("bitmex", &None));
        assert_eq!(first.timeout, Some(DEFAULT_TIMEOUT));
        assert!(!first.with_disconnect_messages && !first.with_error_messages);
        assert!(second.with_disconnect_messages && second.with_error_messages);
        assert_eq!(second.timeout, Some(Duration::from_millis(500)));
        assert_eq!(third.timeout, None);
        assert!(LiveRequest::parse("[]").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value_and_what_is_accepted() {
        for (json, expected) in [
            ("{", "the options are not JSON: "),
            ("7", "the options must be a JSON object or a list of objects, found a number"),
            (r#"{"dataTypes":["trade"]}"#, "the option `exchange` is missing: "),
            (
                r#"{"exchange":"ftx"}"#,
                "the option `exchange` cannot be \"ftx\": give one of binance",
            ),
            (r#"{"exchange":"bitmex"}"#, "the option `dataTypes` is missing: "),
            (
                r#"{"exchange":"deribit","dataTypes":["trade"]}"#,
                "the option `symbols` is missing: deribit does not stream all symbols, the channel \
                 `trades` needs symbols: give a list of them",
            ),
            (
                r#"{"exchange":"bitmex","dataTypes":["trade"],"timeoutIntervalMS":-1}"#,
                "the option `timeoutIntervalMS` cannot be -1: give a number of milliseconds",
            ),
            (
                r#"{"exchange":"bitmex","dataTypes":["trade"],"withErrorMessages":1}"#,
                "the option `withErrorMessages` cannot be 1: give true or false",
            ),
        ] {
            let found = LiveRequest::parse(json).unwrap_err().to_string();
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
