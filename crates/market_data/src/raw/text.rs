//! Texts that come as strings or as numbers.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};

use crate::number::write_number;

/// A text; a number in its place is written as JavaScript's `String(value)` does. Strings without
/// escapes are borrowed, in lists and options too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Text<'_> {
    /// The same text for as long as this one lives.
    #[must_use]
    pub(crate) fn lend(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

pub(super) struct TextVisitor;

#[allow(clippy::cast_precision_loss)] // integers past 2^53 lose digits, as they do in JavaScript
impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or a number")
    }

    #[inline]
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Text<'de>, E> {
        Ok(number_text(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Text<'de>, E> {
        Ok(number_text(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Text<'de>, E> {
        Ok(number_text(value))
    }
}

fn number_text<'a>(value: f64) -> Text<'a> {
    let mut text = Vec::with_capacity(24);
    write_number(&mut text, value);
    Text(Cow::Owned(String::from_utf8(text).unwrap_or_default()))
}

/// Reads a text only if it is a string: a number or `null` in its place is none. Use it with
/// `#[serde(default, deserialize_with = "only_string")]`.
pub(crate) fn only_string<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Text<'a>>, D::Error> {
    deserializer.deserialize_any(OnlyStringVisitor)
}

struct OnlyStringVisitor;

impl<'de> Visitor<'de> for OnlyStringVisitor {
    type Value = Option<Text<'de>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or a number")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Option<Text<'de>>, E> {
        Ok(Some(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<Text<'de>>, E> {
        Ok(Some(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<Text<'de>>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<Text<'de>>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<Text<'de>>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<Text<'de>>, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_borrowed_and_numbers_written() {
        let texts: Vec<Text<'_>> =
            sonic_rs::from_str(r#"["a","b\"c",17,-2.5,9007199254740993]"#).unwrap();
        let written: Vec<&str> = texts.iter().map(|text| &**text).collect();
        assert_eq!(written, ["a", "b\"c", "17", "-2.5", "9007199254740992"]);
        assert!(matches!(texts[0].0, Cow::Borrowed(_)));
    }

    #[test]
    fn only_strings_count_where_only_strings_may() {
        #[derive(serde::Deserialize)]
        struct Id<'a>(#[serde(borrow, deserialize_with = "only_string")] Option<Text<'a>>);
        let ids: Vec<Id<'_>> = sonic_rs::from_str(r#"["a","b\"c",17,-2,2.5,null]"#).unwrap();
        let ids: Vec<Option<&str>> = ids.iter().map(|id| id.0.as_deref()).collect();
        assert_eq!(ids, [Some("a"), Some("b\"c"), None, None, None, None]);
    }
}
