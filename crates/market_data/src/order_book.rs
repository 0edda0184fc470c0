//! An order book that is kept from book changes.

use crate::message::{BookChange, BookLevel};
use crate::price_levels::{PriceLevels, RankedLevel};

/// The levels of one instrument. It is empty until the first snapshot: changes before that are
/// passed over. Levels whose price or amount is NaN are passed over, too: they have no place in an
/// order.
///
/// It is never crossed: if the best bid is not below the best ask after a change, then the exchange
/// has not said that levels are gone, and the side that the change is not about loses its best
/// levels.
#[derive(Clone, Debug, Default)]
pub struct OrderBook {
    bids: PriceLevels,
    asks: PriceLevels,
    has_snapshot: bool,
    /// The levels of a snapshot while they are sorted, kept for its memory.
    sorting: Vec<RankedLevel>,
}

/// The best of the levels that a change reached, by rank; `None` if it changed nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reach {
    pub(crate) bids: Option<f64>,
    pub(crate) asks: Option<f64>,
}

/// A side of the book by what differs between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BookSide {
    Bids,
    Asks,
}

impl BookSide {
    /// The rank of a price: the larger the better.
    #[inline]
    pub(crate) const fn rank(self, price: f64) -> f64 {
        match self {
            Self::Bids => price,
            Self::Asks => -price,
        }
    }
}

impl OrderBook {
    /// An empty book.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a change.
    pub fn update(&mut self, change: &BookChange<'_>) {
        self.apply(change);
    }

    /// Applies a change and tells how far up the book it reached.
    pub(crate) fn apply(&mut self, change: &BookChange<'_>) -> Reach {
        let mut reach = Reach::default();
        if change.is_snapshot {
            self.has_snapshot = true;
            replace(&mut self.asks, BookSide::Asks, &change.asks, &mut self.sorting);
            replace(&mut self.bids, BookSide::Bids, &change.bids, &mut self.sorting);
            reach = Reach { bids: Some(f64::INFINITY), asks: Some(f64::INFINITY) };
        } else if self.has_snapshot {
            reach.asks = set(&mut self.asks, BookSide::Asks, &change.asks);
            reach.bids = set(&mut self.bids, BookSide::Bids, &change.bids);
        }
        self.uncross(change, &mut reach);
        reach
    }

    #[allow(clippy::float_cmp)] // a level is known by its exact price
    fn uncross(&mut self, change: &BookChange<'_>, reach: &mut Reach) {
        let Some(ask) = self.crossed_ask() else { return };
        if change.asks.iter().any(|level| level.price == ask) {
            reach.bids = Some(f64::INFINITY);
            while self.crossed_ask().is_some() {
                self.bids.remove_best();
            }
        } else {
            reach.asks = Some(f64::INFINITY);
            while self.crossed_ask().is_some() {
                self.asks.remove_best();
            }
        }
    }

    /// The best ask's price if the best bid is not below it.
    fn crossed_ask(&self) -> Option<f64> {
        let (bid, ask) = (self.best_bid()?.price, self.best_ask()?.price);
        (bid >= ask).then_some(ask)
    }

    /// The highest bid.
    #[must_use]
    pub fn best_bid(&self) -> Option<BookLevel> {
        self.bids.best().map(RankedLevel::bid)
    }

    /// The lowest ask.
    #[must_use]
    pub fn best_ask(&self) -> Option<BookLevel> {
        self.asks.best().map(RankedLevel::ask)
    }

    /// All bids, highest first.
    pub fn bids(&self) -> impl Iterator<Item = BookLevel> {
        self.bids.iter().map(RankedLevel::bid)
    }

    /// All asks, lowest first.
    pub fn asks(&self) -> impl Iterator<Item = BookLevel> {
        self.asks.iter().map(RankedLevel::ask)
    }
}

fn is_number(level: &BookLevel) -> bool {
    !level.price.is_nan() && !level.amount.is_nan()
}

fn replace(
    levels: &mut PriceLevels,
    side: BookSide,
    new: &[BookLevel],
    sorting: &mut Vec<RankedLevel>,
) {
    sorting.clear();
    sorting.extend(
        new.iter()
            .filter(|level| is_number(level))
            .map(|level| RankedLevel { rank: side.rank(level.price), amount: level.amount }),
    );
    levels.replace(sorting);
}

/// Sets levels and returns the best rank among those that changed.
fn set(levels: &mut PriceLevels, side: BookSide, changes: &[BookLevel]) -> Option<f64> {
    let mut best: Option<f64> = None;
    for level in changes.iter().filter(|level| is_number(level)) {
        let rank = side.rank(level.price);
        if levels.set(rank, level.amount) {
            best = Some(best.map_or(rank, |best| best.max(rank)));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn levels(levels: &[(f64, f64)]) -> Vec<BookLevel> {
        levels.iter().map(|(price, amount)| BookLevel { price: *price, amount: *amount }).collect()
    }

    fn change(is_snapshot: bool, bids: &[(f64, f64)], asks: &[(f64, f64)]) -> BookChange<'static> {
        BookChange {
            symbol: "S".into(),
            exchange: "e".into(),
            is_snapshot,
            bids: levels(bids).into(),
            asks: levels(asks).into(),
            timestamp: Timestamp::from_millis(0),
            local_timestamp: Timestamp::from_millis(0),
        }
    }

    fn check(book: &OrderBook, bids: &[(f64, f64)], asks: &[(f64, f64)]) {
        assert_eq!(book.bids().collect::<Vec<_>>(), levels(bids));
        assert_eq!(book.asks().collect::<Vec<_>>(), levels(asks));
        assert_eq!(book.best_bid(), book.bids().next());
        assert_eq!(book.best_ask(), book.asks().next());
    }

    #[test]
    fn changes_before_the_first_snapshot_are_passed_over() {
        let mut book = OrderBook::new();
        book.update(&change(false, &[(1.0, 1.0)], &[(2.0, 1.0)]));
        check(&book, &[], &[]);
        book.update(&change(true, &[(1.0, 3.0)], &[]));
        check(&book, &[(1.0, 3.0)], &[]);
    }

    #[test]
    fn a_snapshot_starts_the_book_afresh() {
        let mut book = OrderBook::new();
        book.update(&change(true, &[(1.0, 1.0), (2.0, 1.0)], &[(4.0, 1.0), (3.0, 1.0)]));
        check(&book, &[(2.0, 1.0), (1.0, 1.0)], &[(3.0, 1.0), (4.0, 1.0)]);
        book.update(&change(true, &[(1.0, 5.0), (0.5, 0.0), (1.0, 6.0)], &[]));
        check(&book, &[(1.0, 6.0)], &[]);
    }

    #[test]
    fn a_new_ask_that_crosses_takes_bids_away() {
        let mut book = OrderBook::new();
        book.update(&change(true, &[(10.0, 1.0), (9.0, 1.0), (8.0, 1.0)], &[(11.0, 1.0)]));
        book.update(&change(false, &[], &[(9.0, 2.0)]));
        check(&book, &[(8.0, 1.0)], &[(9.0, 2.0), (11.0, 1.0)]);
    }

    #[test]
    fn a_new_bid_that_crosses_takes_asks_away() {
        let mut book = OrderBook::new();
        book.update(&change(true, &[(8.0, 1.0)], &[(9.0, 1.0), (10.0, 1.0), (11.0, 1.0)]));
        book.update(&change(false, &[(10.0, 2.0)], &[(11.0, 4.0)]));
        check(&book, &[(10.0, 2.0), (8.0, 1.0)], &[(11.0, 4.0)]);
    }

    #[test]
    fn a_crossed_snapshot_loses_bids() {
        let mut book = OrderBook::new();
        book.update(&change(true, &[(10.0, 1.0), (8.0, 1.0)], &[(9.0, 1.0)]));
        check(&book, &[(8.0, 1.0)], &[(9.0, 1.0)]);
    }

    #[test]
    fn levels_that_are_not_numbers_are_passed_over() {
        let mut book = OrderBook::new();
        let nan = f64::NAN;
        book.update(&change(true, &[(nan, 1.0), (1.0, 1.0), (2.0, nan)], &[(3.0, 1.0)]));
        book.update(&change(false, &[(1.0, nan), (nan, 0.0)], &[(nan, nan), (4.0, 1.0)]));
        check(&book, &[(1.0, 1.0)], &[(3.0, 1.0), (4.0, 1.0)]);
    }

    #[test]
    fn prices_of_both_signs_and_infinities_are_sorted() {
        let mut book = OrderBook::new();
        book.update(&change(true, &[(-0.0, 1.0), (f64::NEG_INFINITY, 1.0), (-5.0, 1.0)], &[]));
        book.update(&change(false, &[(0.0, 2.0)], &[(f64::INFINITY, 1.0), (1.0, 1.0)]));
        check(
            &book,
            &[(0.0, 2.0), (-5.0, 1.0), (f64::NEG_INFINITY, 1.0)],
            &[(1.0, 1.0), (f64::INFINITY, 1.0)],
        );
    }

    #[test]
    fn the_reach_is_that_of_the_best_level_changed() {
        let mut book = OrderBook::new();
        let whole = Reach { bids: Some(f64::INFINITY), asks: Some(f64::INFINITY) };
        let start = change(true, &[(10.0, 1.0), (9.0, 1.0), (8.0, 1.0)], &[(11.0, 1.0)]);
        assert_eq!(book.apply(&start), whole);
        let same = change(false, &[(10.0, 1.0), (7.0, 0.0)], &[]);
        assert_eq!(book.apply(&same), Reach::default());
        let lower = change(false, &[(10.0, 1.0), (8.0, 2.0), (9.0, 2.0)], &[(12.0, 1.0)]);
        assert_eq!(book.apply(&lower), Reach { bids: Some(9.0), asks: Some(-12.0) });
        let crossing = change(false, &[], &[(10.0, 1.0)]);
        assert_eq!(book.apply(&crossing), Reach { bids: Some(f64::INFINITY), asks: Some(-10.0) });
    }
}
