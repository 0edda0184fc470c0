//! The order book of one instrument in one minute.
//!
//! Invariants:
//! - At a minute's beginning the book is a pure function of instrument and minute
//!   ([`Book::at_start`]). At its end [`Book::settle`] makes the next minute's book of it, so that
//!   whoever applied all changes has that book.
//! - A cell holds a bid if it is not above [`Book::middle`], else an ask. The cell `middle` always
//!   holds a bid and the next one an ask: these are the best.
//! - All cells that hold anything are inside of `sizes`.

use crate::instrument::Instrument;
use crate::random::{Random, hash_signed, size};

/// Changes of a book in one message, at most, where nothing else limits them.
const ROWS_PER_MESSAGE: usize = 16;

/// What happened to a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Delete,
    Insert,
    Update,
}

/// One change of one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) is_bid: bool,
    pub(crate) change: Change,
    pub(crate) cell: i64,
    /// 0 if the level is deleted.
    pub(crate) size: u32,
}

/// What the book of an instrument is at minutes' beginnings.
#[derive(Clone, Copy, Debug)]
struct Resting {
    seed: u64,
    levels: i64,
    lot: u32,
}

impl Resting {
    /// What rests in a cell at the beginning of `minute`. It changes now and then: each cell has a
    /// time of its own for that, from a quarter of an hour to eight hours.
    fn size(self, cell: i64, minute: i64, middle: i64) -> u32 {
        if cell < 1 || cell <= middle - self.levels || cell > middle + self.levels {
            return 0;
        }
        let own = hash_signed(self.seed, cell);
        let phase = i64::from(own.to_le_bytes()[1]) * 2;
        let turn = (minute + phase) >> (4 + (own & 7) % 6);
        let chance = hash_signed(own, turn);
        let is_best = cell == middle || cell == middle + 1;
        // One cell in ten is empty.
        if !is_best && chance.is_multiple_of(10) { 0 } else { size(chance) * self.lot }
    }
}

/// The book, and what it will be.
#[derive(Debug)]
pub(crate) struct Book {
    resting: Resting,
    /// The cell of `sizes[0]`.
    first: i64,
    /// What each cell holds, 0 if nothing.
    sizes: Vec<u32>,
    /// The cell of the best bid.
    pub(crate) middle: i64,
}

impl Book {
    /// The book at the beginning of `minute`, where `middles` are all that the minute will see, the
    /// first of them now.
    pub(crate) fn at_start(instrument: &Instrument, minute: i64, middles: &[i64]) -> Self {
        let resting =
            Resting { seed: instrument.seed, levels: instrument.levels, lot: instrument.lot };
        let middle = middles.first().copied().unwrap_or(2);
        let lowest = middles.iter().copied().min().unwrap_or(middle) - instrument.levels;
        let highest = middles.iter().copied().max().unwrap_or(middle) + instrument.levels + 1;
        let first = lowest.max(0);
        let sizes = (first..=highest).map(|cell| resting.size(cell, minute, middle)).collect();
        Self { resting, first, sizes, middle }
    }

    fn place(&self, cell: i64) -> Option<usize> {
        usize::try_from(cell - self.first).ok().filter(|place| *place < self.sizes.len())
    }

    /// What a cell holds, 0 if nothing.
    pub(crate) fn size(&self, cell: i64) -> u32 {
        self.place(cell).map_or(0, |place| self.sizes[place])
    }

    fn set(&mut self, cell: i64, size: u32) {
        if let Some(place) = self.place(cell) {
            self.sizes[place] = size;
        }
    }

    fn draw_size(&self, random: &mut Random) -> u32 {
        size(random.next()) * self.resting.lot
    }

    /// The levels of the bids, best first.
    pub(crate) fn bids(&self) -> impl Iterator<Item = (i64, u32)> {
        (self.first..=self.middle).rev().map(|cell| (cell, self.size(cell))).filter(is_there)
    }

    /// The levels of the asks, best first.
    pub(crate) fn asks(&self) -> impl DoubleEndedIterator<Item = (i64, u32)> {
        let end = self.first + i64::try_from(self.sizes.len()).unwrap_or(0);
        (self.middle + 1..end).map(|cell| (cell, self.size(cell))).filter(is_there)
    }

    /// Changes some levels, mostly near the best ones, and adds these changes to `rows`.
    pub(crate) fn touch(&mut self, count: usize, random: &mut Random, rows: &mut Vec<Row>) {
        for _ in 0..count.min(ROWS_PER_MESSAGE * 4) {
            let chance = random.next();
            let reach = 4_u32 << chance.trailing_zeros().min(11);
            let most = u32::try_from(self.resting.levels).unwrap_or(u32::MAX);
            let offset = i64::from(random.below(reach.min(most)));
            let is_bid = chance >> 63 == 0;
            let cell = if is_bid { self.middle - offset } else { self.middle + 1 + offset };
            let is_twice = rows.iter().any(|row| row.cell == cell);
            let Some(place) = self.place(cell).filter(|_| cell >= 1 && !is_twice) else { continue };
            let is_deleted = random.once_in(4) && offset > 0;
            let (change, size) = match self.sizes[place] {
                0 => (Change::Insert, self.draw_size(random)),
                _ if is_deleted => (Change::Delete, 0),
                _ => (Change::Update, self.draw_size(random)),
            };
            self.sizes[place] = size;
            rows.push(Row { is_bid, change, cell, size });
        }
    }

    /// Moves the best levels to `middle` and adds what that changes to `rows`: first what opens the
    /// new best level on the side that moves ahead, then all the rest. Returns how many rows the
    /// first part has. Between both parts the book may be crossed.
    pub(crate) fn step_to(
        &mut self,
        middle: i64,
        random: &mut Random,
        rows: &mut Vec<Row>,
    ) -> usize {
        let (before, is_up) = (self.middle, middle > self.middle);
        if middle == before {
            return 0;
        }
        let (ahead, behind) = if is_up { (middle, middle + 1) } else { (middle + 1, middle) };
        self.swap_side(ahead, is_up, random, rows);
        let first_part = rows.len();
        let others = if is_up { before + 1..middle } else { middle + 2..before + 1 };
        for cell in others {
            self.swap_side(cell, is_up, random, rows);
        }
        if self.size(behind) == 0 {
            let size = self.draw_size(random);
            self.set(behind, size);
            rows.push(Row { is_bid: !is_up, change: Change::Insert, cell: behind, size });
        }
        self.middle = middle;
        first_part
    }

    /// Empties a cell of one side and fills it for the other.
    fn swap_side(&mut self, cell: i64, to_bid: bool, random: &mut Random, rows: &mut Vec<Row>) {
        if self.size(cell) != 0 {
            rows.push(Row { is_bid: !to_bid, change: Change::Delete, cell, size: 0 });
        }
        let size = self.draw_size(random);
        self.set(cell, size);
        rows.push(Row { is_bid: to_bid, change: Change::Insert, cell, size });
    }

    /// Makes the book that `minute` begins with, and adds what that changes to `rows`. The best
    /// levels must have come to their cells before.
    pub(crate) fn settle(&mut self, minute: i64, rows: &mut Vec<Row>) {
        for (place, held) in self.sizes.iter_mut().enumerate() {
            let cell = self.first + i64::try_from(place).unwrap_or(0);
            let size = self.resting.size(cell, minute, self.middle);
            let change = match (*held, size) {
                (0, 0) => continue,
                (before, after) if before == after => continue,
                (0, _) => Change::Insert,
                (_, 0) => Change::Delete,
                _ => Change::Update,
            };
            *held = size;
            rows.push(Row { is_bid: cell <= self.middle, change, cell, size });
        }
    }
}

fn is_there(level: &(i64, u32)) -> bool {
    level.1 != 0
}

/// Where to cut the rows of a settlement into messages.
pub(crate) fn messages_of(rows: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..rows).step_by(ROWS_PER_MESSAGE).map(move |from| from..(from + ROWS_PER_MESSAGE).min(rows))
}

/// The numbers of rows that messages have: a few, and seldom many.
pub(crate) fn draw_rows(random: &mut Random, usual: u32) -> usize {
    let few = 1 + random.below(usual);
    let many = if random.once_in(16) { random.below(usual * 4) } else { 0 };
    usize::try_from(few + many).unwrap_or(1)
}
