//! Numbers that come as numbers or as text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::null_number::NULL_NUMBER;

/// The value of a field that should be a number. Use it with `#[serde(default)]`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Numeric {
    /// The field is not there.
    #[default]
    Absent,
    /// It is `null`.
    Null,
    /// It is the empty text.
    Empty,
    /// A number; NaN if it is a text or a value that is none.
    Value(f64),
}

impl Numeric {
    /// What `Number(value)` gives: NaN if absent, 0 for `null` and the empty text.
    #[inline]
    #[must_use]
    pub(crate) fn number(self) -> f64 {
        match self {
            Self::Absent => f64::NAN,
            Self::Null | Self::Empty => 0.0,
            Self::Value(value) => value,
        }
    }

    /// What `Number(value)` gives, unless the field is absent.
    #[must_use]
    pub(crate) fn number_if_there(self) -> Option<f64> {
        if self == Self::Absent { None } else { Some(self.number()) }
    }

    /// What `Number(value)` gives, unless the field is absent or `null`.
    #[must_use]
    pub(crate) fn number_if_given(self) -> Option<f64> {
        match self {
            Self::Absent | Self::Null => None,
            Self::Empty => Some(0.0),
            Self::Value(value) => Some(value),
        }
    }

    /// The number, unless it is absent, `null`, empty or not finite. 0 is a value.
    #[must_use]
    pub(crate) fn finite(self) -> Option<f64> {
        match self {
            Self::Value(value) if value.is_finite() => Some(value),
            _ => None,
        }
    }

    /// As [`Self::finite`], with 0 as no value.
    #[must_use]
    pub(crate) fn non_zero(self) -> Option<f64> {
        self.finite().filter(|value| *value != 0.0)
    }

    /// Whether the field is there, even if it is `null`.
    #[must_use]
    pub(crate) fn is_there(self) -> bool {
        self != Self::Absent
    }

    /// Whether JavaScript takes the value for true: there, not `null`, not 0, not NaN. A text is
    /// true unless it is empty, which this does not tell from its number.
    #[must_use]
    pub(crate) fn is_truthy(self) -> bool {
        matches!(self, Self::Value(value) if value != 0.0 && !value.is_nan())
    }

    /// The value as it stands, for what JavaScript passes on without `Number(value)`: a NaN, which
    /// prints as `null`, unless it is a number.
    #[must_use]
    pub(crate) fn as_given(self) -> f64 {
        match self {
            Self::Value(value) => value,
            Self::Null => NULL_NUMBER,
            Self::Absent | Self::Empty => f64::NAN,
        }
    }
}

impl<'de> Deserialize<'de> for Numeric {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumericVisitor)
    }
}

struct NumericVisitor;

#[allow(clippy::cast_precision_loss)] // integers past 2^53 lose digits, as they do in JavaScript
impl<'de> Visitor<'de> for NumericVisitor {
    type Value = Numeric;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number")
    }

    #[inline]
    fn visit_f64<E>(self, value: f64) -> Result<Numeric, E> {
        Ok(Numeric::Value(value))
    }

    #[inline]
    fn visit_u64<E>(self, value: u64) -> Result<Numeric, E> {
        Ok(Numeric::Value(value as f64))
    }

    #[inline]
    fn visit_i64<E>(self, value: i64) -> Result<Numeric, E> {
        Ok(Numeric::Value(value as f64))
    }

    #[inline]
    fn visit_str<E>(self, text: &str) -> Result<Numeric, E> {
        Ok(if text.is_empty() { Numeric::Empty } else { Numeric::Value(number_of_text(text)) })
    }

    fn visit_bool<E>(self, value: bool) -> Result<Numeric, E> {
        Ok(Numeric::Value(f64::from(u8::from(value))))
    }

    fn visit_unit<E>(self) -> Result<Numeric, E> {
        Ok(Numeric::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Numeric, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Numeric::Value(f64::NAN))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Numeric, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Numeric::Value(f64::NAN))
    }
}

/// Powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// What JavaScript's `Number(text)` gives.
#[inline]
#[must_use]
pub(crate) fn number_of_text(text: &str) -> f64 {
    plain_decimal(text.as_bytes()).unwrap_or_else(|| any_number(text))
}

/// A decimal such as `-123.450` whose digits a double holds exactly: the quotient of two exact
/// numbers is correctly rounded.
#[inline]
#[allow(clippy::cast_precision_loss)] // at most 2^53
fn plain_decimal(text: &[u8]) -> Option<f64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // Nineteen digits cannot overflow.
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut mantissa = 0u64;
    let mut point = None;
    for (at, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if *byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            return None;
        }
    }
    let places = point.map_or(0, |at| digits.len() - at - 1);
    if digits.len() == 1 && point.is_some() {
        return None;
    }
    let value = exact_decimal(mantissa, places)?;
    Some(if is_negative { -value } else { value })
}

/// `digits / 10^places`, if both are exact: their quotient is correctly rounded then.
#[inline]
#[allow(clippy::cast_precision_loss)] // at most 2^53
pub(super) fn exact_decimal(digits: u64, places: usize) -> Option<f64> {
    let power = EXACT_POWERS.get(places)?;
    (digits <= 1 << 53).then(|| digits as f64 / power)
}

#[cold]
fn any_number(text: &str) -> f64 {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.is_empty() {
        return 0.0;
    }
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return digits_of_radix(digits, radix);
        }
    }
    match text.strip_prefix(['+', '-']).unwrap_or(text) {
        "Infinity" if text.starts_with('-') => f64::NEG_INFINITY,
        "Infinity" => f64::INFINITY,
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) => {
            text.parse().unwrap_or(f64::NAN)
        }
        _ => f64::NAN,
    }
}

fn digits_of_radix(digits: &str, radix: u32) -> f64 {
    let value = digits.chars().try_fold(0.0, |sum: f64, digit| {
        digit.to_digit(radix).map(|digit| sum * f64::from(radix) + f64::from(digit))
    });
    value.filter(|_| !digits.is_empty()).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_become_numbers_as_in_javascript() {
        for (text, number) in [
            ("", 0.0),
            ("  ", 0.0),
            ("0", 0.0),
            ("-0", -0.0),
            ("12", 12.0),
            ("-12.50", -12.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("+7", 7.0),
            (" 7\n", 7.0),
            ("1e3", 1e3),
            ("2.5E-7", 2.5e-7),
            ("9007199254740993", 9_007_199_254_740_992.0),
            ("123456789012345678901234567890", 1.234_567_890_123_456_8e29),
            ("0.30000000000000004", 0.300_000_000_000_000_04),
            ("0x10", 16.0),
            ("0b11", 3.0),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(number_of_text(text).to_bits(), number.to_bits(), "{text}");
        }
        for text in ["NaN", "inf", "nan", "1,5", "1_000", "--1", "1e", ".", "-", "0x", "0xg", "1 2"]
        {
            assert!(number_of_text(text).is_nan(), "{text}");
        }
    }

    #[test]
    fn every_value_is_told_apart() {
        let read = |json: &str| sonic_rs::from_str::<Numeric>(json).unwrap();
        assert_eq!(read("1.5"), Numeric::Value(1.5));
        assert_eq!(read("\"1.5\""), Numeric::Value(1.5));
        assert_eq!(read("-3"), Numeric::Value(-3.0));
        assert_eq!(read("\"\""), Numeric::Empty);
        assert_eq!(read("null"), Numeric::Null);
        assert_eq!(read("true"), Numeric::Value(1.0));
        assert!(read("[1,[2]]").number().is_nan());
        assert!(read("{\"a\":{}}").number().is_nan());
        assert_eq!(Numeric::Empty.finite(), None);
        assert_eq!(Numeric::Null.number_if_there(), Some(0.0));
        assert_eq!(Numeric::Null.number_if_given(), None);
        assert_eq!(Numeric::Value(0.0).non_zero(), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn decimals_equal_the_standard_library(text in "-?[0-9]{1,20}(\\.[0-9]{0,20})?") {
            let expected: f64 = text.parse().unwrap();
            prop_assert_eq!(number_of_text(&text).to_bits(), expected.to_bits());
        }
    }
}
