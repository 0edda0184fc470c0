//! What a sample market can be asked to be like.

/// Most messages in a second: their numbers count microseconds, which leaves room for bursts.
const MOST_MESSAGES_PER_SECOND: u32 = 100_000;
/// Most levels on one side of a book.
const MOST_BOOK_LEVELS: u32 = 100_000;

/// What a sample market is like. The same options give the same lines, on every machine.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleOptions {
    /// What all chance is drawn from.
    pub seed: u64,
    /// Messages of one exchange in a second, about; from 1 to 100,000.
    pub messages_per_second: u32,
    /// Levels on each side of a book, about a tenth of which are empty; from 10 to 100,000.
    /// Options have 20 at most, and there are no prices below zero.
    pub book_levels: u32,
    /// How often an exchange's connection is lost in an hour; at most 60.
    pub disconnects_per_hour: f64,
    /// How many of an exchange's symbols there are, the most active first; at least 1.
    pub symbols: usize,
}

impl Default for SampleOptions {
    fn default() -> Self {
        Self {
            seed: 20_200_201,
            messages_per_second: 100,
            book_levels: 300,
            disconnects_per_hour: 2.0,
            symbols: usize::MAX,
        }
    }
}

impl SampleOptions {
    /// The same with every value inside of its range.
    pub(crate) fn in_range(self) -> Self {
        let disconnects = self.disconnects_per_hour;
        Self {
            messages_per_second: self.messages_per_second.clamp(1, MOST_MESSAGES_PER_SECOND),
            book_levels: self.book_levels.clamp(10, MOST_BOOK_LEVELS),
            disconnects_per_hour: if disconnects.is_nan() {
                0.0
            } else {
                disconnects.clamp(0.0, 60.0)
            },
            symbols: self.symbols.max(1),
            ..self
        }
    }
}
