//! Bronze is lossless, and the direct encoder writes what prost writes.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

use std::collections::BTreeMap;

use bronze_core::{
    BookChanges, BronzeEncoder, DecodeError, EncoderError, EncoderOptions, EventBuffer,
    MessageAssembler, Origin, PayloadCase, decode_event,
};
use market_data::{BookChange, Message, Timestamp, read_message};
use proptest::prelude::*;
use prost::Message as _;

#[path = "../benches/bronze_encode/prost_structs.rs"]
mod prost_structs;

const INGEST: i64 = 1_700_000_000_123_456;
const FIRST_SEQ: u64 = 120;

fn meta() -> BTreeMap<String, String> {
    let pairs = [("request_id", "r-1"), ("transport", "http"), ("a", ""), ("zone", "東京")];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn encode(message: &Message<'_>, book_changes: BookChanges) -> EventBuffer {
    let options = EncoderOptions {
        source: "test".to_owned(),
        origin: Origin::Replay,
        meta: meta(),
        book_changes,
        first_seq: FIRST_SEQ,
    };
    let mut encoder = BronzeEncoder::new(options).unwrap();
    let mut events = EventBuffer::default();
    encoder.encode(message, Timestamp::from_micros(INGEST), &mut events);
    assert_eq!(encoder.next_seq(), FIRST_SEQ + events.len() as u64);
    events
}

fn decode(events: &EventBuffer) -> Result<Vec<Message<'static>>, DecodeError> {
    let mut assembler = MessageAssembler::default();
    let mut messages = Vec::new();
    for (case, bytes) in events.iter() {
        let event = decode_event(bytes)?;
        assert_eq!(event.case, case);
        messages.extend(assembler.push(event)?);
    }
    assembler.finish()?;
    Ok(messages)
}

/// Both kinds of round trip. Messages are compared by their debug text, which tells -0 from 0 and
/// for which NaN is NaN.
fn check_lossless(message: &Message<'_>) {
    for book_changes in [BookChanges::Level, BookChanges::Message] {
        let events = encode(message, book_changes);
        let decoded = decode(&events).unwrap();
        assert_eq!(format!("{decoded:?}"), format!("[{message:?}]"));
    }
}

fn check_prost_agrees(message: &Message<'_>) {
    for book_changes in [BookChanges::Level, BookChanges::Message] {
        let session = prost_structs::Session {
            source: "test".to_owned(),
            origin: Origin::Replay,
            meta: meta(),
            per_level: book_changes == BookChanges::Level,
        };
        let ingest = Timestamp::from_micros(INGEST);
        let expected = prost_structs::events(&session, message, ingest, FIRST_SEQ);
        let events = encode(message, book_changes);
        assert_eq!(events.len(), expected.len());
        for ((_, bytes), expected) in events.iter().zip(&expected) {
            let decoded = bronze_core::generated::bronze::NormalizedEvent::decode(bytes).unwrap();
            assert_eq!(&decoded, expected);
            assert_eq!(bytes, expected.encode_to_vec());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_kind_of_message_comes_back(messages in test_messages::message_of_every_kind()) {
        for message in &messages {
            check_lossless(message);
        }
    }

    #[test]
    fn the_bytes_are_those_of_prost(messages in test_messages::message_of_every_kind()) {
        for message in &messages {
            check_prost_agrees(message);
        }
    }

    #[test]
    fn a_cut_event_is_refused_and_no_bytes_panic(
        message in test_messages::any_message(), cut: usize, garbage: Vec<u8>,
    ) {
        let events = encode(&message, BookChanges::Message);
        let (bytes, _) = events.into_parts();
        // A cut inside of the payload breaks its length; a cut before it leaves none.
        prop_assert!(decode_event(&bytes[..cut % bytes.len()]).is_err());
        let _ = decode_event(&garbage);
    }
}

#[test]
fn samples_are_lossless() {
    let mut cases = std::collections::BTreeSet::new();
    for (source, text) in test_messages::sample_messages() {
        let message = read_message(text.as_bytes()).unwrap_or_else(|e| panic!("{source}: {e}"));
        check_lossless(&message);
        check_prost_agrees(&message);
        cases.insert(PayloadCase::of(&message));
    }
    assert_eq!(cases.len(), PayloadCase::ALL.len(), "a sample of every payload case");
}

#[test]
fn conformance_messages_are_lossless() {
    let count = test_messages::conformance_messages(|source, text| {
        let message = read_message(text.as_bytes()).unwrap_or_else(|e| panic!("{source}: {e}"));
        check_lossless(&message);
    });
    if let Some(count) = count {
        assert!(count > 100_000, "only {count} messages");
        println!("{count} conformance messages");
    }
}

fn book_change(text: &str) -> EventBuffer {
    encode(&read_message(text.as_bytes()).unwrap(), BookChanges::Level)
}

const CHANGE: &str = r#"{"type":"book_change","symbol":"S","exchange":"e","isSnapshot":false,
    "bids":[{"price":1,"amount":0},{"price":2,"amount":5}],"asks":[{"price":3,"amount":0}],
    "timestamp":"2020-01-01T00:00:00.000Z","localTimestamp":"2020-01-01T00:00:00.000000Z"}"#;

#[test]
fn a_level_is_deleted_by_an_amount_of_zero() {
    use bronze_core::generated::bronze::{Action, NormalizedEvent, normalized_event::Payload};
    let actions: Vec<(Action, String, i32)> = book_change(CHANGE)
        .iter()
        .map(|(_, bytes)| match NormalizedEvent::decode(bytes).unwrap().payload {
            Some(Payload::BookChange(level)) => {
                (level.action(), level.qty_str.clone(), level.level)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let expected = [(Action::Delete, "0", 0), (Action::Upsert, "5", 1), (Action::Delete, "0", 0)];
    assert_eq!(actions, expected.map(|(action, qty, level)| (action, qty.to_owned(), level)));
}

#[test]
fn an_empty_book_change_is_one_event_without_side_and_action() {
    use bronze_core::generated::bronze::{NormalizedEvent, normalized_event::Payload};
    let Message::BookChange(change) = read_message(CHANGE.as_bytes()).unwrap() else { panic!() };
    let empty = BookChange { bids: vec![].into(), asks: vec![].into(), ..change };
    let events = encode(&Message::BookChange(empty), BookChanges::Level);
    let events: Vec<_> = events.iter().collect();
    let [(PayloadCase::BookChange, bytes)] = events[..] else { panic!("{events:?}") };
    let Some(Payload::BookChange(level)) = NormalizedEvent::decode(bytes).unwrap().payload else {
        panic!()
    };
    assert_eq!((level.side, level.action, level.parts), (0, 0, 0));
}

#[test]
fn missing_and_doubled_levels_are_noticed() {
    let events = book_change(CHANGE);
    let decoded: Vec<_> = events.iter().map(|(_, bytes)| decode_event(bytes).unwrap()).collect();
    for (order, expected) in [
        (vec![1], "book change of e S: expected level 0, found 1 of 3"),
        (vec![0, 2], "book change of e S: expected level 1 of 3 (e S), found 2 of 3"),
        (vec![0, 0], "book change of e S: expected level 1 of 3 (e S), found 0 of 3"),
        (vec![0, 1], "book change of e S: expected level 2 of 3 (e S), found none"),
    ] {
        let mut assembler = MessageAssembler::default();
        let result = order
            .iter()
            .try_for_each(|at| assembler.push(decoded[*at].clone()).map(|_| ()))
            .and_then(|()| assembler.finish());
        let text = result.unwrap_err().to_string();
        assert!(text.starts_with(expected), "{text}");
    }
}

#[test]
fn meta_keys_of_the_encoder_are_refused() {
    let meta = BTreeMap::from([("data_type".to_owned(), "x".to_owned())]);
    let error = BronzeEncoder::new(EncoderOptions { meta, ..EncoderOptions::default() });
    assert_eq!(
        error.map(|_| ()).unwrap_err(),
        EncoderError::ReservedMetaKey { key: "data_type".to_owned() }
    );
}

#[test]
fn a_batch_shares_its_bytes() {
    let mut events = book_change(CHANGE);
    let length = events.byte_len();
    let batch = events.take_batch();
    assert!(events.is_empty());
    assert_eq!((batch.len(), batch.byte_len()), (3, length));
    let listed: Vec<Vec<u8>> = batch.iter().map(|(_, bytes)| bytes.to_vec()).collect();
    for (index, expected) in listed.iter().enumerate() {
        let (case, bytes) = batch.shared(index);
        assert_eq!((case, &bytes[..]), (PayloadCase::BookChange, &expected[..]));
        assert_eq!(bytes.as_ptr(), batch.event(index).1.as_ptr());
    }
}
