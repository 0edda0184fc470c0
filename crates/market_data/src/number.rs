//! Numbers as text: JavaScript's for JSON, plain decimals for Bronze.
//!
//! Both are the shortest digits that give the same double back. They differ only in the exponent:
//! JavaScript writes one below 1e-6 and from 1e21 on, a plain decimal never has one.
//!
//! Most prices and amounts are short decimals, so both first try [`short_decimal`]: if `value`
//! equals `n / 10^8` for an integer `n` below 10^15, then `n` holds its shortest digits. (Decimals
//! of at most 15 digits map to distinct doubles, and the division of two exactly representable
//! numbers is correctly rounded, so the equality proves that the text reads back as `value`.)

const ZEROS: u64 = u64::from_le_bytes(*b"00000000");
/// 10^8: short decimals have at most eight digits after the point.
const SHORT_SCALE: u64 = 100_000_000;
const SHORT_SCALE_F64: f64 = 1e8;
/// Numbers below this have at most 15 digits when eight of them stand after the point.
const SHORT_LIMIT: f64 = 1e7;
/// From here on doubles are integers that a `u64` no longer prints as JavaScript does.
const INTEGER_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Writes `value` as JavaScript's `JSON.stringify` does: `null` if it is not finite, `0` for -0.
pub fn write_number(out: &mut Vec<u8>, value: f64) {
    if value == 0.0 {
        out.push(b'0');
    } else if value.abs() >= 1e-6
        && let Some(text) = ShortDecimal::of(value)
    {
        text.write(out);
    } else if value.is_finite() {
        write_long(out, value, |out, text| out.extend_from_slice(text.as_bytes()));
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Writes `value` as a plain decimal without exponent: `-0` for -0, and `NaN`, `Infinity` or
/// `-Infinity` if it is not finite.
pub fn write_decimal(out: &mut Vec<u8>, value: f64) {
    if let Some(text) = ShortDecimal::of(value) {
        text.write(out);
    } else if value.is_finite() {
        write_long(out, value, write_without_exponent);
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        write_sign(out, value);
        out.extend_from_slice(b"Infinity");
    }
}

/// Writes an integer in decimal.
pub fn write_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write_sign(out: &mut Vec<u8>, value: f64) {
    if value.is_sign_negative() {
        out.push(b'-');
    }
}

/// The plain text of a number with at most seven digits before the point and eight after it.
#[derive(Clone, Copy, Debug)]
pub struct ShortDecimal {
    bytes: [u8; Self::ROOM],
    length: usize,
}

impl ShortDecimal {
    /// Bytes that every such text fits in, with room to write eight digits at its end.
    pub const ROOM: usize = 24;

    /// The text of `value` if it is that short; -0 is `-0`.
    #[inline]
    #[must_use]
    pub fn of(value: f64) -> Option<Self> {
        let magnitude = value.abs();
        if let Some(whole) = short_whole(magnitude) {
            return Some(Self::whole(value.is_sign_negative(), whole));
        }
        short_decimal(magnitude).map(|scaled| Self::new(value.is_sign_negative(), scaled))
    }

    /// The text of an integer below 10^8.
    #[inline]
    fn whole(is_negative: bool, whole: u32) -> Self {
        let (digits, leading_zeros) = whole_digits(whole);
        let mut bytes = [b'-'; Self::ROOM];
        let sign = usize::from(is_negative);
        bytes[sign..sign + 8].copy_from_slice(&digits.to_le_bytes());
        Self { bytes, length: sign + 8 - leading_zeros }
    }

    /// The text of `scaled / 10^8`, without leading and trailing zeros. Groups of eight digits are
    /// always written whole, and the length then leaves out what is not needed: copies of a fixed
    /// length cost a few instructions, those of a variable length a call.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // both parts are below 10^8
    fn new(is_negative: bool, scaled: u64) -> Self {
        let (whole, leading_zeros) = whole_digits((scaled / SHORT_SCALE) as u32);
        let fraction = eight_digits((scaled % SHORT_SCALE) as u32);
        let trailing_zeros = (fraction ^ ZEROS).leading_zeros() / 8;

        let mut bytes = [b'-'; Self::ROOM];
        let sign = usize::from(is_negative);
        bytes[sign..sign + 8].copy_from_slice(&whole.to_le_bytes());
        let point = sign + 8 - leading_zeros;
        bytes[point] = b'.';
        bytes[point + 1..point + 9].copy_from_slice(&fraction.to_le_bytes());
        let length = if trailing_zeros == 8 { point } else { point + 9 - trailing_zeros as usize };
        Self { bytes, length }
    }

    /// The text, and behind it bytes without a meaning.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8; Self::ROOM] {
        &self.bytes
    }

    /// The text's length.
    #[inline]
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    #[inline]
    fn write(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.length;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}

/// `n` such that `magnitude` is the double nearest to `n / 10^8`, if there is a short one.
#[inline]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp
)] // below 10^15 nothing is cut, and the comparison is the proof
fn short_decimal(magnitude: f64) -> Option<u64> {
    if magnitude >= SHORT_LIMIT || magnitude.is_nan() {
        return None;
    }
    let scaled = (magnitude * SHORT_SCALE_F64 + 0.5) as i64;
    (scaled as f64 / SHORT_SCALE_F64 == magnitude).then_some(scaled as u64)
}

/// `magnitude` if it is an integer of at most seven digits, as most amounts are.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::float_cmp)]
fn short_whole(magnitude: f64) -> Option<u32> {
    if magnitude >= SHORT_LIMIT || magnitude.is_nan() {
        return None;
    }
    let whole = magnitude as u32;
    (f64::from(whole) == magnitude).then_some(whole)
}

/// The digits of a number below 10^8 as text, the first one in the lowest byte, and how many of eight
/// it lacks.
#[inline]
fn whole_digits(whole: u32) -> (u64, usize) {
    let digits = eight_digits(whole);
    let leading_zeros = ((digits ^ ZEROS).trailing_zeros() / 8).min(7);
    (digits >> (leading_zeros * 8), leading_zeros as usize)
}

/// The eight digits of a number below 10^8 as text, the first one in the lowest byte: the number is
/// halved into groups of four, two and one digits, all groups at once in one register.
#[inline]
pub(crate) fn eight_digits(number: u32) -> u64 {
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let ones = tens | (twos - tens * 10) << 8;
    ones | 0x3030_3030_3030_3030
}

/// Writes a number that is not short: an integer, or JavaScript's text as `write` takes it.
#[inline(never)]
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
fn write_long(out: &mut Vec<u8>, value: f64, write: impl FnOnce(&mut Vec<u8>, &str)) {
    let magnitude = value.abs();
    write_sign(out, value);
    if magnitude < INTEGER_LIMIT && magnitude.fract() == 0.0 {
        write_integer(out, magnitude as u64);
    } else {
        write(out, ryu_js::Buffer::new().format_finite(magnitude));
    }
}

/// Writes JavaScript's text of a positive number with its exponent worked into the digits.
fn write_without_exponent(out: &mut Vec<u8>, text: &str) {
    let Some((mantissa, exponent)) = text.split_once('e') else {
        out.extend_from_slice(text.as_bytes());
        return;
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let zeros = |out: &mut Vec<u8>, count: usize| out.resize(out.len() + count, b'0');
    if let Some(places) = exponent.strip_prefix('-') {
        let places: usize = places.parse().unwrap_or(0);
        out.extend_from_slice(b"0.");
        zeros(out, places.saturating_sub(1));
        out.extend_from_slice(whole.as_bytes());
        out.extend_from_slice(fraction.as_bytes());
    } else {
        let places: usize = exponent.trim_start_matches('+').parse().unwrap_or(0);
        out.extend_from_slice(whole.as_bytes());
        out.extend_from_slice(fraction.as_bytes());
        zeros(out, places.saturating_sub(fraction.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(value: f64) -> String {
        let mut out = Vec::new();
        write_number(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    fn decimal(value: f64) -> String {
        let mut out = Vec::new();
        write_decimal(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (100.0, "100"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (1e-6, "0.000001"),
            (1.5e-6, "0.0000015"),
            (1e-7, "1e-7"),
            (1.000_000_005_61e-7, "1.00000000561e-7"),
            (123_456_789.123_456_79, "123456789.12345679"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.1e21, "1.1e+21"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "null"),
            (f64::NEG_INFINITY, "null"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn decimals_have_no_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (9350.5, "9350.5"),
            (-9350.5, "-9350.5"),
            (1e-7, "0.0000001"),
            (1.25e-9, "0.00000000125"),
            (0.300_000_000_000_000_04, "0.30000000000000004"),
            (1e21, "1000000000000000000000"),
            (1.25e22, "12500000000000000000000"),
            (9_999_999.999_999_99, "9999999.99999999"),
            (10_000_000.5, "10000000.5"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(decimal(value), text);
        }
        assert_eq!(decimal(5e-324), format!("0.{}5", "0".repeat(323)));
        assert_eq!(decimal(f64::MAX), format!("17976931348623157{}", "0".repeat(292)));
        assert_eq!(decimal(-5e-324), format!("{}", -5e-324));
    }

    #[allow(clippy::cast_precision_loss)]
    fn decimal_fraction((digits, places): (i64, i32)) -> f64 {
        digits as f64 / 10f64.powi(places)
    }

    /// Doubles of every kind, with the short decimals that prices are made of well represented.
    fn doubles() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<f64>(),
            any::<u64>().prop_map(f64::from_bits),
            (any::<i64>(), 0..22i32).prop_map(decimal_fraction),
            (-100_000_000_000i64..100_000_000_000, 0..12i32).prop_map(decimal_fraction),
            (0..(1u64 << 52)).prop_map(f64::from_bits),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Rust's own formatting is shortest and plain, so it is the model, but for ties between
        /// two last digits, where JavaScript takes the even one.
        #[test]
        fn decimals_are_the_shortest_plain_text(value in doubles()) {
            let text = decimal(value);
            if value.is_finite() {
                prop_assert_eq!(text.len(), format!("{value}").len());
                prop_assert!(text.bytes().all(|byte| b"-.0123456789".contains(&byte)));
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits());
            }
        }

        #[test]
        fn numbers_equal_the_reference_text(value in doubles()) {
            let expected = if value.is_finite() {
                ryu_js::Buffer::new().format(value).to_owned()
            } else {
                "null".to_owned()
            };
            prop_assert_eq!(number(value), expected);
        }
    }
}
