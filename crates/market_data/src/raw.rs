//! Reading exchanges' own JSON the way JavaScript does: numbers that come as text, missing fields,
//! dates of every kind. Everything borrows from the message.

mod compact;
mod cursor;
mod date;
mod id;
mod moment;
mod nesting;
mod numeric;
mod rows;
mod text;

pub(crate) use cursor::{Cursor, Unusual};
pub(crate) use date::{date_of_micros, date_of_millis, iso_date, iso_date_with_micros};
pub(crate) use id::Id;
pub(crate) use moment::{Moment, date_of_seconds, date_of_whole_micros};
pub(crate) use nesting::is_too_deep;
pub(crate) use numeric::{Numeric, number_of_text};
pub(crate) use rows::{Levels, Rows};
pub(crate) use text::{Text, only_string};

use serde::Deserialize;

use crate::eight_bytes::end_of_plain;
use crate::mapper::MapError;

/// Reads `json` of `exchange` as a `T`.
#[inline]
pub(crate) fn read<'a, T: Deserialize<'a>>(
    exchange: &'static str,
    json: &'a [u8],
) -> Result<T, MapError> {
    compact::read(json).or_else(|_| read_any(exchange, json))
}

/// Reads JSON that is not written as usual, and says what is wrong if it is not JSON of this kind.
#[cold]
fn read_any<'a, T: Deserialize<'a>>(exchange: &'static str, json: &'a [u8]) -> Result<T, MapError> {
    if is_too_deep(json) {
        return Err(MapError::Unreadable { exchange, reason: "nested too deeply".to_owned() });
    }
    sonic_rs::from_slice(json).map_err(|error| MapError::Unreadable {
        exchange,
        reason: error.to_string().lines().next().unwrap_or_default().trim_end().to_owned(),
    })
}

/// The value of `key` if it is the first field of the object `json`, a string, and has no escapes:
/// a look at the beginning that saves a whole reading of messages which nobody asked for.
#[must_use]
pub(crate) fn leading_text<'a>(json: &'a [u8], key: &str) -> Option<&'a str> {
    let rest = json.strip_prefix(b"{\"")?.strip_prefix(key.as_bytes())?.strip_prefix(b"\":\"")?;
    let (text, rest) = rest.split_at_checked(end_of_plain(rest, 0))?;
    if rest.first() != Some(&b'"') {
        return None;
    }
    std::str::from_utf8(text).ok()
}

/// A date or time in ISO 8601 as people write it: `2019-06-01`, `2019-06-01T00:10`, with or without
/// seconds and a zone; without one it is UTC. Invalid if it is none.
#[must_use]
pub fn parse_date(text: &str) -> crate::time::Timestamp {
    iso_date(text)
}
