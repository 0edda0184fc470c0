//! Simple order books to measure against.
#![allow(clippy::float_cmp)] // a level is known by its exact price

use std::cmp::Ordering;
use std::collections::BTreeMap;

use market_data::{BookChange, BookLevel, OrderBook};

/// What all books do.
pub(crate) trait Book: Default {
    const NAME: &str;

    fn update(&mut self, change: &BookChange<'_>);

    fn best(&self) -> (Option<f64>, Option<f64>);
}

impl Book for OrderBook {
    const NAME: &str = "blocks";

    fn update(&mut self, change: &BookChange<'_>) {
        OrderBook::update(self, change);
    }

    fn best(&self) -> (Option<f64>, Option<f64>) {
        (self.best_bid().map(|level| level.price), self.best_ask().map(|level| level.price))
    }
}

#[derive(PartialEq)]
struct Price(f64);

impl Eq for Price {}

impl PartialOrd for Price {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Price {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// A balanced tree for each side.
#[derive(Default)]
pub(crate) struct SortedMapBook {
    bids: BTreeMap<Price, f64>,
    asks: BTreeMap<Price, f64>,
}

impl Book for SortedMapBook {
    const NAME: &str = "sorted_map";

    fn update(&mut self, change: &BookChange<'_>) {
        for (side, levels) in [(&mut self.asks, &change.asks), (&mut self.bids, &change.bids)] {
            for level in levels.iter() {
                if level.amount == 0.0 {
                    side.remove(&Price(level.price));
                } else {
                    side.insert(Price(level.price), level.amount);
                }
            }
        }
    }

    fn best(&self) -> (Option<f64>, Option<f64>) {
        let price = |(price, _): (&Price, &f64)| price.0;
        (self.bids.last_key_value().map(price), self.asks.first_key_value().map(price))
    }
}

/// One list for each side, the best level last.
#[derive(Default)]
pub(crate) struct SortedListBook {
    bids: Vec<BookLevel>,
    asks: Vec<BookLevel>,
}

impl Book for SortedListBook {
    const NAME: &str = "sorted_list";

    fn update(&mut self, change: &BookChange<'_>) {
        for (side, levels, sign) in
            [(&mut self.asks, &change.asks, -1.0), (&mut self.bids, &change.bids, 1.0)]
        {
            for level in levels.iter() {
                let at = side.partition_point(|known| known.price * sign < level.price * sign);
                let is_known = side.get(at).is_some_and(|known| known.price == level.price);
                match (is_known, level.amount == 0.0) {
                    (true, true) => drop(side.remove(at)),
                    (true, false) => side[at].amount = level.amount,
                    (false, true) => {}
                    (false, false) => side.insert(at, *level),
                }
            }
        }
    }

    fn best(&self) -> (Option<f64>, Option<f64>) {
        (self.bids.last().map(|level| level.price), self.asks.last().map(|level| level.price))
    }
}
