//! Minutes of market time: what slices begin with and how the archive counts.

use std::fmt;

use market_data::Timestamp;

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// A minute in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minute(i64);

impl Minute {
    /// The minute that `time` falls into, unless it is no date.
    #[must_use]
    pub fn of(time: Timestamp) -> Option<Self> {
        time.micros().map(|micros| Self(micros.div_euclid(MICROS_PER_MINUTE)))
    }

    /// Its first moment.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp::from_millis(self.0.saturating_mul(60_000))
    }

    /// The minute `count` minutes later.
    #[must_use]
    pub const fn after(self, count: u32) -> Self {
        Self(self.0.saturating_add(count as i64))
    }

    /// How many minutes lie from `earlier` to this one; 0 if none do.
    #[must_use]
    pub fn since(self, earlier: Self) -> u32 {
        let minutes = self.0.saturating_sub(earlier.0).max(0);
        u32::try_from(minutes).unwrap_or(u32::MAX)
    }

    /// The place of the minute in the cache: `yyyy/MM/dd/HH/mm`.
    pub(crate) fn path(self) -> String {
        self.to_string().get(..16).unwrap_or_default().replace(['-', 'T', ':'], "/")
    }
}

impl fmt::Display for Minute {
    /// As the archive is asked for it: `2020-02-01T00:00:00.000Z`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.start().fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_cut_and_minutes_counted() {
        let time = Timestamp::parse("2020-02-29T23:59:59.999Z").unwrap();
        let minute = Minute::of(time).unwrap();
        assert_eq!(minute.to_string(), "2020-02-29T23:59:00.000Z");
        assert_eq!(minute.path(), "2020/02/29/23/59");
        assert_eq!(minute.after(1).path(), "2020/03/01/00/00");
        assert_eq!((minute.after(7).since(minute), minute.since(minute.after(7))), (7, 0));
        assert_eq!(Minute::of(Timestamp::INVALID), None);
    }
}
