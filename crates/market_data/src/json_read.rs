//! Messages from JSON.
//!
//! Reading is strict, because what is passed over here would be missing everywhere after: an unknown
//! field, a missing one, a wrong type are errors that name it. `null` is a number or a time that
//! could not be read; an absent field is absent.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

use crate::message::{
    BarKind, BookChange, BookLevel, BookSnapshot, BookTicker, BookTickerField, BookTickerOrder,
    DerivativeTicker, Disconnect, ErrorCode, ErrorNotice, Message, OptionSummary, OptionType, Side,
    Trade, TradeBar,
};
use crate::raw::is_too_deep;
use crate::time::Timestamp;

/// The values of `type` that [`read_message`] knows.
const TYPES: &str = "trade, book_change, derivative_ticker, liquidation, option_summary, \
                     book_ticker, book_snapshot, trade_bar, error, disconnect";

/// Why a text is not a normalized message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// It is no JSON object with a `type`.
    #[error("not a normalized message: {reason}")]
    NoMessage {
        /// What the JSON reader says.
        reason: String,
    },
    /// Its `type` is unknown.
    #[error("unknown message type `{found}`; known are {TYPES}")]
    UnknownType {
        /// The type found.
        found: String,
    },
    /// A field is missing, unknown or of the wrong type.
    #[error("bad {kind} message: {reason}")]
    BadField {
        /// The message's type.
        kind: &'static str,
        /// What the JSON reader says, naming the field.
        reason: String,
    },
}

/// Reads one JSON object. Strings without escapes are borrowed from `json`.
pub fn read_message(json: &[u8]) -> Result<Message<'_>, ReadError> {
    #[derive(Deserialize)]
    struct Tag<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
    }
    let kind = if let Some(kind) = leading_type(json) {
        Cow::Borrowed(kind)
    } else if is_too_deep(json) {
        return Err(ReadError::NoMessage { reason: "nested too deeply".to_owned() });
    } else {
        let tag: Tag<'_> = sonic_rs::from_slice(json)
            .map_err(|error| ReadError::NoMessage { reason: reason(&error) })?;
        tag.kind
    };
    match &*kind {
        "trade" => {
            read::<TradeFields<'_>>("trade", json).map(|fields| Message::Trade(fields.into()))
        }
        "liquidation" => read::<TradeFields<'_>>("liquidation", json)
            .map(|fields| Message::Liquidation(fields.into())),
        "book_change" => read::<BookChangeFields<'_>>("book_change", json).map(Into::into),
        "derivative_ticker" => {
            read::<DerivativeTickerFields<'_>>("derivative_ticker", json).map(Into::into)
        }
        "option_summary" => read::<OptionSummaryFields<'_>>("option_summary", json).map(Into::into),
        "book_ticker" => read::<BookTickerFields<'_>>("book_ticker", json)
            .map(|fields| Message::BookTicker(fields.0)),
        "book_snapshot" => read::<BookSnapshotFields<'_>>("book_snapshot", json).map(Into::into),
        "trade_bar" => read::<TradeBarFields<'_>>("trade_bar", json).map(Into::into),
        "error" => read::<ErrorFields<'_>>("error", json).map(Into::into),
        "disconnect" => read::<DisconnectFields<'_>>("disconnect", json).map(Into::into),
        _ => Err(ReadError::UnknownType { found: kind.into_owned() }),
    }
}

/// The type, if it is the first field, as it is in all messages that this crate writes.
fn leading_type(json: &[u8]) -> Option<&str> {
    let rest = json.strip_prefix(b"{\"type\":\"")?;
    let end = rest.iter().position(|byte| !byte.is_ascii_lowercase() && *byte != b'_')?;
    (rest[end] == b'"').then(|| std::str::from_utf8(&rest[..end]).unwrap_or_default())
}

fn read<'a, T: Deserialize<'a>>(kind: &'static str, json: &'a [u8]) -> Result<T, ReadError> {
    sonic_rs::from_slice(json).map_err(|error| ReadError::BadField { kind, reason: reason(&error) })
}

/// The reader's own words, without the excerpt it draws on further lines.
fn reason(error: &sonic_rs::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end().to_owned()
}

/// A string that is borrowed even inside of an `Option` or a list.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A number, with `null` read as NaN.
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::deserialize(deserializer)?.unwrap_or(f64::NAN)))
    }
}

/// A time, with `null` read as one that could not be read.
struct Time(Timestamp);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Option::<Text<'_>>::deserialize(deserializer)? {
            None => Ok(Self(Timestamp::INVALID)),
            Some(text) => Timestamp::parse(&text.0).map(Self).map_err(D::Error::custom),
        }
    }
}

/// Reads a field that may be absent, in which `null` is a value.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum SideText {
    Buy,
    Sell,
    Unknown,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TradeFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    symbol: Cow<'a, str>,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<Text<'a>>,
    price: Number,
    amount: Number,
    side: SideText,
    timestamp: Time,
    local_timestamp: Time,
}

impl<'a> From<TradeFields<'a>> for Trade<'a> {
    fn from(fields: TradeFields<'a>) -> Self {
        Self {
            symbol: fields.symbol,
            exchange: fields.exchange,
            id: fields.id.map(|id| id.0),
            price: fields.price.0,
            amount: fields.amount.0,
            side: match fields.side {
                SideText::Buy => Side::Buy,
                SideText::Sell => Side::Sell,
                SideText::Unknown => Side::Unknown,
            },
            timestamp: fields.timestamp.0,
            local_timestamp: fields.local_timestamp.0,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelFields {
    price: Number,
    amount: Number,
}

impl From<LevelFields> for BookLevel {
    fn from(fields: LevelFields) -> Self {
        Self { price: fields.price.0, amount: fields.amount.0 }
    }
}

/// A level of a snapshot: both values or none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotLevelFields {
    #[serde(default, deserialize_with = "present")]
    price: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    amount: Option<Number>,
}

struct SnapshotLevel(Option<BookLevel>);

impl<'de> Deserialize<'de> for SnapshotLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match SnapshotLevelFields::deserialize(deserializer)? {
            SnapshotLevelFields { price: Some(price), amount: Some(amount) } => {
                Ok(Self(Some(BookLevel { price: price.0, amount: amount.0 })))
            }
            SnapshotLevelFields { price: None, amount: None } => Ok(Self(None)),
            SnapshotLevelFields { price: None, .. } => Err(D::Error::missing_field("price")),
            SnapshotLevelFields { .. } => Err(D::Error::missing_field("amount")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BookChangeFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    symbol: Cow<'a, str>,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    is_snapshot: bool,
    bids: Vec<LevelFields>,
    asks: Vec<LevelFields>,
    timestamp: Time,
    local_timestamp: Time,
}

impl<'a> From<BookChangeFields<'a>> for Message<'a> {
    fn from(fields: BookChangeFields<'a>) -> Self {
        Message::BookChange(BookChange {
            symbol: fields.symbol,
            exchange: fields.exchange,
            is_snapshot: fields.is_snapshot,
            bids: fields.bids.into_iter().map(Into::into).collect(),
            asks: fields.asks.into_iter().map(Into::into).collect(),
            timestamp: fields.timestamp.0,
            local_timestamp: fields.local_timestamp.0,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DerivativeTickerFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    symbol: Cow<'a, str>,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    #[serde(default, deserialize_with = "present")]
    last_price: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    open_interest: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    funding_rate: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    funding_timestamp: Option<Time>,
    #[serde(default, deserialize_with = "present")]
    predicted_funding_rate: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    index_price: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    mark_price: Option<Number>,
    timestamp: Time,
    local_timestamp: Time,
}

fn value(number: Option<Number>) -> Option<f64> {
    number.map(|number| number.0)
}

impl<'a> From<DerivativeTickerFields<'a>> for Message<'a> {
    fn from(fields: DerivativeTickerFields<'a>) -> Self {
        Message::DerivativeTicker(DerivativeTicker {
            symbol: fields.symbol,
            exchange: fields.exchange,
            last_price: value(fields.last_price),
            open_interest: value(fields.open_interest),
            funding_rate: value(fields.funding_rate),
            funding_timestamp: fields.funding_timestamp.map(|time| time.0),
            predicted_funding_rate: value(fields.predicted_funding_rate),
            index_price: value(fields.index_price),
            mark_price: value(fields.mark_price),
            timestamp: fields.timestamp.0,
            local_timestamp: fields.local_timestamp.0,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum OptionTypeText {
    Call,
    Put,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OptionSummaryFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    symbol: Cow<'a, str>,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    #[serde(default, deserialize_with = "present")]
    option_type: Option<OptionTypeText>,
    #[serde(default, deserialize_with = "present")]
    strike_price: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    expiration_date: Option<Time>,
    #[serde(default, deserialize_with = "present")]
    best_bid_price: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    best_bid_amount: Option<Number>,
    #[serde(default, deserialize_with = "present", rename = "bestBidIV")]
    best_bid_iv: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    best_ask_price: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    best_ask_amount: Option<Number>,
    #[serde(default, deserialize_with = "present", rename = "bestAskIV")]
    best_ask_iv: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    last_price: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    open_interest: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    mark_price: Option<Number>,
    #[serde(default, deserialize_with = "present", rename = "markIV")]
    mark_iv: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    delta: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    gamma: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    vega: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    theta: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    rho: Option<Number>,
    #[serde(default, deserialize_with = "present")]
    underlying_price: Option<Number>,
    #[serde(borrow, default, deserialize_with = "present")]
    underlying_index: Option<Text<'a>>,
    timestamp: Time,
    local_timestamp: Time,
}

impl<'a> From<OptionSummaryFields<'a>> for Message<'a> {
    fn from(fields: OptionSummaryFields<'a>) -> Self {
        Message::OptionSummary(OptionSummary {
            symbol: fields.symbol,
            exchange: fields.exchange,
            option_type: fields.option_type.map(|kind| match kind {
                OptionTypeText::Call => OptionType::Call,
                OptionTypeText::Put => OptionType::Put,
            }),
            strike_price: value(fields.strike_price),
            expiration_date: fields.expiration_date.map(|time| time.0),
            best_bid_price: value(fields.best_bid_price),
            best_bid_amount: value(fields.best_bid_amount),
            best_bid_iv: value(fields.best_bid_iv),
            best_ask_price: value(fields.best_ask_price),
            best_ask_amount: value(fields.best_ask_amount),
            best_ask_iv: value(fields.best_ask_iv),
            last_price: value(fields.last_price),
            open_interest: value(fields.open_interest),
            mark_price: value(fields.mark_price),
            mark_iv: value(fields.mark_iv),
            delta: value(fields.delta),
            gamma: value(fields.gamma),
            vega: value(fields.vega),
            theta: value(fields.theta),
            rho: value(fields.rho),
            underlying_price: value(fields.underlying_price),
            underlying_index: fields.underlying_index.map(|text| text.0),
            timestamp: fields.timestamp.0,
            local_timestamp: fields.local_timestamp.0,
        })
    }
}

/// Reads itself, because the order of its fields is part of the message.
struct BookTickerFields<'a>(BookTicker<'a>);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", field_identifier)]
enum BookTickerKey {
    Type,
    Symbol,
    Exchange,
    AskAmount,
    AskPrice,
    BidPrice,
    BidAmount,
    Timestamp,
    LocalTimestamp,
}

impl<'de: 'a, 'a> Deserialize<'de> for BookTickerFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = BookTickerFields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a book_ticker object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut symbol = None;
                let mut exchange = None;
                let mut timestamp = None;
                let mut local_timestamp = None;
                let mut seen = Vec::with_capacity(4);
                let mut numbers = [None; 4];
                while let Some(key) = map.next_key()? {
                    let field = match key {
                        BookTickerKey::Type => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                        BookTickerKey::Symbol => {
                            symbol = Some(map.next_value::<Text<'de>>()?.0);
                            continue;
                        }
                        BookTickerKey::Exchange => {
                            exchange = Some(map.next_value::<Text<'de>>()?.0);
                            continue;
                        }
                        BookTickerKey::Timestamp => {
                            timestamp = Some(map.next_value::<Time>()?.0);
                            continue;
                        }
                        BookTickerKey::LocalTimestamp => {
                            local_timestamp = Some(map.next_value::<Time>()?.0);
                            continue;
                        }
                        BookTickerKey::AskAmount => BookTickerField::AskAmount,
                        BookTickerKey::AskPrice => BookTickerField::AskPrice,
                        BookTickerKey::BidPrice => BookTickerField::BidPrice,
                        BookTickerKey::BidAmount => BookTickerField::BidAmount,
                    };
                    if numbers[field as usize].replace(map.next_value::<Number>()?.0).is_some() {
                        return Err(M::Error::custom("a value is given twice"));
                    }
                    seen.push(field);
                }
                let missing = M::Error::missing_field;
                Ok(BookTickerFields(BookTicker {
                    symbol: symbol.ok_or_else(|| missing("symbol"))?,
                    exchange: exchange.ok_or_else(|| missing("exchange"))?,
                    ask_amount: numbers[BookTickerField::AskAmount as usize],
                    ask_price: numbers[BookTickerField::AskPrice as usize],
                    bid_price: numbers[BookTickerField::BidPrice as usize],
                    bid_amount: numbers[BookTickerField::BidAmount as usize],
                    order: BookTickerOrder::of(&seen),
                    timestamp: timestamp.ok_or_else(|| missing("timestamp"))?,
                    local_timestamp: local_timestamp.ok_or_else(|| missing("localTimestamp"))?,
                }))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BookSnapshotFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    symbol: Cow<'a, str>,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    depth: u32,
    interval: u64,
    #[serde(default, deserialize_with = "present")]
    grouping: Option<Number>,
    bids: Vec<SnapshotLevel>,
    asks: Vec<SnapshotLevel>,
    timestamp: Time,
    local_timestamp: Time,
}

impl<'a> From<BookSnapshotFields<'a>> for Message<'a> {
    fn from(fields: BookSnapshotFields<'a>) -> Self {
        Message::BookSnapshot(BookSnapshot {
            symbol: fields.symbol,
            exchange: fields.exchange,
            name: fields.name,
            depth: fields.depth,
            interval: fields.interval,
            grouping: value(fields.grouping),
            bids: fields.bids.into_iter().map(|level| level.0).collect(),
            asks: fields.asks.into_iter().map(|level| level.0).collect(),
            timestamp: fields.timestamp.0,
            local_timestamp: fields.local_timestamp.0,
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum BarKindText {
    Time,
    Tick,
    Volume,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TradeBarFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    symbol: Cow<'a, str>,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    interval: u64,
    kind: BarKindText,
    open: Number,
    high: Number,
    low: Number,
    close: Number,
    volume: Number,
    buy_volume: Number,
    sell_volume: Number,
    trades: u64,
    vwap: Number,
    open_timestamp: Time,
    close_timestamp: Time,
    local_timestamp: Time,
    timestamp: Time,
}

impl<'a> From<TradeBarFields<'a>> for Message<'a> {
    fn from(fields: TradeBarFields<'a>) -> Self {
        Message::TradeBar(TradeBar {
            symbol: fields.symbol,
            exchange: fields.exchange,
            name: fields.name,
            interval: fields.interval,
            kind: match fields.kind {
                BarKindText::Time => BarKind::Time,
                BarKindText::Tick => BarKind::Tick,
                BarKindText::Volume => BarKind::Volume,
            },
            open: fields.open.0,
            high: fields.high.0,
            low: fields.low.0,
            close: fields.close.0,
            volume: fields.volume.0,
            buy_volume: fields.buy_volume.0,
            sell_volume: fields.sell_volume.0,
            trades: fields.trades,
            vwap: fields.vwap.0,
            open_timestamp: fields.open_timestamp.0,
            close_timestamp: fields.close_timestamp.0,
            local_timestamp: fields.local_timestamp.0,
            timestamp: fields.timestamp.0,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ErrorFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    local_timestamp: Time,
    #[serde(borrow)]
    details: Cow<'a, str>,
    sub_sequent_errors_count: u32,
}

impl<'a> From<ErrorFields<'a>> for Message<'a> {
    fn from(fields: ErrorFields<'a>) -> Self {
        Message::Error(ErrorNotice {
            exchange: fields.exchange,
            local_timestamp: fields.local_timestamp.0,
            details: fields.details,
            subsequent_errors: fields.sub_sequent_errors_count,
            code: ErrorCode::Unspecified,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DisconnectFields<'a> {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(borrow)]
    exchange: Cow<'a, str>,
    local_timestamp: Time,
    #[serde(borrow, default, deserialize_with = "present")]
    symbols: Option<Vec<Text<'a>>>,
}

impl<'a> From<DisconnectFields<'a>> for Message<'a> {
    fn from(fields: DisconnectFields<'a>) -> Self {
        Message::Disconnect(Disconnect {
            exchange: fields.exchange,
            local_timestamp: fields.local_timestamp.0,
            symbols: fields.symbols.map(|list| list.into_iter().map(|text| text.0).collect()),
            reason: Cow::Borrowed(""),
            close_code: 0,
        })
    }
}
