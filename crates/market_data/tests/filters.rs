//! The channels each kind asks for, period by period, against the recorded table.
#![allow(clippy::expect_used)] // in what the tests share, too

use market_data::{Exchange, Filter, Kind, Kinds, Timestamp, exchange};
use serde_json::Value;
use test_messages::exchange_table;

const KINDS: [(&str, Kind); 6] = [
    ("trades", Kind::Trades),
    ("bookChanges", Kind::BookChanges),
    ("derivativeTickers", Kind::DerivativeTickers),
    ("optionsSummary", Kind::OptionsSummary),
    ("liquidations", Kind::Liquidations),
    ("bookTickers", Kind::BookTickers),
];

fn time(period: &Value) -> Option<Timestamp> {
    period["until"].as_str().map(|text| Timestamp::parse(text).expect("a time"))
}

/// What `exchange` asks for in the period that ends at `until`.
fn filters(
    exchange: &Exchange,
    kind: Kind,
    until: Option<Timestamp>,
    symbols: Option<&[String]>,
) -> Vec<Filter> {
    let last_moment = until.and_then(Timestamp::micros).map(|end| Timestamp::from_micros(end - 1));
    exchange.filters(Kinds::default().with(kind), last_moment, symbols)
}

#[test]
fn every_period_asks_for_the_recorded_channels() {
    let Some(table) = exchange_table() else { return };
    let table: serde_json::Map<String, Value> = serde_json::from_str(&table).expect("an object");
    let symbols = ["SYM".to_owned()];
    for (id, recorded) in &table {
        let channels: Vec<&str> = recorded["channels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        assert_eq!(market_data::exchange_channels(id), Some(&*channels), "{id}");
        let Some(exchange) = exchange(id) else { continue };
        for (name, kind) in KINDS {
            let recorded = &recorded["normalizers"][name];
            let Some(normalizer) = exchange.normalizer(kind) else {
                assert!(recorded.is_null(), "{id} lacks {name}");
                continue;
            };
            let periods = recorded.as_array().expect("a list of periods");
            let untils: Vec<_> = periods.iter().map(time).collect();
            let found: Vec<_> = normalizer.periods.iter().map(|period| period.until).collect();
            assert_eq!(found, untils, "{id} {name}");
            for period in periods {
                let until = time(period);
                let json = |filters: &[Filter]| serde_json::to_value(filters).unwrap();
                let all = filters(exchange, kind, until, None);
                assert_eq!(json(&all), period["filtersForAll"], "{id} {name} until {until:?}");
                if period["filtersForSYM"].is_array() {
                    let one = filters(exchange, kind, until, Some(&symbols));
                    assert_eq!(json(&one), period["filtersForSYM"], "{id} {name} until {until:?}");
                }
            }
        }
    }
    assert_eq!(market_data::exchange_ids().count(), table.len());
}
