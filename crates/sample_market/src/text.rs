//! The parts that messages are put together from.

use crate::clock::Clock;
use crate::decimal::{
    write_fixed, write_float, write_short, write_signed_fixed, write_signed_float, write_whole,
};

/// A part of a message.
pub(crate) trait Part {
    fn put(self, out: &mut Vec<u8>);
}

/// Puts parts into a message, one after the other.
macro_rules! put {
    ($out:expr, $($part:expr),+ $(,)?) => {{
        $( $crate::text::Part::put($part, $out); )+
    }};
}
pub(crate) use put;

impl Part for &str {
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

macro_rules! whole_parts {
    ($($kind:ty),+) => {$(
        impl Part for $kind {
            fn put(self, out: &mut Vec<u8>) {
                write_whole(out, self);
            }
        }
    )+};
}
whole_parts!(u32, u64, i64);

/// A number of units of 10^-decimals, with all decimals.
pub(crate) struct Fixed<T>(pub(crate) T, pub(crate) usize);

impl Part for Fixed<u64> {
    fn put(self, out: &mut Vec<u8>) {
        write_fixed(out, self.0, self.1);
    }
}

impl Part for Fixed<i64> {
    fn put(self, out: &mut Vec<u8>) {
        write_signed_fixed(out, self.0, self.1);
    }
}

/// The same without needless zeros.
pub(crate) struct Short(pub(crate) u64, pub(crate) usize);

impl Part for Short {
    fn put(self, out: &mut Vec<u8>) {
        write_short(out, self.0, self.1);
    }
}

/// The same without needless zeros, but with one decimal.
pub(crate) struct Float<T>(pub(crate) T, pub(crate) usize);

impl Part for Float<u64> {
    fn put(self, out: &mut Vec<u8>) {
        write_float(out, self.0, self.1);
    }
}

impl Part for Float<i64> {
    fn put(self, out: &mut Vec<u8>) {
        write_signed_float(out, self.0, self.1);
    }
}

/// When the exchange sent the message, as text.
pub(crate) struct Sent<'a>(pub(crate) &'a Clock);

impl Part for Sent<'_> {
    fn put(self, out: &mut Vec<u8>) {
        self.0.write_sent(out);
    }
}

/// An id of 32 hexadecimal digits in five groups.
pub(crate) struct Id(pub(crate) u64, pub(crate) u64);

impl Part for Id {
    fn put(self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let (high, low) = (self.0.to_be_bytes(), self.1.to_be_bytes());
        let mut text = [b'-'; 36];
        let mut place = 0;
        for (number, byte) in high.into_iter().chain(low).enumerate() {
            if matches!(number, 4 | 6 | 8 | 10) {
                place += 1;
            }
            text[place] = DIGITS[usize::from(byte >> 4)];
            text[place + 1] = DIGITS[usize::from(byte & 15)];
            place += 2;
        }
        out.extend_from_slice(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_five_groups() {
        let mut out = Vec::new();
        put!(&mut out, Id(0xf73b_6f28_075a_3548, 0xa81c_8c84_3afd_2746));
        assert_eq!(out, b"f73b6f28-075a-3548-a81c-8c843afd2746");
    }
}
