//! `null` where a number should be.
//!
//! Some exchanges' numbers pass as they are, and a `null` among them is not NaN: both print as
//! `null`, but sums count the one as 0 and come to nothing with the other.

/// A NaN that stands for `null`: it has a payload of its own.
pub const NULL_NUMBER: f64 = f64::from_bits(0x7ff8_0000_6e75_6c6c);

/// What a number counts for in sums and comparisons: `null` is 0.
#[inline]
pub(crate) fn counted(value: f64) -> f64 {
    if value.to_bits() == NULL_NUMBER.to_bits() { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_counts_as_zero_and_nan_as_itself() {
        assert!(NULL_NUMBER.is_nan());
        assert_eq!(counted(NULL_NUMBER).to_bits(), 0);
        assert!(counted(f64::NAN).is_nan());
        assert!(counted(-f64::NAN).is_nan());
        assert_eq!(counted(-1.5).to_bits(), (-1.5f64).to_bits());
    }
}
