//! What the arrays hold, read without regard to what may follow in them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;

use crate::message::BookLevel;
use crate::raw::{Numeric, Text};

/// The later of two times; one that could not be read counts as the latest.
pub(super) fn later(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other > one || other.is_nan() { other } else { one }),
        _ => one.or(other),
    }
}

/// The first `N` numbers of an array.
fn numbers<'de, A: SeqAccess<'de>, const N: usize>(
    items: &mut A,
) -> Result<[Numeric; N], A::Error> {
    let mut numbers = [Numeric::Absent; N];
    for number in &mut numbers {
        *number = items.next_element()?.unwrap_or_default();
    }
    Ok(numbers)
}

fn pass_over<'de, A: SeqAccess<'de>>(items: &mut A) -> Result<(), A::Error> {
    while items.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Implements `Deserialize` for a type that is an array in JSON.
macro_rules! from_array {
    ($name:ident, $expecting:literal, |$items:ident| $read:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ArrayVisitor;

                impl<'de> Visitor<'de> for ArrayVisitor {
                    type Value = $name;

                    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                        formatter.write_str($expecting)
                    }

                    #[inline]
                    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<$name, A::Error> {
                        let $items = &mut items;
                        let value = $read;
                        pass_over($items)?;
                        Ok(value)
                    }
                }

                deserializer.deserialize_seq(ArrayVisitor)
            }
        }
    };
}

/// Price, amount, time, side, and what is not used.
pub(super) struct RawTrade {
    pub(super) numbers: [Numeric; 3],
    pub(super) is_buy: bool,
}

from_array!(RawTrade, "an array of price, amount, time and side", |items| RawTrade {
    numbers: numbers(items)?,
    is_buy: items.next_element::<Text<'_>>()?.is_some_and(|side| &*side == "b"),
});

/// Bid, ask, time, and, in newer messages, the amounts of bid and ask.
pub(super) struct RawSpread(pub(super) [Numeric; 5]);

from_array!(RawSpread, "an array of bid, ask and time", |items| RawSpread(numbers(items)?));

/// Price, amount, time, and a mark on levels that are sent again.
struct RawLevel([Numeric; 3]);

from_array!(RawLevel, "an array of price, amount and time", |items| RawLevel(numbers(items)?));

/// The levels of one side and the latest of their times.
#[derive(Default)]
pub(super) struct BookSide {
    pub(super) levels: SmallVec<[BookLevel; 8]>,
    pub(super) latest: Option<f64>,
}

from_array!(BookSide, "a list of levels", |items| {
    let mut side = BookSide::default();
    while let Some(RawLevel([price, amount, time])) = items.next_element()? {
        side.levels.push(BookLevel { price: price.number(), amount: amount.number() });
        side.latest = later(side.latest, Some(time.number()));
    }
    side
});

/// What a message says about a book; a snapshot has names of its own.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct BookPart {
    #[serde(rename = "bs")]
    pub(super) snapshot_bids: Option<BookSide>,
    #[serde(rename = "as")]
    pub(super) snapshot_asks: Option<BookSide>,
    #[serde(rename = "b")]
    pub(super) bids: Option<BookSide>,
    #[serde(rename = "a")]
    pub(super) asks: Option<BookSide>,
}

impl BookPart {
    pub(super) fn is_snapshot(&self) -> bool {
        self.snapshot_asks.is_some()
    }
}

pub(super) struct RawBook<'a> {
    pub(super) part: BookPart,
    /// Where both sides changed, bids are a part of their own.
    pub(super) second_bids: Option<BookSide>,
    pub(super) symbol: Text<'a>,
}

impl<'de> Deserialize<'de> for RawBook<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RawBookVisitor)
    }
}

struct RawBookVisitor;

impl<'de> Visitor<'de> for RawBookVisitor {
    type Value = RawBook<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array that ends with a channel and a symbol")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawBook<'de>, A::Error> {
        items.next_element::<IgnoredAny>()?;
        let part: BookPart = items.next_element()?.unwrap_or_default();
        let mut book = RawBook { part, second_bids: None, symbol: Text::default() };
        let mut place = 2;
        while let Some(element) = items.next_element::<Element<'de, BookPart>>()? {
            match element {
                Element::Object(second) if place == 2 => book.second_bids = second.bids,
                // The last text, but the fourth element of a snapshot however long it is.
                Element::Text(text) if place == 3 || !book.part.is_snapshot() => book.symbol = text,
                _ => {}
            }
            place += 1;
        }
        Ok(book)
    }
}

/// An element of a message.
pub(super) enum Element<'a, T> {
    Text(Text<'a>),
    Object(T),
    Other,
}

impl<'de: 'a, 'a, T: Deserialize<'de>> Deserialize<'de> for Element<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ElementVisitor(PhantomData))
    }
}

struct ElementVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ElementVisitor<T> {
    type Value = Element<'de, T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a part of a message")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Element::Text(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Element::Text(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Element::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Element::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Element::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Element::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        pass_over(&mut items)?;
        Ok(Element::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields)).map(Element::Object)
    }
}
