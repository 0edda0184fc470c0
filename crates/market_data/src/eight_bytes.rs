//! Text read eight bytes at a time, as one number of which the lowest byte is the first.
//!
//! Names, prices and amounts are about that long. So most are read without a loop, and without the
//! wrong guess of the processor about where a loop ends.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const ZEROS: u64 = u64::from_le_bytes(*b"00000000");

/// What a number is multiplied with to have room for as many digits more.
const POWERS_OF_TEN: [u64; 9] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The eight bytes from `at` on; those past the end are 0.
#[inline]
fn eight_bytes(text: &[u8], at: usize) -> u64 {
    match text.get(at..).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => last_bytes(text.get(at..).unwrap_or_default()),
    }
}

/// Less than eight bytes.
#[inline(never)]
fn last_bytes(rest: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (rest.first_chunk(), rest.last_chunk()) {
        // Bytes that are in both are the same in both.
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (rest.len() - 4));
    }
    rest.iter().rev().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte))
}

/// The high bit of each byte that is 0, and of others only behind such a one.
#[inline]
fn zeros_of(bytes: u64) -> u64 {
    bytes.wrapping_sub(ONES) & !bytes & HIGH_BITS
}

/// Where the first quote, backslash or control character from `at` on is; the end of the text if
/// there is none.
#[inline]
pub(crate) fn end_of_plain(text: &[u8], mut at: usize) -> usize {
    loop {
        let bytes = eight_bytes(text, at);
        let quotes = zeros_of(bytes ^ (ONES * 0x22));
        let backslashes = zeros_of(bytes ^ (ONES * 0x5c));
        let controls = bytes.wrapping_sub(ONES * 0x20) & !bytes & HIGH_BITS;
        let ends = quotes | backslashes | controls;
        if ends != 0 {
            return at + ends.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
}

/// Passes the digits from `at` on: where they end, and their value behind the digits of `before`.
/// More than 18 digits together give no value with a meaning.
#[inline]
pub(crate) fn digits(text: &[u8], mut at: usize, before: u64) -> (usize, u64) {
    let mut value = before;
    loop {
        let (count, number) = leading_digits(eight_bytes(text, at));
        at += count;
        value = value.wrapping_mul(POWERS_OF_TEN[count]).wrapping_add(number);
        if count < 8 {
            return (at, value);
        }
    }
}

/// How many of the first bytes are digits, and their value.
#[inline]
fn leading_digits(bytes: u64) -> (usize, u64) {
    let digits = bytes ^ ZEROS;
    // A byte that is no digit may carry into those behind it, which do not count any more.
    let others = (digits.wrapping_add(ONES * 0x76) | digits) & HIGH_BITS;
    let count = others.trailing_zeros() / 8;
    // What is no digit is shifted out, and zeros are put in front.
    let ones = digits.checked_shl(64 - 8 * count).unwrap_or(0);
    // Neighbours are joined: eight numbers of one digit become four of two, two of four, one of eight.
    let twos = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    let eight = (fours * 10_000 + (fours >> 32)) & 0xffff_ffff;
    (count as usize, eight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn plain_text_ends_where_the_first_mark_is(text: Vec<u8>, quotes in 0u8..3, at in 0usize..12) {
            let text: Vec<u8> =
                text.into_iter().map(|byte| if byte % 16 < quotes { b'"' } else { byte }).collect();
            let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
            let rest = text.get(at..).unwrap_or_default();
            let length = rest.iter().position(is_end).unwrap_or(rest.len());
            prop_assert_eq!(end_of_plain(&text, at), at + length);
        }

        #[test]
        fn digits_are_read_up_to_the_first_other_byte(
            before in 0u64..1_000, text in "[0-9]{0,15}", behind: Vec<u8>, at in 0usize..4,
        ) {
            let bytes = [&b"0x/:"[..at], text.as_bytes(), b":", &behind].concat();
            let value = format!("{before}{text}").parse::<u64>().unwrap();
            prop_assert_eq!(digits(&bytes, at, before), (at + text.len(), value));
            let ended = &bytes[..at + text.len()];
            prop_assert_eq!(digits(ended, at, before), (at + text.len(), value));
        }

        #[test]
        fn no_other_byte_counts_as_a_digit(byte: u8, behind: [u8; 7]) {
            let bytes = [&[byte][..], &behind].concat();
            let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            prop_assert_eq!(digits(&bytes, 0, 0).0, count);
        }
    }
}
