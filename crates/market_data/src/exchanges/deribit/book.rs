//! Order books: a level says whether it is new, changed or deleted.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use smallvec::SmallVec;

use crate::exchanges::deribit::NAME;
use crate::exchanges::deribit::instrument::in_capitals;
use crate::mapper::Sink;
use crate::message::{BookChange, BookLevel, Message};
use crate::raw::{Numeric, Text, date_of_millis};
use crate::time::Timestamp;

#[derive(Deserialize)]
pub(super) struct RawBook<'a> {
    #[serde(borrow)]
    instrument_name: Text<'a>,
    #[serde(rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(default)]
    prev_change_id: Numeric,
    #[serde(default)]
    bids: RawLevels,
    #[serde(default)]
    asks: RawLevels,
    #[serde(default)]
    timestamp: Numeric,
}

impl RawBook<'_> {
    /// Snapshots follow on no change; early ones did not say what they are.
    fn is_snapshot(&self) -> bool {
        self.kind.as_deref() == Some("snapshot")
            || matches!(self.prev_change_id, Numeric::Absent | Numeric::Value(0.0))
    }
}

pub(super) fn send(book: &RawBook<'_>, local_timestamp: Timestamp, out: &mut dyn Sink) {
    out.take(&Message::BookChange(BookChange {
        symbol: in_capitals(&book.instrument_name),
        exchange: Cow::Borrowed(NAME),
        is_snapshot: book.is_snapshot(),
        bids: Cow::Borrowed(&book.bids.0),
        asks: Cow::Borrowed(&book.asks.0),
        timestamp: date_of_millis(book.timestamp),
        local_timestamp,
    }));
}

/// Levels given as arrays of an action, a price and an amount.
#[derive(Default)]
struct RawLevels(SmallVec<[BookLevel; 8]>);

impl<'de> Deserialize<'de> for RawLevels {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LevelsVisitor)
    }
}

struct LevelsVisitor;

impl<'de> Visitor<'de> for LevelsVisitor {
    type Value = RawLevels;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of price levels")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawLevels, A::Error> {
        let mut levels = SmallVec::new();
        while let Some(RawLevel(level)) = items.next_element()? {
            levels.push(level);
        }
        Ok(RawLevels(levels))
    }
}

struct RawLevel(BookLevel);

impl<'de> Deserialize<'de> for RawLevel {
    #[inline]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = RawLevel;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of an action, a price and an amount")
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<RawLevel, A::Error> {
        let action = items.next_element::<Text<'_>>()?;
        let price = items.next_element::<Numeric>()?.unwrap_or_default().number();
        let amount = items.next_element::<Numeric>()?.unwrap_or_default().number();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        let is_deleted = action.is_some_and(|action| &*action == "delete");
        Ok(RawLevel(BookLevel { price, amount: if is_deleted { 0.0 } else { amount } }))
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::deribit::tests::{lines, mapper};

    fn book(rest: &str) -> String {
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"book.X.raw","data":{{"timestamp":1,"instrument_name":"X","change_id":9{rest}}}}}}}"#
        );
        lines(&mut *mapper(), &message).concat()
    }

    #[test]
    fn a_deleted_level_has_no_amount() {
        let line =
            book(r#","prev_change_id":8,"bids":[["delete",1.5,7],["change",1,0.5]],"asks":[]"#);
        assert!(line.contains(
            r#""isSnapshot":false,"bids":[{"price":1.5,"amount":0},{"price":1,"amount":0.5}],"asks":[]"#
        ), "{line}");
    }

    #[test]
    fn a_snapshot_says_so_or_follows_on_no_change() {
        let is_snapshot = |rest: &str| {
            book(&format!(r#"{rest},"bids":[],"asks":[]"#)).contains("\"isSnapshot\":true")
        };
        assert!(is_snapshot(""));
        assert!(is_snapshot(r#","type":"change""#));
        assert!(is_snapshot(r#","type":"change","prev_change_id":0"#));
        assert!(is_snapshot(r#","type":"snapshot","prev_change_id":8"#));
        assert!(!is_snapshot(r#","type":"change","prev_change_id":8"#));
        assert!(!is_snapshot(r#","prev_change_id":null"#));
    }
}
