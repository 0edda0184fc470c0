//! Books, snapshots and bars against plain, slow ones.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

use market_data::{
    Computing, DataForm, DataType, Disconnect, Message, OrderBook, Side, Timestamp, Trade,
    write_message,
};
use proptest::collection::vec;
use proptest::prelude::*;

mod plain;

use plain::{PlainBars, PlainBook, PlainChange, PlainSnapshots, SYMBOLS, price};

#[derive(Clone, Debug)]
enum Step {
    Change(PlainChange),
    Trade(Trade<'static>),
    Disconnect,
}

fn json(message: &Message<'_>) -> String {
    let mut out = Vec::new();
    write_message(&mut out, message);
    String::from_utf8(out).unwrap()
}

fn plain_snapshots(data_types: &[DataType]) -> Vec<PlainSnapshots> {
    let snapshots = |data_type: &DataType| match data_type.form() {
        DataForm::BookSnapshot { depth, interval, grouping } => {
            Some(PlainSnapshots::new(data_type.name(), depth, interval, grouping))
        }
        _ => None,
    };
    data_types.iter().filter_map(snapshots).collect()
}

fn plain_bars(data_types: &[DataType]) -> Vec<PlainBars> {
    let bars = |data_type: &DataType| match data_type.form() {
        DataForm::TradeBar { kind, interval } => {
            Some(PlainBars::new(data_type.name(), kind, interval))
        }
        _ => None,
    };
    data_types.iter().filter_map(bars).collect()
}

fn plain_lines(data_types: &[DataType], steps: &[Step]) -> Vec<String> {
    let new_state = || SYMBOLS.map(|_| (plain_snapshots(data_types), plain_bars(data_types)));
    let mut state = new_state();
    let mut out = Vec::new();
    for step in steps {
        out.push(json(&message(step)));
        match step {
            Step::Change(change) => {
                for snapshots in &mut state[change.symbol].0 {
                    snapshots.take(change, &mut out);
                }
            }
            Step::Trade(trade) => {
                let symbol = SYMBOLS.iter().position(|symbol| trade.symbol == *symbol).unwrap();
                for bars in &mut state[symbol].1 {
                    bars.take(trade, &mut out);
                }
            }
            Step::Disconnect => state = new_state(),
        }
    }
    out
}

fn message(step: &Step) -> Message<'static> {
    match step {
        Step::Change(change) => Message::BookChange(change.message()),
        Step::Trade(trade) => Message::Trade(trade.clone()),
        Step::Disconnect => Message::Disconnect(Disconnect {
            exchange: "bitmex".into(),
            local_timestamp: Timestamp::from_millis(0),
            symbols: None,
            reason: "".into(),
            close_code: 0,
        }),
    }
}

/// Prices on either side of 100 ticks, with some that cross.
fn change() -> impl Strategy<Value = PlainChange> {
    let amount = || prop_oneof![2 => Just(0u32), 3 => 1..5u32];
    let bids = vec((60..103i64, amount()), 0..6);
    let asks = vec((98..140i64, amount()), 0..6);
    let snapshot = (vec((60..100i64, amount()), 0..60), vec((100..140i64, amount()), 0..60));
    let levels = prop_oneof![
        12 => (Just(false), bids, asks),
        1 => snapshot.prop_map(|(bids, asks)| (true, bids, asks)),
    ];
    (0..SYMBOLS.len(), levels).prop_map(|(symbol, (is_snapshot, bids, asks))| PlainChange {
        symbol,
        is_snapshot,
        bids,
        asks,
        timestamp: Timestamp::INVALID,
        local_timestamp: Timestamp::INVALID,
    })
}

fn trade() -> impl Strategy<Value = Trade<'static>> {
    let side = prop_oneof![Just(Side::Buy), Just(Side::Sell), Just(Side::Unknown)];
    (0..SYMBOLS.len(), 80..120i64, 1..400u32, side).prop_map(|(symbol, ticks, amount, side)| {
        Trade {
            symbol: SYMBOLS[symbol].into(),
            exchange: "bitmex".into(),
            id: None,
            price: price(ticks) / 3.0,
            amount: f64::from(amount) / 7.0,
            side,
            timestamp: Timestamp::INVALID,
            local_timestamp: Timestamp::INVALID,
        }
    })
}

/// Times go forward by small and large steps; the exchange's are sometimes late or not to be read.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        60 => change().prop_map(Step::Change),
        40 => trade().prop_map(Step::Trade),
        1 => Just(Step::Disconnect),
    ];
    let pause = prop_oneof![8 => 0..60_000i64, 1 => 0..2_000_000i64];
    let delay = prop_oneof![
        8 => Just(Some(0)),
        2 => (0..300_000i64).prop_map(Some),
        1 => Just(None),
    ];
    vec((step, pause, delay, any::<bool>()), 1..250).prop_map(|steps| {
        let mut now = 1_580_515_200_000_000;
        let times = |(mut step, pause, delay, has_micros): (Step, i64, Option<i64>, bool)| {
            now += pause;
            let local = Timestamp::from_micros(now);
            let time = delay.map_or(Timestamp::INVALID, |delay| {
                if has_micros {
                    Timestamp::from_micros(now - delay)
                } else {
                    Timestamp::from_millis((now - delay) / 1_000)
                }
            });
            match &mut step {
                Step::Change(change) => {
                    (change.timestamp, change.local_timestamp) = (time, local);
                }
                Step::Trade(trade) => (trade.timestamp, trade.local_timestamp) = (time, local),
                Step::Disconnect => {}
            }
            step
        };
        steps.into_iter().map(times).collect()
    })
}

fn data_types() -> impl Strategy<Value = Vec<DataType>> {
    let names = [
        "trade",
        "quote",
        "quote_1s",
        "book_snapshot_3_0ms",
        "book_snapshot_5_100ms",
        "book_snapshot_100_50ms",
        "book_snapshot_2_grouped1_0ms",
        "book_snapshot_4_grouped2.5_100ms",
        "book_snapshot_50_grouped5_0ms",
        "trade_bar_100ms",
        "trade_bar_1s",
        "trade_bar_1ticks",
        "trade_bar_5ticks",
        "trade_bar_100vol",
    ];
    vec(proptest::sample::select(names.to_vec()), 1..6)
        .prop_map(|names| names.into_iter().map(|name| name.parse().unwrap()).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn computed_messages_are_those_of_the_plain_way(
        data_types in data_types(),
        steps in steps(),
    ) {
        let mut computing = Computing::new(&data_types);
        let mut lines = Vec::new();
        for step in &steps {
            let mut take = |message: &Message<'_>| lines.push(json(message));
            computing.take(&message(step), &mut take);
        }
        prop_assert_eq!(lines, plain_lines(&data_types, &steps));
    }

    #[test]
    fn a_book_is_that_of_sorted_maps(changes in vec(change(), 1..100)) {
        let mut book = OrderBook::new();
        let mut plain = PlainBook::default();
        for change in &changes {
            book.update(&change.message());
            plain.update(change);
            let [bids, asks] = plain.top(100, 1);
            prop_assert!(book.bids().eq(bids.into_iter().flatten()));
            prop_assert!(book.asks().eq(asks.into_iter().flatten()));
        }
    }
}
