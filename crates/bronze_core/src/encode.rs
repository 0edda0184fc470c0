//! Messages into Bronze events, written straight from borrowed data into a shared buffer.
//!
//! The bytes are those prost would write: fields in order of number, defaults left out, `meta` in
//! order of key. An event is `head | event_seq | tail | payload`. For a book change that becomes one
//! event per level, head, tail and the common end of the payload are written once and copied.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use market_data::{
    BarKind, BookChange, BookLevel, BookSnapshot, BookTicker, BookTickerField, BookTickerOrder,
    DerivativeTicker, Disconnect, ErrorCode, ErrorNotice, Message, OptionSummary, OptionType,
    Precision, ShortDecimal, Side, Timestamp, Trade, TradeBar, write_decimal,
};
use thiserror::Error;

use crate::event_batch::EventBuffer;
use crate::generated::bronze;
use crate::payload_case::PayloadCase;
use crate::payload_filter::PayloadFilter;
use crate::wire::{
    LENGTH_DELIMITED, put_bool, put_key, put_nested, put_present_text, put_signed, put_text,
    put_time, put_unsigned,
};

pub use crate::generated::bronze::Origin;

/// Keys of `meta` that the encoder writes itself, in their order.
pub(crate) const OWN_META_KEYS: [&str; 4] = ["data_name", "data_type", "is_snapshot", "symbols"];
/// Named data types whose `meta` is kept; a session asks for far fewer.
const NAMED_META_LIMIT: usize = 64;

/// How a book change is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BookChanges {
    /// One event per level.
    #[default]
    Level,
    /// One event with both sides.
    Message,
}

/// What all events of a session have in common.
#[derive(Clone, Debug)]
pub struct EncoderOptions {
    /// The producer.
    pub source: String,
    /// How the events come to be.
    pub origin: Origin,
    /// Pairs for every event's `meta`: request or session id, transport, route, the operator's own.
    pub meta: BTreeMap<String, String>,
    /// How book changes are published.
    pub book_changes: BookChanges,
    /// `event_seq` of the first event.
    pub first_seq: u64,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        Self {
            source: "tardis-fast".to_owned(),
            origin: Origin::Unspecified,
            meta: BTreeMap::new(),
            book_changes: BookChanges::Level,
            first_seq: 1,
        }
    }
}

/// Why an encoder cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EncoderError {
    /// A pair for `meta` has a key that the encoder writes itself.
    #[error(
        "meta key `{key}` is set by the encoder; choose another than {}",
        OWN_META_KEYS.join(", ")
    )]
    ReservedMetaKey {
        /// The key.
        key: String,
    },
}

/// Encodes the messages of one session.
#[derive(Clone, Debug)]
pub struct BronzeEncoder {
    options: EncoderOptions,
    filter: PayloadFilter,
    next_seq: u64,
    /// `meta` as bytes, for each kind of message without a name.
    plain_meta: [Vec<u8>; 8],
    /// `meta` as bytes, for each named data type met so far.
    named_meta: Vec<(&'static str, String, Vec<u8>)>,
    /// What the levels of the book change at hand have in common.
    scratch: Vec<u8>,
}

impl PayloadCase {
    /// The case under which a message is published.
    #[must_use]
    pub fn of(message: &Message<'_>) -> Self {
        match message {
            Message::Trade(_) => Self::Trade,
            Message::BookChange(_) => Self::BookChange,
            Message::DerivativeTicker(_) => Self::DerivativeTicker,
            Message::Liquidation(_) => Self::Liquidation,
            Message::OptionSummary(_) => Self::OptionSummary,
            Message::BookTicker(_) => Self::BookTicker,
            Message::BookSnapshot(snapshot) if snapshot.grouping.is_some() => {
                Self::GroupedBookSnapshot
            }
            Message::BookSnapshot(snapshot) if is_quote(snapshot) => Self::Quote,
            Message::BookSnapshot(_) => Self::BookSnapshot,
            Message::TradeBar(_) => Self::TradeBar,
            Message::Error(_) => Self::Error,
            Message::Disconnect(_) => Self::Disconnect,
        }
    }
}

/// A quote is a snapshot of depth 1 under that name. One of another shape, which no data type gives,
/// would lose levels as a quote and stays a snapshot.
fn is_quote(snapshot: &BookSnapshot<'_>) -> bool {
    (snapshot.name == "quote" || snapshot.name.starts_with("quote_"))
        && snapshot.depth == 1
        && snapshot.bids.len() == 1
        && snapshot.asks.len() == 1
}

impl BronzeEncoder {
    /// An encoder for a session.
    pub fn new(options: EncoderOptions) -> Result<Self, EncoderError> {
        if let Some(key) = options.meta.keys().find(|key| OWN_META_KEYS.contains(&key.as_str())) {
            return Err(EncoderError::ReservedMetaKey { key: key.clone() });
        }
        let plain = |data_type: &str, is_snapshot: Option<&str>| {
            meta_bytes(&options.meta, data_type, None, is_snapshot, None)
        };
        let plain_meta = [
            plain("trade", None),
            plain("book_change", Some("false")),
            plain("book_change", Some("true")),
            plain("derivative_ticker", None),
            plain("liquidation", None),
            plain("option_summary", None),
            plain("book_ticker", None),
            plain("error", None),
        ];
        let next_seq = options.first_seq;
        Ok(Self {
            options,
            filter: PayloadFilter::ALL,
            next_seq,
            plain_meta,
            named_meta: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// The same encoder for the messages that `filter` allows; others are passed over and take no
    /// number.
    #[must_use]
    pub fn only(self, filter: PayloadFilter) -> Self {
        Self { filter, ..self }
    }

    /// `event_seq` of the next event.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Takes back the numbers from `seq` on, whose events were not used.
    pub(crate) fn rewind(&mut self, seq: u64) {
        self.next_seq = seq;
    }

    /// Appends the events of `message`, which was taken in at `ingest`.
    pub fn encode(&mut self, message: &Message<'_>, ingest: Timestamp, out: &mut EventBuffer) {
        let case = PayloadCase::of(message);
        if !self.filter.allows(case) {
            return;
        }
        if let Message::BookChange(change) = message
            && self.options.book_changes == BookChanges::Level
            && !(change.bids.is_empty() && change.asks.is_empty())
        {
            self.encode_levels(change, ingest, out);
            return;
        }
        let bytes = &mut out.bytes;
        let local = message.local_timestamp();
        self.put_head(bytes, message.exchange(), message.symbol(), local, ingest);
        put_unsigned(bytes, 7, self.next_seq);
        self.next_seq += 1;
        put_tail(bytes, local, &self.meta(message));
        put_nested(bytes, case.field_number(), |bytes| match message {
            Message::Trade(trade) => put_trade(bytes, trade),
            Message::BookChange(change) => put_book_change(bytes, change),
            Message::DerivativeTicker(ticker) => put_derivative_ticker(bytes, ticker),
            Message::Liquidation(liquidation) => put_liquidation(bytes, liquidation),
            Message::OptionSummary(summary) => put_option_summary(bytes, summary),
            Message::BookTicker(ticker) => put_book_ticker(bytes, ticker),
            Message::BookSnapshot(quote) if case == PayloadCase::Quote => put_quote(bytes, quote),
            Message::BookSnapshot(snapshot) => put_snapshot(bytes, snapshot),
            Message::TradeBar(bar) => put_trade_bar(bytes, bar),
            Message::Error(error) => put_error(bytes, error),
            Message::Disconnect(disconnect) => put_disconnect(bytes, disconnect),
        });
        out.finish_event(case);
    }

    fn encode_levels(&mut self, change: &BookChange<'_>, ingest: Timestamp, out: &mut EventBuffer) {
        let local = change.local_timestamp;
        let parts = change.bids.len() + change.asks.len();
        let mut head = 0..0;
        let mut tail = 0..0;
        // Kept apart: what is written inside of the payload may move when its length is put in.
        self.scratch.clear();
        put_change_common(&mut self.scratch, change);
        let sides = [(bronze::Side::Buy, &change.bids), (bronze::Side::Sell, &change.asks)];
        let mut part = 0usize;
        for (side, levels) in sides {
            for (position, level) in levels.iter().enumerate() {
                let bytes = &mut out.bytes;
                if part == 0 {
                    head = written(bytes, |bytes| {
                        self.put_head(bytes, &change.exchange, &change.symbol, local, ingest);
                    });
                } else {
                    bytes.extend_from_within(head.clone());
                }
                put_unsigned(bytes, 7, self.next_seq);
                self.next_seq += 1;
                if part == 0 {
                    let meta = &self.plain_meta[book_change_meta(change)];
                    tail = written(bytes, |bytes| put_tail(bytes, local, meta));
                    bytes.reserve(parts * (head.len() + tail.len() + 96));
                } else {
                    bytes.extend_from_within(tail.clone());
                }
                put_nested(bytes, PayloadCase::BookChange.field_number(), |bytes| {
                    put_level(bytes, side, position, *level);
                    bytes.extend_from_slice(&self.scratch);
                    put_unsigned(bytes, 15, part as u64);
                    put_unsigned(bytes, 16, parts as u64);
                });
                out.finish_event(PayloadCase::BookChange);
                part += 1;
            }
        }
    }

    fn put_head(
        &self,
        bytes: &mut Vec<u8>,
        exchange: &str,
        symbol: &str,
        local: Timestamp,
        ingest: Timestamp,
    ) {
        put_text(bytes, 1, &self.options.source);
        put_text(bytes, 2, exchange);
        put_text(bytes, 3, symbol);
        put_timestamp(bytes, 4, local);
        put_timestamp(bytes, 5, ingest);
        put_signed(bytes, 6, self.options.origin as i64);
    }

    /// The bytes of `meta` for a message.
    fn meta(&mut self, message: &Message<'_>) -> Cow<'_, [u8]> {
        let plain = match message {
            Message::Trade(_) => 0,
            Message::BookChange(change) => book_change_meta(change),
            Message::DerivativeTicker(_) => 3,
            Message::Liquidation(_) => 4,
            Message::OptionSummary(_) => 5,
            Message::BookTicker(_) => 6,
            Message::Error(_) => 7,
            Message::BookSnapshot(snapshot) => {
                return Cow::Borrowed(self.named_meta("book_snapshot", &snapshot.name));
            }
            Message::TradeBar(bar) => {
                return Cow::Borrowed(self.named_meta("trade_bar", &bar.name));
            }
            Message::Disconnect(disconnect) => {
                let symbols = disconnect.symbols.as_ref().map(|symbols| symbols.join(","));
                let symbols = symbols.as_deref();
                return meta_bytes(&self.options.meta, "disconnect", None, None, symbols).into();
            }
        };
        Cow::Borrowed(&self.plain_meta[plain])
    }

    fn named_meta(&mut self, data_type: &'static str, name: &str) -> &[u8] {
        let known =
            self.named_meta.iter().position(|(known, of, _)| *known == data_type && of == name);
        let index = known.unwrap_or_else(|| {
            if self.named_meta.len() == NAMED_META_LIMIT {
                self.named_meta.clear();
            }
            let bytes = meta_bytes(&self.options.meta, data_type, Some(name), None, None);
            self.named_meta.push((data_type, name.to_owned(), bytes));
            self.named_meta.len() - 1
        });
        &self.named_meta[index].2
    }
}

/// The place of a book change's `meta` among the plain ones.
fn book_change_meta(change: &BookChange<'_>) -> usize {
    1 + usize::from(change.is_snapshot)
}

/// Fields 8 to 10 of the envelope.
fn put_tail(bytes: &mut Vec<u8>, local: Timestamp, meta: &[u8]) {
    let millis_only = local.micros().is_some() && local.precision() == Precision::Millis;
    put_bool(bytes, 8, millis_only);
    bytes.extend_from_slice(meta);
}

/// Where `write` wrote.
fn written(bytes: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Range<usize> {
    let start = bytes.len();
    write(bytes);
    start..bytes.len()
}

fn meta_bytes(
    pairs: &BTreeMap<String, String>,
    data_type: &str,
    data_name: Option<&str>,
    is_snapshot: Option<&str>,
    symbols: Option<&str>,
) -> Vec<u8> {
    let own = [data_name, Some(data_type), is_snapshot, symbols];
    let own = OWN_META_KEYS.into_iter().zip(own).filter_map(|(key, value)| Some((key, value?)));
    let mut all: BTreeMap<&str, &str> = own.collect();
    all.extend(pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let mut bytes = Vec::new();
    for (key, value) in all {
        put_nested(&mut bytes, 10, |bytes| {
            put_text(bytes, 1, key);
            put_text(bytes, 2, value);
        });
    }
    bytes
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // a short text
fn put_number(bytes: &mut Vec<u8>, field: u32, value: f64) {
    if let Some(text) = ShortDecimal::of(value) {
        put_key(bytes, field, LENGTH_DELIMITED);
        let mut cell = [0; 1 + ShortDecimal::ROOM];
        cell[0] = text.length() as u8;
        cell[1..].copy_from_slice(text.bytes());
        let end = bytes.len() + 1 + text.length();
        bytes.extend_from_slice(&cell);
        bytes.truncate(end);
    } else {
        put_nested(bytes, field, |bytes| write_decimal(bytes, value));
    }
}

fn put_optional_number(bytes: &mut Vec<u8>, field: u32, value: Option<f64>) {
    if let Some(value) = value {
        put_number(bytes, field, value);
    }
}

fn put_timestamp(bytes: &mut Vec<u8>, field: u32, time: Timestamp) {
    if let Some(micros) = time.micros() {
        put_time(bytes, field, micros);
    }
}

fn has_micros(time: Timestamp) -> bool {
    time.micros().is_some() && time.precision() == Precision::Micros
}

fn side(side: Side) -> i64 {
    let side = match side {
        Side::Buy => bronze::Side::Buy,
        Side::Sell => bronze::Side::Sell,
        Side::Unknown => bronze::Side::Unspecified,
    };
    side as i64
}

fn put_trade(bytes: &mut Vec<u8>, trade: &Trade<'_>) {
    let id = trade.id.as_deref();
    put_text(bytes, 1, id.unwrap_or_default());
    put_number(bytes, 2, trade.price);
    put_number(bytes, 3, trade.amount);
    put_signed(bytes, 4, side(trade.side));
    put_timestamp(bytes, 10, trade.timestamp);
    put_bool(bytes, 11, has_micros(trade.timestamp));
    put_bool(bytes, 12, id == Some(""));
}

fn put_liquidation(bytes: &mut Vec<u8>, liquidation: &Trade<'_>) {
    let id = liquidation.id.as_deref();
    put_signed(bytes, 1, side(liquidation.side));
    put_number(bytes, 2, liquidation.price);
    put_number(bytes, 3, liquidation.amount);
    put_text(bytes, 4, id.unwrap_or_default());
    put_timestamp(bytes, 10, liquidation.timestamp);
    put_bool(bytes, 11, has_micros(liquidation.timestamp));
    put_bool(bytes, 12, id == Some(""));
}

fn put_level(bytes: &mut Vec<u8>, side: bronze::Side, position: usize, level: BookLevel) {
    let action = if level.amount == 0.0 { bronze::Action::Delete } else { bronze::Action::Upsert };
    put_signed(bytes, 1, side as i64);
    put_signed(bytes, 2, action as i64);
    put_number(bytes, 3, level.price);
    put_number(bytes, 4, level.amount);
    put_unsigned(bytes, 5, position as u64);
}

/// Fields 10 to 12, which do not differ between the levels of a change.
fn put_change_common(bytes: &mut Vec<u8>, change: &BookChange<'_>) {
    put_timestamp(bytes, 10, change.timestamp);
    put_bool(bytes, 11, has_micros(change.timestamp));
    put_bool(bytes, 12, change.is_snapshot);
}

fn put_book_change(bytes: &mut Vec<u8>, change: &BookChange<'_>) {
    put_change_common(bytes, change);
    put_levels(bytes, 13, change.bids.iter().map(|level| Some(*level)));
    put_levels(bytes, 14, change.asks.iter().map(|level| Some(*level)));
}

fn put_levels(
    bytes: &mut Vec<u8>,
    field: u32,
    levels: impl ExactSizeIterator<Item = Option<BookLevel>>,
) {
    bytes.reserve(levels.len() * 32);
    for level in levels {
        put_nested(bytes, field, |bytes| {
            if let Some(level) = level {
                put_number(bytes, 1, level.price);
                put_number(bytes, 2, level.amount);
            }
        });
    }
}

fn put_snapshot(bytes: &mut Vec<u8>, snapshot: &BookSnapshot<'_>) {
    put_unsigned(bytes, 1, snapshot.depth.into());
    put_levels(bytes, 2, snapshot.bids.iter().copied());
    put_levels(bytes, 3, snapshot.asks.iter().copied());
    put_timestamp(bytes, 10, snapshot.timestamp);
    put_unsigned(bytes, 11, snapshot.grouping.map_or(0, whole_units));
    put_unsigned(bytes, 12, u32::try_from(snapshot.interval).unwrap_or(u32::MAX).into());
    put_bool(bytes, 15, has_micros(snapshot.timestamp));
    put_text(bytes, 16, &snapshot.name);
    put_optional_number(bytes, 17, snapshot.grouping);
    put_unsigned(bytes, 18, snapshot.interval);
}

/// `grouping` if it is a whole number that the published field can hold, else 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked by the condition
fn whole_units(grouping: f64) -> u64 {
    if grouping.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&grouping) {
        grouping as u64
    } else {
        0
    }
}

fn put_quote(bytes: &mut Vec<u8>, quote: &BookSnapshot<'_>) {
    let best = |levels: &[Option<BookLevel>]| levels.first().copied().flatten();
    let (bid, ask) = (best(&quote.bids), best(&quote.asks));
    put_optional_number(bytes, 1, bid.map(|level| level.price));
    put_optional_number(bytes, 2, bid.map(|level| level.amount));
    put_optional_number(bytes, 3, ask.map(|level| level.price));
    put_optional_number(bytes, 4, ask.map(|level| level.amount));
    put_timestamp(bytes, 10, quote.timestamp);
    put_bool(bytes, 11, has_micros(quote.timestamp));
    put_text(bytes, 12, &quote.name);
    put_unsigned(bytes, 13, quote.interval);
}

fn put_book_ticker(bytes: &mut Vec<u8>, ticker: &BookTicker<'_>) {
    put_optional_number(bytes, 1, ticker.bid_price);
    put_optional_number(bytes, 2, ticker.bid_amount);
    put_optional_number(bytes, 3, ticker.ask_price);
    put_optional_number(bytes, 4, ticker.ask_amount);
    put_timestamp(bytes, 10, ticker.timestamp);
    put_bool(bytes, 11, has_micros(ticker.timestamp));
    if ticker.order != BookTickerOrder::DEFAULT {
        put_nested(bytes, 12, |bytes| {
            bytes.extend(ticker.order.fields().map(book_ticker_letter));
        });
    }
}

/// The letter that stands for a field in `field_order`.
pub(crate) fn book_ticker_letter(field: BookTickerField) -> u8 {
    match field {
        BookTickerField::AskAmount => b'a',
        BookTickerField::AskPrice => b'A',
        BookTickerField::BidPrice => b'B',
        BookTickerField::BidAmount => b'b',
    }
}

fn put_derivative_ticker(bytes: &mut Vec<u8>, ticker: &DerivativeTicker<'_>) {
    put_optional_number(bytes, 1, ticker.mark_price);
    put_optional_number(bytes, 2, ticker.index_price);
    put_optional_number(bytes, 3, ticker.funding_rate);
    put_timestamp(bytes, 10, ticker.timestamp);
    put_bool(bytes, 11, has_micros(ticker.timestamp));
    put_optional_number(bytes, 12, ticker.last_price);
    put_optional_number(bytes, 13, ticker.open_interest);
    put_optional_number(bytes, 14, ticker.predicted_funding_rate);
    put_optional_timestamp(bytes, [15, 16, 17], ticker.funding_timestamp);
}

/// A time that may be absent: its field, whether it has microseconds, whether it is invalid.
fn put_optional_timestamp(bytes: &mut Vec<u8>, fields: [u32; 3], time: Option<Timestamp>) {
    if let Some(time) = time {
        put_timestamp(bytes, fields[0], time);
        put_bool(bytes, fields[1], has_micros(time));
        put_bool(bytes, fields[2], time.micros().is_none());
    }
}

fn put_option_summary(bytes: &mut Vec<u8>, summary: &OptionSummary<'_>) {
    put_optional_number(bytes, 1, summary.mark_iv);
    put_optional_number(bytes, 2, summary.delta);
    put_optional_number(bytes, 3, summary.gamma);
    put_optional_number(bytes, 4, summary.theta);
    put_optional_number(bytes, 5, summary.vega);
    put_optional_number(bytes, 6, summary.open_interest);
    put_timestamp(bytes, 10, summary.timestamp);
    put_bool(bytes, 11, has_micros(summary.timestamp));
    let option_type = match summary.option_type {
        None => bronze::OptionType::Unspecified,
        Some(OptionType::Call) => bronze::OptionType::Call,
        Some(OptionType::Put) => bronze::OptionType::Put,
    };
    put_signed(bytes, 12, option_type as i64);
    put_optional_number(bytes, 13, summary.strike_price);
    put_optional_timestamp(bytes, [14, 15, 16], summary.expiration_date);
    put_optional_number(bytes, 17, summary.best_bid_price);
    put_optional_number(bytes, 18, summary.best_bid_amount);
    put_optional_number(bytes, 19, summary.best_bid_iv);
    put_optional_number(bytes, 20, summary.best_ask_price);
    put_optional_number(bytes, 21, summary.best_ask_amount);
    put_optional_number(bytes, 22, summary.best_ask_iv);
    put_optional_number(bytes, 23, summary.last_price);
    put_optional_number(bytes, 24, summary.mark_price);
    put_optional_number(bytes, 25, summary.rho);
    put_optional_number(bytes, 26, summary.underlying_price);
    if let Some(index) = &summary.underlying_index {
        put_present_text(bytes, 27, index);
    }
}

fn put_trade_bar(bytes: &mut Vec<u8>, bar: &TradeBar<'_>) {
    let kind = match bar.kind {
        BarKind::Time => bronze::BarKind::Time,
        BarKind::Tick => bronze::BarKind::Tick,
        BarKind::Volume => bronze::BarKind::Volume,
    };
    let interval_ms = match bar.kind {
        BarKind::Time => u32::try_from(bar.interval).unwrap_or(u32::MAX),
        BarKind::Tick | BarKind::Volume => 0,
    };
    put_signed(bytes, 1, kind as i64);
    put_unsigned(bytes, 2, bar.interval);
    put_unsigned(bytes, 3, interval_ms.into());
    put_number(bytes, 4, bar.open);
    put_number(bytes, 5, bar.high);
    put_number(bytes, 6, bar.low);
    put_number(bytes, 7, bar.close);
    put_number(bytes, 8, bar.volume);
    put_unsigned(bytes, 9, bar.trades);
    put_timestamp(bytes, 10, bar_start(bar));
    put_timestamp(bytes, 11, bar.timestamp);
    put_text(bytes, 12, &bar.name);
    put_number(bytes, 13, bar.buy_volume);
    put_number(bytes, 14, bar.sell_volume);
    put_number(bytes, 15, bar.vwap);
    put_timestamp(bytes, 16, bar.open_timestamp);
    put_timestamp(bytes, 17, bar.close_timestamp);
    put_bool(bytes, 18, has_micros(bar.timestamp));
    put_bool(bytes, 19, has_micros(bar.open_timestamp));
    put_bool(bytes, 20, has_micros(bar.close_timestamp));
}

fn bar_start(bar: &TradeBar<'_>) -> Timestamp {
    match bar.kind {
        BarKind::Time => bar
            .timestamp
            .micros()
            .zip(i64::try_from(bar.interval).ok().and_then(|millis| millis.checked_mul(1_000)))
            .and_then(|(end, interval)| end.checked_sub(interval))
            .map_or(Timestamp::INVALID, Timestamp::from_micros),
        BarKind::Tick | BarKind::Volume => bar.open_timestamp,
    }
}

fn put_error(bytes: &mut Vec<u8>, error: &ErrorNotice<'_>) {
    let code = match error.code {
        ErrorCode::Unspecified => bronze::ErrorCode::Unspecified,
        ErrorCode::Connect => bronze::ErrorCode::WsConnect,
        ErrorCode::Send => bronze::ErrorCode::WsSend,
        ErrorCode::Auth => bronze::ErrorCode::SourceAuth,
        ErrorCode::RateLimit => bronze::ErrorCode::SourceRateLimit,
    };
    put_text(bytes, 1, &error.details);
    put_unsigned(bytes, 2, error.subsequent_errors.into());
    put_signed(bytes, 3, code as i64);
}

fn put_disconnect(bytes: &mut Vec<u8>, disconnect: &Disconnect<'_>) {
    put_text(bytes, 1, &disconnect.reason);
    put_unsigned(bytes, 2, disconnect.close_code.into());
    if let Some(symbols) = &disconnect.symbols {
        put_nested(bytes, 3, |bytes| {
            for symbol in symbols {
                put_present_text(bytes, 1, symbol);
            }
        });
    }
}
