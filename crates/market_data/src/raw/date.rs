//! Times in the forms that exchanges give them.

use std::ops::Range;

use crate::raw::Numeric;
use crate::time::{Timestamp, day_of_date, days_in_month};

/// Numbers above this are microseconds where an exchange mixes both.
const MICROS_FROM: f64 = 1e15;
/// The largest distance from 1970 that a JavaScript date can have, in milliseconds.
const MAX_MILLIS: f64 = 8.64e15;

/// What `new Date(Number(value))` gives: milliseconds, cut towards zero.
#[inline]
#[must_use]
pub(crate) fn date_of_millis(value: Numeric) -> Timestamp {
    millis(value.number())
}

/// A number of microseconds if it is large enough to be one, of milliseconds otherwise. Only the
/// first prints with six digits.
#[inline]
#[must_use]
#[allow(clippy::cast_possible_truncation)] // within the range of dates
pub(crate) fn date_of_micros(value: Numeric) -> Timestamp {
    let number = value.number();
    if number > MICROS_FROM && number <= MAX_MILLIS * 1_000.0 {
        Timestamp::from_micros(number as i64)
    } else {
        millis(number)
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // within the range of dates
fn millis(number: f64) -> Timestamp {
    if number.abs() <= MAX_MILLIS {
        Timestamp::from_millis(number as i64)
    } else {
        Timestamp::INVALID
    }
}

/// What `new Date(text)` gives for ISO 8601 text: milliseconds, more digits are cut. A time without
/// a zone is UTC.
#[must_use]
pub(crate) fn iso_date(text: &str) -> Timestamp {
    parse(text.as_bytes())
        .map_or(Timestamp::INVALID, |micros| Timestamp::from_millis(micros.div_euclid(1_000)))
}

/// As [`iso_date`], with microseconds and printed with six digits. Texts with another number of
/// digits of a second than six, seven or nine count as having no microseconds.
#[must_use]
pub(crate) fn iso_date_with_micros(text: &str) -> Timestamp {
    let Some(micros) = parse(text.as_bytes()) else { return Timestamp::INVALID };
    let has_micros = matches!(text.len(), 27 | 28 | 30 | 32);
    Timestamp::from_micros(if has_micros { micros } else { micros - micros.rem_euclid(1_000) })
}

/// Microseconds since 1970.
fn parse(text: &[u8]) -> Option<i64> {
    if let Some(micros) = <&[u8; 24]>::try_from(text).ok().and_then(usual) {
        return Some(micros);
    }
    let mut rest = Digits(text);
    let year = rest.number(4)?;
    rest.mark(b"-")?;
    let month = rest.number(2)?;
    rest.mark(b"-")?;
    let day = rest.number(2)?;
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let mut micros_of_day = 0;
    if rest.mark(b"T ").is_some() {
        let hour = rest.number(2)?;
        rest.mark(b":")?;
        let minute = rest.number(2)?;
        let second = if rest.mark(b":").is_some() { rest.number(2)? } else { 0 };
        if hour > 24 || minute > 59 || second > 59 {
            return None;
        }
        let fraction = if rest.mark(b".").is_some() { rest.fraction()? } else { 0 };
        if hour == 24 && (minute, second, fraction) != (0, 0, 0) {
            return None;
        }
        micros_of_day = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction;
    }
    let offset_minutes = rest.zone()?;
    let micros = day_of_date(year, month, day) * 86_400_000_000 + micros_of_day;
    rest.0.is_empty().then_some(micros - offset_minutes * 60_000_000)
}

/// A time in the form that is most usual, `2019-06-01T00:03:03.123Z`.
fn usual(text: &[u8; 24]) -> Option<i64> {
    let marks = [text[4], text[7], text[10], text[13], text[16], text[19], text[23]];
    if marks != *b"--T::.Z" {
        return None;
    }
    let mut is_wrong = false;
    let mut number = |places: Range<usize>| {
        text[places].iter().fold(0, |sum, byte| {
            let digit = byte.wrapping_sub(b'0');
            is_wrong |= digit > 9;
            sum * 10 + i64::from(digit)
        })
    };
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let (hour, minute, second) = (number(11..13), number(14..16), number(17..19));
    let millis = number(20..23);
    let is_date = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
    if is_wrong || !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let seconds = ((day_of_date(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * 1_000_000 + millis * 1_000)
}

/// The part of a time that is still to be read.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.iter().try_fold(0, |sum, digit| {
            digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0'))
        })
    }

    /// Passes one of `marks`.
    fn mark(&mut self, marks: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        marks.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    /// Digits of a second, as microseconds.
    fn fraction(&mut self) -> Option<i64> {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        let digit = |at: usize| digits.get(at).map_or(0, |digit| i64::from(digit - b'0'));
        (length > 0).then(|| (0..6).fold(0, |sum, at| sum * 10 + digit(at)))
    }

    /// The zone, in minutes east of UTC.
    fn zone(&mut self) -> Option<i64> {
        let Some(sign) = self.mark(b"Zz+-") else { return Some(0) };
        if !b"+-".contains(&sign) {
            return Some(0);
        }
        let hours = self.number(2)?;
        self.mark(b":");
        let minutes = self.number(2)?;
        let offset = hours * 60 + minutes;
        Some(if sign == b'-' { -offset } else { offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_texts_are_read_as_javascript_reads_them() {
        for (text, millis, micros) in [
            (
                "2019-06-01T00:03:03.1238784Z",
                "2019-06-01T00:03:03.123Z",
                "2019-06-01T00:03:03.123878Z",
            ),
            (
                "2020-03-01T00:00:24.893456+00:00",
                "2020-03-01T00:00:24.893Z",
                "2020-03-01T00:00:24.893456Z",
            ),
            (
                "2019-06-01T00:03:03.12345Z",
                "2019-06-01T00:03:03.123Z",
                "2019-06-01T00:03:03.123000Z",
            ),
            (
                "2019-06-01T01:03:03+01:00",
                "2019-06-01T00:03:03.000Z",
                "2019-06-01T00:03:03.000000Z",
            ),
            ("2019-06-01", "2019-06-01T00:00:00.000Z", "2019-06-01T00:00:00.000000Z"),
            ("2019-06-01 00:03", "2019-06-01T00:03:00.000Z", "2019-06-01T00:03:00.000000Z"),
        ] {
            assert_eq!(iso_date(text).to_string(), millis);
            assert_eq!(iso_date_with_micros(text).to_string(), micros);
        }
        for text in
            ["", "soon", "2019-13-01T00:00:00Z", "2019-06-01T25:00:00Z", "2019-06-01T00:00:00.Z"]
        {
            assert_eq!(iso_date(text), Timestamp::INVALID, "{text}");
        }
    }

    #[test]
    fn numbers_are_milliseconds_or_microseconds() {
        let text = |time: Timestamp| time.to_string();
        assert_eq!(text(date_of_millis(Numeric::Value(1.9))), "1970-01-01T00:00:00.001Z");
        assert_eq!(date_of_millis(Numeric::Absent), Timestamp::INVALID);
        assert_eq!(date_of_millis(Numeric::Value(1e16)), Timestamp::INVALID);
        assert_eq!(
            text(date_of_micros(Numeric::Value(1_559_347_228_619_481.0))),
            "2019-06-01T00:00:28.619481Z"
        );
        assert_eq!(
            text(date_of_micros(Numeric::Value(1_559_347_228_619.0))),
            "2019-06-01T00:00:28.619Z"
        );
        assert_eq!(date_of_micros(Numeric::Value(1e30)), Timestamp::INVALID);
    }
}
