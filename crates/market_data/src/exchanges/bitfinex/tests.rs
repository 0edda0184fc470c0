//! What the recorded cases do not show.

use crate::exchange::{Kind, Kinds};
use crate::json_write::write_message;
use crate::message::Message;
use crate::time::Timestamp;

/// What `messages` of bitfinex-derivatives give, as JSON without the exchange and local timestamp.
fn map(messages: &[&str]) -> Vec<String> {
    let exchange = crate::exchange("bitfinex-derivatives").unwrap();
    let kinds: Kinds = Kind::ALL.into_iter().collect();
    let mut mapper = exchange.mapper(kinds, None);
    let mut found = Vec::new();
    for message in messages {
        let mut sink = |message: &Message<'_>| {
            let mut json = Vec::new();
            write_message(&mut json, message);
            let json = String::from_utf8(json).unwrap();
            let json = json.replace(r#","exchange":"bitfinex-derivatives""#, "");
            found.push(json.replace(r#","localTimestamp":"2020-01-01T00:00:00.000Z"}"#, "}"));
        };
        mapper.map(message.as_bytes(), Timestamp::of_day(2020, 1, 1), &mut sink).unwrap();
    }
    found
}

const BOOK: &str = r#"{"event":"subscribed","channel":"book","chanId":7,"prec":"P0","pair":"A"}"#;
const STATUS: &str = r#"{"event":"subscribed","channel":"status","chanId":8,"key":"deriv:tB"}"#;

#[test]
fn books_of_other_precision_do_not_count() {
    let raw = BOOK.replace("P0", "R0");
    assert_eq!(map(&[&raw, "[7,[1,2,3],4,5]"]), [""; 0]);
    assert_eq!(map(&[BOOK, "[7,[1,2,3],4,5]"]).len(), 1);
}

#[test]
fn an_empty_book_and_a_checksum_change_nothing() {
    let empty = |time: &str| {
        format!(
            r#"{{"type":"book_change","symbol":"A","isSnapshot":false,"bids":[],"asks":[],"timestamp":{time}}}"#
        )
    };
    let found = map(&[BOOK, "[7,[],4,5]", r#"[7,"cs",-123,9,10]"#, "[7,[]]"]);
    assert_eq!(
        found,
        [
            empty(r#""1970-01-01T00:00:00.005Z""#),
            empty(r#""1970-01-01T00:00:00.009Z""#),
            empty("null")
        ]
    );
}

#[test]
fn the_name_in_a_message_goes_before_what_its_id_stood_for() {
    let named = r#"[7,"te",[1,2,-3,4],5,6,"trades","C"]"#;
    let [found] = &map(&[BOOK, named])[..] else { panic!("one trade") };
    assert!(found.starts_with(
        r#"{"type":"trade","symbol":"C","id":"1","price":4,"amount":3,"side":"sell""#
    ));
    // The last value but one decides, be it what it may.
    assert_eq!(map(&[BOOK, r#"[7,"hb",1]"#, r#"[7,"te",[1,2]]"#]), [""; 0]);
}

#[test]
fn an_id_used_anew_keeps_its_first_meaning_for_the_other_kind() {
    let trades = r#"{"event":"subscribed","channel":"trades","chanId":7,"pair":"D"}"#;
    let found = map(&[BOOK, trades, r#"[7,"te",[1,2,3,4],5,6]"#]);
    let types: Vec<&str> = found.iter().map(|json| &json[..20]).collect();
    assert_eq!(types, [r#"{"type":"trade","sym"#, r#"{"type":"book_change"#]);
    // Without a pair it means nothing any more.
    let lending = r#"{"event":"subscribed","channel":"trades","chanId":7,"currency":"USD"}"#;
    assert_eq!(map(&[trades, lending, r#"[7,"te",[1,2,3,4],5,6]"#]), [""; 0]);
}

#[test]
fn a_missing_funding_time_differs_from_null() {
    let found = map(&[STATUS, "[8,[1,null,9],3,4]", "[8,[1,null,9,8,7,6,5,null],3,4]"]);
    assert_eq!(
        found,
        [
            r#"{"type":"derivative_ticker","symbol":"B","lastPrice":9,"timestamp":"1970-01-01T00:00:00.004Z"}"#,
            r#"{"type":"derivative_ticker","symbol":"B","lastPrice":9,"fundingTimestamp":"1970-01-01T00:00:00.000Z","indexPrice":8,"timestamp":"1970-01-01T00:00:00.004Z"}"#,
        ]
    );
}

#[test]
fn tickers_say_null_where_the_exchange_does() {
    let found = map(&[r#"[1,[null,2,3],4,5,"ticker","A"]"#, r#"[1,"hb",4,5,"ticker","A"]"#]);
    assert_eq!(
        found,
        [
            r#"{"type":"book_ticker","symbol":"A","askPrice":3,"bidPrice":null,"bidAmount":2,"timestamp":"1970-01-01T00:00:00.005Z"}"#
        ]
    );
}

#[test]
fn liquidations_lose_the_first_t_of_their_symbol_only() {
    let message = r#"[1,[["pos",5,6,null,"tTt",-1,2,null,0,1,null,9],["pos",5,6,null,"tB",-1,2,null,1]],7,8,"liquidations","global"]"#;
    let [found] = &map(&[message])[..] else { panic!("one liquidation") };
    assert!(found.starts_with(r#"{"type":"liquidation","symbol":"Tt","id":"5","price":2,"amount":1,"side":"buy","timestamp":"1970-01-01T00:00:00.006Z"#));
    assert_eq!(map(&[r#"[1,null,7,8,"liquidations","global"]"#]), [""; 0]);
}
