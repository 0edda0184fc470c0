//! Texts of numbers that were written a moment ago.
//!
//! Most of a book's best prices and amounts are the same from snapshot to snapshot, and changes are
//! about a few prices again and again. To look their text up is a third of the work of making it.

use std::cell::Cell;

use crate::number::write_number;

/// Enough for the best levels of several books without many that share a slot; 40 KiB a thread.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 10;
/// Longer texts are rare.
const TEXT_ROOM: usize = 24;
/// Spreads numbers over the slots: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number and the text that [`write_number`] makes of it.
#[derive(Clone, Copy)]
struct Written {
    bits: u64,
    text: [u8; TEXT_ROOM],
    length: u8,
}

impl Written {
    /// What an empty slot holds must be right, too: these bits are those of a NaN.
    const NAN: Self = {
        let mut text = [0; TEXT_ROOM];
        [text[0], text[1], text[2], text[3]] = *b"null";
        Self { bits: u64::MAX, text, length: 4 }
    };
}

/// The texts. Each number has one slot where it can be.
pub(crate) struct RecentNumbers([Cell<Written>; SLOTS]);

thread_local! {
    static RECENT: RecentNumbers = const { RecentNumbers([const { Cell::new(Written::NAN) }; SLOTS]) };
}

impl RecentNumbers {
    /// Calls `write` with those of this thread.
    #[inline]
    pub(crate) fn with<T>(write: impl FnOnce(&Self) -> T) -> T {
        RECENT.with(write)
    }

    /// Writes what [`write_number`] writes.
    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>, value: f64) {
        let bits = value.to_bits();
        let slot = &self.0[slot_of(bits)];
        let recent = slot.get();
        if recent.bits == bits {
            // All of it and then less costs a few instructions, just the text a call.
            let end = out.len() + usize::from(recent.length);
            out.extend_from_slice(&recent.text);
            out.truncate(end);
        } else {
            write_into(slot, out, value);
        }
    }
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // a few bits are left
fn slot_of(bits: u64) -> usize {
    (bits.wrapping_mul(SPREAD) >> (u64::BITS - SLOT_BITS)) as usize
}

#[inline(never)]
fn write_into(slot: &Cell<Written>, out: &mut Vec<u8>, value: f64) {
    let before = out.len();
    write_number(out, value);
    let written = &out[before..];
    let mut text = [0; TEXT_ROOM];
    if let (Some(room), Ok(length)) = (text.get_mut(..written.len()), u8::try_from(written.len())) {
        room.copy_from_slice(written);
        slot.set(Written { bits: value.to_bits(), text, length });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_written_as_ever(value: f64) {
        let (mut recent, mut expected) = (Vec::new(), Vec::new());
        write_number(&mut expected, value);
        RecentNumbers::with(|numbers| numbers.write(&mut recent, value));
        assert_eq!(recent, expected, "{value:e}");
    }

    #[test]
    fn special_numbers_are_written_as_ever() {
        for value in [f64::NAN, -f64::NAN, f64::from_bits(u64::MAX), 0.0, -0.0, f64::INFINITY] {
            is_written_as_ever(value);
            is_written_as_ever(value);
        }
        is_written_as_ever(-1.234_567_890_123_456_7e-300);
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_ever(
            few in prop::collection::vec((-30_000i32..30_000, 0..9i32), 1..20),
            others in prop::collection::vec(any::<u64>(), 0..20),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..400),
        ) {
            let decimals = few.iter().map(|(digits, places)| f64::from(*digits) / 10f64.powi(*places));
            let values: Vec<f64> = decimals.chain(others.into_iter().map(f64::from_bits)).collect();
            for index in order {
                is_written_as_ever(values[index.index(values.len())]);
            }
        }
    }
}
