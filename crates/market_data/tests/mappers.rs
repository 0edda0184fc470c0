//! Every mapper against recorded messages: what comes out is exactly what is expected, or the
//! expected error.

#![allow(clippy::expect_used, clippy::panic)] // in what the tests share, too
use std::collections::BTreeMap;

use market_data::{Kind, Kinds, Message, Timestamp, exchange, write_message};
use test_messages::{MapperCase, mapper_cases};

fn kind(name: &str) -> Kind {
    match name {
        "trades" => Kind::Trades,
        "bookChanges" => Kind::BookChanges,
        "derivativeTickers" => Kind::DerivativeTickers,
        "optionsSummary" => Kind::OptionsSummary,
        "liquidations" => Kind::Liquidations,
        "bookTickers" => Kind::BookTickers,
        _ => panic!("unknown normalizer {name}"),
    }
}

/// What each step of `case` gives: the messages, or the error's text.
fn run(case: &MapperCase) -> Vec<Result<Vec<String>, String>> {
    let exchange = exchange(&case.exchange).expect("a known exchange");
    let kinds: Kinds = case.normalizers.iter().map(|name| kind(name)).collect();
    let at = case.at.as_deref().map(|text| Timestamp::parse(text).expect("a time"));
    let mut mapper = exchange.mapper(kinds, at);
    let step = |step: &test_messages::MapperStep| {
        let mut messages = Vec::new();
        let mut sink = |message: &Message<'_>| {
            let mut json = Vec::new();
            write_message(&mut json, message);
            messages.push(String::from_utf8(json).expect("text"));
        };
        let local = Timestamp::parse(&step.local_timestamp).expect("a time");
        mapper
            .map(step.message.as_bytes(), local, &mut sink)
            .map(|()| messages)
            .map_err(|error| error.to_string())
    };
    case.steps.iter().map(step).collect()
}

#[test]
fn recorded_messages_give_the_expected_ones() {
    let Some(cases) = mapper_cases() else { return };
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in cases.iter().filter(|case| exchange(&case.exchange).is_some()) {
        for (number, (found, step)) in run(case).into_iter().zip(&case.steps).enumerate() {
            let (steps, messages) = counts.entry(case.exchange.clone()).or_default();
            *steps += 1;
            *messages += found.as_ref().map_or(0, Vec::len);
            if found != step.expected {
                let at = case.at.as_deref().unwrap_or("newest");
                failures.push(format!(
                    "{} at {at}, step {number}:\n  raw      {}\n  expected {:?}\n  found    {found:?}",
                    case.exchange, step.message, step.expected
                ));
            }
        }
    }
    println!("{:<24}{:>8}{:>10}", "exchange", "steps", "messages");
    for (exchange, (steps, messages)) in &counts {
        println!("{exchange:<24}{steps:>8}{messages:>10}");
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// The mappers differ between times only as the tables say.
#[test]
fn the_last_period_of_every_kind_is_open() {
    for exchange in market_data::normalized_exchanges() {
        for normalizer in exchange.normalizers {
            let untils: Vec<_> = normalizer.periods.iter().map(|period| period.until).collect();
            let (last, before) = untils.split_last().expect("a period");
            assert_eq!(*last, None, "{} {:?}", exchange.id, normalizer.kind);
            let times: Vec<_> =
                before.iter().map(|until| until.and_then(Timestamp::micros)).collect();
            assert!(times.iter().all(Option::is_some) && times.is_sorted(), "{}", exchange.id);
        }
    }
}
