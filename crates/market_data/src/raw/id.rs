//! Ids that come as numbers or as strings.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

use crate::raw::text::TextVisitor;

/// An id that comes as a number or a string: [`Text`] for the hottest messages, without memory of
/// its own for a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Id<'a> {
    /// A whole number that a double holds exactly.
    Whole(u64),
    /// Anything else, as JavaScript's `String(value)` writes it.
    Written(Cow<'a, str>),
}

impl Id<'_> {
    /// The id as a text that may stand in `room`.
    #[inline]
    #[must_use]
    pub(crate) fn lend<'b>(&'b self, room: &'b mut itoa::Buffer) -> Cow<'b, str> {
        Cow::Borrowed(match self {
            Self::Whole(number) => room.format(*number),
            Self::Written(text) => text,
        })
    }
}

/// The id of a message that has none.
impl Default for Id<'_> {
    fn default() -> Self {
        Self::Written(Cow::Borrowed("undefined"))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Id<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl<'de> Visitor<'de> for IdVisitor {
    type Value = Id<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number or a string")
    }

    #[inline]
    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Id<'de>, E> {
        if value <= 1 << 53 {
            return Ok(Id::Whole(value));
        }
        TextVisitor.visit_u64(value).map(|text| Id::Written(text.0))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Id<'de>, E> {
        TextVisitor.visit_i64(value).map(|text| Id::Written(text.0))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Id<'de>, E> {
        TextVisitor.visit_f64(value).map(|text| Id::Written(text.0))
    }

    #[inline]
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Id<'de>, E> {
        Ok(Id::Written(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Id<'de>, E> {
        Ok(Id::Written(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Id<'de>, E> {
        Ok(Id::Written(Cow::Borrowed("null")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_javascript_does() {
        let ids: Vec<Id<'_>> = sonic_rs::from_str(r#"[17,"a",-3,9007199254740993]"#).unwrap();
        let mut room = itoa::Buffer::new();
        let written: Vec<String> = ids.iter().map(|id| id.lend(&mut room).into_owned()).collect();
        assert_eq!(written, ["17", "a", "-3", "9007199254740992"]);
    }
}
