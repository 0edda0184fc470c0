//! Levels given as objects, and the two sides of a book.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use smallvec::SmallVec;

use crate::message::BookLevel;
use crate::raw::Numeric;

#[derive(Clone, Copy, serde::Deserialize)]
struct RawLevel {
    #[serde(default)]
    px: Numeric,
    #[serde(default)]
    sz: Numeric,
}

/// One level.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(from = "RawLevel")]
pub(super) struct Level(pub(super) BookLevel);

impl From<RawLevel> for Level {
    #[inline]
    fn from(raw: RawLevel) -> Self {
        Self(BookLevel { price: raw.px.number(), amount: raw.sz.number() })
    }
}

/// The levels of a side: a message has at most twenty.
#[derive(Debug, Default)]
pub(super) struct Levels(pub(super) SmallVec<[BookLevel; 20]>);

/// Bids and asks, each absent if the array is too short or has `null` in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<T> {
    pub(super) bid: Option<T>,
    pub(super) ask: Option<T>,
}

impl<'de> Deserialize<'de> for Levels {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LevelsVisitor)
    }
}

struct LevelsVisitor;

impl<'de> Visitor<'de> for LevelsVisitor {
    type Value = Levels;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of levels")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Levels, A::Error> {
        let mut levels = Levels::default();
        while let Some(Level(level)) = items.next_element()? {
            levels.0.push(level);
        }
        Ok(levels)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Sides<T> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(SidesVisitor(PhantomData))
    }
}

struct SidesVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for SidesVisitor<T> {
    type Value = Sides<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of bids and asks")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut sides: A) -> Result<Sides<T>, A::Error> {
        let bid = sides.next_element::<Option<T>>()?.flatten();
        let ask = sides.next_element::<Option<T>>()?.flatten();
        while sides.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Sides { bid, ask })
    }
}
