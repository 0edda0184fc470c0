//! Order books: a snapshot that is fetched, and updates that are sent meanwhile.
//!
//! Updates that come before the snapshot wait, and are applied to it if they are newer: prices are
//! told apart by their text. The first update after the snapshot must join on to it. History is
//! taken as it was recorded, but in live use a gap is an error, after which one connects again.

use std::borrow::Cow;
use std::collections::VecDeque;

use hashbrown::HashMap;
use serde::Deserialize;

use crate::exchanges::binance::book_side::{BookSide, RawLevel};
use crate::exchanges::binance::sequence::{Fit, Ids, Joint, Rules, Sequence};
use crate::exchanges::binance::{Sent, read};
use crate::mapper::{MapError, MapperSetup, Sink};
use crate::message::{BookChange, Message};
use crate::number::write_number;
use crate::raw::{Levels, Numeric, Text, date_of_micros};
use crate::time::Timestamp;

/// How many updates wait for a snapshot; then each new one drives out the oldest.
const WAITING_UPDATES: usize = 2_000;

/// The books of an exchange.
pub(super) struct Books {
    exchange: &'static str,
    rules: Rules,
    /// Symbols are in capitals, as in updates.
    by_symbol: HashMap<String, Book>,
}

enum Book {
    /// There was no snapshot yet: the messages with updates, oldest first.
    Waiting(VecDeque<Box<[u8]>>),
    Started(Sequence),
}

#[derive(Deserialize)]
struct RawUpdate<'a> {
    #[serde(rename = "E", default)]
    time: Numeric,
    #[serde(borrow, rename = "s", default)]
    symbol: Text<'a>,
    #[serde(rename = "U", default)]
    first_id: Numeric,
    #[serde(rename = "u", default)]
    last_id: Numeric,
    #[serde(rename = "pu", default)]
    previous_id: Numeric,
    #[serde(rename = "b", default)]
    bids: Levels,
    #[serde(rename = "a", default)]
    asks: Levels,
    /// Only snapshots have it.
    #[serde(rename = "lastUpdateId", default)]
    snapshot_id: Numeric,
}

/// An update that waited: its prices are needed as texts.
#[derive(Deserialize)]
struct RawWaiting<'a> {
    #[serde(rename = "U", default)]
    first_id: Numeric,
    #[serde(rename = "u", default)]
    last_id: Numeric,
    #[serde(rename = "pu", default)]
    previous_id: Numeric,
    #[serde(borrow, rename = "b", default)]
    bids: Vec<RawLevel<'a>>,
    #[serde(rename = "a", default)]
    asks: Vec<RawLevel<'a>>,
}

#[derive(Deserialize)]
struct RawSnapshot<'a> {
    #[serde(rename = "lastUpdateId", default)]
    id: Numeric,
    #[serde(rename = "T", default)]
    time: Numeric,
    #[serde(borrow, default)]
    bids: Vec<RawLevel<'a>>,
    #[serde(default)]
    asks: Vec<RawLevel<'a>>,
}

impl Books {
    pub(super) fn new(setup: &MapperSetup, joint: Joint) -> Self {
        let rules = Rules { joint, is_live: setup.is_live };
        Self { exchange: setup.exchange, rules, by_symbol: HashMap::new() }
    }

    /// Maps a message of the stream `symbol@channel`.
    pub(super) fn map(
        &mut self,
        message: &[u8],
        symbol: &str,
        channel: &str,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        if channel != "depthSnapshot" {
            let update: RawUpdate<'_> = read(self.exchange, message)?;
            if !update.snapshot_id.is_there() {
                return self.update(&update, message, local_timestamp, out);
            }
        }
        let snapshot: RawSnapshot<'_> = read(self.exchange, message)?;
        if !snapshot.id.is_there() {
            return Ok(());
        }
        self.start(symbol.to_uppercase(), snapshot, local_timestamp, out)
    }

    fn update(
        &mut self,
        update: &RawUpdate<'_>,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let sequence = match self.by_symbol.get_mut(&*update.symbol) {
            Some(Book::Started(sequence)) => sequence,
            Some(Book::Waiting(waiting)) => {
                if waiting.len() == WAITING_UPDATES {
                    waiting.pop_front();
                }
                waiting.push_back(message.into());
                return Ok(());
            }
            None => {
                let waiting = VecDeque::from([message.into()]);
                self.by_symbol.insert(update.symbol.0.clone().into_owned(), Book::Waiting(waiting));
                return Ok(());
            }
        };
        let ids = Ids {
            first: update.first_id.number(),
            last: update.last_id.number(),
            previous: update.previous_id,
        };
        match sequence.follow(ids, self.rules) {
            Fit::Past => return Ok(()),
            Fit::Gap => return Err(gap(self.exchange, message, sequence.snapshot_id)),
            Fit::Next => {}
        }
        out.take(&Message::BookChange(BookChange {
            symbol: update.symbol.lend(),
            exchange: Cow::Borrowed(self.exchange),
            is_snapshot: false,
            bids: Cow::Borrowed(&update.bids.0),
            asks: Cow::Borrowed(&update.asks.0),
            timestamp: date_of_micros(update.time),
            local_timestamp,
        }));
        Ok(())
    }

    /// Starts the book of `symbol`, unless it has started before.
    fn start(
        &mut self,
        symbol: String,
        snapshot: RawSnapshot<'_>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let book =
            self.by_symbol.entry_ref(&*symbol).or_insert_with(|| Book::Waiting(VecDeque::new()));
        if matches!(book, Book::Started(_)) {
            return Ok(());
        }
        let mut sequence = Sequence { snapshot_id: snapshot.id.number(), has_joined: false };
        let before = std::mem::replace(book, Book::Started(sequence));
        let waiting = if let Book::Waiting(waiting) = before { waiting } else { VecDeque::new() };
        let mut bids = BookSide::of(snapshot.bids);
        let mut asks = BookSide::of(snapshot.asks);
        for message in &waiting {
            let update: RawWaiting<'_> = read(self.exchange, message)?;
            let ids = Ids {
                first: update.first_id.number(),
                last: update.last_id.number(),
                previous: update.previous_id,
            };
            match sequence.follow(ids, self.rules) {
                Fit::Past => {}
                Fit::Gap => return Err(gap(self.exchange, message, sequence.snapshot_id)),
                Fit::Next => {
                    bids.apply(update.bids);
                    asks.apply(update.asks);
                }
            }
        }
        *book = Book::Started(sequence);
        let timestamp =
            if snapshot.time.is_there() { date_of_micros(snapshot.time) } else { local_timestamp };
        out.take(&Message::BookChange(BookChange {
            symbol: Cow::Owned(symbol),
            exchange: Cow::Borrowed(self.exchange),
            is_snapshot: true,
            bids: Cow::Owned(bids.levels()),
            asks: Cow::Owned(asks.levels()),
            timestamp,
            local_timestamp,
        }));
        Ok(())
    }
}

/// The error of an update that does not join on to the snapshot. It quotes the update.
#[cold]
fn gap(exchange: &'static str, message: &[u8], snapshot_id: f64) -> MapError {
    let update = sonic_rs::from_slice::<Sent<sonic_rs::LazyValue<'_>>>(message);
    let mut id = Vec::new();
    write_number(&mut id, snapshot_id);
    MapError::Inconsistent(format!(
        "Book depth snaphot has no overlap with first update, update {}, lastUpdateId: {}, \
         exchange {exchange}",
        update.as_ref().map_or("", |update| update.data.as_raw_str()),
        String::from_utf8_lossy(&id),
    ))
}

#[cfg(test)]
mod tests {
    use super::WAITING_UPDATES;
    use crate::exchanges::binance::tests::Mapping;

    fn snapshot(id: i64) -> String {
        format!(
            r#"{{"stream":"ab@depthSnapshot","generated":true,"data":{{"lastUpdateId":{id},"bids":[["1.0","9"]],"asks":[]}}}}"#
        )
    }

    fn update(first: i64, last: i64, previous: i64, bids: &str) -> String {
        format!(
            r#"{{"stream":"ab@depth@100ms","data":{{"e":"depthUpdate","E":1735689600123456,"s":"AB","U":{first},"u":{last},"pu":{previous},"b":{bids},"a":[]}}}}"#
        )
    }

    /// Whether a line is a snapshot, and its bids.
    fn content(line: &str) -> (bool, &str) {
        let is_snapshot = line.contains("\"isSnapshot\":true");
        let bids = line.split("\"bids\":").nth(1).and_then(|rest| rest.split(",\"asks\"").next());
        (is_snapshot, bids.unwrap_or_default())
    }

    #[test]
    fn updates_that_the_snapshot_holds_are_passed_over() {
        let is_sent = |exchange: &str, last: i64| {
            let mut mapping = Mapping::of_history(exchange);
            mapping.line(&snapshot(10));
            !mapping.line(&update(5, last, 4, "[]")).is_empty()
        };
        assert!(!is_sent("binance", 10) && is_sent("binance", 11));
        assert!(!is_sent("binance-futures", 9) && is_sent("binance-futures", 10));
    }

    #[test]
    fn updates_that_waited_change_the_snapshot() {
        let mut mapping = Mapping::of_history("binance");
        assert_eq!(mapping.line(&update(8, 10, 7, r#"[["2","1"]]"#)), "");
        assert_eq!(mapping.line(&update(11, 12, 10, r#"[["3","1"],["1.0","0"]]"#)), "");
        let line = mapping.line(&snapshot(10));
        assert_eq!(content(&line), (true, r#"[{"price":3,"amount":1}]"#));
        assert!(line.contains(r#""symbol":"AB""#), "{line}");
        let line = mapping.line(&update(13, 13, 12, r#"[["3","0"]]"#));
        assert_eq!(content(&line), (false, r#"[{"price":3,"amount":0}]"#));
        assert!(line.contains(r#""timestamp":"2025-01-01T00:00:00.123456Z""#), "{line}");
        assert_eq!(mapping.line(&snapshot(14)), "");
    }

    #[test]
    fn the_newest_updates_wait() {
        let mut mapping = Mapping::of_history("binance-futures");
        for id in 0..=i64::try_from(WAITING_UPDATES).unwrap() {
            let message = update(id, id, id - 1, &format!(r#"[["{}","1"]]"#, id + 100));
            assert_eq!(mapping.line(&message), "");
        }
        let line = mapping.line(&snapshot(0));
        assert!(!line.contains(r#""price":100,"#) && line.contains(r#""price":101,"#));
        assert_eq!(line.matches("price").count(), WAITING_UPDATES + 1);
    }

    #[test]
    fn a_gap_after_the_snapshot_is_an_error_in_live_use_only() {
        let late = update(12, 13, 11, "[]");
        let text = r#"Book depth snaphot has no overlap with first update, update {"e":"depthUpdate","E":1735689600123456,"s":"AB","U":12,"u":13,"pu":11,"b":[],"a":[]}, lastUpdateId: 10, exchange "#;
        for exchange in ["binance", "binance-delivery"] {
            let mut mapping = Mapping::of_history(exchange);
            mapping.line(&snapshot(10));
            assert!(!mapping.line(&late).is_empty());
            let mut mapping = Mapping::live(exchange);
            mapping.line(&snapshot(10));
            for _ in 0..2 {
                let error = mapping.map(&late).unwrap_err();
                assert_eq!(error.to_string(), format!("{text}{exchange}"));
            }
            let mut mapping = Mapping::live(exchange);
            mapping.line(&late);
            let error = mapping.map(&snapshot(10)).unwrap_err();
            assert_eq!(error.to_string(), format!("{text}{exchange}"));
        }
    }

    #[test]
    fn what_joins_on_to_a_snapshot_differs() {
        let joins = |exchange: &str, snapshot_id: i64, first: &str| {
            let mut mapping = Mapping::live(exchange);
            mapping.line(&snapshot(snapshot_id));
            let is_joined = mapping.map(first).is_ok();
            // Only the first update must join.
            assert!(!is_joined || mapping.map(&update(90, 91, 80, "[]")).is_ok());
            is_joined
        };
        assert!(joins("binance", 10, &update(11, 12, 0, "[]")));
        assert!(!joins("binance", 10, &update(12, 12, 10, "[]")));
        assert!(joins("binance", -1, &update(50, 51, 0, "[]")));
        assert!(joins("binance-futures", 10, &update(10, 12, 0, "[]")));
        assert!(joins("binance-futures", 10, &update(40, 42, 10, "[]")));
        assert!(!joins("binance-futures", 10, &update(11, 12, 9, "[]")));
        assert!(!joins("binance-futures", -1, &update(50, 51, 0, "[]")));
    }

    #[test]
    fn a_snapshot_is_known_by_its_id() {
        let mut mapping = Mapping::of_history("binance");
        let without =
            r#"{"stream":"ab@depthSnapshot","data":{"code":-1121,"msg":"Invalid symbol."}}"#;
        assert_eq!(mapping.line(without), "");
        let partial = r#"{"stream":"ab@depth20","data":{"lastUpdateId":3,"T":1735689600123,"bids":[[1.5,2]],"asks":[]}}"#;
        let line = mapping.line(partial);
        assert_eq!(content(&line), (true, r#"[{"price":1.5,"amount":2}]"#));
        assert!(line.contains(r#""timestamp":"2025-01-01T00:00:00.123Z""#), "{line}");
    }
}
