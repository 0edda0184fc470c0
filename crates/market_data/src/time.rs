//! Times with the precision their source gave them.

use std::cell::Cell;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use thiserror::Error;

use crate::number::eight_digits;

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// The largest distance from 1970 that a JavaScript date can have.
const MAX_MICROS: i64 = 8_640_000_000_000_000 * 1_000;

/// How many digits of a second a source gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Three digits.
    Millis,
    /// Six digits.
    Micros,
}

/// A moment in UTC, or a date that could not be read, which prints as `null`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// Microseconds since 1970; `i64::MIN` if the date could not be read.
    micros: i64,
    precision: Precision,
}

/// Why a text is not a time.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a UTC time such as 2019-06-01T00:00:28.619Z")]
pub struct TimeError {
    text: String,
}

impl Timestamp {
    /// A date that could not be read.
    pub const INVALID: Self = Self { micros: i64::MIN, precision: Precision::Millis };

    /// A time given in milliseconds since 1970; invalid outside of JavaScript's range of dates.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self::new(millis.saturating_mul(1_000), Precision::Millis)
    }

    /// A time given in microseconds since 1970; invalid outside of JavaScript's range of dates.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self::new(micros, Precision::Micros)
    }

    /// A time in microseconds since 1970 that prints with `precision`, which cuts it if need be.
    #[must_use]
    pub const fn new(micros: i64, precision: Precision) -> Self {
        if micros < -MAX_MICROS || micros > MAX_MICROS {
            return Self::INVALID;
        }
        match precision {
            Precision::Millis => Self { micros: micros - micros.rem_euclid(1_000), precision },
            Precision::Micros => Self { micros, precision },
        }
    }

    /// Now, by this machine's clock, in microseconds.
    #[must_use]
    pub fn now() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    }

    /// Midnight of a day, in UTC.
    #[must_use]
    pub const fn of_day(year: i64, month: i64, day: i64) -> Self {
        Self::of_minute(year, month, day, 0, 0)
    }

    /// The beginning of a minute, in UTC.
    #[must_use]
    pub const fn of_minute(year: i64, month: i64, day: i64, hour: i64, minute: i64) -> Self {
        let minutes = (day_of_date(year, month, day) * 24 + hour) * 60 + minute;
        Self::from_millis(minutes * 60_000)
    }

    /// Microseconds since 1970, unless the date could not be read.
    #[must_use]
    pub const fn micros(self) -> Option<i64> {
        if self.micros == i64::MIN { None } else { Some(self.micros) }
    }

    /// The precision its source gave.
    #[must_use]
    pub const fn precision(self) -> Precision {
        self.precision
    }

    /// Reads ISO 8601 text in UTC as [`Self::write`] writes it. Fewer than four digits of a second
    /// are milliseconds, more are microseconds and cut after the sixth.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        parse(text.as_bytes()).ok_or_else(|| TimeError { text: text.to_owned() })
    }

    /// Writes ISO 8601 text in UTC with three or six digits of a second. A date that could not be
    /// read writes nothing.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        let Some(micros) = self.micros() else { return };
        let second = micros.div_euclid(MICROS_PER_SECOND);
        let fraction = micros.rem_euclid(MICROS_PER_SECOND);
        // All pieces have a fixed length, of which some is cut again: that needs no calls.
        let before = out.len();
        let length = LAST_SECOND.with(|last| {
            let mut text = last.get();
            if text.second != second {
                text = SecondText::new(second);
                last.set(text);
            }
            out.extend_from_slice(&text.bytes);
            usize::from(text.length)
        });
        out.truncate(before + length);
        // Two zeros and six digits, in the order of a number's bytes.
        let digits = eight_digits(u32::try_from(fraction).unwrap_or(0)) >> 16;
        let (digits, places) = match self.precision {
            Precision::Millis => (digits & 0x00ff_ffff | u64::from(b'Z') << 24, 4),
            Precision::Micros => (digits | u64::from(b'Z') << 48, 7),
        };
        out.extend_from_slice(&digits.to_le_bytes());
        out.truncate(before + length + places);
    }
}

/// The text of a second up to and with the point. Times come in order, so that most have the second
/// of the one before.
#[derive(Clone, Copy)]
struct SecondText {
    second: i64,
    bytes: [u8; 24],
    length: u8,
}

thread_local! {
    static LAST_SECOND: Cell<SecondText> =
        const { Cell::new(SecondText { second: i64::MIN, bytes: [0; 24], length: 0 }) };
}

impl SecondText {
    fn new(second: i64) -> Self {
        let (year, month, day) = date_of_day(second.div_euclid(SECONDS_PER_DAY));
        let second_of_day = second.rem_euclid(SECONDS_PER_DAY);
        let mut out = Vec::with_capacity(24);
        if (0..=9_999).contains(&year) {
            write_digits(&mut out, year, 4);
        } else {
            out.push(if year < 0 { b'-' } else { b'+' });
            write_digits(&mut out, year.abs(), 6);
        }
        for (separator, value) in [
            (b'-', month),
            (b'-', day),
            (b'T', second_of_day / 3_600),
            (b':', second_of_day / 60 % 60),
            (b':', second_of_day % 60),
        ] {
            out.push(separator);
            write_digits(&mut out, value, 2);
        }
        out.push(b'.');
        let mut text = Self { second, bytes: [0; 24], length: 0 };
        text.bytes[..out.len()].copy_from_slice(&out);
        text.length = u8::try_from(out.len()).unwrap_or(0);
        text
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(27);
        self.write(&mut text);
        formatter.write_str(if text.is_empty() {
            "invalid date"
        } else {
            std::str::from_utf8(&text).unwrap_or_default()
        })
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

fn write_digits(out: &mut Vec<u8>, value: i64, width: usize) {
    let mut text = *b"000000";
    let mut left = value;
    for digit in text[..width].iter_mut().rev() {
        *digit += u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
    }
    out.extend_from_slice(&text[..width]);
}

/// Year, month and day of a day counted from 1970, in the proleptic Gregorian calendar. Years are
/// counted from March, so that the leap day is a year's last.
fn date_of_day(day: i64) -> (i64, i64, i64) {
    let from_march_of_0 = day + 719_468;
    let era = from_march_of_0.div_euclid(146_097);
    let day_of_era = from_march_of_0.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day_of_month)
}

/// The inverse of [`date_of_day`].
pub(crate) const fn day_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year_from_march = if month <= 2 { year - 1 } else { year };
    let era = year_from_march.div_euclid(400);
    let year_of_era = year_from_march.rem_euclid(400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub(crate) const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn parse(text: &[u8]) -> Option<Timestamp> {
    let (negative, year_digits, text) = match text.split_first()? {
        (b'+', rest) => (false, 6, rest),
        (b'-', rest) => (true, 6, rest),
        _ => (false, 4, text),
    };
    let (year, rest) = take_number(text, year_digits)?;
    let year = if negative { -year } else { year };
    let mut rest = rest;
    let mut parts = [0i64; 5];
    for (part, separator) in parts.iter_mut().zip(*b"--T::") {
        let (value, left) = take_number(rest.strip_prefix(&[separator])?, 2)?;
        *part = value;
        rest = left;
    }
    let [month, day, hour, minute, second] = parts;
    let fraction = rest.strip_suffix(b"Z")?;
    let (fraction, precision) = match fraction.strip_prefix(b".") {
        Some(digits @ [_, ..]) if digits.iter().all(u8::is_ascii_digit) => {
            let micros = (0..6)
                .fold(0, |sum, at| sum * 10 + digits.get(at).map_or(0, |d| i64::from(d - b'0')));
            (micros, if digits.len() > 3 { Precision::Micros } else { Precision::Millis })
        }
        None if fraction.is_empty() => (0, Precision::Millis),
        _ => return None,
    };
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !in_range {
        return None;
    }
    let seconds =
        day_of_date(year, month, day) * SECONDS_PER_DAY + hour * 3_600 + minute * 60 + second;
    let micros = seconds.checked_mul(MICROS_PER_SECOND)?.checked_add(fraction)?;
    let time = Timestamp::new(micros, precision);
    time.micros().map(|_| time)
}

fn take_number(text: &[u8], digits: usize) -> Option<(i64, &[u8])> {
    let (number, rest) = text.split_at_checked(digits)?;
    let value = number.iter().try_fold(0i64, |sum, digit| {
        digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0'))
    })?;
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_print_as_javascript_prints_them() {
        for (time, text) in [
            (Timestamp::from_millis(0), "1970-01-01T00:00:00.000Z"),
            (Timestamp::from_millis(-1), "1969-12-31T23:59:59.999Z"),
            (Timestamp::from_micros(1_559_347_228_619_481), "2019-06-01T00:00:28.619481Z"),
            (Timestamp::from_micros(1_580_515_200_000_000), "2020-02-01T00:00:00.000000Z"),
            (Timestamp::from_millis(1_582_934_400_000), "2020-02-29T00:00:00.000Z"),
            (Timestamp::from_millis(253_402_300_800_000), "+010000-01-01T00:00:00.000Z"),
            (Timestamp::from_millis(-62_167_219_200_001), "-000001-12-31T23:59:59.999Z"),
            (Timestamp::from_millis(8_640_000_000_000_000), "+275760-09-13T00:00:00.000Z"),
        ] {
            assert_eq!(time.to_string(), text);
            assert_eq!(Timestamp::parse(text), Ok(time));
        }
        assert_eq!(Timestamp::from_millis(8_640_000_000_000_001), Timestamp::INVALID);
        assert_eq!(Timestamp::from_millis(i64::MAX), Timestamp::INVALID);
        assert_eq!(Timestamp::INVALID.micros(), None);
    }

    #[test]
    fn digits_past_the_sixth_are_cut() {
        let time = Timestamp::parse("2019-06-01T00:00:28.6194819Z").unwrap();
        assert_eq!(time.to_string(), "2019-06-01T00:00:28.619481Z");
        let seconds = Timestamp::parse("2019-06-01T00:00:28Z").unwrap();
        assert_eq!(seconds.to_string(), "2019-06-01T00:00:28.000Z");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "Z",
            "2019-06-01",
            "2019-13-01T00:00:00.000Z",
            "2019-02-29T00:00:00.000Z",
            "2019-06-01T24:00:00.000Z",
            "2019-06-01T00:00:00.000",
            "2019-06-01T00:00:00.Z",
            "2019-06-01T00:00:00.0x0Z",
            "2019-06-01 00:00:00.000Z",
            "+999999-01-01T00:00:00.000Z",
            "２019-06-01T00:00:00.000Z",
        ] {
            assert!(Timestamp::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_time_reads_back(micros in -MAX_MICROS..=MAX_MICROS, millis: bool) {
            let precision = if millis { Precision::Millis } else { Precision::Micros };
            let time = Timestamp::new(micros, precision);
            prop_assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        }
    }
}
