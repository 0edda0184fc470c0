//! One side of a snapshot, and the updates that waited for it. Levels are told apart by the text of
//! their price, and keep the order in which they came.

use std::borrow::Cow;

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::message::BookLevel;
use crate::raw::{Text, number_of_text};

/// A price and an amount.
pub(super) type RawLevel<'a> = SmallVec<[Text<'a>; 2]>;

/// Levels in the order in which their prices came.
pub(super) struct BookSide<'a> {
    levels: Vec<Option<BookLevel>>,
    places: HashMap<Cow<'a, str>, usize>,
}

impl<'a> BookSide<'a> {
    pub(super) fn of(levels: Vec<RawLevel<'a>>) -> Self {
        let mut side = Self {
            levels: Vec::with_capacity(levels.len()),
            places: HashMap::with_capacity(levels.len()),
        };
        for level in levels {
            side.set(level);
        }
        side
    }

    pub(super) fn apply(&mut self, updates: Vec<RawLevel<'a>>) {
        for update in updates {
            if amount(&update) != 0.0 {
                self.set(update);
            } else if let Some(place) =
                update.first().and_then(|price| self.places.remove(&price.0))
            {
                self.levels[place] = None;
            }
        }
    }

    fn set(&mut self, level: RawLevel<'a>) {
        let amount = amount(&level);
        let price = level.into_iter().next().unwrap_or_default().0;
        let level = Some(BookLevel { price: number_of_text(&price), amount });
        let place = *self.places.entry(price).or_insert(self.levels.len());
        if let Some(known) = self.levels.get_mut(place) {
            *known = level;
        } else {
            self.levels.push(level);
        }
    }

    pub(super) fn levels(self) -> Vec<BookLevel> {
        self.levels.into_iter().flatten().collect()
    }
}

fn amount(level: &RawLevel<'_>) -> f64 {
    level.get(1).map_or(f64::NAN, |amount| number_of_text(amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(json: &'static str) -> Vec<RawLevel<'static>> {
        sonic_rs::from_str(json).unwrap()
    }

    #[test]
    fn levels_keep_their_place_until_they_are_removed() {
        let mut side = BookSide::of(levels(r#"[["3","1"],["2","1"],["1","1"],["2","5"]]"#));
        side.apply(levels(r#"[["3","0.000"],["4","2"],["1","7"],["9","0"]]"#));
        side.apply(levels(r#"[["3","6"],["4.0","8"]]"#));
        let found: Vec<_> = side.levels().iter().map(|level| (level.price, level.amount)).collect();
        assert_eq!(found, [(2.0, 5.0), (1.0, 7.0), (4.0, 2.0), (3.0, 6.0), (4.0, 8.0)]);
    }
}
