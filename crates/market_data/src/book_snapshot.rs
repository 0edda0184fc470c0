//! Snapshots of the top of an order book, grouped or not, and quotes.
//!
//! All snapshots of a symbol share its book. What one keeps of its own are the top levels as they
//! were when it last looked, and the first level beyond them: a change that does not reach that
//! level cannot concern it.

use std::borrow::Cow;

use crate::mapper::Sink;
use crate::message::{BookChange, BookLevel, BookSnapshot, Message};
use crate::order_book::{BookSide, OrderBook};
use crate::time::Timestamp;

/// Below this all whole numbers are doubles, and sums of two of them, too.
const MAX_EXACT: f64 = 4_503_599_627_370_496.0;

/// What snapshots are asked for.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotSetup {
    pub(crate) name: String,
    pub(crate) depth: u32,
    pub(crate) interval: u64,
    pub(crate) grouping: Option<Grouping>,
}

/// How prices are put into buckets. The arithmetic decides the last digit of the price printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grouping {
    bucket: f64,
    /// The power of ten that makes `bucket` whole.
    scale: f64,
}

impl Grouping {
    pub(crate) fn new(bucket: f64) -> Self {
        let has_fraction = |scale: f64| {
            let scaled = bucket * scale;
            (scaled.round() - scaled).abs() > 1e-10
        };
        let mut scale = 1.0;
        while scale < 1e22 && has_fraction(scale) {
            scale *= 10.0;
        }
        Self { bucket, scale }
    }

    /// The bucket of a price: bids are rounded down, asks up.
    fn price(self, side: BookSide, price: f64) -> f64 {
        let scaled = price * self.scale;
        let bucket = self.bucket * self.scale;
        let remainder = (scaled % bucket) / self.scale;
        let up = if side == BookSide::Asks && remainder > 0.0 { bucket } else { 0.0 };
        (scaled - remainder * self.scale + up) / self.scale
    }

    /// The rank up to which levels after one of this price are in the same bucket, by the scaled
    /// price: remainders cost far more than comparisons. NaN where that cannot be told.
    ///
    /// The rounding of [`Self::price`] shifts a bucket's edge by at most 2^-52 of the bucket's width.
    /// From the eighth bucket on that is less than half the distance to the next double, so all
    /// prices of a bucket give the same double.
    fn edge(self, side: BookSide, price: f64) -> f64 {
        let scaled = price * self.scale;
        let bucket = self.bucket * self.scale;
        let is_exact = bucket.fract() == 0.0 && scaled >= bucket * 8.0 && scaled < MAX_EXACT;
        if !is_exact {
            return f64::NAN;
        }
        let remainder = scaled % bucket;
        let down = scaled - remainder;
        side.rank(if side == BookSide::Asks && remainder > 0.0 { down + bucket } else { down })
    }

    fn scaled_rank(self, side: BookSide, price: f64) -> f64 {
        side.rank(price * self.scale)
    }
}

/// The book of one symbol and the snapshots made from it.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotBook {
    book: OrderBook,
    /// In the order of the setups.
    snapshots: Vec<OpenSnapshot>,
    /// That of the last change.
    timestamp: Timestamp,
}

/// A snapshot that will be sent when it is due.
#[derive(Clone, Debug, Default)]
struct OpenSnapshot {
    /// These are of use only while `has_changed` is false or the snapshot is being sent: once a
    /// change is known, nothing is gained by looking at the next ones.
    bids: TopLevels,
    asks: TopLevels,
    has_changed: bool,
    is_started: bool,
    /// The time of a snapshot that is due before the change at hand.
    due: Option<Timestamp>,
}

/// The best levels of a side, as deep as a snapshot goes.
#[derive(Clone, Debug, Default)]
struct TopLevels {
    levels: Vec<BookLevel>,
    /// The rank of the first level beyond them, if there is one.
    beyond: Option<f64>,
}

/// Levels on their way out, kept for their memory by who calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct SnapshotRoom {
    bids: Vec<Option<BookLevel>>,
    asks: Vec<Option<BookLevel>>,
}

impl SnapshotBook {
    pub(crate) fn new(snapshots: usize) -> Self {
        Self {
            book: OrderBook::new(),
            snapshots: vec![OpenSnapshot::default(); snapshots],
            timestamp: Timestamp::from_millis(-1),
        }
    }

    /// Applies a change and sends the snapshots that became due before it or by it.
    pub(crate) fn take(
        &mut self,
        setups: &[SnapshotSetup],
        change: &BookChange<'_>,
        room: &mut SnapshotRoom,
        out: &mut dyn Sink,
    ) {
        for (setup, snapshot) in setups.iter().zip(&mut self.snapshots) {
            if snapshot.has_changed {
                snapshot.due = due(setup.interval, self.timestamp, change.timestamp);
                if snapshot.due.is_some() {
                    snapshot.look_at(&self.book, setup);
                }
            }
        }
        let reach = self.book.apply(change);
        self.timestamp = change.timestamp;
        for (setup, snapshot) in setups.iter().zip(&mut self.snapshots) {
            if let Some(end) = snapshot.due.take() {
                snapshot.send(setup, change, end, room, out);
            }
            if snapshot.has_changed {
                continue;
            }
            if snapshot.bids.concerned_by(reach.bids) {
                snapshot.has_changed |= snapshot.bids.look_at_bids(&self.book, setup);
            }
            if snapshot.asks.concerned_by(reach.asks) {
                snapshot.has_changed |= snapshot.asks.look_at_asks(&self.book, setup);
            }
            if snapshot.has_changed && (setup.interval == 0 || !snapshot.is_started) {
                snapshot.is_started = true;
                snapshot.send(setup, change, change.timestamp, room, out);
            }
        }
    }
}

/// The end of the interval that `last` is in, if `now` is in a later one.
fn due(interval: u64, last: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let bucket = last.bucket(interval)?;
    (now.bucket(interval)? > bucket).then(|| Timestamp::of_bucket_end(bucket, interval))
}

impl OpenSnapshot {
    fn look_at(&mut self, book: &OrderBook, setup: &SnapshotSetup) {
        self.bids.look_at_bids(book, setup);
        self.asks.look_at_asks(book, setup);
    }

    fn send(
        &mut self,
        setup: &SnapshotSetup,
        change: &BookChange<'_>,
        timestamp: Timestamp,
        room: &mut SnapshotRoom,
        out: &mut dyn Sink,
    ) {
        self.has_changed = false;
        self.bids.write(&mut room.bids, setup.depth);
        self.asks.write(&mut room.asks, setup.depth);
        out.take(&Message::BookSnapshot(BookSnapshot {
            symbol: Cow::Borrowed(&change.symbol),
            exchange: Cow::Borrowed(&change.exchange),
            name: Cow::Borrowed(&setup.name),
            depth: setup.depth,
            interval: setup.interval,
            grouping: setup.grouping.map(|grouping| grouping.bucket),
            bids: Cow::Borrowed(&room.bids),
            asks: Cow::Borrowed(&room.asks),
            timestamp,
            local_timestamp: change.local_timestamp,
        }));
    }
}

impl TopLevels {
    /// Whether a change that reached up to a level of this rank may change them.
    fn concerned_by(&self, reach: Option<f64>) -> bool {
        reach.is_some_and(|reach| self.beyond.is_none_or(|beyond| reach >= beyond))
    }

    fn look_at_bids(&mut self, book: &OrderBook, setup: &SnapshotSetup) -> bool {
        self.look(BookSide::Bids, book.bids(), setup)
    }

    fn look_at_asks(&mut self, book: &OrderBook, setup: &SnapshotSetup) -> bool {
        self.look(BookSide::Asks, book.asks(), setup)
    }

    /// Takes the best of `levels` over and returns whether they differ from those before.
    fn look(
        &mut self,
        side: BookSide,
        levels: impl Iterator<Item = BookLevel>,
        setup: &SnapshotSetup,
    ) -> bool {
        let depth = setup.depth as usize;
        let (count, has_changed) = match setup.grouping {
            None => self.look_at_each(side, levels, depth),
            Some(grouping) => self.look_at_groups(side, levels, depth, grouping),
        };
        let is_shorter = count < self.levels.len();
        self.levels.truncate(count);
        has_changed || is_shorter
    }

    fn look_at_each(
        &mut self,
        side: BookSide,
        levels: impl Iterator<Item = BookLevel>,
        depth: usize,
    ) -> (usize, bool) {
        self.beyond = None;
        let mut has_changed = false;
        let mut count = 0;
        for level in levels {
            if count == depth {
                self.beyond = Some(side.rank(level.price));
                break;
            }
            has_changed |= self.put(count, level);
            count += 1;
        }
        (count, has_changed)
    }

    fn look_at_groups(
        &mut self,
        side: BookSide,
        levels: impl Iterator<Item = BookLevel>,
        depth: usize,
        grouping: Grouping,
    ) -> (usize, bool) {
        self.beyond = None;
        let mut has_changed = false;
        let mut count = 0;
        let mut group: Option<BookLevel> = None;
        let mut edge = f64::NAN;
        for level in levels {
            if let Some(group) = &mut group
                && grouping.scaled_rank(side, level.price) >= edge
            {
                group.amount += level.amount;
                continue;
            }
            let price = grouping.price(side, level.price);
            match &mut group {
                #[allow(clippy::float_cmp)] // buckets are the same only to the last digit
                Some(group) if group.price == price => group.amount += level.amount,
                _ => {
                    if let Some(group) = group {
                        has_changed |= self.put(count, group);
                        count += 1;
                        if count == depth {
                            self.beyond = Some(side.rank(level.price));
                            return (count, has_changed);
                        }
                    }
                    group = Some(BookLevel { price, amount: level.amount });
                    edge = grouping.edge(side, level.price);
                }
            }
        }
        // Only the last group is left out where its amounts make nothing.
        if let Some(group) = group.filter(|group| group.amount > 0.0) {
            has_changed |= self.put(count, group);
            count += 1;
        }
        (count, has_changed)
    }

    fn put(&mut self, at: usize, level: BookLevel) -> bool {
        let Some(known) = self.levels.get_mut(at) else {
            self.levels.push(level);
            return true;
        };
        let has_changed = *known != level;
        *known = level;
        has_changed
    }

    fn write(&self, out: &mut Vec<Option<BookLevel>>, depth: u32) {
        out.clear();
        out.extend(self.levels.iter().copied().map(Some));
        out.resize(depth as usize, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prices_are_rounded_away_from_the_other_side() {
        for (bucket, price, bid, ask) in [
            (5.0, 9_352.5, 9_350.0, 9_355.0),
            (5.0, 9_350.0, 9_350.0, 9_350.0),
            (5.0, 0.5, 0.0, 5.0),
            (0.1, 183.44, 183.4, 183.5),
            (2.5, 11.0, 10.0, 12.5),
            (0.001, 0.23456, 0.234, 0.235),
        ] {
            let grouping = Grouping::new(bucket);
            let text = |side| format!("{}", grouping.price(side, price));
            assert_eq!(text(BookSide::Bids), format!("{bid}"), "{price} by {bucket}");
            assert_eq!(text(BookSide::Asks), format!("{ask}"), "{price} by {bucket}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Whatever the edge says, the arithmetic says, too.
        #[test]
        fn prices_up_to_the_edge_are_in_one_bucket(
            bucket in prop_oneof![
                (1..10_000u32, 0..9usize).prop_map(|(digits, places)| {
                    format!("{digits}e-{places}").parse::<f64>().unwrap()
                }),
                1e-9..1e6f64,
            ],
            buckets in prop_oneof![0.0..20.0f64, 0.0..1e7f64],
            shares in proptest::collection::vec(0.0..1.5f64, 1..20),
            is_bid: bool,
        ) {
            let side = if is_bid { BookSide::Bids } else { BookSide::Asks };
            let grouping = Grouping::new(bucket);
            let first = buckets * bucket;
            let edge = grouping.edge(side, first);
            for share in shares {
                let next = first + if is_bid { -share } else { share } * bucket;
                if grouping.scaled_rank(side, next) >= edge {
                    let (one, other) = (grouping.price(side, first), grouping.price(side, next));
                    prop_assert_eq!(one.to_bits(), other.to_bits(), "{} {} {}", bucket, first, next);
                }
            }
        }

        #[test]
        fn most_prices_have_an_edge(ticks in 1_000..10_000_000u32) {
            let price = f64::from(ticks) / 100.0;
            for bucket in [0.1, 0.5, 1.0] {
                for side in [BookSide::Bids, BookSide::Asks] {
                    prop_assert!(!Grouping::new(bucket).edge(side, price).is_nan());
                }
            }
        }
    }
}
