//! Bronze encoding: the direct encoder against building and encoding prost's structs.
//!
//! `benches/bronze_encode.py` runs this, adds Python's protobuf on the same messages and prints the
//! ratios.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::hint::black_box;

use bronze_core::{BookChanges, BronzeEncoder, EncoderOptions, EventBuffer, Origin};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use market_data::{BookChange, BookLevel, Message, Side, Timestamp, Trade};
use prost::Message as _;

mod prost_structs;

const MESSAGES: u32 = 1_000;
const LOCAL: i64 = 1_709_251_201_234_567;

fn meta() -> BTreeMap<String, String> {
    let pairs = [
        ("request_id", "0d9c7d5c-1f9e-4f7e-8a31-74f4a2a2b1c9"),
        ("route", "/replay-normalized"),
        ("transport", "http"),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn trades() -> Vec<Message<'static>> {
    (0..MESSAGES)
        .map(|n| {
            Message::Trade(Trade {
                symbol: "BTCUSDT".into(),
                exchange: "binance-futures".into(),
                id: Some(format!("{}", 3_391_206_410u64 + u64::from(n)).into()),
                price: f64::from(6_234_990 + n) / 100.0,
                amount: f64::from(1 + n * 7) / 1_000.0,
                side: if n % 2 == 0 { Side::Buy } else { Side::Sell },
                timestamp: Timestamp::from_millis(LOCAL / 1_000 - 30 + i64::from(n)),
                local_timestamp: Timestamp::from_micros(LOCAL + i64::from(n) * 1_000),
            })
        })
        .collect()
}

/// Changes of ten bids and ten asks.
fn book_changes() -> Vec<Message<'static>> {
    (0..MESSAGES)
        .map(|n| {
            let side = |direction: f64| -> Vec<BookLevel> {
                (0..10)
                    .map(|level| BookLevel {
                        price: (f64::from(623_499 + n) + direction * f64::from(level)) / 10.0,
                        amount: f64::from((n * 31 + level * 17) % 5_000) / 1_000.0,
                    })
                    .collect()
            };
            Message::BookChange(BookChange {
                symbol: "BTCUSDT".into(),
                exchange: "binance-futures".into(),
                is_snapshot: false,
                bids: side(-1.0).into(),
                asks: side(1.0).into(),
                timestamp: Timestamp::from_millis(LOCAL / 1_000 - 30 + i64::from(n)),
                local_timestamp: Timestamp::from_micros(LOCAL + i64::from(n) * 1_000),
            })
        })
        .collect()
}

fn compare(
    criterion: &mut Criterion,
    name: &str,
    messages: &[Message<'_>],
    book_changes: BookChanges,
) {
    let ingest = Timestamp::from_micros(LOCAL + 500);
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Elements(messages.len() as u64));

    let options = EncoderOptions {
        origin: Origin::Replay,
        meta: meta(),
        book_changes,
        ..EncoderOptions::default()
    };
    let mut encoder = BronzeEncoder::new(options).unwrap();
    let mut events = EventBuffer::default();
    group.bench_function("direct", |bencher| {
        bencher.iter(|| {
            events.clear();
            for message in messages {
                encoder.encode(black_box(message), ingest, &mut events);
            }
            black_box(events.byte_len())
        });
    });

    let session = prost_structs::Session {
        source: "tardis-fast".to_owned(),
        origin: Origin::Replay,
        meta: meta(),
        per_level: book_changes == BookChanges::Level,
    };
    let mut bytes = Vec::new();
    group.bench_function("prost_structs", |bencher| {
        bencher.iter(|| {
            bytes.clear();
            let mut seq = 1;
            for message in messages {
                for event in prost_structs::events(&session, black_box(message), ingest, seq) {
                    event.encode(&mut bytes).unwrap();
                    seq += 1;
                }
            }
            black_box(bytes.len())
        });
    });
    group.finish();
}

fn encode(criterion: &mut Criterion) {
    compare(criterion, "trade", &trades(), BookChanges::Level);
    compare(criterion, "book_change_20_levels", &book_changes(), BookChanges::Level);
    compare(criterion, "book_change_20_message", &book_changes(), BookChanges::Message);
}

criterion_group!(benches, encode);
criterion_main!(benches);
