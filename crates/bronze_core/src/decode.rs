//! Bronze events into messages.
//!
//! Every field of the normalized message comes back. A book change that was published one level per
//! event is put together again by [`MessageAssembler`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use market_data::{
    BarKind, BookChange, BookLevel, BookSnapshot, BookTicker, BookTickerField, BookTickerOrder,
    DerivativeTicker, Disconnect, ErrorCode, ErrorNotice, Message, OptionSummary, OptionType,
    Precision, Side, Timestamp, Trade, TradeBar,
};
use prost::Message as _;
use thiserror::Error;

use crate::encode::book_ticker_letter;
use crate::generated::bronze::{self, normalized_event::Payload};
use crate::payload_case::PayloadCase;

/// Why bytes are no Bronze event, or events no message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// They do not follow the schema.
    #[error("not a Bronze event: {0}")]
    NotBronze(#[from] prost::DecodeError),
    /// The event has no payload that this version knows.
    #[error("the event of {exchange} {symbol} has no known payload")]
    NoPayload {
        /// The event's exchange.
        exchange: String,
        /// The event's symbol.
        symbol: String,
    },
    /// A decimal is not one.
    #[error("{case}.{field} is `{text}`, which is no decimal")]
    BadDecimal {
        /// The payload.
        case: PayloadCase,
        /// The field's name in the schema.
        field: &'static str,
        /// What was found.
        text: String,
    },
    /// A time lies outside of the range of dates.
    #[error("{field} is {seconds} s from 1970, outside of the range of dates")]
    BadTime {
        /// The field's name in the schema.
        field: &'static str,
        /// What was found.
        seconds: i64,
    },
    /// A value is not one of those the schema allows.
    #[error("{case}.{field} is `{text}`, which is not a known value")]
    BadValue {
        /// The payload.
        case: PayloadCase,
        /// The field's name in the schema.
        field: &'static str,
        /// What was found.
        text: String,
    },
    /// Levels of a book change are missing, doubled or out of order.
    #[error(
        "book change of {exchange} {symbol}: expected level {expected}, found {found}; give all \
         events of a message in order, without duplicates"
    )]
    BrokenBookChange {
        /// The exchange.
        exchange: String,
        /// The symbol.
        symbol: String,
        /// What should come next.
        expected: String,
        /// What came.
        found: String,
    },
}

/// Which level of a book change an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelPart {
    /// The level's position in its message, from 0.
    pub part: u32,
    /// How many levels the message had.
    pub parts: u32,
}

/// An event with its message.
#[derive(Clone, Debug)]
pub struct DecodedEvent {
    /// The producer.
    pub source: String,
    /// How the event came to be: a value of [`bronze::Origin`].
    pub origin: i32,
    /// Position in its session.
    pub event_seq: u64,
    /// When the producer made it.
    pub ingest_timestamp: Timestamp,
    /// Its pairs.
    pub meta: BTreeMap<String, String>,
    /// Which payload it carries.
    pub case: PayloadCase,
    /// Set where `message` is one level of a book change.
    pub level: Option<LevelPart>,
    /// The message, or the one level of it.
    pub message: Message<'static>,
}

/// Decodes one event.
pub fn decode_event(bytes: &[u8]) -> Result<DecodedEvent, DecodeError> {
    let event = bronze::NormalizedEvent::decode(bytes)?;
    let Some(payload) = event.payload else {
        return Err(DecodeError::NoPayload { exchange: event.exchange, symbol: event.symbol });
    };
    let local = time("local_ts", event.local_ts.as_ref(), !event.local_ts_millis_only)?;
    let envelope = Envelope {
        symbol: Cow::Owned(event.symbol),
        exchange: Cow::Owned(event.exchange),
        local_timestamp: local,
    };
    let (case, level, message) = envelope.message(payload)?;
    Ok(DecodedEvent {
        source: event.source,
        origin: event.origin,
        event_seq: event.event_seq,
        ingest_timestamp: time("ingest_ts", event.ingest_ts.as_ref(), true)?,
        meta: event.meta,
        case,
        level,
        message,
    })
}

/// Puts messages together from events that come in order.
#[derive(Debug, Default)]
pub struct MessageAssembler {
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    change: BookChange<'static>,
    next: LevelPart,
}

impl MessageAssembler {
    /// Takes the next event; returns a message if the event completes one.
    pub fn push(&mut self, event: DecodedEvent) -> Result<Option<Message<'static>>, DecodeError> {
        let (Some(level), Message::BookChange(change)) = (event.level, &event.message) else {
            self.finish()?;
            return Ok(Some(event.message));
        };
        let pending = match self.pending.take() {
            None if level.part == 0 => Pending { change: change.clone(), next: level },
            Some(mut pending) if pending.is_followed_by(change, level) => {
                pending.change.bids.to_mut().extend_from_slice(&change.bids);
                pending.change.asks.to_mut().extend_from_slice(&change.asks);
                pending
            }
            pending => {
                let expected = pending
                    .map_or_else(|| "0".to_owned(), |p| format!("{} of {}", p.next.part, p.name()));
                return Err(DecodeError::BrokenBookChange {
                    exchange: change.exchange.to_string(),
                    symbol: change.symbol.to_string(),
                    expected,
                    found: format!("{} of {}", level.part, level.parts),
                });
            }
        };
        let part = level.part + 1;
        if part == level.parts {
            return Ok(Some(Message::BookChange(pending.change)));
        }
        self.pending = Some(Pending { next: LevelPart { part, ..level }, ..pending });
        Ok(None)
    }

    /// Says that no event follows; fails if a message is incomplete.
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        self.pending.take().map_or(Ok(()), |pending| {
            Err(DecodeError::BrokenBookChange {
                exchange: pending.change.exchange.to_string(),
                symbol: pending.change.symbol.to_string(),
                expected: format!("{} of {}", pending.next.part, pending.name()),
                found: "none".to_owned(),
            })
        })
    }
}

impl Pending {
    fn is_followed_by(&self, change: &BookChange<'_>, level: LevelPart) -> bool {
        level == self.next
            && change.symbol == self.change.symbol
            && change.exchange == self.change.exchange
            && change.local_timestamp == self.change.local_timestamp
    }

    fn name(&self) -> String {
        format!("{} ({} {})", self.next.parts, self.change.exchange, self.change.symbol)
    }
}

/// What the message takes from the envelope.
struct Envelope {
    symbol: Cow<'static, str>,
    exchange: Cow<'static, str>,
    local_timestamp: Timestamp,
}

type CaseLevelMessage = (PayloadCase, Option<LevelPart>, Message<'static>);

impl Envelope {
    fn message(self, payload: Payload) -> Result<CaseLevelMessage, DecodeError> {
        let (case, message) = match payload {
            Payload::BookChange(payload) => return self.book_change(&payload),
            Payload::Trade(payload) => (PayloadCase::Trade, self.trade(payload)?),
            Payload::BookSnapshot(payload) => {
                (PayloadCase::BookSnapshot, self.snapshot(PayloadCase::BookSnapshot, payload)?)
            }
            Payload::GroupedBookSnapshot(payload) => (
                PayloadCase::GroupedBookSnapshot,
                self.snapshot(PayloadCase::GroupedBookSnapshot, payload.into())?,
            ),
            Payload::Quote(payload) => (PayloadCase::Quote, self.quote(payload)?),
            Payload::DerivativeTicker(payload) => {
                (PayloadCase::DerivativeTicker, self.derivative_ticker(&payload)?)
            }
            Payload::Liquidation(payload) => (PayloadCase::Liquidation, self.liquidation(payload)?),
            Payload::OptionSummary(payload) => {
                (PayloadCase::OptionSummary, self.option_summary(payload)?)
            }
            Payload::BookTicker(payload) => (PayloadCase::BookTicker, self.book_ticker(payload)?),
            Payload::TradeBar(payload) => (PayloadCase::TradeBar, self.trade_bar(payload)?),
            Payload::Error(payload) => (PayloadCase::Error, self.error(payload)),
            Payload::Disconnect(payload) => (PayloadCase::Disconnect, self.disconnect(payload)),
        };
        Ok((case, None, message))
    }

    fn trade(self, payload: bronze::Trade) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(PayloadCase::Trade);
        Ok(Message::Trade(Trade {
            symbol: self.symbol,
            exchange: self.exchange,
            price: number.required("price_str", &payload.price_str)?,
            amount: number.required("qty_str", &payload.qty_str)?,
            side: side(payload.side()),
            timestamp: time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?,
            id: id(payload.trade_id, payload.trade_id_is_empty),
            local_timestamp: self.local_timestamp,
        }))
    }

    fn liquidation(self, payload: bronze::Liquidation) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(PayloadCase::Liquidation);
        Ok(Message::Liquidation(Trade {
            symbol: self.symbol,
            exchange: self.exchange,
            price: number.required("price_str", &payload.price_str)?,
            amount: number.required("qty_str", &payload.qty_str)?,
            side: side(payload.side()),
            timestamp: time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?,
            id: id(payload.order_id, payload.order_id_is_empty),
            local_timestamp: self.local_timestamp,
        }))
    }

    fn book_change(self, payload: &bronze::BookChange) -> Result<CaseLevelMessage, DecodeError> {
        let number = Numbers(PayloadCase::BookChange);
        let timestamp = time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?;
        let levels = |levels: &[bronze::book_change::Level]| {
            levels
                .iter()
                .map(|level| number.level(&level.price_str, &level.qty_str))
                .collect::<Result<Vec<_>, _>>()
        };
        let mut bids = levels(&payload.bids)?;
        let mut asks = levels(&payload.asks)?;
        let side = match payload.side() {
            bronze::Side::Unspecified => None,
            bronze::Side::Buy => Some(&mut bids),
            bronze::Side::Sell => Some(&mut asks),
        };
        // Producers that do not count levels write one per event, too, and a side with it.
        let level = side.is_some().then(|| LevelPart {
            part: payload.part,
            parts: payload.parts.max(payload.part.saturating_add(1)),
        });
        if let Some(side) = side {
            side.push(number.level(&payload.price_str, &payload.qty_str)?);
        }
        let message = Message::BookChange(BookChange {
            symbol: self.symbol,
            exchange: self.exchange,
            is_snapshot: payload.is_snapshot,
            bids: bids.into(),
            asks: asks.into(),
            timestamp,
            local_timestamp: self.local_timestamp,
        });
        Ok((PayloadCase::BookChange, level, message))
    }

    fn snapshot(
        self,
        case: PayloadCase,
        payload: bronze::BookSnapshot,
    ) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(case);
        let levels = |levels: &[bronze::book_snapshot::Level]| {
            levels
                .iter()
                .map(|level| number.optional_level(&level.price_str, &level.qty_str))
                .collect::<Result<Vec<_>, _>>()
        };
        // The published fields stand in for the added ones in events of producers without them.
        let grouping = match number.optional("grouping_str", &payload.grouping_str)? {
            None if payload.grouping > 0 => Some(f64::from(payload.grouping)),
            grouping => grouping,
        };
        Ok(Message::BookSnapshot(BookSnapshot {
            symbol: self.symbol,
            exchange: self.exchange,
            depth: payload.depth,
            interval: if payload.interval == 0 {
                payload.interval_ms.into()
            } else {
                payload.interval
            },
            grouping,
            bids: levels(&payload.bids)?.into(),
            asks: levels(&payload.asks)?.into(),
            timestamp: time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?,
            name: payload.name.into(),
            local_timestamp: self.local_timestamp,
        }))
    }

    fn quote(self, payload: bronze::Quote) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(PayloadCase::Quote);
        let bid = number.optional_level(&payload.bid_price_str, &payload.bid_qty_str)?;
        let ask = number.optional_level(&payload.ask_price_str, &payload.ask_qty_str)?;
        Ok(Message::BookSnapshot(BookSnapshot {
            symbol: self.symbol,
            exchange: self.exchange,
            depth: 1,
            interval: payload.interval,
            grouping: None,
            bids: vec![bid].into(),
            asks: vec![ask].into(),
            timestamp: time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?,
            name: payload.name.into(),
            local_timestamp: self.local_timestamp,
        }))
    }

    fn derivative_ticker(
        self,
        payload: &bronze::DerivativeTicker,
    ) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(PayloadCase::DerivativeTicker);
        Ok(Message::DerivativeTicker(DerivativeTicker {
            symbol: self.symbol,
            exchange: self.exchange,
            last_price: number.optional("last_price_str", &payload.last_price_str)?,
            open_interest: number.optional("open_interest_str", &payload.open_interest_str)?,
            funding_rate: number.optional("funding_rate_str", &payload.funding_rate_str)?,
            funding_timestamp: optional_time(
                "funding_ts",
                payload.funding_ts.as_ref(),
                payload.funding_ts_has_micros,
                payload.funding_ts_is_invalid,
            )?,
            predicted_funding_rate: number
                .optional("predicted_funding_rate_str", &payload.predicted_funding_rate_str)?,
            index_price: number.optional("index_price_str", &payload.index_price_str)?,
            mark_price: number.optional("mark_price_str", &payload.mark_price_str)?,
            timestamp: time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?,
            local_timestamp: self.local_timestamp,
        }))
    }

    fn option_summary(
        self,
        payload: bronze::OptionSummary,
    ) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(PayloadCase::OptionSummary);
        Ok(Message::OptionSummary(OptionSummary {
            symbol: self.symbol,
            exchange: self.exchange,
            option_type: match payload.option_type() {
                bronze::OptionType::Unspecified => None,
                bronze::OptionType::Call => Some(OptionType::Call),
                bronze::OptionType::Put => Some(OptionType::Put),
            },
            strike_price: number.optional("strike_price_str", &payload.strike_price_str)?,
            expiration_date: optional_time(
                "expiration_ts",
                payload.expiration_ts.as_ref(),
                payload.expiration_ts_has_micros,
                payload.expiration_ts_is_invalid,
            )?,
            best_bid_price: number.optional("best_bid_price_str", &payload.best_bid_price_str)?,
            best_bid_amount: number.optional("best_bid_qty_str", &payload.best_bid_qty_str)?,
            best_bid_iv: number.optional("best_bid_iv_str", &payload.best_bid_iv_str)?,
            best_ask_price: number.optional("best_ask_price_str", &payload.best_ask_price_str)?,
            best_ask_amount: number.optional("best_ask_qty_str", &payload.best_ask_qty_str)?,
            best_ask_iv: number.optional("best_ask_iv_str", &payload.best_ask_iv_str)?,
            last_price: number.optional("last_price_str", &payload.last_price_str)?,
            open_interest: number.optional("oi_str", &payload.oi_str)?,
            mark_price: number.optional("mark_price_str", &payload.mark_price_str)?,
            mark_iv: number.optional("iv_str", &payload.iv_str)?,
            delta: number.optional("delta_str", &payload.delta_str)?,
            gamma: number.optional("gamma_str", &payload.gamma_str)?,
            vega: number.optional("vega_str", &payload.vega_str)?,
            theta: number.optional("theta_str", &payload.theta_str)?,
            rho: number.optional("rho_str", &payload.rho_str)?,
            underlying_price: number
                .optional("underlying_price_str", &payload.underlying_price_str)?,
            underlying_index: payload.underlying_index.map(Cow::Owned),
            timestamp: time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?,
            local_timestamp: self.local_timestamp,
        }))
    }

    fn book_ticker(self, payload: bronze::BookTicker) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(PayloadCase::BookTicker);
        Ok(Message::BookTicker(BookTicker {
            symbol: self.symbol,
            exchange: self.exchange,
            ask_amount: number.optional("best_ask_qty_str", &payload.best_ask_qty_str)?,
            ask_price: number.optional("best_ask_price_str", &payload.best_ask_price_str)?,
            bid_price: number.optional("best_bid_price_str", &payload.best_bid_price_str)?,
            bid_amount: number.optional("best_bid_qty_str", &payload.best_bid_qty_str)?,
            timestamp: time("event_ts", payload.event_ts.as_ref(), payload.event_ts_has_micros)?,
            order: book_ticker_order(payload.field_order)?,
            local_timestamp: self.local_timestamp,
        }))
    }

    fn trade_bar(self, payload: bronze::TradeBar) -> Result<Message<'static>, DecodeError> {
        let number = Numbers(PayloadCase::TradeBar);
        Ok(Message::TradeBar(TradeBar {
            symbol: self.symbol,
            exchange: self.exchange,
            interval: payload.interval,
            kind: match payload.kind() {
                bronze::BarKind::Time => BarKind::Time,
                bronze::BarKind::Tick => BarKind::Tick,
                bronze::BarKind::Volume => BarKind::Volume,
                bronze::BarKind::Unspecified => {
                    return Err(DecodeError::BadValue {
                        case: PayloadCase::TradeBar,
                        field: "kind",
                        text: payload.kind.to_string(),
                    });
                }
            },
            open: number.required("open_str", &payload.open_str)?,
            high: number.required("high_str", &payload.high_str)?,
            low: number.required("low_str", &payload.low_str)?,
            close: number.required("close_str", &payload.close_str)?,
            volume: number.required("volume_str", &payload.volume_str)?,
            buy_volume: number.required("buy_volume_str", &payload.buy_volume_str)?,
            sell_volume: number.required("sell_volume_str", &payload.sell_volume_str)?,
            trades: payload.trade_count,
            vwap: number.required("vwap_str", &payload.vwap_str)?,
            open_timestamp: time("open_ts", payload.open_ts.as_ref(), payload.open_ts_has_micros)?,
            close_timestamp: time(
                "close_ts",
                payload.close_ts.as_ref(),
                payload.close_ts_has_micros,
            )?,
            local_timestamp: self.local_timestamp,
            timestamp: time("end_ts", payload.end_ts.as_ref(), payload.end_ts_has_micros)?,
            name: payload.name.into(),
        }))
    }

    fn error(self, payload: bronze::ControlError) -> Message<'static> {
        Message::Error(ErrorNotice {
            exchange: self.exchange,
            local_timestamp: self.local_timestamp,
            subsequent_errors: payload.subsequent_errors,
            code: match payload.code() {
                bronze::ErrorCode::Unspecified => ErrorCode::Unspecified,
                bronze::ErrorCode::WsConnect => ErrorCode::Connect,
                bronze::ErrorCode::WsSend => ErrorCode::Send,
                bronze::ErrorCode::SourceAuth => ErrorCode::Auth,
                bronze::ErrorCode::SourceRateLimit => ErrorCode::RateLimit,
            },
            details: payload.details.into(),
        })
    }

    fn disconnect(self, payload: bronze::ControlDisconnect) -> Message<'static> {
        Message::Disconnect(Disconnect {
            exchange: self.exchange,
            local_timestamp: self.local_timestamp,
            symbols: payload
                .symbols
                .map(|symbols| symbols.values.into_iter().map(Cow::Owned).collect()),
            reason: payload.reason.into(),
            close_code: payload.close_code,
        })
    }
}

impl From<bronze::GroupedBookSnapshot> for bronze::BookSnapshot {
    fn from(grouped: bronze::GroupedBookSnapshot) -> Self {
        let levels = |levels: Vec<bronze::grouped_book_snapshot::Level>| {
            levels
                .into_iter()
                .map(|level| bronze::book_snapshot::Level {
                    price_str: level.price_str,
                    qty_str: level.qty_str,
                })
                .collect()
        };
        Self {
            depth: grouped.depth,
            bids: levels(grouped.bids),
            asks: levels(grouped.asks),
            event_ts: grouped.event_ts,
            grouping: grouped.grouping,
            interval_ms: grouped.interval_ms,
            remove_crossed_levels: grouped.remove_crossed_levels,
            sequence: grouped.sequence,
            event_ts_has_micros: grouped.event_ts_has_micros,
            name: grouped.name,
            grouping_str: grouped.grouping_str,
            interval: grouped.interval,
        }
    }
}

/// Reads the decimals of a payload.
#[derive(Clone, Copy)]
struct Numbers(PayloadCase);

impl Numbers {
    fn optional(self, field: &'static str, text: &str) -> Result<Option<f64>, DecodeError> {
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| DecodeError::BadDecimal {
            case: self.0,
            field,
            text: text.to_owned(),
        })
    }

    /// A number that every message of the type has; one that is missing could not be read.
    fn required(self, field: &'static str, text: &str) -> Result<f64, DecodeError> {
        Ok(self.optional(field, text)?.unwrap_or(f64::NAN))
    }

    fn level(self, price: &str, amount: &str) -> Result<BookLevel, DecodeError> {
        Ok(BookLevel {
            price: self.required("price_str", price)?,
            amount: self.required("qty_str", amount)?,
        })
    }

    fn optional_level(self, price: &str, amount: &str) -> Result<Option<BookLevel>, DecodeError> {
        if price.is_empty() && amount.is_empty() {
            return Ok(None);
        }
        self.level(price, amount).map(Some)
    }
}

fn id(text: String, is_empty: bool) -> Option<Cow<'static, str>> {
    (is_empty || !text.is_empty()).then_some(Cow::Owned(text))
}

fn side(side: bronze::Side) -> Side {
    match side {
        bronze::Side::Buy => Side::Buy,
        bronze::Side::Sell => Side::Sell,
        bronze::Side::Unspecified => Side::Unknown,
    }
}

fn time(
    field: &'static str,
    time: Option<&prost_types::Timestamp>,
    has_micros: bool,
) -> Result<Timestamp, DecodeError> {
    let Some(time) = time else { return Ok(Timestamp::INVALID) };
    let micros = time
        .seconds
        .checked_mul(1_000_000)
        .and_then(|micros| micros.checked_add(i64::from(time.nanos.div_euclid(1_000))));
    // Digits below a millisecond are there even if the producer does not say so.
    let precision = match micros {
        Some(micros) if has_micros || micros % 1_000 != 0 => Precision::Micros,
        _ => Precision::Millis,
    };
    match micros.map(|micros| Timestamp::new(micros, precision)) {
        Some(valid) if valid.micros().is_some() => Ok(valid),
        _ => Err(DecodeError::BadTime { field, seconds: time.seconds }),
    }
}

fn optional_time(
    field: &'static str,
    value: Option<&prost_types::Timestamp>,
    has_micros: bool,
    is_invalid: bool,
) -> Result<Option<Timestamp>, DecodeError> {
    if value.is_none() && !is_invalid {
        return Ok(None);
    }
    time(field, value, has_micros).map(Some)
}

fn book_ticker_order(text: String) -> Result<BookTickerOrder, DecodeError> {
    let fields = text
        .bytes()
        .map(|letter| {
            let usual = BookTickerOrder::DEFAULT.fields();
            usual.into_iter().find(|field| book_ticker_letter(*field) == letter)
        })
        .collect::<Option<Vec<BookTickerField>>>();
    fields.map(|fields| BookTickerOrder::of(&fields)).ok_or(DecodeError::BadValue {
        case: PayloadCase::BookTicker,
        field: "field_order",
        text,
    })
}
