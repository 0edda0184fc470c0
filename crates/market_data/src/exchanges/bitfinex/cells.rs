//! Values given as arrays, cell by cell. What an array has beyond the cells that are read, and what
//! stands in the place of an array, depends on the kind of message.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};

/// A value read from an array.
#[derive(Debug, Default)]
pub(super) struct Cells<T>(pub(super) T);

/// What can be read from an array.
pub(super) trait FromCells<'de>: Sized {
    /// What is expected, for the words of an error.
    const EXPECTED: &'static str;

    /// Reads the array; cells that it leaves are passed over.
    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error>;

    /// What something else than an array means; `None` = it is an error.
    fn from_other(_: Other<'_>) -> Option<Self> {
        None
    }
}

/// What stands in the place of an array.
#[derive(Clone, Copy, Debug)]
pub(super) enum Other<'a> {
    Text(&'a str),
    Number(f64),
    Null,
    Object,
}

/// The next cell, or its default at the end of the array.
#[inline]
pub(super) fn cell<'de, A: SeqAccess<'de>, T: Deserialize<'de> + Default>(
    cells: &mut A,
) -> Result<T, A::Error> {
    Ok(cells.next_element()?.unwrap_or_default())
}

/// Passes over `count` cells.
#[inline]
pub(super) fn pass<'de, A: SeqAccess<'de>>(cells: &mut A, count: usize) -> Result<(), A::Error> {
    for _ in 0..count {
        cells.next_element::<IgnoredAny>()?;
    }
    Ok(())
}

impl<'de, T: FromCells<'de>> Deserialize<'de> for Cells<T> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader(PhantomData)).map(Cells)
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: FromCells<'de>> Reader<T> {
    fn other<E: Error>(&self, other: Other<'_>) -> Result<T, E> {
        T::from_other(other).ok_or_else(|| {
            let unexpected = match other {
                Other::Text(text) => Unexpected::Str(text),
                Other::Number(number) => Unexpected::Float(number),
                Other::Null => Unexpected::Unit,
                Other::Object => Unexpected::Map,
            };
            E::invalid_type(unexpected, self)
        })
    }
}

#[allow(clippy::cast_precision_loss)] // integers past 2^53 lose digits, as they do in JavaScript
impl<'de, T: FromCells<'de>> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(T::EXPECTED)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut cells: A) -> Result<T, A::Error> {
        let value = T::from_cells(&mut cells)?;
        while cells.next_element::<IgnoredAny>()?.is_some() {}
        Ok(value)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<T, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        self.other(Other::Object)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        self.other(Other::Text(text))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.other(Other::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.other(Other::Number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.other(Other::Number(number as f64))
    }

    fn visit_bool<E: Error>(self, is_true: bool) -> Result<T, E> {
        self.other(Other::Number(f64::from(u8::from(is_true))))
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        self.other(Other::Null)
    }
}
