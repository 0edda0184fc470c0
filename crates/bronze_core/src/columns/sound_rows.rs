//! Rows of columns that are known to give good events, so that their events need not be read again.
//!
//! Invariants: the event of a sound row passes [`EventCheck`](super::EventCheck), its size aside. Of
//! other rows nothing is known: their events must be checked.

use arrow_array::{Array, ListArray, StringArray, TimestampMicrosecondArray};

use super::bronze_rows::BronzeRows;
use super::cells::{Cells, MessageCells, items, text};
use super::check::{is_decimal, is_plausible, needed_texts};
use crate::payload_case::PayloadCase;

/// Tells which rows are sound.
#[derive(Debug)]
pub(crate) struct SoundRows<'a> {
    envelope: SoundCells<'a>,
    /// In the order of the rows' payloads.
    payloads: Vec<SoundCells<'a>>,
}

impl<'a> SoundRows<'a> {
    /// Looks at what is the same in all rows.
    pub(crate) fn of(rows: &'a BronzeRows) -> Self {
        Self {
            envelope: SoundCells::of_envelope(&rows.envelope),
            payloads: rows
                .payloads
                .iter()
                .map(|payload| SoundCells::of_payload(payload.case, &payload.cells))
                .collect(),
        }
    }

    /// Whether a row with the payload at a place is sound.
    #[inline]
    pub(crate) fn has(&self, row: usize, payload: usize) -> bool {
        self.envelope.is_sound(row) && self.payloads[payload].is_sound(row)
    }
}

/// The cells of a message by which a row is judged.
#[derive(Debug, Default)]
struct SoundCells<'a> {
    /// No row is known to be sound, since a column that all of them need is not there.
    is_doubtful: bool,
    rules: Vec<Rule<'a>>,
}

/// What a cell must be.
#[derive(Debug)]
enum Rule<'a> {
    Text(&'a StringArray),
    Decimal(&'a StringArray),
    DecimalOrEmpty(&'a StringArray),
    /// A decimal; or empty where the side, given with its name for none, is not set.
    DecimalIfSided(&'a StringArray, &'a StringArray, &'static str),
    Time(&'a TimestampMicrosecondArray),
    TimeOrNull(&'a TimestampMicrosecondArray),
    Decimals(&'a ListArray, &'a StringArray),
}

impl<'a> SoundCells<'a> {
    fn of_envelope(cells: &'a MessageCells) -> Self {
        let mut sound = Self::default();
        sound.doubt_without(cells, &["exchange", "symbol", "local_ts"]);
        for (field, cells) in cells.by_field() {
            match (field.name, cells) {
                ("exchange" | "symbol", Cells::Text(texts)) => sound.rules.push(Rule::Text(texts)),
                ("local_ts", Cells::Time(times)) => sound.rules.push(Rule::Time(times)),
                (_, Cells::Time(times)) => sound.rules.push(Rule::TimeOrNull(times)),
                _ => {}
            }
        }
        sound
    }

    fn of_payload(case: PayloadCase, cells: &'a MessageCells) -> Self {
        let mut sound = Self::default();
        let side = match (case, cells.of_field("side")) {
            (PayloadCase::BookChange, Some(Cells::Enum(sides, names))) => Some((sides, names[0])),
            _ => None,
        };
        let needed = needed_texts(case, side.is_some());
        sound.doubt_without(cells, needed);
        for (field, cells) in cells.by_field() {
            let is_needed = needed.contains(&field.name);
            match (cells, side) {
                (Cells::Text(texts), _) if !field.name.ends_with("_str") => {
                    sound.rules.extend(is_needed.then_some(Rule::Text(texts)));
                }
                (Cells::Text(texts), _) if !is_needed => {
                    sound.rules.push(Rule::DecimalOrEmpty(texts));
                }
                (Cells::Text(texts), Some((sides, none))) => {
                    sound.rules.push(Rule::DecimalIfSided(texts, sides, none));
                }
                (Cells::Text(texts), None) => sound.rules.push(Rule::Decimal(texts)),
                (Cells::Time(times), _) => sound.rules.push(Rule::TimeOrNull(times)),
                (Cells::Levels { list, prices, amounts }, _) => {
                    let of_levels = [prices, amounts].into_iter().flatten();
                    sound.rules.extend(of_levels.map(|texts| Rule::Decimals(list, texts)));
                }
                _ => {}
            }
        }
        sound
    }

    fn doubt_without(&mut self, cells: &MessageCells, needed: &[&str]) {
        self.is_doubtful |= needed.iter().any(|name| cells.of_field(name).is_none());
    }

    #[inline]
    fn is_sound(&self, row: usize) -> bool {
        !self.is_doubtful && self.rules.iter().all(|rule| rule.holds(row))
    }
}

impl Rule<'_> {
    #[inline]
    fn holds(&self, row: usize) -> bool {
        let is_decimal = |texts, row| is_decimal(text(texts, row).as_bytes());
        let is_empty = |texts, row| text(texts, row).is_empty();
        match self {
            Self::Text(texts) => !is_empty(texts, row),
            Self::Decimal(texts) => is_decimal(texts, row),
            Self::DecimalOrEmpty(texts) => is_empty(texts, row) || is_decimal(texts, row),
            Self::DecimalIfSided(texts, sides, none) => {
                is_decimal(texts, row)
                    || (is_empty(texts, row) && (sides.is_null(row) || sides.value(row) == *none))
            }
            Self::Time(times) => times.is_valid(row) && is_plausible(times.value(row)),
            Self::TimeOrNull(times) => times.is_null(row) || is_plausible(times.value(row)),
            Self::Decimals(list, texts) => items(*list, list.value_offsets(), row)
                .all(|level| is_empty(texts, level) || is_decimal(texts, level)),
        }
    }
}
