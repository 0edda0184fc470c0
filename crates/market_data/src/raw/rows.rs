//! Lists: rows that borrow, and price levels.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use smallvec::SmallVec;

use crate::message::BookLevel;
use crate::raw::Numeric;

/// The rows of a message: most have a few, which need no memory of their own.
pub(crate) type Rows<T> = SmallVec<[T; 4]>;

/// Price levels given as arrays that begin with a price and an amount, each a number or a text;
/// whatever else an array holds is passed over. `null` is an empty list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Levels(pub(crate) SmallVec<[BookLevel; 8]>);

impl<'de> Deserialize<'de> for Levels {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelsVisitor)
    }
}

struct LevelsVisitor;

impl<'de> Visitor<'de> for LevelsVisitor {
    type Value = Levels;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of price levels")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Levels, A::Error> {
        let mut levels = SmallVec::new();
        while let Some(Level(level)) = items.next_element()? {
            levels.push(level);
        }
        Ok(Levels(levels))
    }

    fn visit_unit<E>(self) -> Result<Levels, E> {
        Ok(Levels::default())
    }
}

struct Level(BookLevel);

impl<'de> Deserialize<'de> for Level {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = Level;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of a price and an amount")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Level, A::Error> {
        let price = items.next_element::<Numeric>()?.unwrap_or_default().number();
        let amount = items.next_element::<Numeric>()?.unwrap_or_default().number();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Level(BookLevel { price, amount }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_come_as_numbers_or_texts() {
        let levels: Levels = sonic_rs::from_str(r#"[["1.5","2"],[3,4,"x",[5]],["6"]]"#).unwrap();
        let level = |price, amount| BookLevel { price, amount };
        assert_eq!(levels.0[..2], [level(1.5, 2.0), level(3.0, 4.0)]);
        assert!(levels.0[2].amount.is_nan());
        assert_eq!(sonic_rs::from_str::<Levels>("null").unwrap(), Levels::default());
        assert!(sonic_rs::from_str::<Levels>("[1]").is_err());
    }
}
