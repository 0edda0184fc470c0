//! Times by the interval they fall into. Intervals count from 1970, in whole milliseconds: the
//! microseconds of a time play no part.

use crate::time::Timestamp;

impl Timestamp {
    /// Milliseconds since 1970, unless the date could not be read.
    pub(crate) fn millis(self) -> Option<i64> {
        self.micros().map(|micros| micros.div_euclid(1_000))
    }

    /// Which interval of so many milliseconds it falls into, unless the date could not be read.
    pub(crate) fn bucket(self, interval: u64) -> Option<i64> {
        let interval = i64::try_from(interval).unwrap_or(i64::MAX).max(1);
        self.millis().map(|millis| millis.div_euclid(interval))
    }

    /// The end of an interval; it prints with milliseconds.
    pub(crate) fn of_bucket_end(bucket: i64, interval: u64) -> Self {
        let interval = i64::try_from(interval).unwrap_or(i64::MAX);
        Self::from_millis(bucket.saturating_add(1).saturating_mul(interval))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_begins_at_its_first_millisecond() {
        for (micros, bucket, end) in [
            (0, 0, "1970-01-01T00:00:00.100Z"),
            (99_999, 0, "1970-01-01T00:00:00.100Z"),
            (100_000, 1, "1970-01-01T00:00:00.200Z"),
            (-1, -1, "1970-01-01T00:00:00.000Z"),
            (-100_001, -2, "1969-12-31T23:59:59.900Z"),
        ] {
            assert_eq!(Timestamp::from_micros(micros).bucket(100), Some(bucket), "{micros}");
            assert_eq!(Timestamp::of_bucket_end(bucket, 100).to_string(), end);
        }
        assert_eq!(Timestamp::INVALID.bucket(100), None);
        assert_eq!(Timestamp::of_bucket_end(0, 1 << 53), Timestamp::INVALID);
        assert_eq!(Timestamp::of_bucket_end(i64::MAX, u64::MAX), Timestamp::INVALID);
    }
}
