//! Order books and what is computed from them, by the depth of the book.
//!
//! `order_book`: one change of two bids and two asks, near the top, anywhere or at the far end, in
//! the book of this crate and in two simple ones. `snapshot`: a whole book put in. `computed`: the
//! same changes near the top, five milliseconds apart, with a snapshot type on top.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use market_data::{BookChange, BookLevel, Computing, DataType, Message, OrderBook, Timestamp};

mod simple_books;

use simple_books::{Book, SortedListBook, SortedMapBook};

const DEPTHS: [u32; 3] = [100, 1_000, 10_000];
const MESSAGES: u32 = 4_096;
const START: i64 = 1_580_515_200_000;
const MID: u32 = 1_000_000;

/// Where changes are.
#[derive(Clone, Copy)]
enum Place {
    Top,
    Anywhere,
    FarEnd,
}

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(((self.0 >> 32) * u64::from(below)) >> 32).unwrap()
    }

    /// The distance of a level from the top.
    fn distance(&mut self, place: Place, depth: u32) -> u32 {
        match place {
            Place::Anywhere => self.next(depth),
            Place::FarEnd => depth - 1 - self.next(10),
            Place::Top => {
                let width = 4 << self.next(4);
                self.next(width).min(depth - 1)
            }
        }
    }
}

fn bid(distance: u32, amount: u32) -> BookLevel {
    BookLevel { price: f64::from(MID - 1 - distance) / 10.0, amount: f64::from(amount) }
}

fn ask(distance: u32, amount: u32) -> BookLevel {
    BookLevel { price: f64::from(MID + distance) / 10.0, amount: f64::from(amount) }
}

fn change(is_snapshot: bool, bids: Vec<BookLevel>, asks: Vec<BookLevel>) -> BookChange<'static> {
    BookChange {
        symbol: "BTCUSDT".into(),
        exchange: "binance-futures".into(),
        is_snapshot,
        bids: bids.into(),
        asks: asks.into(),
        timestamp: Timestamp::from_millis(START),
        local_timestamp: Timestamp::from_millis(START),
    }
}

fn whole_book(depth: u32) -> BookChange<'static> {
    let bids = (0..depth).map(|distance| bid(distance, 1 + distance % 7)).collect();
    let asks = (0..depth).map(|distance| ask(distance, 1 + distance % 5)).collect();
    change(true, bids, asks)
}

/// A third of the changes remove a level.
fn changes(place: Place, depth: u32) -> Vec<BookChange<'static>> {
    let mut numbers = Numbers(u64::from(depth));
    let mut level = |make: fn(u32, u32) -> BookLevel| {
        let amount = if numbers.next(3) == 0 { 0 } else { 1 + numbers.next(1_000) };
        make(numbers.distance(place, depth), amount)
    };
    (0..MESSAGES)
        .map(|_| {
            let bids = vec![level(bid), level(bid)];
            change(false, bids, vec![level(ask), level(ask)])
        })
        .collect()
}

fn run_book<B: Book>(criterion: &mut Criterion, place: (&str, Place), depth: u32) {
    let mut group = criterion.benchmark_group(format!("order_book/{}/{}", place.0, B::NAME));
    group.throughput(Throughput::Elements(1));
    let changes = changes(place.1, depth);
    let mut book = B::default();
    book.update(&whole_book(depth));
    let mut next = changes.iter().cycle();
    group.bench_function(BenchmarkId::from_parameter(depth), |bencher| {
        bencher.iter(|| {
            book.update(black_box(next.next().unwrap()));
            book.best()
        });
    });
}

fn order_book(criterion: &mut Criterion) {
    for place in [("top", Place::Top), ("anywhere", Place::Anywhere), ("far_end", Place::FarEnd)] {
        for depth in DEPTHS {
            run_book::<OrderBook>(criterion, place, depth);
            run_book::<SortedMapBook>(criterion, place, depth);
            run_book::<SortedListBook>(criterion, place, depth);
        }
    }
}

fn snapshot(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("snapshot");
    for depth in DEPTHS {
        let message = whole_book(depth);
        let mut book = OrderBook::new();
        group.throughput(Throughput::Elements(u64::from(depth) * 2));
        group.bench_function(BenchmarkId::from_parameter(depth), |bencher| {
            bencher.iter(|| book.update(black_box(&message)));
        });
    }
}

fn computed(criterion: &mut Criterion) {
    for name in [
        "book_change",
        "book_snapshot_20_100ms",
        "book_snapshot_5_0ms",
        "quote",
        "book_snapshot_20_grouped10_100ms",
        "book_snapshot_5_grouped10_0ms",
    ] {
        let mut group = criterion.benchmark_group(format!("computed/{name}"));
        group.throughput(Throughput::Elements(1));
        for depth in DEPTHS {
            let data_type: DataType = name.parse().unwrap();
            let mut computing = Computing::new(&[data_type]);
            let mut sent = 0u64;
            let mut sink = |message: &Message<'_>| {
                sent += u64::from(black_box(message).type_name() == "book_snapshot");
            };
            computing.take(&Message::BookChange(whole_book(depth)), &mut sink);
            let mut messages: Vec<Message<'static>> =
                changes(Place::Top, depth).into_iter().map(Message::BookChange).collect();
            let (mut at, mut now) = (0, START);
            group.bench_function(BenchmarkId::from_parameter(depth), |bencher| {
                bencher.iter(|| {
                    at = (at + 1) % messages.len();
                    now += 5;
                    if let Message::BookChange(change) = &mut messages[at] {
                        change.timestamp = Timestamp::from_millis(now);
                    }
                    computing.take(black_box(&messages[at]), &mut sink);
                });
            });
            black_box(sent);
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = order_book, snapshot, computed
}
criterion_main!(benches);
