//! The parts a range is fetched in.

/// A part of a range: from which of its minutes on, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offset: u32,
    pub(crate) minutes: u32,
}

/// The parts of a range in order: its first minute, slices of one size, the last minute that is
/// there, then minute by minute what is not there yet.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    next: u32,
    minutes: u32,
    available: u32,
    size: u32,
}

impl Parts {
    pub(crate) fn new(minutes: u32, available: u32, size: u32) -> Self {
        Self { next: 0, minutes, available, size: size.max(1) }
    }

    /// How many there are.
    pub(crate) fn total(&self) -> u64 {
        let ends = u64::from(self.available.min(2));
        let between = u64::from(self.available.saturating_sub(2).div_ceil(self.size));
        ends + between + u64::from(self.minutes - self.available)
    }
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let offset = self.next;
        if offset >= self.minutes {
            return None;
        }
        let before_last = self.available.saturating_sub(1);
        let minutes = if (1..before_last).contains(&offset) {
            self.size.min(before_last - offset)
        } else {
            1
        };
        self.next += minutes;
        Some(Part { offset, minutes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(minutes: u32, available: u32, size: u32) -> Vec<(u32, u32)> {
        Parts::new(minutes, available, size).map(|part| (part.offset, part.minutes)).collect()
    }

    #[test]
    fn ends_are_a_minute_and_what_is_between_them_is_cut() {
        assert_eq!(parts(12, 12, 4), [(0, 1), (1, 4), (5, 4), (9, 2), (11, 1)]);
        assert_eq!(parts(2, 2, 4), [(0, 1), (1, 1)]);
        assert_eq!(parts(1, 1, 4), [(0, 1)]);
        assert_eq!(parts(6, 4, 4), [(0, 1), (1, 2), (3, 1), (4, 1), (5, 1)]);
        assert_eq!(parts(2, 0, 4), [(0, 1), (1, 1)]);
        assert_eq!(parts(0, 0, 4), []);
    }

    proptest! {
        #[test]
        fn parts_cover_the_range_without_gap(
            (minutes, available) in (0u32..300).prop_flat_map(|minutes| (Just(minutes), 0..=minutes)),
            size in 0u32..70,
        ) {
            let mut end = 0;
            let parts = parts(minutes, available, size);
            for (offset, minutes) in &parts {
                prop_assert_eq!(*offset, end);
                prop_assert!(*minutes >= 1 && *minutes <= size.max(1));
                end += minutes;
            }
            prop_assert_eq!(end, minutes);
            prop_assert_eq!(Parts::new(minutes, available, size).total(), parts.len() as u64);
        }
    }
}
