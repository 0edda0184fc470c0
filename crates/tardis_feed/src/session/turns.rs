//! Whose turn it is when streams are merged line by line: the one whose next line is the oldest, by
//! the time of receipt; ties go to the earlier stream.

use market_data::Timestamp;

/// Up to where a stream may be read before it is another's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// The time of the next line of another stream, and whether a line of just that time is still
    /// the stream's own.
    next: Option<(i64, bool)>,
}

impl Bound {
    /// Whether a line of `time` is to wait for another stream's.
    #[inline]
    pub(super) fn is_before(self, time: i64) -> bool {
        self.next.is_some_and(|(limit, inclusive)| time > limit || time == limit && !inclusive)
    }
}

/// The stream that is next, and up to where it goes on. `heads` are the times of the streams' next
/// lines; one that has none is left out.
pub(super) fn next_turn(heads: impl Iterator<Item = Option<i64>>) -> Option<(usize, Bound)> {
    let mut oldest: Option<(i64, usize)> = None;
    let mut second: Option<(i64, usize)> = None;
    for (index, head) in heads.enumerate() {
        let Some(head) = head else { continue };
        let candidate = (head, index);
        if oldest.is_none_or(|oldest| candidate < oldest) {
            (oldest, second) = (Some(candidate), oldest);
        } else if second.is_none_or(|second| candidate < second) {
            second = Some(candidate);
        }
    }
    let (_, turn) = oldest?;
    Some((turn, Bound { next: second.map(|(time, other)| (time, turn < other)) }))
}

/// A time of receipt as merging compares it.
#[inline]
pub(super) fn micros(time: Timestamp) -> i64 {
    time.micros().unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_line_is_next_and_ties_go_to_the_earlier_stream() {
        let turn = |heads: &[Option<i64>]| next_turn(heads.iter().copied());
        assert_eq!(turn(&[]), None);
        assert_eq!(turn(&[None, None]), None);
        let (index, alone) = turn(&[None, Some(5)]).unwrap();
        assert_eq!((index, alone.is_before(i64::MAX)), (1, false));
        let (index, bound) = turn(&[Some(7), Some(5), Some(6)]).unwrap();
        assert_eq!((index, bound.is_before(5), bound.is_before(6), bound.is_before(7)), {
            (1, false, false, true)
        });
        let (index, bound) = turn(&[Some(6), Some(5)]).unwrap();
        assert_eq!((index, bound.is_before(5), bound.is_before(6)), (1, false, true));
        let (index, bound) = turn(&[Some(5), Some(5)]).unwrap();
        assert_eq!((index, bound.is_before(5), bound.is_before(6)), (0, false, true));
    }
}
