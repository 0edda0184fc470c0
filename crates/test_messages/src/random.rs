//! Random messages of every kind, with what is rare in them: NaN, infinities, -0, absent fields,
//! empty and deep books, unreadable times, texts from all of Unicode.

use std::borrow::Cow;

use market_data::{
    BarKind, BookChange, BookLevel, BookSnapshot, BookTicker, BookTickerField, BookTickerOrder,
    DerivativeTicker, Disconnect, ErrorCode, ErrorNotice, Message, OptionSummary, OptionType,
    Precision, Side, Timestamp, Trade, TradeBar,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::Union;

/// The largest distance from 1970 of a date, in microseconds.
const MAX_MICROS: i64 = 8_640_000_000_000_000_000;

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-1_000_000_000_000i64..1_000_000_000_000, 0..10i32).prop_map(short_decimal),
        2 => any::<u64>().prop_map(canonical_double),
        1 => select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 5e-324, f64::MAX]),
    ]
}

#[allow(clippy::cast_precision_loss)]
fn short_decimal((digits, places): (i64, i32)) -> f64 {
    digits as f64 / 10f64.powi(places)
}

/// All doubles, with the many NaNs made one: text knows only one.
fn canonical_double(bits: u64) -> f64 {
    let value = f64::from_bits(bits);
    if value.is_nan() { f64::NAN } else { value }
}

fn time() -> impl Strategy<Value = Timestamp> {
    let precision = select(vec![Precision::Millis, Precision::Micros]);
    prop_oneof![
        8 => (1_300_000_000_000_000i64..2_000_000_000_000_000, precision.clone())
            .prop_map(|(micros, precision)| Timestamp::new(micros, precision)),
        1 => (-MAX_MICROS..=MAX_MICROS, precision)
            .prop_map(|(micros, precision)| Timestamp::new(micros, precision)),
        1 => Just(Timestamp::INVALID),
    ]
}

fn text() -> impl Strategy<Value = Cow<'static, str>> {
    prop_oneof![
        "[A-Z]{3,6}(-[A-Z0-9]{2,8})?".prop_map(Cow::Owned),
        any::<String>().prop_map(Cow::Owned),
        Just(Cow::Borrowed("比特币-₿\u{1f680}\"\\\u{7}\n")),
        Just(Cow::Borrowed("")),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    select(vec![Side::Buy, Side::Sell, Side::Unknown])
}

fn level() -> BoxedStrategy<BookLevel> {
    (number(), number()).prop_map(|(price, amount)| BookLevel { price, amount }).boxed()
}

/// Sides of a book: most are short, some empty, a few 10,000 levels deep.
fn side_of_book<L: Clone + std::fmt::Debug + 'static>(
    level: impl Strategy<Value = L> + Clone + 'static,
) -> impl Strategy<Value = Cow<'static, [L]>> {
    let deep = (vec(level.clone(), 1..20), any::<Index>()).prop_map(|(some, at)| {
        let length = [2_000, 10_000][at.index(2)];
        some.iter().cycle().take(length).cloned().collect()
    });
    prop_oneof![19 => vec(level, 0..25), 1 => deep].prop_map(Cow::Owned)
}

prop_compose! {
    fn trade()(
        symbol in text(), exchange in text(), id in option::of(text()), price in number(),
        amount in number(), side in side(), timestamp in time(), local_timestamp in time(),
    ) -> Trade<'static> {
        Trade { symbol, exchange, id, price, amount, side, timestamp, local_timestamp }
    }
}

prop_compose! {
    fn book_change()(
        symbol in text(), exchange in text(), is_snapshot: bool, bids in side_of_book(level()),
        asks in side_of_book(level()), timestamp in time(), local_timestamp in time(),
    ) -> BookChange<'static> {
        BookChange { symbol, exchange, is_snapshot, bids, asks, timestamp, local_timestamp }
    }
}

prop_compose! {
    fn derivative_ticker()(
        symbol in text(), exchange in text(), numbers in vec(option::of(number()), 6),
        funding_timestamp in option::of(time()), timestamp in time(), local_timestamp in time(),
    ) -> DerivativeTicker<'static> {
        DerivativeTicker {
            symbol,
            exchange,
            last_price: numbers[0],
            open_interest: numbers[1],
            funding_rate: numbers[2],
            funding_timestamp,
            predicted_funding_rate: numbers[3],
            index_price: numbers[4],
            mark_price: numbers[5],
            timestamp,
            local_timestamp,
        }
    }
}

prop_compose! {
    fn option_summary()(
        symbol in text(), exchange in text(),
        option_type in option::of(select(vec![OptionType::Call, OptionType::Put])),
        expiration_date in option::of(time()), numbers in vec(option::of(number()), 17),
        underlying_index in option::of(text()), timestamp in time(), local_timestamp in time(),
    ) -> OptionSummary<'static> {
        OptionSummary {
            symbol,
            exchange,
            option_type,
            strike_price: numbers[0],
            expiration_date,
            best_bid_price: numbers[1],
            best_bid_amount: numbers[2],
            best_bid_iv: numbers[3],
            best_ask_price: numbers[4],
            best_ask_amount: numbers[5],
            best_ask_iv: numbers[6],
            last_price: numbers[7],
            open_interest: numbers[8],
            mark_price: numbers[9],
            mark_iv: numbers[10],
            delta: numbers[11],
            gamma: numbers[12],
            vega: numbers[13],
            theta: numbers[14],
            rho: numbers[15],
            underlying_price: numbers[16],
            underlying_index,
            timestamp,
            local_timestamp,
        }
    }
}

prop_compose! {
    fn book_ticker()(
        symbol in text(), exchange in text(), numbers in vec(option::of(number()), 4),
        order in Just(BookTickerOrder::DEFAULT.fields().to_vec()).prop_shuffle(),
        timestamp in time(), local_timestamp in time(),
    ) -> BookTicker<'static> {
        // The order of fields that are not there cannot be seen, so it is the usual one.
        let seen: Vec<BookTickerField> =
            order.into_iter().filter(|field| numbers[*field as usize].is_some()).collect();
        BookTicker {
            symbol,
            exchange,
            ask_amount: numbers[BookTickerField::AskAmount as usize],
            ask_price: numbers[BookTickerField::AskPrice as usize],
            bid_price: numbers[BookTickerField::BidPrice as usize],
            bid_amount: numbers[BookTickerField::BidAmount as usize],
            order: BookTickerOrder::of(&seen),
            timestamp,
            local_timestamp,
        }
    }
}

prop_compose! {
    fn book_snapshot()(
        symbol in text(), exchange in text(),
        name in prop_oneof![
            Just(Cow::Borrowed("book_snapshot_20_100ms")), Just(Cow::Borrowed("quote")),
            Just(Cow::Borrowed("quote_10s")), Just(Cow::Borrowed("quoted")), text(),
        ],
        depth: u32, interval: u64, grouping in option::of(number()),
        bids in side_of_book(option::of(level())), asks in side_of_book(option::of(level())),
        timestamp in time(), local_timestamp in time(),
    ) -> BookSnapshot<'static> {
        BookSnapshot {
            symbol, exchange, name, depth, interval, grouping, bids, asks, timestamp,
            local_timestamp,
        }
    }
}

prop_compose! {
    fn quote()(
        snapshot in book_snapshot(), bid in option::of(level()), ask in option::of(level()),
        name in select(vec!["quote", "quote_10s", "quote_1m"]),
    ) -> BookSnapshot<'static> {
        BookSnapshot {
            name: name.into(),
            depth: 1,
            grouping: None,
            bids: vec![bid].into(),
            asks: vec![ask].into(),
            ..snapshot
        }
    }
}

prop_compose! {
    fn trade_bar()(
        symbol in text(), exchange in text(), name in text(), interval: u64,
        kind in select(vec![BarKind::Time, BarKind::Tick, BarKind::Volume]),
        numbers in vec(number(), 8), trades: u64, times in vec(time(), 4),
    ) -> TradeBar<'static> {
        TradeBar {
            symbol,
            exchange,
            name,
            interval,
            kind,
            open: numbers[0],
            high: numbers[1],
            low: numbers[2],
            close: numbers[3],
            volume: numbers[4],
            buy_volume: numbers[5],
            sell_volume: numbers[6],
            trades,
            vwap: numbers[7],
            open_timestamp: times[0],
            close_timestamp: times[1],
            local_timestamp: times[2],
            timestamp: times[3],
        }
    }
}

prop_compose! {
    fn error()(
        exchange in text(), local_timestamp in time(), details in text(), subsequent_errors: u32,
        code in select(vec![
            ErrorCode::Unspecified, ErrorCode::Connect, ErrorCode::Send, ErrorCode::Auth,
            ErrorCode::RateLimit,
        ]),
    ) -> ErrorNotice<'static> {
        ErrorNotice { exchange, local_timestamp, details, subsequent_errors, code }
    }
}

prop_compose! {
    fn disconnect()(
        exchange in text(), local_timestamp in time(), symbols in option::of(vec(text(), 0..4)),
        reason in text(), close_code: u32,
    ) -> Disconnect<'static> {
        Disconnect { exchange, local_timestamp, symbols, reason, close_code }
    }
}

/// A strategy for each kind of message; boxed, since their values are large.
fn kinds() -> Vec<BoxedStrategy<Message<'static>>> {
    vec![
        trade().prop_map(Message::Trade).boxed(),
        book_change().prop_map(Message::BookChange).boxed(),
        derivative_ticker().prop_map(Message::DerivativeTicker).boxed(),
        trade().prop_map(Message::Liquidation).boxed(),
        option_summary().prop_map(Message::OptionSummary).boxed(),
        book_ticker().prop_map(Message::BookTicker).boxed(),
        book_snapshot().prop_map(Message::BookSnapshot).boxed(),
        quote().prop_map(Message::BookSnapshot).boxed(),
        trade_bar().prop_map(Message::TradeBar).boxed(),
        error().prop_map(Message::Error).boxed(),
        disconnect().prop_map(Message::Disconnect).boxed(),
    ]
}

/// Any message.
pub fn any_message() -> impl Strategy<Value = Message<'static>> {
    Union::new(kinds())
}

/// One message of each kind.
pub fn message_of_every_kind() -> impl Strategy<Value = Vec<Message<'static>>> {
    kinds()
}
