//! Events of every case drawn from a pool of values, so that a test says what values occur and not
//! where. Structs are written out in full: a field that is new in the schema does not compile here
//! until it is drawn, and then the round trip asks for it.

use std::collections::BTreeMap;
use std::ops::Range;

use bronze_core::PayloadCase;
use bronze_core::generated::bronze::normalized_event::Payload;
use bronze_core::generated::bronze::{
    BookChange, BookSnapshot, BookTicker, ControlDisconnect, ControlError, DerivativeTicker,
    GroupedBookSnapshot, Liquidation, NormalizedEvent, OptionSummary, Quote, Trade, TradeBar,
    book_change, book_snapshot, control_disconnect, grouped_book_snapshot,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use prost_types::Timestamp;

/// A time in microseconds since 1970.
pub(crate) fn time(micros: i64) -> Timestamp {
    let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap();
    Timestamp { seconds: micros.div_euclid(1_000_000), nanos }
}

/// Any values that survive the round trip: whole microseconds, and no uint64 past an i64.
fn any_values() -> impl Strategy<Value = Values> {
    let micros = prop_oneof![Just(0), -2_000_000..2_000_000_i64, any::<i64>(), Just(i64::MIN)];
    let text = prop_oneof![Just(String::new()), "[0-9.]{1,9}", any::<String>()];
    values_of(text, option::of(micros.prop_map(time)))
}

/// Values of which most are such as exchanges send.
fn usual_values() -> impl Strategy<Value = Values> {
    let micros = prop_oneof![
        40 => 946_684_800_000_000..4_102_444_800_000_000_i64,
        1 => Just(4_102_444_800_000_000),
        1 => any::<i64>(),
    ];
    let text = prop_oneof![40 => "-?[0-9]{1,5}(\\.[0-9]{1,3})?", 1 => Just(String::new()), 1 => "é|NaN|1e5"];
    values_of(text, option::weighted(0.97, micros.prop_map(time)))
}

fn values_of(
    text: impl Strategy<Value = String> + Clone,
    time: impl Strategy<Value = Option<Timestamp>>,
) -> impl Strategy<Value = Values> {
    let number = prop_oneof![Just(0), 0..6_u64, any::<u64>(), Just(u64::MAX)];
    (
        vec(text.clone(), 1..12),
        vec(number, 1..9),
        vec(time, 1..5),
        vec((text.clone(), text.clone()), 0..50),
        btree_map(text.clone(), text.clone(), 0..6),
        option::of(vec(text, 0..4)),
    )
        .prop_map(|(texts, numbers, times, levels, meta, symbols)| Values {
            texts,
            numbers,
            times,
            levels,
            meta,
            symbols,
            drawn: 0,
        })
}

/// Events of any case, or of none, that draw from the same values.
pub(crate) fn any_events(count: Range<usize>) -> impl Strategy<Value = Vec<NormalizedEvent>> {
    events_of(any_values(), count)
}

/// The same, of which many are good and many are not.
pub(crate) fn usual_events(count: Range<usize>) -> impl Strategy<Value = Vec<NormalizedEvent>> {
    events_of(usual_values(), count)
}

fn events_of(
    values: impl Strategy<Value = Values>,
    count: Range<usize>,
) -> impl Strategy<Value = Vec<NormalizedEvent>> {
    let case = option::weighted(0.95, prop::sample::select(&PayloadCase::ALL[..]));
    (vec(case, count), values)
        .prop_map(|(cases, mut values)| cases.into_iter().map(|case| values.event(case)).collect())
}

/// Values that an event's fields are drawn from, one after the other and then from the start.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    texts: Vec<String>,
    numbers: Vec<u64>,
    times: Vec<Option<Timestamp>>,
    levels: Vec<(String, String)>,
    meta: BTreeMap<String, String>,
    symbols: Option<Vec<String>>,
    drawn: usize,
}

impl Values {
    /// Values of which none is a default.
    pub(crate) fn all_set() -> Self {
        let level = |number: u32| (format!("{number}.5"), format!("0.{number}"));
        Self {
            texts: (0..40).map(|number| format!("text {number}")).collect(),
            numbers: vec![1, 2],
            times: [1_559_347_228_619_481, -1, 1].map(|micros| Some(time(micros))).into(),
            levels: (1..8).map(level).collect(),
            meta: [("route", "/replay"), ("data_type", "trade"), ("é", "")]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            symbols: Some(vec!["XBTUSD".to_owned(), String::new()]),
            drawn: 0,
        }
    }

    /// The same with one number for every number, flag and enum.
    pub(crate) fn with_number(self, number: u64) -> Self {
        Self { numbers: vec![number], ..self }
    }

    fn draw(&mut self, length: usize) -> usize {
        self.drawn += 1;
        self.drawn % length
    }

    fn text(&mut self) -> String {
        let index = self.draw(self.texts.len());
        self.texts[index].clone()
    }

    fn number(&mut self) -> u64 {
        let index = self.draw(self.numbers.len());
        self.numbers[index]
    }

    #[allow(clippy::cast_possible_truncation)] // any bits will do
    fn int32(&mut self) -> i32 {
        self.number() as i32
    }

    #[allow(clippy::cast_possible_truncation)] // any bits will do
    fn uint32(&mut self) -> u32 {
        self.number() as u32
    }

    fn int64(&mut self) -> i64 {
        self.number().cast_signed().wrapping_neg()
    }

    fn uint64(&mut self) -> u64 {
        self.number() & i64::MAX.cast_unsigned()
    }

    fn flag(&mut self) -> bool {
        self.number() != 0
    }

    fn time(&mut self) -> Option<Timestamp> {
        let index = self.draw(self.times.len());
        self.times[index]
    }

    fn levels<L>(&mut self, level: impl Fn(String, String) -> L) -> Vec<L> {
        let count = self.draw(self.levels.len() + 1);
        let levels = self.levels.iter().rev().take(count.max(1));
        levels.map(|(price, amount)| level(price.clone(), amount.clone())).collect()
    }

    /// An event with every field drawn.
    pub(crate) fn event(&mut self, case: Option<PayloadCase>) -> NormalizedEvent {
        NormalizedEvent {
            source: self.text(),
            exchange: self.text(),
            symbol: self.text(),
            local_ts: self.time(),
            ingest_ts: self.time(),
            origin: self.int32(),
            event_seq: self.uint64(),
            local_ts_millis_only: self.flag(),
            meta: self.meta.clone(),
            payload: case.map(|case| self.payload(case)),
        }
    }

    #[allow(clippy::too_many_lines)] // the schema is that long
    fn payload(&mut self, case: PayloadCase) -> Payload {
        match case {
            PayloadCase::Trade => Payload::Trade(Trade {
                trade_id: self.text(),
                price_str: self.text(),
                qty_str: self.text(),
                side: self.int32(),
                sequence: self.int64(),
                event_ts: self.time(),
                event_ts_has_micros: self.flag(),
                trade_id_is_empty: self.flag(),
            }),
            PayloadCase::BookChange => Payload::BookChange(BookChange {
                side: self.int32(),
                action: self.int32(),
                price_str: self.text(),
                qty_str: self.text(),
                level: self.int32(),
                sequence: self.int64(),
                event_ts: self.time(),
                event_ts_has_micros: self.flag(),
                is_snapshot: self.flag(),
                bids: self.levels(|price_str, qty_str| book_change::Level { price_str, qty_str }),
                asks: self.levels(|price_str, qty_str| book_change::Level { price_str, qty_str }),
                part: self.uint32(),
                parts: self.uint32(),
            }),
            PayloadCase::BookSnapshot => Payload::BookSnapshot(BookSnapshot {
                depth: self.uint32(),
                bids: self.levels(|price_str, qty_str| book_snapshot::Level { price_str, qty_str }),
                asks: self.levels(|price_str, qty_str| book_snapshot::Level { price_str, qty_str }),
                event_ts: self.time(),
                grouping: self.uint32(),
                interval_ms: self.uint32(),
                remove_crossed_levels: self.flag(),
                sequence: self.int64(),
                event_ts_has_micros: self.flag(),
                name: self.text(),
                grouping_str: self.text(),
                interval: self.uint64(),
            }),
            PayloadCase::GroupedBookSnapshot => {
                use grouped_book_snapshot::Level;
                Payload::GroupedBookSnapshot(GroupedBookSnapshot {
                    depth: self.uint32(),
                    bids: self.levels(|price_str, qty_str| Level { price_str, qty_str }),
                    asks: self.levels(|price_str, qty_str| Level { price_str, qty_str }),
                    event_ts: self.time(),
                    grouping: self.uint32(),
                    interval_ms: self.uint32(),
                    remove_crossed_levels: self.flag(),
                    sequence: self.int64(),
                    event_ts_has_micros: self.flag(),
                    name: self.text(),
                    grouping_str: self.text(),
                    interval: self.uint64(),
                })
            }
            PayloadCase::Quote => Payload::Quote(Quote {
                bid_price_str: self.text(),
                bid_qty_str: self.text(),
                ask_price_str: self.text(),
                ask_qty_str: self.text(),
                event_ts: self.time(),
                event_ts_has_micros: self.flag(),
                name: self.text(),
                interval: self.uint64(),
            }),
            PayloadCase::DerivativeTicker => Payload::DerivativeTicker(DerivativeTicker {
                mark_price_str: self.text(),
                index_price_str: self.text(),
                funding_rate_str: self.text(),
                event_ts: self.time(),
                event_ts_has_micros: self.flag(),
                last_price_str: self.text(),
                open_interest_str: self.text(),
                predicted_funding_rate_str: self.text(),
                funding_ts: self.time(),
                funding_ts_has_micros: self.flag(),
                funding_ts_is_invalid: self.flag(),
            }),
            PayloadCase::Liquidation => Payload::Liquidation(Liquidation {
                side: self.int32(),
                price_str: self.text(),
                qty_str: self.text(),
                order_id: self.text(),
                event_ts: self.time(),
                event_ts_has_micros: self.flag(),
                order_id_is_empty: self.flag(),
            }),
            PayloadCase::OptionSummary => Payload::OptionSummary(self.option_summary()),
            PayloadCase::BookTicker => Payload::BookTicker(BookTicker {
                best_bid_price_str: self.text(),
                best_bid_qty_str: self.text(),
                best_ask_price_str: self.text(),
                best_ask_qty_str: self.text(),
                event_ts: self.time(),
                event_ts_has_micros: self.flag(),
                field_order: self.text(),
            }),
            PayloadCase::TradeBar => Payload::TradeBar(self.trade_bar()),
            PayloadCase::Error => Payload::Error(ControlError {
                details: self.text(),
                subsequent_errors: self.uint32(),
                code: self.int32(),
            }),
            PayloadCase::Disconnect => Payload::Disconnect(ControlDisconnect {
                reason: self.text(),
                close_code: self.uint32(),
                symbols: self
                    .symbols
                    .clone()
                    .map(|values| control_disconnect::SymbolList { values }),
            }),
        }
    }

    fn option_summary(&mut self) -> OptionSummary {
        OptionSummary {
            iv_str: self.text(),
            delta_str: self.text(),
            gamma_str: self.text(),
            theta_str: self.text(),
            vega_str: self.text(),
            oi_str: self.text(),
            event_ts: self.time(),
            event_ts_has_micros: self.flag(),
            option_type: self.int32(),
            strike_price_str: self.text(),
            expiration_ts: self.time(),
            expiration_ts_has_micros: self.flag(),
            expiration_ts_is_invalid: self.flag(),
            best_bid_price_str: self.text(),
            best_bid_qty_str: self.text(),
            best_bid_iv_str: self.text(),
            best_ask_price_str: self.text(),
            best_ask_qty_str: self.text(),
            best_ask_iv_str: self.text(),
            last_price_str: self.text(),
            mark_price_str: self.text(),
            rho_str: self.text(),
            underlying_price_str: self.text(),
            underlying_index: self.symbols.as_ref().map(|symbols| symbols.concat()),
        }
    }

    fn trade_bar(&mut self) -> TradeBar {
        TradeBar {
            kind: self.int32(),
            interval: self.uint64(),
            interval_ms: self.uint32(),
            open_str: self.text(),
            high_str: self.text(),
            low_str: self.text(),
            close_str: self.text(),
            volume_str: self.text(),
            trade_count: self.uint64(),
            event_ts: self.time(),
            end_ts: self.time(),
            name: self.text(),
            buy_volume_str: self.text(),
            sell_volume_str: self.text(),
            vwap_str: self.text(),
            open_ts: self.time(),
            close_ts: self.time(),
            end_ts_has_micros: self.flag(),
            open_ts_has_micros: self.flag(),
            close_ts_has_micros: self.flag(),
        }
    }
}
