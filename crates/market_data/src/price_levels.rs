//! The price levels of one side of an order book, sorted.
//!
//! Levels are kept in blocks of at most [`BLOCK`] levels, the best level last. Most changes are near
//! the best level, where they move few neighbours; a change far from it moves the neighbours in
//! its block and no more, however deep the book is.
//!
//! Invariants: no block is empty; ranks rise strictly through each block and from block to block;
//! `floors[n]` is the rank of the first level of `blocks[n]`.
#![allow(clippy::float_cmp)] // a level is known by its exact price

use crate::message::BookLevel;

/// Levels in a full block: half a kilobyte.
const BLOCK: usize = 32;
/// Levels of a block when a whole book is put in, with room for some more.
const FILL: usize = 24;
/// A block with fewer levels joins a neighbour, if both then fit into [`FILL`].
const SPARSE: usize = 8;

/// A level by its rank, which is the larger the better: the price of a bid, minus that of an ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RankedLevel {
    pub(crate) rank: f64,
    pub(crate) amount: f64,
}

/// The levels of one side.
#[derive(Clone, Debug, Default)]
pub(crate) struct PriceLevels {
    blocks: Vec<Vec<RankedLevel>>,
    floors: Vec<f64>,
    /// Blocks out of use, kept for their memory.
    spare: Vec<Vec<RankedLevel>>,
}

impl PriceLevels {
    /// Removes all levels.
    pub(crate) fn clear(&mut self) {
        self.floors.clear();
        for mut block in self.blocks.drain(..) {
            block.clear();
            self.spare.push(block);
        }
    }

    /// Puts `levels` in place of all levels. Of levels with the same rank the last one counts, and
    /// amounts of 0 are no levels. Ranks are never NaN. `levels` is left in any order.
    pub(crate) fn replace(&mut self, levels: &mut Vec<RankedLevel>) {
        self.clear();
        // The sort is stable, so the last one of a rank stays the last.
        levels.sort_by(|a, b| a.rank.partial_cmp(&b.rank).unwrap_or(std::cmp::Ordering::Equal));
        levels.dedup_by(|later, kept| {
            let is_same = later.rank == kept.rank;
            if is_same {
                *kept = *later;
            }
            is_same
        });
        levels.retain(|level| level.amount != 0.0);
        for chunk in levels.chunks(FILL) {
            let mut block = self.new_block();
            block.extend_from_slice(chunk);
            self.floors.push(chunk[0].rank);
            self.blocks.push(block);
        }
    }

    /// Sets the amount of a level, 0 removes it. Returns whether that changed anything.
    pub(crate) fn set(&mut self, rank: f64, amount: f64) -> bool {
        let at = self.block_of(rank);
        let Some(block) = self.blocks.get_mut(at) else {
            if amount != 0.0 {
                let mut block = self.new_block();
                block.push(RankedLevel { rank, amount });
                self.blocks.push(block);
                self.floors.push(rank);
            }
            return amount != 0.0;
        };
        let position = block.partition_point(|level| level.rank < rank);
        match block.get_mut(position).filter(|level| level.rank == rank) {
            Some(level) if amount != 0.0 => {
                let has_changed = level.amount != amount;
                level.amount = amount;
                has_changed
            }
            Some(_) => {
                block.remove(position);
                self.after_removal(at);
                true
            }
            None if amount != 0.0 => {
                self.insert(at, position, RankedLevel { rank, amount });
                true
            }
            None => false,
        }
    }

    /// The best level.
    pub(crate) fn best(&self) -> Option<RankedLevel> {
        self.blocks.last().and_then(|block| block.last()).copied()
    }

    /// Removes the best level.
    pub(crate) fn remove_best(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.pop();
            self.after_removal(self.blocks.len() - 1);
        }
    }

    /// All levels, best first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RankedLevel> {
        self.blocks.iter().rev().flat_map(|block| block.iter().rev().copied())
    }

    /// Which block holds `rank` or would hold it: 0 if there is none.
    fn block_of(&self, rank: f64) -> usize {
        match self.floors.last() {
            // Most changes are near the best level.
            Some(floor) if rank >= *floor => self.floors.len() - 1,
            _ => self.floors.partition_point(|floor| *floor <= rank).saturating_sub(1),
        }
    }

    fn insert(&mut self, at: usize, position: usize, level: RankedLevel) {
        let block = &mut self.blocks[at];
        if block.len() < BLOCK {
            block.insert(position, level);
            self.floors[at] = block[0].rank;
            return;
        }
        let mut upper = self.new_block();
        let block = &mut self.blocks[at];
        upper.extend(block.drain(BLOCK / 2..));
        if position <= block.len() {
            block.insert(position, level);
        } else {
            upper.insert(position - block.len(), level);
        }
        self.floors[at] = block[0].rank;
        self.floors.insert(at + 1, upper[0].rank);
        self.blocks.insert(at + 1, upper);
    }

    /// Restores the invariants after a level of a block was removed.
    fn after_removal(&mut self, at: usize) {
        let length = self.blocks[at].len();
        if length == 0 {
            self.drop_block(at);
            return;
        }
        self.floors[at] = self.blocks[at][0].rank;
        if length < SPARSE {
            if at > 0 && self.blocks[at - 1].len() + length <= FILL {
                self.join_next(at - 1);
            } else if at + 1 < self.blocks.len() && self.blocks[at + 1].len() + length <= FILL {
                self.join_next(at);
            }
        }
    }

    fn join_next(&mut self, at: usize) {
        let (left, right) = self.blocks.split_at_mut(at + 1);
        left[at].append(&mut right[0]);
        self.drop_block(at + 1);
    }

    /// Takes an empty block out.
    fn drop_block(&mut self, at: usize) {
        self.floors.remove(at);
        let block = self.blocks.remove(at);
        self.spare.push(block);
    }

    fn new_block(&mut self) -> Vec<RankedLevel> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(BLOCK))
    }
}

impl RankedLevel {
    /// A bid's level as it is in messages.
    pub(crate) const fn bid(self) -> BookLevel {
        BookLevel { price: self.rank, amount: self.amount }
    }

    /// An ask's level as it is in messages.
    pub(crate) const fn ask(self) -> BookLevel {
        BookLevel { price: -self.rank, amount: self.amount }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn check(levels: &PriceLevels) {
        assert_eq!(levels.blocks.len(), levels.floors.len());
        let ranks: Vec<f64> = levels.blocks.iter().flatten().map(|level| level.rank).collect();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "{ranks:?}");
        for (block, floor) in levels.blocks.iter().zip(&levels.floors) {
            assert!((1..=BLOCK).contains(&block.len()));
            assert_eq!(block[0].rank.total_cmp(floor), std::cmp::Ordering::Equal);
        }
        for pair in levels.blocks.windows(2) {
            assert!(pair[0].len() + pair[1].len() > SPARSE, "neighbours that should have joined");
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(i32, u8),
        RemoveBest,
        Replace(Vec<(i32, u8)>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let level = || (-150..150, prop_oneof![2 => Just(0u8), 3 => 1u8..4]);
        proptest::collection::vec(
            prop_oneof![
                200 => level().prop_map(|(rank, amount)| Step::Set(rank, amount)),
                20 => Just(Step::RemoveBest),
                1 => proptest::collection::vec(level(), 0..400).prop_map(Step::Replace),
            ],
            0..800,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn levels_are_those_of_a_sorted_map(steps in steps()) {
            let mut levels = PriceLevels::default();
            let mut model = BTreeMap::<i32, u8>::new();
            let set = |model: &mut BTreeMap<i32, u8>, rank, amount| match amount {
                0 => model.remove(&rank).is_some(),
                _ => model.insert(rank, amount) != Some(amount),
            };
            for step in steps {
                match step {
                    Step::Set(rank, amount) => {
                        let has_changed = levels.set(f64::from(rank), f64::from(amount));
                        prop_assert_eq!(has_changed, set(&mut model, rank, amount));
                    }
                    Step::RemoveBest => {
                        levels.remove_best();
                        model.pop_last();
                    }
                    Step::Replace(new) => {
                        let mut ranked = new
                            .iter()
                            .map(|(rank, amount)| RankedLevel {
                                rank: f64::from(*rank),
                                amount: f64::from(*amount),
                            })
                            .collect();
                        levels.replace(&mut ranked);
                        model.clear();
                        for (rank, amount) in new {
                            set(&mut model, rank, amount);
                        }
                    }
                }
                check(&levels);
                let expected = model.iter().rev().map(|(rank, amount)| RankedLevel {
                    rank: f64::from(*rank),
                    amount: f64::from(*amount),
                });
                prop_assert!(levels.iter().eq(expected));
                prop_assert_eq!(levels.best(), levels.iter().next());
            }
        }
    }
}
