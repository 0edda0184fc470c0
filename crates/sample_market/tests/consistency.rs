//! A replay over many minutes gives in each the book that the sample market says it has, and
//! numbers of messages chain.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

mod reading;

use std::collections::BTreeMap;

use market_data::{BookLevel, Filter, Kind, Kinds, Mapper, Message, Timestamp};
use reading::{Line, address, minute, minute_text, read, shaky_market};
use sample_market::{SampleBook, SampleMarket, SampleOptions};
use serde_json::Value;

/// A side of a book by the bits of its prices, which sort as the prices do.
type Side = BTreeMap<u64, f64>;

#[derive(Clone, Debug, Default, PartialEq)]
struct Book {
    bids: Side,
    asks: Side,
}

impl Book {
    fn is_crossed(&self) -> bool {
        let best = (self.bids.last_key_value(), self.asks.first_key_value());
        matches!(best, (Some((bid, _)), Some((ask, _))) if bid >= ask)
    }
}

fn set(side: &mut Side, price: f64, amount: f64) {
    if amount == 0.0 {
        assert!(side.remove(&price.to_bits()).is_some(), "{price} was not there");
    } else {
        side.insert(price.to_bits(), amount);
    }
}

fn expected(books: &[SampleBook]) -> BTreeMap<String, Book> {
    let side = |levels: &[(f64, f64)]| {
        levels.iter().map(|(price, amount)| (price.to_bits(), *amount)).collect()
    };
    books
        .iter()
        .map(|book| (book.symbol.clone(), Book { bids: side(&book.bids), asks: side(&book.asks) }))
        .collect()
}

/// What a client knows of the books. A book that had no snapshot is not there.
#[derive(Default)]
struct Client {
    books: BTreeMap<String, Book>,
    /// Number of the last change, also of books that had no snapshot.
    numbers: BTreeMap<String, u64>,
    crossed: usize,
}

impl Client {
    /// Applies levels with the text of what happened to each.
    fn apply(&mut self, symbol: &str, is_snapshot: bool, levels: &[(bool, f64, f64)]) {
        if is_snapshot {
            self.books.insert(symbol.to_owned(), Book::default());
        }
        let Some(book) = self.books.get_mut(symbol) else { return };
        for (is_bid, price, amount) in levels {
            set(if *is_bid { &mut book.bids } else { &mut book.asks }, *price, *amount);
        }
        self.crossed += usize::from(book.is_crossed());
    }

    /// Numbers chain from message to message, also over minutes.
    fn chain(&mut self, symbol: &str, before: u64, number: u64) {
        if let Some(known) = self.numbers.insert(symbol.to_owned(), number) {
            assert_eq!(known, before, "{symbol}: a change is missing");
        }
        assert!(number > before);
    }

    fn take_binance(&mut self, json: &Value) {
        let (channel, symbol) = address("binance-futures", json);
        let data = &json["data"];
        let levels = |bids: &str, asks: &str| {
            let side = |name: &str, is_bid| {
                let levels = data[name].as_array().unwrap().iter();
                levels.map(move |level| (is_bid, number(&level[0]), number(&level[1])))
            };
            side(bids, true).chain(side(asks, false)).collect::<Vec<_>>()
        };
        if channel == "depthSnapshot" {
            let last = data["lastUpdateId"].as_u64().unwrap();
            // The change before is the one that the snapshot ends with.
            assert_eq!(self.numbers.insert(symbol.clone(), last), Some(last));
            let before = self.books.get(&symbol).cloned();
            self.apply(&symbol, true, &levels("bids", "asks"));
            // At midnight the connection goes on: a client may pass the snapshot over.
            assert!(before.is_none_or(|book| book == self.books[&symbol]));
        } else if channel == "depth" {
            let (first, last) = (data["U"].as_u64().unwrap(), data["u"].as_u64().unwrap());
            let before = data["pu"].as_u64().unwrap();
            assert_eq!(first, before + 1);
            self.chain(&symbol, before, last);
            self.apply(&symbol, false, &levels("b", "a"));
        }
    }

    fn take_deribit(&mut self, json: &Value) {
        let (channel, symbol) = address("deribit", json);
        if channel != "book" {
            return;
        }
        let data = &json["params"]["data"];
        let side = |name: &str, is_bid| {
            let levels = data[name].as_array().unwrap().iter();
            levels.map(move |level| (is_bid, number(&level[1]), number(&level[2])))
        };
        let levels: Vec<_> = side("bids", true).chain(side("asks", false)).collect();
        let last = data["change_id"].as_u64().unwrap();
        let is_snapshot = data["type"] == "snapshot";
        if is_snapshot {
            self.numbers.insert(symbol.clone(), last);
        } else {
            self.chain(&symbol, data["prev_change_id"].as_u64().unwrap(), last);
        }
        self.apply(&symbol, is_snapshot, &levels);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

/// Replays minutes and compares at each beginning what the client has. Returns how often a book was
/// compared and how often it was crossed.
fn replay(
    market: &SampleMarket,
    exchange: &str,
    minutes: std::ops::Range<i64>,
    mut take: impl FnMut(&mut Client, &Line),
) -> (usize, usize) {
    let mut client = Client::default();
    let mut compared = 0;
    for number in minutes {
        let expected = expected(&market.books(exchange, minute(number)).unwrap());
        // Options of the day before are no longer traded.
        client.books.retain(|symbol, _| expected.contains_key(symbol));
        for (symbol, book) in &client.books {
            assert_eq!(book, &expected[symbol], "{exchange} {symbol} in minute {number}");
            assert!(!book.is_crossed());
            compared += 1;
        }
        for line in read(&minute_text(market, exchange, minute(number))) {
            if matches!(line, Line::Disconnect) {
                let numbers = std::mem::take(&mut client.numbers);
                assert!(!numbers.is_empty());
                client.books.clear();
            }
            take(&mut client, &line);
        }
    }
    (compared, client.crossed)
}

fn bitmex_mapper() -> Box<dyn Mapper> {
    let exchange = market_data::exchange("bitmex").unwrap();
    exchange.mapper(Kinds::default().with(Kind::BookChanges), Some(minute(0)))
}

/// Through the mapper that real messages go through.
fn replay_bitmex(market: &SampleMarket, minutes: std::ops::Range<i64>) -> (usize, usize) {
    let mut mapper = bitmex_mapper();
    replay(market, "bitmex", minutes, |client, line| {
        let Line::Message { local, text, .. } = line else {
            mapper = bitmex_mapper();
            return;
        };
        let local = Timestamp::parse(local).unwrap();
        take_bitmex(client, &mut *mapper, &text.as_bytes()[29..], local);
    })
}

fn take_bitmex(client: &mut Client, mapper: &mut dyn Mapper, message: &[u8], local: Timestamp) {
    let mut take = |message: &Message<'_>| {
        let Message::BookChange(change) = message else { panic!("{message:?}") };
        let level = |is_bid| move |level: &BookLevel| (is_bid, level.price, level.amount);
        let bids = change.bids.iter().map(level(true));
        let levels: Vec<_> = bids.chain(change.asks.iter().map(level(false))).collect();
        client.numbers.insert(change.symbol.to_string(), 0);
        client.apply(&change.symbol, change.is_snapshot, &levels);
    };
    mapper.map(message, local, &mut take).unwrap();
}

fn replay_binance(market: &SampleMarket, minutes: std::ops::Range<i64>) -> (usize, usize) {
    replay(market, "binance-futures", minutes, |client, line| {
        if let Line::Message { json, .. } = line {
            client.take_binance(json);
        }
    })
}

fn replay_deribit(market: &SampleMarket, minutes: std::ops::Range<i64>) -> (usize, usize) {
    replay(market, "deribit", minutes, |client, line| {
        if let Line::Message { json, .. } = line {
            client.take_deribit(json);
        }
    })
}

#[test]
fn a_replay_has_the_books_of_every_minute() {
    let market = shaky_market();
    for (found, symbols) in [
        (replay_bitmex(&market, 0..7), 4),
        (replay_binance(&market, 0..7), 4),
        (replay_deribit(&market, 0..7), 10),
    ] {
        let (compared, crossed) = found;
        assert_eq!(compared, 6 * symbols);
        assert!(crossed > 0, "no book is ever crossed");
    }
}

#[test]
fn a_replay_goes_on_over_midnight() {
    let market = SampleMarket::new(SampleOptions {
        messages_per_second: 20,
        disconnects_per_hour: 0.0,
        ..SampleOptions::default()
    });
    // Snapshots come with the second day; options of the first have none before.
    let minutes = 1_438..1_444;
    assert_eq!(replay_bitmex(&market, minutes.clone()).0, 3 * 4);
    assert_eq!(replay_binance(&market, minutes.clone()).0, 3 * 4);
    assert_eq!(replay_deribit(&market, minutes).0, 3 * 10);
    let slow = SampleMarket::new(SampleOptions {
        messages_per_second: 1,
        book_levels: 10,
        symbols: 1,
        disconnects_per_hour: 0.5,
        ..SampleOptions::default()
    });
    // A whole day and the start of the next.
    assert_eq!(replay_binance(&slow, 0..1_442).0, 1_441);
}

#[test]
fn few_messages_and_many_levels_are_consistent_too() {
    for (messages_per_second, book_levels) in [(1, 1_000), (300, 20)] {
        let market = SampleMarket::new(SampleOptions {
            messages_per_second,
            book_levels,
            ..SampleOptions::default()
        });
        assert_eq!(replay_bitmex(&market, 0..2).0, 4);
        assert_eq!(replay_binance(&market, 0..2).0, 4);
        assert_eq!(replay_deribit(&market, 0..2).0, 10);
    }
}

#[test]
fn snapshots_come_at_midnight_and_after_each_lost_connection_only() {
    let market = shaky_market();
    let snapshots = |exchange: &str, text: &str| {
        let is_snapshot = |line: &&str| match exchange {
            "bitmex" => line.contains(r#""table":"orderBookL2","action":"partial""#),
            "binance-futures" => line.contains("@depthSnapshot"),
            _ => line.contains(r#""type":"snapshot""#),
        };
        text.lines().filter(is_snapshot).count()
    };
    for exchange in SampleMarket::exchanges() {
        let symbols = market.symbols(exchange, minute(0)).unwrap().len();
        let mut lost = 0;
        for number in 0..10 {
            let text = minute_text(&market, exchange, minute(number));
            let connections = text.split("\n\n").count() - 1 + usize::from(text.starts_with('\n'));
            lost += connections;
            let expected = (connections + usize::from(number == 0)) * symbols;
            assert_eq!(snapshots(exchange, &text), expected, "{exchange} {number}");
        }
        assert!(lost > 0, "{exchange}");
    }
}

#[test]
fn the_same_asset_has_the_same_price_on_all_exchanges() {
    let market = SampleMarket::new(SampleOptions::default());
    let best_bid = |exchange: &str, symbol: &str| {
        let books = market.books(exchange, minute(77)).unwrap();
        let book = books.into_iter().find(|book| book.symbol == symbol).unwrap();
        assert!(book.bids[0].0 < book.asks[0].0);
        book.bids[0].0
    };
    let bitmex = best_bid("bitmex", "XBTUSD");
    let binance = best_bid("binance-futures", "BTCUSDT");
    let deribit = best_bid("deribit", "BTC-PERPETUAL");
    assert!((bitmex - binance).abs() < 2.0 && (bitmex - deribit).abs() < 2.0);
}

/// Gives the client what an exchange sends to somebody who connects at `from`, up to `to`, in steps
/// of `step`: all in microseconds.
fn stream(market: &SampleMarket, exchange: &str, (from, to, step): (i64, i64, i64)) -> Client {
    let book = ["orderBookL2", "depth", "book"]
        .map(|channel| Filter { channel: channel.to_owned(), symbols: None });
    let [bitmex, binance, deribit] = book;
    let filter = match exchange {
        "bitmex" => bitmex,
        "binance-futures" => binance,
        _ => deribit,
    };
    let mut sent = Vec::new();
    let mut take = |message: &[u8]| sent.push(message.to_vec());
    let mut stream = market.connect(exchange, Timestamp::from_micros(from)).unwrap();
    stream.subscribe(vec![filter], &mut take).unwrap();
    let mut client = Client::default();
    let mut now = from;
    while now < to {
        now = (now + step).min(to);
        stream.advance(Timestamp::from_micros(now), &mut take).unwrap();
    }
    let mut mapper = bitmex_mapper();
    if exchange == "binance-futures" {
        // Asked for later, as its clients do.
        let asked = Timestamp::from_micros((from + 3 * step).min(to));
        let filter = Filter { channel: "depthSnapshot".to_owned(), symbols: None };
        let mut lines = Vec::new();
        market.state(exchange, asked, &[filter], &mut lines).unwrap();
        for line in read(&String::from_utf8(lines).unwrap()) {
            let Line::Message { json, .. } = line else { panic!("{line:?}") };
            let (_, symbol) = address(exchange, &json);
            client.numbers.insert(symbol, json["data"]["lastUpdateId"].as_u64().unwrap());
            client.take_binance(&json);
        }
    }
    for message in sent {
        let json: Value = serde_json::from_slice(&message).unwrap();
        match exchange {
            "bitmex" => take_bitmex(&mut client, &mut *mapper, &message, minute(0)),
            "deribit" => client.take_deribit(&json),
            _ => {
                let (_, symbol) = address(exchange, &json);
                if json["data"]["u"].as_u64().unwrap() > client.numbers[&symbol] {
                    client.take_binance(&json);
                }
            }
        }
    }
    client
}

#[test]
fn whoever_connects_at_any_moment_has_the_books() {
    // The archive's connection is lost in every minute; that of whoever connects is not.
    let market = SampleMarket::new(SampleOptions {
        messages_per_second: 30,
        book_levels: 100,
        disconnects_per_hour: 60.0,
        ..SampleOptions::default()
    });
    let start = minute(0).micros().unwrap();
    let end = start + 120_000_000;
    // At midnight, in mid-minute, when the archive has lost its connection, while books settle, at and
    // just before the end of a minute.
    for from in [0, 7_123_456, 57_000_000, 59_000_000, 59_634_567, 59_999_999, 60_000_000] {
        for exchange in SampleMarket::exchanges() {
            let client = stream(&market, exchange, (start + from, end, 399_999));
            let expected = expected(&market.books(exchange, minute(2)).unwrap());
            assert_eq!(client.books, expected, "{exchange} from {from}");
        }
    }
}

#[test]
fn a_live_stream_has_the_messages_of_the_archive() {
    let market =
        SampleMarket::new(SampleOptions { disconnects_per_hour: 0.0, ..SampleOptions::default() });
    let trades = Filter { channel: "trade".to_owned(), symbols: Some(vec!["ETHUSD".to_owned()]) };
    let mut lines = Vec::new();
    for number in 3..5 {
        market.minute("bitmex", minute(number), std::slice::from_ref(&trades), &mut lines).unwrap();
    }
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let expected: Vec<_> = lines.map(|line| line[29..].to_vec()).collect();
    let mut found = Vec::new();
    let mut stream = market.connect("bitmex", minute(3)).unwrap();
    let mut take = |message: &[u8]| found.push(message.to_vec());
    stream.advance(minute(3), &mut take).unwrap();
    stream.subscribe(vec![trades], &mut take).unwrap();
    for half_seconds in 1..=240 {
        let now = minute(3).micros().unwrap() + half_seconds * 500_000;
        stream.advance(Timestamp::from_micros(now), &mut take).unwrap();
    }
    assert!(found.len() > 50);
    assert_eq!(found, expected);
}
