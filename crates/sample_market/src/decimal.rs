//! Decimal text from whole numbers of a smallest unit, as exchanges write it.

/// Room for the digits of a `u64`.
const DIGITS: usize = 20;

/// `value` / 10^`decimals` with exactly `decimals` digits after the point.
pub(crate) fn write_fixed(out: &mut Vec<u8>, value: u64, decimals: usize) {
    write(out, value, decimals, decimals);
}

/// `value` / 10^`decimals` without needless zeros, as JavaScript writes it.
pub(crate) fn write_short(out: &mut Vec<u8>, value: u64, decimals: usize) {
    write(out, value, decimals, 0);
}

/// `value` / 10^`decimals` without needless zeros but with one digit after the point, as Python
/// writes it.
pub(crate) fn write_float(out: &mut Vec<u8>, value: u64, decimals: usize) {
    if decimals == 0 {
        write_whole(out, value);
        out.extend_from_slice(b".0");
    } else {
        write(out, value, decimals, 1);
    }
}

/// A value with a sign, as [`write_float`].
pub(crate) fn write_signed_float(out: &mut Vec<u8>, value: i64, decimals: usize) {
    if value < 0 {
        out.push(b'-');
    }
    write_float(out, value.unsigned_abs(), decimals);
}

/// A value with a sign, as [`write_fixed`].
pub(crate) fn write_signed_fixed(out: &mut Vec<u8>, value: i64, decimals: usize) {
    if value < 0 {
        out.push(b'-');
    }
    write_fixed(out, value.unsigned_abs(), decimals);
}

pub(crate) fn write_whole(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

fn write(out: &mut Vec<u8>, value: u64, decimals: usize, least: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(value).as_bytes();
    if digits.len() > decimals {
        return write_split(out, digits, decimals, least);
    }
    // One digit stands before the point at least.
    let mut padded = [b'0'; DIGITS + 1];
    let length = decimals.min(DIGITS) + 1;
    padded[length - digits.len()..length].copy_from_slice(digits);
    write_split(out, &padded[..length], decimals.min(DIGITS), least);
}

fn write_split(out: &mut Vec<u8>, digits: &[u8], decimals: usize, least: usize) {
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    out.extend_from_slice(whole);
    let mut kept = decimals;
    while kept > least && fraction[kept - 1] == b'0' {
        kept -= 1;
    }
    if kept > 0 {
        out.push(b'.');
        out.extend_from_slice(&fraction[..kept]);
    }
}

/// `value` as a whole number of units of 10^-`decimals`, rounded.
#[expect(clippy::cast_possible_truncation, reason = "a cast from f64 stays in the range of i64")]
pub(crate) fn scaled(value: f64, decimals: usize) -> i64 {
    (value * power_of_ten(decimals) + 0.5).floor() as i64
}

/// 10^`decimals`, at most 10^10. A library's power function may differ by machine.
pub(crate) fn power_of_ten(decimals: usize) -> f64 {
    (0..decimals.min(10)).fold(1.0, |power, _| power * 10.0)
}

/// As [`scaled`], of values that are never below 0.
pub(crate) fn scaled_up(value: f64, decimals: usize) -> u64 {
    u64::try_from(scaled(value, decimals)).unwrap_or(0)
}

/// A count as a number; exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "prices, sizes and times stay below 2^53")]
pub(crate) fn number(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_are_written_as_exchanges_do() {
        assert_eq!(text(|out| write_fixed(out, 935_000, 2)), "9350.00");
        assert_eq!(text(|out| write_fixed(out, 5, 3)), "0.005");
        assert_eq!(text(|out| write_fixed(out, 12, 0)), "12");
        assert_eq!(text(|out| write_short(out, 93_505, 1)), "9350.5");
        assert_eq!(text(|out| write_short(out, 93_500, 1)), "9350");
        assert_eq!(text(|out| write_short(out, 612, 8)), "0.00000612");
        assert_eq!(text(|out| write_float(out, 93_500, 1)), "9350.0");
        assert_eq!(text(|out| write_float(out, 10, 0)), "10.0");
        assert_eq!(text(|out| write_float(out, 735, 4)), "0.0735");
        assert_eq!(text(|out| write_signed_float(out, -12_340, 5)), "-0.1234");
        assert_eq!(text(|out| write_signed_fixed(out, -12_340, 8)), "-0.00012340");
        assert_eq!(text(|out| write_fixed(out, u64::MAX, 20)), "0.18446744073709551615");
    }
}
