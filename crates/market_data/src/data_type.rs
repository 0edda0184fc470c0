//! The data types that people ask for: the kinds of messages, and what is computed from them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::exchange::Kind;
use crate::message::BarKind;
use crate::raw::number_of_text;

/// Levels a snapshot may have on each side.
const MAX_DEPTH: f64 = 1_000_000.0;
/// From here on doubles leave out integers, so an interval could no longer be told from the next.
const MAX_INTERVAL: f64 = 9_007_199_254_740_991.0;
/// Price buckets in which the arithmetic of doubles still tells neighbours apart.
const GROUPINGS: std::ops::RangeInclusive<f64> = 1e-9..=1e15;

const SECOND: f64 = 1_000.0;
const MINUTE: f64 = 60_000.0;
const TIME_UNITS: [(&str, f64); 3] = [("ms", 1.0), ("s", SECOND), ("m", MINUTE)];
const BAR_UNITS: [(&str, BarKind, f64); 5] = [
    ("ticks", BarKind::Tick, 1.0),
    ("vol", BarKind::Volume, 1.0),
    ("ms", BarKind::Time, 1.0),
    ("s", BarKind::Time, SECOND),
    ("m", BarKind::Time, MINUTE),
];

/// A data type as asked for, for example `trade`, `trade_bar_1m` or `book_snapshot_20_100ms`.
#[derive(Clone, Debug, PartialEq)]
pub struct DataType {
    name: String,
    form: DataForm,
}

/// What a data type asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DataForm {
    /// The messages of a kind.
    Plain(Kind),
    /// Trades summed up.
    TradeBar {
        /// What closes a bar.
        kind: BarKind,
        /// Milliseconds, trades or volume; never 0.
        interval: u64,
    },
    /// The top of the order book; a quote is one of depth 1.
    BookSnapshot {
        /// Levels on each side; never 0.
        depth: u32,
        /// Milliseconds, 0 = every change.
        interval: u64,
        /// Price bucket; never 0.
        grouping: Option<f64>,
    },
}

/// Why a text is not a data type.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "data type `{name}`: {reason}; accepted are trade, book_change, derivative_ticker, \
     liquidation, option_summary, book_ticker, trade_bar_{{n}}{{ticks|ms|s|m|vol}}, \
     book_snapshot_{{depth}}[_grouped{{price bucket}}]_{{n}}{{ms|s|m}}, quote and \
     quote_{{n}}{{ms|s|m}}"
)]
pub struct DataTypeError {
    name: String,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
enum Reason {
    #[error("there is no such data type")]
    Unknown,
    #[error("its interval has no unit")]
    NoUnit,
    #[error("its interval is not a number")]
    IntervalNotANumber,
    #[error("its interval must be more than 0")]
    IntervalNotPositive,
    #[error("its interval must be 0 or more")]
    IntervalNegative,
    #[error("its interval must be whole: milliseconds, ticks or units of volume")]
    IntervalNotWhole,
    #[error("its interval is too large")]
    IntervalTooLarge,
    #[error("its depth must be a whole number from 1 to 1000000")]
    Depth,
    #[error("its price bucket must be a number from 0.000000001 to 1000000000000000")]
    Grouping,
}

impl DataType {
    /// Its name as asked for, which is the `name` of computed messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it asks for.
    #[must_use]
    pub const fn form(&self) -> DataForm {
        self.form
    }

    /// The kind of messages that it is or is made from.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.form {
            DataForm::Plain(kind) => kind,
            DataForm::TradeBar { .. } => Kind::Trades,
            DataForm::BookSnapshot { .. } => Kind::BookChanges,
        }
    }

    /// The `type` of its messages; that of quotes is `book_snapshot`.
    #[must_use]
    pub const fn message_type(&self) -> &'static str {
        match self.form {
            DataForm::Plain(kind) => kind.data_type(),
            DataForm::TradeBar { .. } => "trade_bar",
            DataForm::BookSnapshot { .. } => "book_snapshot",
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

impl FromStr for DataType {
    type Err = DataTypeError;

    fn from_str(name: &str) -> Result<Self, DataTypeError> {
        match form_of(name) {
            Ok(form) => Ok(Self { name: name.to_owned(), form }),
            Err(reason) => Err(DataTypeError { name: name.to_owned(), reason }),
        }
    }
}

fn form_of(name: &str) -> Result<DataForm, Reason> {
    if let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.data_type() == name) {
        return Ok(DataForm::Plain(kind));
    }
    if let Some(size) = name.strip_prefix("trade_bar_") {
        return trade_bar(size);
    }
    if let Some(shape) = name.strip_prefix("book_snapshot_") {
        return book_snapshot(shape);
    }
    let interval = match name.strip_prefix("quote") {
        Some("") => 0,
        Some(rest) => time_interval(rest.strip_prefix('_').ok_or(Reason::Unknown)?)?,
        None => return Err(Reason::Unknown),
    };
    Ok(DataForm::BookSnapshot { depth: 1, interval, grouping: None })
}

fn trade_bar(size: &str) -> Result<DataForm, Reason> {
    let (number, kind, scale) = BAR_UNITS
        .into_iter()
        .find_map(|(unit, kind, scale)| Some((size.strip_suffix(unit)?, kind, scale)))
        .ok_or(Reason::NoUnit)?;
    match whole_interval(number, scale)? {
        0 => Err(Reason::IntervalNotPositive),
        interval => Ok(DataForm::TradeBar { kind, interval }),
    }
}

fn book_snapshot(shape: &str) -> Result<DataForm, Reason> {
    let mut parts = shape.split('_');
    let (Some(depth), Some(second)) = (parts.next(), parts.next()) else {
        return Err(Reason::Unknown);
    };
    let (grouping, interval) = match (parts.next(), parts.next()) {
        (None, _) => (None, second),
        (Some(interval), None) => {
            let bucket = second.strip_prefix("grouped").ok_or(Reason::Unknown)?;
            let bucket = number(bucket).filter(|bucket| GROUPINGS.contains(bucket));
            (Some(bucket.ok_or(Reason::Grouping)?), interval)
        }
        (Some(_), Some(_)) => return Err(Reason::Unknown),
    };
    let depth = number(depth)
        .filter(|depth| depth.fract() == 0.0 && (1.0..=MAX_DEPTH).contains(depth))
        .ok_or(Reason::Depth)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole and in range
    let depth = depth as u32;
    Ok(DataForm::BookSnapshot { depth, interval: time_interval(interval)?, grouping })
}

fn time_interval(text: &str) -> Result<u64, Reason> {
    let (number, scale) = TIME_UNITS
        .into_iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
        .ok_or(Reason::NoUnit)?;
    whole_interval(number, scale)
}

fn whole_interval(text: &str, scale: f64) -> Result<u64, Reason> {
    let interval = scale * number(text).ok_or(Reason::IntervalNotANumber)?;
    if interval < 0.0 {
        Err(Reason::IntervalNegative)
    } else if interval > MAX_INTERVAL {
        Err(Reason::IntervalTooLarge)
    } else if interval.fract() != 0.0 {
        Err(Reason::IntervalNotWhole)
    } else {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole and in range
        Ok(interval as u64)
    }
}

/// A decimal number. JavaScript's reading is wider: nothing is 0 there, and `0x10` is 16.
fn number(text: &str) -> Option<f64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if text.is_empty() || !is_decimal {
        return None;
    }
    Some(number_of_text(text)).filter(|number| !number.is_nan())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn form(name: &str) -> Result<DataForm, Reason> {
        let parsed = name.parse::<DataType>();
        if let Ok(data_type) = &parsed {
            assert_eq!(data_type.name(), name);
            assert_eq!(data_type.to_string(), name);
        }
        parsed.map(|data_type| data_type.form()).map_err(|error| {
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
            error.reason
        })
    }

    #[test]
    fn plain_kinds_are_named_as_their_messages() {
        for kind in Kind::ALL {
            let data_type: DataType = kind.data_type().parse().unwrap();
            assert_eq!(data_type.form(), DataForm::Plain(kind));
            assert_eq!(data_type.kind(), kind);
            assert_eq!(data_type.message_type(), kind.data_type());
        }
    }

    #[test]
    fn bars_have_a_kind_and_an_interval() {
        for (name, kind, interval) in [
            ("trade_bar_10ticks", BarKind::Tick, 10),
            ("trade_bar_500ms", BarKind::Time, 500),
            ("trade_bar_1s", BarKind::Time, 1_000),
            ("trade_bar_0.5s", BarKind::Time, 500),
            ("trade_bar_15m", BarKind::Time, 900_000),
            ("trade_bar_1e3vol", BarKind::Volume, 1_000),
        ] {
            assert_eq!(form(name), Ok(DataForm::TradeBar { kind, interval }), "{name}");
        }
        let bar: DataType = "trade_bar_1m".parse().unwrap();
        assert_eq!((bar.kind(), bar.message_type()), (Kind::Trades, "trade_bar"));
    }

    #[test]
    fn snapshots_have_depth_interval_and_grouping() {
        for (name, depth, interval, grouping) in [
            ("book_snapshot_20_100ms", 20, 100, None),
            ("book_snapshot_5_0ms", 5, 0, None),
            ("book_snapshot_1000000_1m", 1_000_000, 60_000, None),
            ("book_snapshot_3_grouped5_1s", 3, 1_000, Some(5.0)),
            ("book_snapshot_2_grouped0.1_500ms", 2, 500, Some(0.1)),
            ("quote", 1, 0, None),
            ("quote_0ms", 1, 0, None),
            ("quote_10s", 1, 10_000, None),
        ] {
            let expected = DataForm::BookSnapshot { depth, interval, grouping };
            assert_eq!(form(name), Ok(expected), "{name}");
        }
        let quote: DataType = "quote_1s".parse().unwrap();
        assert_eq!((quote.kind(), quote.message_type()), (Kind::BookChanges, "book_snapshot"));
    }

    #[test]
    fn what_is_no_data_type_is_refused() {
        for (name, reason) in [
            ("", Reason::Unknown),
            ("trades", Reason::Unknown),
            ("Trade", Reason::Unknown),
            ("trade_bar", Reason::Unknown),
            ("quotes", Reason::Unknown),
            ("quote1s", Reason::Unknown),
            ("book_snapshot_5", Reason::Unknown),
            ("book_snapshot_5_3_1s", Reason::Unknown),
            ("book_snapshot_5_grouped1_1s_1s", Reason::Unknown),
            ("trade_bar_5", Reason::NoUnit),
            ("quote_5ticks", Reason::IntervalNotANumber),
            ("trade_bar_5h", Reason::NoUnit),
            ("trade_bar_ms", Reason::IntervalNotANumber),
            ("trade_bar_xs", Reason::IntervalNotANumber),
            ("trade_bar_0x10s", Reason::IntervalNotANumber),
            ("trade_bar_ 1s", Reason::IntervalNotANumber),
            ("quote_ms", Reason::IntervalNotANumber),
            ("trade_bar_0ticks", Reason::IntervalNotPositive),
            ("trade_bar_-1s", Reason::IntervalNegative),
            ("quote_-1ms", Reason::IntervalNegative),
            ("trade_bar_0.5vol", Reason::IntervalNotWhole),
            ("quote_0.5ms", Reason::IntervalNotWhole),
            ("trade_bar_1e300m", Reason::IntervalTooLarge),
            ("trade_bar_1e999s", Reason::IntervalTooLarge),
            ("quote_9007199254740993ms", Reason::IntervalTooLarge),
            ("book_snapshot_0_1s", Reason::Depth),
            ("book_snapshot_-1_1s", Reason::Depth),
            ("book_snapshot_1.5_1s", Reason::Depth),
            ("book_snapshot_1000001_1s", Reason::Depth),
            ("book_snapshot__1s", Reason::Depth),
            ("book_snapshot_5_grouped0_1s", Reason::Grouping),
            ("book_snapshot_5_grouped-1_1s", Reason::Grouping),
            ("book_snapshot_5_grouped_1s", Reason::Grouping),
            ("book_snapshot_5_grouped1e-300_1s", Reason::Grouping),
        ] {
            assert_eq!(form(name), Err(reason), "{name}");
        }
    }

    #[test]
    fn an_error_names_the_data_type_and_what_is_accepted() {
        assert_eq!(
            "trade_bar_5h".parse::<DataType>().unwrap_err().to_string(),
            "data type `trade_bar_5h`: its interval has no unit; accepted are trade, book_change, \
             derivative_ticker, liquidation, option_summary, book_ticker, \
             trade_bar_{n}{ticks|ms|s|m|vol}, \
             book_snapshot_{depth}[_grouped{price bucket}]_{n}{ms|s|m}, quote and \
             quote_{n}{ms|s|m}"
        );
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(name in "(trade_bar_|book_snapshot_|quote)?[-+.e0-9_a-z]{0,20}") {
            let _ = form(&name);
        }
    }
}
