//! What an array is about: it begins with the id of a channel, and may end with the channel's name
//! and a symbol.

use std::borrow::Cow;

use serde::de::SeqAccess;

use super::cells::{Cells, FromCells, Other, cell};
use crate::mapper::MapError;
use crate::raw;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Address<'a> {
    pub(super) id: Option<u64>,
    /// The last value but one, if it is a text.
    pub(super) channel: Option<Cow<'a, str>>,
    /// The last value, if it is a text.
    pub(super) symbol: Option<Cow<'a, str>>,
}

/// The id of a channel that is given as a number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // both are looked at
pub(super) fn channel_id(number: f64) -> Option<u64> {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    let is_id = (0.0..=LARGEST).contains(&number) && number.fract() == 0.0;
    is_id.then_some(number as u64)
}

impl<'a> Address<'a> {
    pub(super) fn of(exchange: &'static str, message: &'a [u8]) -> Result<Self, MapError> {
        if let Some(address) = Self::at_the_ends(message) {
            return Ok(address);
        }
        raw::read(exchange, message).map(|Cells(address)| address)
    }

    /// Looks only at the two ends, which is enough for nearly all messages and saves reading those
    /// that nobody asked for.
    fn at_the_ends(message: &'a [u8]) -> Option<Self> {
        let body = message.strip_prefix(b"[")?.strip_suffix(b"]")?;
        let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || digits > 15 || body.get(digits) != Some(&b',') {
            return None;
        }
        let id = body[..digits].iter().fold(0, |id, digit| id * 10 + u64::from(digit - b'0'));
        let (symbol, before) = last_value(body)?;
        let (channel, _) = last_value(before)?;
        Some(Self { id: Some(id), channel, symbol })
    }
}

/// The last of some values, if it is a text, and the values before it. `None` unless it is a plain
/// number or a text without escapes, or ends an array.
fn last_value(values: &[u8]) -> Option<(Option<Cow<'_, str>>, &[u8])> {
    if let Some(open) = values.strip_suffix(b"\"") {
        let quote = memchr::memrchr(b'"', open)?;
        let text = &open[quote + 1..];
        let before = &open[..quote];
        if text.contains(&b'\\') || before.ends_with(b"\\") {
            return None;
        }
        return Some((
            Some(Cow::Borrowed(std::str::from_utf8(text).ok()?)),
            without_comma(before)?,
        ));
    }
    if values.ends_with(b"]") {
        // Where that array begins is not known, but nothing before the last two is asked for.
        return Some((None, &[]));
    }
    let digits = values.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let before = &values[..values.len() - digits];
    (digits > 0).then_some((None, without_comma(before)?))
}

/// `values` without the comma at their end, or nothing at their beginning.
fn without_comma(values: &[u8]) -> Option<&[u8]> {
    if values.is_empty() { Some(values) } else { values.strip_suffix(b",") }
}

impl<'de> FromCells<'de> for Address<'de> {
    const EXPECTED: &'static str = "an array that begins with a channel's id";

    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        let Cells(first): Cells<Value> = cell(cells)?;
        let id = first.number.and_then(channel_id);
        let mut last = [None, first.text];
        while let Some(Cells(Value { text, .. })) = cells.next_element()? {
            last = [last[1].take(), text];
        }
        let [channel, symbol] = last.map(|text| text.map(Cow::Owned));
        Ok(Self { id, channel, symbol })
    }
}

#[derive(Default)]
struct Value {
    number: Option<f64>,
    text: Option<String>,
}

impl<'de> FromCells<'de> for Value {
    const EXPECTED: &'static str = "any value";

    fn from_cells<A: SeqAccess<'de>>(_: &mut A) -> Result<Self, A::Error> {
        Ok(Self::default())
    }

    fn from_other(other: Other<'_>) -> Option<Self> {
        Some(match other {
            Other::Text(text) => Self { number: None, text: Some(text.to_owned()) },
            Other::Number(number) => Self { number: Some(number), text: None },
            Other::Null | Other::Object => Self::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_reading_find_the_same() {
        for (message, is_quick) in [
            (r#"[1,[2,3],4,5,"book","BTCUSD"]"#, true),
            (r#"[1,[2,3],"BTCUSD"]"#, true),
            (r#"[1,"te",[2,3],4,5]"#, true),
            (r#"[1,"te",[2,3]]"#, false),
            (r#"[1,"hb"]"#, true),
            (r#"[1,"hb",2]"#, true),
            (r#"[1,[["a","b"],["c","d"]],5]"#, true),
            (r#"[1,"bo\"ok","BTC\\USD"]"#, false),
            (r#"[1, "book", "BTCUSD"]"#, false),
            (r#"[1,null,{"a":1}]"#, false),
            (r#"[-1,"a","b"]"#, false),
            (r#"["1","a","b"]"#, false),
            ("[1.5,2,3]", false),
            ("[1]", false),
            ("[]", false),
        ] {
            let bytes = message.as_bytes();
            let quick = Address::at_the_ends(bytes);
            assert_eq!(quick.is_some(), is_quick, "{message}");
            let whole = raw::read::<Cells<Address<'_>>>("bitfinex", bytes).unwrap().0;
            assert_eq!(
                quick.unwrap_or_else(|| Address::of("", bytes).unwrap()),
                whole,
                "{message}"
            );
        }
    }
}
