//! What an event must have to be worth publishing, and whether it can become columns.
//!
//! Invariants: an event is walked once and nothing is allocated unless something is wrong; what our
//! encoder writes from a message with an exchange, a symbol and times of this age always passes.

use market_data::Message;
use thiserror::Error;

use super::builders::micros;
use super::error::{Fault, FieldProblem};
use super::fields::Kind;
use super::slots::{EventSlots, MessageSlots, Slot};
use crate::payload_case::PayloadCase;

/// 2000-01-01, in microseconds: what is older was given in milliseconds, or is no time.
const OLDEST_MICROS: i64 = 946_684_800_000_000;

/// 2100-01-01, in microseconds: what is younger was given in nanoseconds, or is no time.
const YOUNGEST_MICROS: i64 = 4_102_444_800_000_000;

/// What is wrong with an event.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventProblem {
    /// There is none.
    #[error("the event is null")]
    Null,
    /// It does not follow the schema, or a value does not fit its column.
    #[error("{0}")]
    Field(String),
    /// It carries another payload than asked for.
    #[error("it carries {}; expected {expected}", found.map_or("no payload", PayloadCase::name))]
    OtherCase {
        /// The event's payload, if it has one.
        found: Option<PayloadCase>,
        /// The payload asked for.
        expected: PayloadCase,
    },
    /// It has no payload.
    #[error("it carries no payload")]
    NoPayload,
    /// A field that it needs is empty.
    #[error("{0} is missing")]
    Missing(String),
    /// A text is no number.
    #[error("{field} is `{text}`, which is no decimal")]
    Decimal {
        /// The field.
        field: String,
        /// What was found.
        text: String,
    },
    /// A time cannot be one of market data.
    #[error("{field} is {micros} µs since 1970; expected a time from 2000 to 2099")]
    Time {
        /// The field.
        field: String,
        /// What was found.
        micros: i64,
    },
    /// It has too many bytes.
    #[error("the event has {bytes} bytes; at most {most} are allowed")]
    Oversize {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        most: usize,
    },
}

/// Checks events of at most so many bytes.
#[derive(Clone, Copy, Debug)]
pub struct EventCheck {
    /// How many bytes an event may have.
    pub most_bytes: usize,
}

impl EventCheck {
    /// Checks events in their order; gives each one's payload case, or what is wrong with it.
    pub fn check<'a>(
        self,
        events: impl IntoIterator<Item = Option<&'a [u8]>>,
    ) -> impl Iterator<Item = Result<PayloadCase, EventProblem>> {
        let mut slots = EventSlots::new();
        events.into_iter().map(move |event| {
            let checked = self.check_one(event, &mut slots);
            slots.clear();
            checked
        })
    }

    /// Checks a single event; many are checked faster together.
    pub(crate) fn check_event(self, event: &[u8]) -> Result<PayloadCase, EventProblem> {
        self.check_one(Some(event), &mut EventSlots::new())
    }

    /// Checks the bytes of an event whose content is known to be good.
    pub(crate) fn check_size(self, event: &[u8]) -> Result<(), EventProblem> {
        let (bytes, most) = (event.len(), self.most_bytes);
        if bytes > most { Err(EventProblem::Oversize { bytes, most }) } else { Ok(()) }
    }

    fn check_one<'a>(
        self,
        event: Option<&'a [u8]>,
        slots: &mut EventSlots<'a>,
    ) -> Result<PayloadCase, EventProblem> {
        let event = event.ok_or(EventProblem::Null)?;
        self.check_size(event)?;
        let case = read_fitting(event, slots)?.ok_or(EventProblem::NoPayload)?;
        let is_control = matches!(case, PayloadCase::Error | PayloadCase::Disconnect);
        for (field, slot) in slots.envelope.filled() {
            match field.name {
                "exchange" if slot.text.is_empty() => {
                    return Err(missing(&slots.envelope, field.name));
                }
                "symbol" if slot.text.is_empty() && !is_control => {
                    return Err(missing(&slots.envelope, field.name));
                }
                "local_ts" if !slot.present => return Err(missing(&slots.envelope, field.name)),
                "local_ts" => check_age(&slots.envelope, field.name, slot)?,
                _ => {}
            }
        }
        check_payload(case, slots.payload(case))?;
        Ok(case)
    }
}

/// Reads an event into empty slots and makes sure that columns can take it.
pub(super) fn read_fitting<'a>(
    event: &'a [u8],
    slots: &mut EventSlots<'a>,
) -> Result<Option<PayloadCase>, EventProblem> {
    let case = slots.read(event).map_err(|fault| field_problem(&fault))?;
    check_fitting(&slots.envelope)?;
    if let Some(case) = case {
        check_fitting(slots.payload(case))?;
    }
    Ok(case)
}

/// Whether the numbers are in the range of their columns.
fn check_fitting(slots: &MessageSlots<'_>) -> Result<(), EventProblem> {
    let message = slots.message();
    for (field, slot) in slots.filled() {
        if let Some(problem) = number_problem(field.kind, slot) {
            return Err(field_problem(&Fault::new(message, field.number, problem)));
        }
    }
    Ok(())
}

#[allow(clippy::cast_possible_wrap)] // seconds are on the wire as two's complement
fn number_problem(kind: Kind, slot: &Slot<'_>) -> Option<FieldProblem> {
    match kind {
        Kind::Uint64 => {
            i64::try_from(slot.number).err().map(|_| FieldProblem::Unsigned(slot.number))
        }
        Kind::Time => micros(slot.number as i64, slot.nanos).err(),
        _ => None,
    }
}

fn check_payload(case: PayloadCase, slots: &MessageSlots<'_>) -> Result<(), EventProblem> {
    let has_side = slots.filled().any(|(field, slot)| field.name == "side" && slot.number > 0);
    let needed = needed_texts(case, has_side);
    for (field, slot) in slots.filled() {
        match field.kind {
            Kind::Text if slot.text.is_empty() && needed.contains(&field.name) => {
                return Err(missing(slots, field.name));
            }
            Kind::Text if field.name.ends_with("_str") => {
                check_decimal(slots, field.name, slot.text)?;
            }
            Kind::Levels => {
                for (price, amount) in &slot.pairs {
                    check_decimal(slots, field.name, price)?;
                    check_decimal(slots, field.name, amount)?;
                }
            }
            Kind::Time if field.name == "event_ts" && slot.present => {
                check_age(slots, field.name, slot)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The texts without which a payload says nothing; a number that the venue could not give is `NaN`.
pub(super) fn needed_texts(case: PayloadCase, has_side: bool) -> &'static [&'static str] {
    match case {
        PayloadCase::Trade | PayloadCase::Liquidation => &["price_str", "qty_str"],
        // Without a side it carries both sides, or is an empty change.
        PayloadCase::BookChange if has_side => &["price_str", "qty_str"],
        PayloadCase::TradeBar => &["open_str", "high_str", "low_str", "close_str", "volume_str"],
        _ => &[],
    }
}

fn check_decimal(slots: &MessageSlots<'_>, field: &str, text: &[u8]) -> Result<(), EventProblem> {
    if text.is_empty() || is_decimal(text) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(text).into_owned();
    Err(EventProblem::Decimal { field: slots.message().path(field), text })
}

/// Whether a text is a decimal as Bronze writes them: plain digits, or what is not a number.
pub(super) fn is_decimal(text: &[u8]) -> bool {
    let number = text.strip_prefix(b"-").unwrap_or(text);
    let whole = number.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_plain = match &number[whole..] {
        [] => whole > 0,
        [b'.', fraction @ ..] => whole > 0 && fraction.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_plain || text == b"NaN" || text == b"Infinity" || text == b"-Infinity"
}

#[allow(clippy::cast_possible_wrap)] // as above
fn check_age(slots: &MessageSlots<'_>, field: &str, slot: &Slot<'_>) -> Result<(), EventProblem> {
    let micros = micros(slot.number as i64, slot.nanos).unwrap_or(i64::MAX);
    check_micros(micros, || slots.message().path(field))
}

fn check_micros(micros: i64, field: impl Fn() -> String) -> Result<(), EventProblem> {
    if is_plausible(micros) { Ok(()) } else { Err(EventProblem::Time { field: field(), micros }) }
}

/// Whether a time can be one of market data.
pub(super) fn is_plausible(micros: i64) -> bool {
    (OLDEST_MICROS..YOUNGEST_MICROS).contains(&micros)
}

/// Checks a message as [`EventCheck`] checks its events, but for their size.
pub(crate) fn check_message(message: &Message<'_>) -> Result<(), EventProblem> {
    let needed = |name: &str, text: &str| {
        if text.is_empty() { Err(EventProblem::Missing(name.to_owned())) } else { Ok(()) }
    };
    needed("exchange", message.exchange())?;
    let local = message.local_timestamp().micros();
    let local = local.ok_or_else(|| EventProblem::Missing("localTimestamp".to_owned()))?;
    check_micros(local, || "localTimestamp".to_owned())?;
    let timestamp = match message {
        Message::Trade(message) | Message::Liquidation(message) => message.timestamp,
        Message::BookChange(message) => message.timestamp,
        Message::DerivativeTicker(message) => message.timestamp,
        Message::OptionSummary(message) => message.timestamp,
        Message::BookTicker(message) => message.timestamp,
        Message::BookSnapshot(message) => message.timestamp,
        Message::TradeBar(message) => message.timestamp,
        Message::Error(_) | Message::Disconnect(_) => return Ok(()),
    };
    needed("symbol", message.symbol())?;
    // A venue's time that could not be read is part of the message.
    timestamp.micros().map_or(Ok(()), |micros| check_micros(micros, || "timestamp".to_owned()))
}

#[cold]
fn missing(slots: &MessageSlots<'_>, field: &str) -> EventProblem {
    EventProblem::Missing(slots.message().path(field))
}

#[cold]
fn field_problem(fault: &Fault) -> EventProblem {
    EventProblem::Field(fault.to_string())
}
