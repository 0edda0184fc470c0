//! What a client asks for, read from the JSON of its options and checked before anything starts.
//! Options that are not known are ignored.

use std::borrow::Cow;

use market_data::{
    DataType, DataTypeError, Exchange, Filter, exchange, exchange_channels, exchange_ids,
    normalized_exchanges, parse_date,
};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::minute::Minute;
use crate::options::ApiKey;

/// What `true` means for `waitWhenDataNotYetAvailable`.
const DEFAULT_WAIT_MINUTES: u32 = 30;
/// The archive is never nearer to now than this.
const MIN_WAIT_MINUTES: u32 = 6;

/// Why a request is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    /// The options are not JSON.
    #[error("the options are not JSON: {reason}; give for example options={example}")]
    NotJson {
        /// What the JSON reader says.
        reason: String,
        /// Options as they may be.
        example: &'static str,
    },
    /// The options are JSON, but no object.
    #[error("the options must be {expected}, found {found}")]
    NotAnObject {
        /// What is accepted.
        expected: &'static str,
        /// What was given.
        found: &'static str,
    },
    /// An option that must be there is not.
    #[error("the option `{option}` is missing: {remedy}")]
    Missing {
        /// The option.
        option: &'static str,
        /// What to give.
        remedy: Cow<'static, str>,
    },
    /// An option has a value that is not accepted.
    #[error("the option `{option}` cannot be {value}: {remedy}")]
    Unusable {
        /// The option.
        option: &'static str,
        /// The value, as JSON.
        value: String,
        /// What to give.
        remedy: Cow<'static, str>,
    },
    /// A data type is not known.
    #[error("the option `dataTypes` is not usable: {0}")]
    DataType(#[from] DataTypeError),
    /// The range ends before it begins.
    #[error("the option `to` ({to}) is before `from` ({from}): give a later time, it is exclusive")]
    Backwards {
        /// Begin.
        from: Minute,
        /// End.
        to: Minute,
    },
}

/// A range of minutes of the archive; the end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first minute.
    pub from: Minute,
    /// The minute after the last.
    pub to: Minute,
}

/// What raw and normalized requests have in common.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The range.
    pub range: TimeRange,
    /// A key of the request's own.
    pub api_key: Option<ApiKey>,
    /// Whether slices are removed from the cache once they are read.
    pub auto_cleanup: bool,
    /// How many minutes behind now data is expected, if the request waits for it.
    pub wait_minutes: Option<u32>,
}

/// A request for an exchange's own messages.
#[derive(Clone, Debug)]
pub struct RawRequest {
    /// The exchange.
    pub exchange: &'static str,
    /// Channels and symbols; empty = everything.
    pub filters: Vec<Filter>,
    /// Whether disconnects are told.
    pub with_disconnects: bool,
    /// Range, key and the like.
    pub terms: Terms,
}

/// One of the streams that make up a request for normalized messages.
#[derive(Clone, Debug)]
pub struct NormalizedRequest {
    /// The exchange.
    pub exchange: &'static Exchange,
    /// The symbols; `None` = all.
    pub symbols: Option<Vec<String>>,
    /// What to send, in the order in which it was asked for.
    pub data_types: Vec<DataType>,
    /// Whether disconnects are told.
    pub with_disconnect_messages: bool,
    /// Range, key and the like.
    pub terms: Terms,
}

impl RawRequest {
    const EXAMPLE: &str = r#"{"exchange":"bitmex","from":"2019-06-01","to":"2019-06-02","filters":[{"channel":"trade","symbols":["XBTUSD"]}]}"#;

    /// Reads the options of a raw replay.
    pub fn parse(json: &str) -> Result<Self, RequestError> {
        let value = parse_json(json, Self::EXAMPLE)?;
        let options = Options::of(&value, "a JSON object")?;
        let (exchange, channels) = options.exchange()?;
        Ok(Self {
            exchange,
            filters: options.filters(channels)?,
            with_disconnects: options.flag("withDisconnects")?,
            terms: options.terms()?,
        })
    }

    /// A request of which exchange and range come one by one, as from a URL's query, and the filters
    /// from elsewhere; they are checked as those of [`RawRequest::parse`]. An empty text counts as
    /// not given.
    pub fn of_parts(
        exchange: &str,
        from: &str,
        to: &str,
        filters: Vec<Filter>,
    ) -> Result<Self, RequestError> {
        let given = [("exchange", exchange), ("from", from), ("to", to)];
        let given = given.into_iter().filter(|(_, text)| !text.is_empty());
        let fields = given.map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
        let options = Options(&fields);
        let (exchange, channels) = options.exchange()?;
        for filter in &filters {
            check_channel(&filter.channel, channels)?;
        }
        Ok(Self { exchange, filters, with_disconnects: false, terms: options.terms()? })
    }
}

impl NormalizedRequest {
    const EXAMPLE: &str = r#"{"exchange":"bitmex","symbols":["XBTUSD"],"from":"2019-06-01","to":"2019-06-02","dataTypes":["trade"]}"#;

    /// Reads the options of a normalized replay: one object, or a list of them to be merged.
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
        let exchange = exchange(&id).ok_or_else(|| {
            let known = normalized_exchanges().map(|exchange| exchange.id);
            unusable("exchange", &id, one_of(known))
        })?;
        let data_types = options.data_types(exchange)?;
        let symbols = options.texts("symbols")?.filter(|symbols| !symbols.is_empty());
        Ok(Self {
            exchange,
            symbols,
            data_types,
            with_disconnect_messages: options.flag("withDisconnectMessages")?,
            terms: options.terms()?,
        })
    }
}

pub(crate) fn parse_json(json: &str, example: &'static str) -> Result<Value, RequestError> {
    serde_json::from_str(json)
        .map_err(|error| RequestError::NotJson { reason: error.to_string(), example })
}

pub(crate) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("give one of ");
    for (position, name) in names.enumerate() {
        if position > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    text
}

pub(crate) fn unusable(
    option: &'static str,
    value: &(impl serde::Serialize + ?Sized),
    remedy: impl Into<Cow<'static, str>>,
) -> RequestError {
    /// Enough to recognise what was given.
    const LONGEST: usize = 200;
    let mut value = serde_json::to_string(value).unwrap_or_default();
    if let Some((end, _)) = value.char_indices().nth(LONGEST) {
        value.truncate(end);
        value.push('…');
    }
    RequestError::Unusable { option, value, remedy: remedy.into() }
}

fn check_channel(channel: &str, channels: &[&str]) -> Result<(), RequestError> {
    if channels.contains(&channel) {
        return Ok(());
    }
    Err(unusable("filters[].channel", channel, one_of(channels.iter().copied())))
}

/// The fields of an object of options.
pub(crate) struct Options<'a>(&'a Map<String, Value>);

impl<'a> Options<'a> {
    pub(crate) fn of(value: &'a Value, expected: &'static str) -> Result<Self, RequestError> {
        let found = match value {
            Value::Object(fields) => return Ok(Self(fields)),
            Value::Null => "null",
            Value::Bool(_) => "a truth value",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
        };
        Err(RequestError::NotAnObject { expected, found })
    }

    /// The value of `option` unless it is absent or `null`.
    pub(crate) fn get(&self, option: &str) -> Option<&'a Value> {
        self.0.get(option).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, option: &'static str) -> Result<Cow<'a, str>, RequestError> {
        match self.get(option) {
            Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
            Some(other) => Err(unusable(option, other, "give a text")),
            None => {
                let remedy = match option {
                    "exchange" => "give an exchange such as \"bitmex\"",
                    _ => "give a date such as \"2019-06-01\" or \"2019-06-01T00:10:00.000Z\"",
                };
                Err(RequestError::Missing { option, remedy: remedy.into() })
            }
        }
    }

    /// An exchange of the archive, and its channels.
    fn exchange(&self) -> Result<(&'static str, &'static [&'static str]), RequestError> {
        let id = self.text("exchange")?;
        exchange_ids()
            .find(|known| *known == id)
            .and_then(|known| Some((known, exchange_channels(known)?)))
            .ok_or_else(|| unusable("exchange", &id, one_of(exchange_ids())))
    }

    pub(crate) fn texts(&self, option: &'static str) -> Result<Option<Vec<String>>, RequestError> {
        let Some(value) = self.get(option) else { return Ok(None) };
        texts(value).map(Some).ok_or_else(|| unusable(option, value, "give a list of texts"))
    }

    pub(crate) fn flag(&self, option: &'static str) -> Result<bool, RequestError> {
        match self.get(option) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(unusable(option, other, "give true or false")),
        }
    }

    pub(crate) fn data_types(
        &self,
        exchange: &'static Exchange,
    ) -> Result<Vec<DataType>, RequestError> {
        const OPTION: &str = "dataTypes";
        let supported =
            || one_of(exchange.normalizers.iter().map(|normalizer| normalizer.kind.data_type()));
        let names = self.texts(OPTION)?.ok_or_else(|| RequestError::Missing {
            option: OPTION,
            remedy: "give a list such as [\"trade\",\"book_change\"]".into(),
        })?;
        if names.is_empty() {
            return Err(unusable(OPTION, &names, "give at least one data type"));
        }
        names
            .iter()
            .map(|name| {
                let data_type: DataType = name.parse()?;
                if exchange.normalizer(data_type.kind()).is_none() {
                    let remedy = format!("{} does not have it, {}", exchange.id, supported());
                    return Err(unusable(OPTION, name, remedy));
                }
                Ok(data_type)
            })
            .collect()
    }

    fn filters(&self, channels: &[&str]) -> Result<Vec<Filter>, RequestError> {
        const OPTION: &str = "filters";
        const SHAPE: &str = r#"give a list such as [{"channel":"trade","symbols":["XBTUSD"]}]"#;
        let Some(value) = self.get(OPTION) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| unusable(OPTION, value, SHAPE))?;
        list.iter()
            .map(|filter| {
                let channel = filter
                    .get("channel")
                    .and_then(Value::as_str)
                    .ok_or_else(|| unusable("filters[]", filter, SHAPE))?;
                check_channel(channel, channels)?;
                let symbols = filter.get("symbols").filter(|symbols| !symbols.is_null());
                let symbols = symbols
                    .map(|value| {
                        texts(value).ok_or_else(|| {
                            unusable("filters[].symbols", value, "give a list of texts")
                        })
                    })
                    .transpose()?;
                Ok(Filter { channel: channel.to_owned(), symbols })
            })
            .collect()
    }

    fn minute(&self, option: &'static str) -> Result<Minute, RequestError> {
        let text = self.text(option)?;
        Minute::of(parse_date(&text)).ok_or_else(|| {
            unusable(option, &text, "give a date such as 2019-06-01 or 2019-06-01T00:10:00.000Z")
        })
    }

    fn terms(&self) -> Result<Terms, RequestError> {
        let (from, to) = (self.minute("from")?, self.minute("to")?);
        if to < from {
            return Err(RequestError::Backwards { from, to });
        }
        let api_key = match self.get("apiKey") {
            None => None,
            Some(Value::String(key)) => ApiKey::new(key.clone()),
            // The value is left out: it may be a key all the same.
            Some(_) => {
                let remedy = "give a text".into();
                return Err(RequestError::Unusable {
                    option: "apiKey",
                    value: "***".into(),
                    remedy,
                });
            }
        };
        Ok(Terms {
            range: TimeRange { from, to },
            api_key,
            auto_cleanup: self.flag("autoCleanup")?,
            wait_minutes: self.wait_minutes()?,
        })
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked to be in range
    fn wait_minutes(&self) -> Result<Option<u32>, RequestError> {
        const OPTION: &str = "waitWhenDataNotYetAvailable";
        match self.get(OPTION) {
            None | Some(Value::Bool(false)) => Ok(None),
            Some(Value::Bool(true)) => Ok(Some(DEFAULT_WAIT_MINUTES)),
            Some(value) => match value.as_f64() {
                Some(minutes) if (0.0..=525_600.0).contains(&minutes) => {
                    Ok((minutes > 0.0).then(|| (minutes.ceil() as u32).max(MIN_WAIT_MINUTES)))
                }
                _ => Err(unusable(OPTION, value, "give true, false or a number of minutes")),
            },
        }
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Reads filters from JSON, whatever their channels are.
pub fn read_filters(json: &str) -> Result<Vec<Filter>, RequestError> {
    serde_json::from_str(json).map_err(|error| RequestError::NotJson {
        reason: error.to_string(),
        example: r#"[{"channel":"trade","symbols":["XBTUSD"]}]"#,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(json: &str) -> String {
        NormalizedRequest::parse(json).unwrap_err().to_string()
    }

    #[test]
    fn a_request_is_read_as_it_is_meant() {
        let requests = NormalizedRequest::parse(
            r#"[{"exchange":"bitmex","symbols":[],"from":"2020-02-01","to":"2020-02-01T00:02:59.999Z",
                "dataTypes":["trade","quote"],"withDisconnectMessages":true,"surprise":1,
                "waitWhenDataNotYetAvailable":2},
               {"exchange":"deribit","symbols":["BTC-PERPETUAL"],"from":"2020-02-01T00:01",
                "to":"2020-02-01T01:02+01:00","dataTypes":["trade"],"apiKey":"TD.k"}]"#,
        )
        .unwrap();
        let [first, second] = &*requests else { panic!("two requests") };
        assert_eq!(first.symbols, None);
        assert!(first.with_disconnect_messages);
        assert_eq!(first.terms.range.to.to_string(), "2020-02-01T00:02:00.000Z");
        assert_eq!(first.terms.wait_minutes, Some(MIN_WAIT_MINUTES));
        assert_eq!(second.symbols.as_deref(), Some(&["BTC-PERPETUAL".to_owned()][..]));
        assert_eq!(second.terms.range.from.to_string(), "2020-02-01T00:01:00.000Z");
        assert_eq!(second.terms.range.to.to_string(), "2020-02-01T00:02:00.000Z");
        assert!(second.terms.api_key.is_some() && !format!("{second:?}").contains("TD.k"));
        assert!(NormalizedRequest::parse("[]").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_value_and_what_is_accepted() {
        let with = |fields: &str| {
            refusal(&format!(
                r#"{{"exchange":"bitmex","from":"2020-02-01","to":"2020-02-02","dataTypes":["trade"],{fields}}}"#
            ))
        };
        for (found, expected) in [
            (refusal("{"), "the options are not JSON: "),
            (
                refusal("7"),
                "the options must be a JSON object or a list of objects, found a number",
            ),
            (refusal("{}"), "the option `exchange` is missing: "),
            (
                with(r#""exchange":"mtgox""#),
                "the option `exchange` cannot be \"mtgox\": give one of bi",
            ),
            (
                with(r#""from":"soon""#),
                "the option `from` cannot be \"soon\": give a date such as ",
            ),
            (with(r#""from":null"#), "the option `from` is missing: give a date such as "),
            (with(r#""from":3"#), "the option `from` cannot be 3: give a text"),
            (
                with(r#""to":"2020-01-01""#),
                "the option `to` (2020-01-01T00:00:00.000Z) is before `from` (2020-02-01T00:00:00.000Z): ",
            ),
            (
                with(r#""symbols":"XBTUSD""#),
                "the option `symbols` cannot be \"XBTUSD\": give a list",
            ),
            (with(r#""symbols":[1]"#), "the option `symbols` cannot be [1]: give a list of texts"),
            (with(r#""dataTypes":[]"#), "the option `dataTypes` cannot be []: give at least one"),
            (
                with(r#""dataTypes":["option_summary"]"#),
                "the option `dataTypes` cannot be \"option_s",
            ),
            (
                with(r#""dataTypes":["bars"]"#),
                "the option `dataTypes` is not usable: data type `bars`",
            ),
            (
                with(r#""withDisconnectMessages":"yes""#),
                "the option `withDisconnectMessages` cannot be",
            ),
            (
                with(r#""waitWhenDataNotYetAvailable":-1"#),
                "the option `waitWhenDataNotYetAvailable` ",
            ),
            (with(r#""apiKey":["secret"]"#), "the option `apiKey` cannot be ***: give a text"),
        ] {
            assert!(found.starts_with(expected), "{found}");
        }
        let long = with(&format!(r#""exchange":"{}""#, "x".repeat(100_000)));
        assert!(long.len() < 1_000, "{}", long.len());
    }

    #[test]
    fn raw_requests_name_known_channels() {
        let parse = |filters: &str| {
            RawRequest::parse(&format!(
                r#"{{"exchange":"ftx","from":"2020-02-01","to":"2020-02-01","filters":{filters}}}"#
            ))
        };
        let request =
            parse(r#"[{"channel":"trades","symbols":["A"]},{"channel":"orderbook"}]"#).unwrap();
        assert_eq!(request.filters[0].symbols.as_deref(), Some(&["A".to_owned()][..]));
        assert_eq!(request.filters[1].symbols, None);
        assert!(parse("null").unwrap().filters.is_empty());
        for (filters, expected) in [
            ("{}", "the option `filters` cannot be {}: give a list"),
            ("[{}]", "the option `filters[]` cannot be {}: give a list"),
            (
                r#"[{"channel":"x"}]"#,
                "the option `filters[].channel` cannot be \"x\": give one of ",
            ),
            (
                r#"[{"channel":"trades","symbols":"A"}]"#,
                "the option `filters[].symbols` cannot be \"A\"",
            ),
        ] {
            let found = parse(filters).unwrap_err().to_string();
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn requests_of_parts_are_checked_as_those_of_options() {
        let trade = || Filter { channel: "trade".to_owned(), symbols: None };
        let of = |exchange: &str, from: &str, to: &str, channel: &str| {
            let filter = Filter { channel: channel.to_owned(), ..trade() };
            RawRequest::of_parts(exchange, from, to, vec![filter])
                .map_err(|error| error.to_string())
        };
        let request = of("bitmex", "2020-02-01", "2020-02-01T00:05:30Z", "trade").unwrap();
        assert_eq!((request.exchange, request.filters), ("bitmex", vec![trade()]));
        assert_eq!(request.terms.range.to.to_string(), "2020-02-01T00:05:00.000Z");
        assert!(!request.with_disconnects && request.terms.api_key.is_none());
        for (found, expected) in [
            (of("", "2020-02-01", "2020-02-01", "trade"), "the option `exchange` is missing: give"),
            (of("mtgox", "", "", ""), "the option `exchange` cannot be \"mtgox\": give one of as"),
            (of("bitmex", "", "2020-02-01", "trade"), "the option `from` is missing: give a date"),
            (
                of("bitmex", "2020-02-01", "now", "trade"),
                "the option `to` cannot be \"now\": give a",
            ),
            (
                of("bitmex", "2020-02-01", "2020-01-01", "trade"),
                "the option `to` (2020-01-01T00:00",
            ),
            (
                of("bitmex", "2020-02-01", "2020-02-01", "trades"),
                "the option `filters[].channel` cannot be \"trades\": give one of trade, ",
            ),
        ] {
            let found = found.unwrap_err();
            assert!(found.starts_with(expected), "{found}");
        }
    }
}
