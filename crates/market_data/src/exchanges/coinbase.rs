//! Coinbase. Its times have microseconds; now and then one is of the year 1.

use std::borrow::Cow;
use std::fmt;

use hashbrown::HashMap;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use smallvec::SmallVec;

use crate::exchange::{Exchange, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{BookChange, BookLevel, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::raw::{self, Levels, Numeric, Text, iso_date_with_micros};
use crate::time::Timestamp;

const NAME: &str = "coinbase";

pub(super) const EXCHANGES: &[Exchange] = &[Exchange {
    id: NAME,
    normalizers: &[
        Normalizer { kind: Kind::Trades, periods: &[Period::open(Wanted::upper(&["match"]))] },
        Normalizer {
            kind: Kind::BookChanges,
            periods: &[Period::open(Wanted::upper(&["snapshot", "l2update"]))],
        },
        Normalizer {
            kind: Kind::BookTickers,
            periods: &[Period::open(Wanted::upper(&["ticker"]))],
        },
    ],
    mapper: |setup| Box::new(Coinbase { setup: *setup, last_times: HashMap::new() }),
}];

struct Coinbase {
    setup: MapperSetup,
    /// The time of each symbol's last book update.
    last_times: HashMap<String, Timestamp>,
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, default, rename = "type")]
    name: Text<'a>,
}

#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow)]
    product_id: Text<'a>,
    trade_id: Text<'a>,
    time: Text<'a>,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    size: Numeric,
}

#[derive(Deserialize)]
struct RawSnapshot<'a> {
    #[serde(borrow)]
    product_id: Text<'a>,
    bids: Levels,
    asks: Levels,
    time: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawUpdate<'a> {
    #[serde(borrow)]
    product_id: Text<'a>,
    time: Text<'a>,
    changes: Changes,
}

#[derive(Deserialize)]
struct RawTicker<'a> {
    #[serde(borrow)]
    product_id: Text<'a>,
    time: Option<Text<'a>>,
    #[serde(default)]
    best_bid: Numeric,
    #[serde(default)]
    best_bid_size: Numeric,
    #[serde(default)]
    best_ask: Numeric,
    #[serde(default)]
    best_ask_size: Numeric,
}

impl Mapper for Coinbase {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let name = match raw::leading_text(message, "type") {
            Some(name) => Cow::Borrowed(name),
            None => raw::read::<Typed<'_>>(NAME, message)?.name.0,
        };
        let wants = |kind| self.setup.wants(kind);
        match &*name {
            "match" if wants(Kind::Trades) => {
                map_trade(&raw::read(NAME, message)?, local_timestamp, out);
            }
            "snapshot" if wants(Kind::BookChanges) => {
                map_snapshot(raw::read(NAME, message)?, local_timestamp, out);
            }
            "l2update" if wants(Kind::BookChanges) => {
                self.map_update(&raw::read(NAME, message)?, local_timestamp, out);
            }
            "ticker" if wants(Kind::BookTickers) => {
                map_ticker(&raw::read(NAME, message)?, local_timestamp, out);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Coinbase {
    /// An update whose time is wrong has the time of the one before; if there is none, its place
    /// among the other messages is not known.
    fn map_update(
        &mut self,
        message: &RawUpdate<'_>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let symbol = &*message.product_id;
        let timestamp = if let Some(time) = plausible_time(&message.time) {
            *self.last_times.entry_ref(symbol).insert(time).get()
        } else if let Some(time) = self.last_times.get(symbol) {
            *time
        } else {
            return;
        };
        out.take(&Message::BookChange(BookChange {
            symbol: Cow::Borrowed(symbol),
            exchange: Cow::Borrowed(NAME),
            is_snapshot: false,
            bids: Cow::Borrowed(&message.changes.bids),
            asks: Cow::Borrowed(&message.changes.asks),
            timestamp,
            local_timestamp,
        }));
    }
}

/// The time unless it is before 1970.
fn plausible_time(text: &str) -> Option<Timestamp> {
    let time = iso_date_with_micros(text);
    (time.micros().is_none_or(|micros| micros >= 0)).then_some(time)
}

fn map_trade(row: &RawTrade<'_>, local_timestamp: Timestamp, out: &mut dyn Sink) {
    out.take(&Message::Trade(Trade {
        symbol: row.product_id.lend(),
        exchange: Cow::Borrowed(NAME),
        id: Some(row.trade_id.lend()),
        price: row.price.number(),
        amount: row.size.number(),
        // The exchange gives the maker's side.
        side: if &*row.side == "sell" { Side::Buy } else { Side::Sell },
        timestamp: iso_date_with_micros(&row.time),
        local_timestamp,
    }));
}

fn map_snapshot(mut message: RawSnapshot<'_>, local_timestamp: Timestamp, out: &mut dyn Sink) {
    // There were amounts such as `0.-10000`.
    for side in [&mut message.bids, &mut message.asks] {
        side.0.retain(|level| level.amount >= 0.0);
    }
    out.take(&Message::BookChange(BookChange {
        symbol: message.product_id.lend(),
        exchange: Cow::Borrowed(NAME),
        is_snapshot: true,
        bids: Cow::Borrowed(&message.bids.0),
        asks: Cow::Borrowed(&message.asks.0),
        timestamp: time_or(message.time.as_deref(), local_timestamp),
        local_timestamp,
    }));
}

fn map_ticker(row: &RawTicker<'_>, local_timestamp: Timestamp, out: &mut dyn Sink) {
    out.take(&Message::BookTicker(BookTicker {
        symbol: row.product_id.lend(),
        exchange: Cow::Borrowed(NAME),
        ask_amount: row.best_ask_size.number_if_there(),
        ask_price: row.best_ask.number_if_there(),
        bid_price: row.best_bid.number_if_there(),
        bid_amount: row.best_bid_size.number_if_there(),
        order: BookTickerOrder::DEFAULT,
        timestamp: time_or(row.time.as_deref(), local_timestamp),
        local_timestamp,
    }));
}

fn time_or(text: Option<&str>, local_timestamp: Timestamp) -> Timestamp {
    text.and_then(plausible_time).unwrap_or(local_timestamp)
}

/// Changed levels, each given as an array of side, price and amount.
#[derive(Default)]
struct Changes {
    bids: SmallVec<[BookLevel; 8]>,
    asks: SmallVec<[BookLevel; 8]>,
}

impl<'de> Deserialize<'de> for Changes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ChangesVisitor)
    }
}

struct ChangesVisitor;

impl<'de> Visitor<'de> for ChangesVisitor {
    type Value = Changes;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of changes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Changes, A::Error> {
        let mut changes = Changes::default();
        while let Some(Change { side, level }) = items.next_element()? {
            match &*side {
                "buy" => changes.bids.push(level),
                "sell" => changes.asks.push(level),
                _ => {}
            }
        }
        Ok(changes)
    }
}

struct Change<'a> {
    side: Text<'a>,
    level: BookLevel,
}

impl<'de> Deserialize<'de> for Change<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ChangeVisitor)
    }
}

struct ChangeVisitor;

impl<'de> Visitor<'de> for ChangeVisitor {
    type Value = Change<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of a side, a price and an amount")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Change<'de>, A::Error> {
        let side = items.next_element()?.unwrap_or_default();
        let price = items.next_element::<Numeric>()?.unwrap_or_default().number();
        let amount = items.next_element::<Numeric>()?.unwrap_or_default().number();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Change { side, level: BookLevel { price, amount } })
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    const AT: &str = "2024-01-01T00:00:00.000Z";

    #[test]
    fn updates_without_a_time_need_an_earlier_one_of_their_symbol() {
        let update = |symbol: &str, time: &str| {
            format!(
                r#"{{"type":"l2update","product_id":"{symbol}","changes":[["buy","9202.70","0"],["hold","1","2"],["sell","9222.39","0.5","extra"]],"time":"{time}"}}"#
            )
        };
        let wrong = "0001-01-01T00:00:00.000000Z";
        let messages = [
            update("BTC-EUR", wrong),
            update("BTC-EUR", "2021-04-01T00:00:01.618503Z"),
            update("ETH-EUR", wrong),
            update("BTC-EUR", wrong),
            update("BTC-EUR", "2021-04-01T00:00:01.61850Z"),
        ];
        let found = map_all("coinbase", AT, &messages.each_ref().map(|message| &**message));
        let counts: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(counts, [0, 1, 0, 1, 1]);
        assert_eq!(
            found[3],
            [
                r#"{"type":"book_change","symbol":"BTC-EUR","exchange":"coinbase","isSnapshot":false,"bids":[{"price":9202.7,"amount":0}],"asks":[{"price":9222.39,"amount":0.5}],"timestamp":"2021-04-01T00:00:01.618503Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
            ]
        );
        assert!(found[4][0].contains(r#""timestamp":"2021-04-01T00:00:01.618000Z""#));
    }

    #[test]
    fn snapshots_and_tickers_without_a_time_have_that_of_their_arrival() {
        let messages = [
            r#"{"type":"snapshot","product_id":"YFI-USD","asks":[["1","0"],["2","-1"]],"bids":[],"time":"0001-01-01T00:00:00.000000Z"}"#,
            r#"{"type":"snapshot","product_id":"YFI-USD","asks":[],"bids":[],"time":"2022-12-01T00:00:00.122581Z"}"#,
            r#"{"type":"ticker","product_id":"BTC-USD","best_bid":"","best_ask":"4095"}"#,
            r#"{"type":"ticker","product_id":"BTC-USD","best_bid":"0","time":"0001-01-01T00:00:00.000000Z"}"#,
        ];
        let head = r#"{"type":"book_change","symbol":"YFI-USD","exchange":"coinbase","isSnapshot":true,"bids":[],"#;
        let arrival = r#""timestamp":"2024-01-01T00:00:00.000001Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#;
        let ticker = r#"{"type":"book_ticker","symbol":"BTC-USD","exchange":"coinbase","#;
        assert_eq!(
            map_all("coinbase", AT, &messages).concat(),
            [
                format!(r#"{head}"asks":[{{"price":1,"amount":0}}],{arrival}"#),
                format!(
                    r#"{head}"asks":[],"timestamp":"2022-12-01T00:00:00.122581Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}}"#
                ),
                format!(r#"{ticker}"askPrice":4095,"bidPrice":0,{arrival}"#),
                format!(r#"{ticker}"bidPrice":0,{arrival}"#),
            ]
        );
    }

    #[test]
    fn other_messages_are_passed_over() {
        let messages = [
            r#"{"type":"subscriptions","channels":[]}"#,
            r#"{"type":"last_match","trade_id":1,"product_id":"BTC-USD"}"#,
            r#"{"channels":[]}"#,
        ];
        assert!(map_all("coinbase", AT, &messages).concat().is_empty());
    }
}
