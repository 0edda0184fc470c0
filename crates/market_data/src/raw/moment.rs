//! Dates of fields whose value alone says how it is to be read, and of numbers in other units than
//! milliseconds.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

use crate::raw::{Numeric, date_of_millis, iso_date};
use crate::time::Timestamp;

/// What `new Date(value)` gives for the value of a field: a number counts milliseconds, a text is
/// ISO 8601, `null` is 1970. Use it with `#[serde(default)]`: an absent field is an invalid date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Default for Moment {
    fn default() -> Self {
        Self(Timestamp::INVALID)
    }
}

impl<'de> Deserialize<'de> for Moment {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MomentVisitor)
    }
}

struct MomentVisitor;

#[allow(clippy::cast_precision_loss)] // what loses digits is no date
impl Visitor<'_> for MomentVisitor {
    type Value = Moment;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a date")
    }

    #[inline]
    fn visit_u64<E>(self, value: u64) -> Result<Moment, E> {
        Ok(moment(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Moment, E> {
        Ok(moment(value as f64))
    }

    #[inline]
    fn visit_f64<E>(self, value: f64) -> Result<Moment, E> {
        Ok(moment(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Moment, E> {
        Ok(Moment(iso_date(text)))
    }

    fn visit_unit<E>(self) -> Result<Moment, E> {
        Ok(Moment(Timestamp::from_millis(0)))
    }
}

#[inline]
fn moment(millis: f64) -> Moment {
    Moment(date_of_millis(Numeric::Value(millis)))
}

/// A number of microseconds, however small.
#[inline]
#[must_use]
pub(crate) fn date_of_whole_micros(value: Numeric) -> Timestamp {
    let micros = value.number();
    join(micros / 1_000.0, micros)
}

/// A number of seconds with microseconds as its fraction. Milliseconds and microseconds are rounded
/// apart from each other, so that now and then a digit differs from the text of the number.
#[inline]
#[must_use]
pub(crate) fn date_of_seconds(seconds: f64) -> Timestamp {
    join(seconds * 1_000.0, seconds * 1_000_000.0)
}

/// The date at `millis`, with the microseconds within a millisecond from `micros`.
#[inline]
#[allow(clippy::cast_possible_truncation)] // less than a thousand
fn join(millis: f64, micros: f64) -> Timestamp {
    let date = date_of_millis(Numeric::Value(millis));
    let rest = (micros.floor() % 1_000.0) as i64;
    date.micros().map_or(date, |whole| Timestamp::from_micros(whole + rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_says_how_it_is_read() {
        let read = |json: &str| sonic_rs::from_str::<Moment>(json).unwrap().0.to_string();
        assert_eq!(read("1680673822478"), "2023-04-05T05:50:22.478Z");
        assert_eq!(read("1680673822478.9"), "2023-04-05T05:50:22.478Z");
        assert_eq!(read("\"2022-06-21T16:00:00Z\""), "2022-06-21T16:00:00.000Z");
        assert_eq!(read("\"1680673822478\""), "invalid date");
        assert_eq!(read("null"), "1970-01-01T00:00:00.000Z");
        assert_eq!(Moment::default().0, Timestamp::INVALID);
    }

    #[test]
    fn other_units_keep_microseconds() {
        let micros = |value: f64| date_of_whole_micros(Numeric::Value(value)).to_string();
        assert_eq!(micros(1_573_044_649_041_458.0), "2019-11-06T12:50:49.041458Z");
        assert_eq!(micros(12_345.0), "1970-01-01T00:00:00.012345Z");
        assert_eq!(date_of_whole_micros(Numeric::Absent), Timestamp::INVALID);
        assert_eq!(date_of_seconds(1_561_939_258.527_9).to_string(), "2019-07-01T00:00:58.527900Z");
        assert_eq!(date_of_seconds(f64::NAN), Timestamp::INVALID);
    }
}
