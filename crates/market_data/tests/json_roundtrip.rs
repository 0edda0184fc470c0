//! JSON text and messages say the same.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

use market_data::{ErrorCode, Message, read_message, write_message};
use proptest::prelude::*;

fn json(message: &Message<'_>) -> String {
    let mut out = Vec::new();
    write_message(&mut out, message);
    String::from_utf8(out).unwrap()
}

fn check_same_text(source: &str, text: &str) {
    let message = read_message(text.as_bytes()).unwrap_or_else(|e| panic!("{source}: {e}: {text}"));
    assert_eq!(json(&message), text, "{source}");
}

#[test]
fn samples_come_out_as_they_went_in() {
    let samples = test_messages::sample_messages();
    assert!(samples.len() > 20, "samples of every type");
    for (source, text) in &samples {
        check_same_text(source, text);
    }
}

#[test]
fn conformance_messages_come_out_as_they_went_in() {
    if let Some(count) = test_messages::conformance_messages(check_same_text) {
        assert!(count > 100_000, "only {count} messages");
        println!("{count} conformance messages");
    }
}

/// What JSON cannot tell apart, as reading leaves it.
fn as_json_tells(mut message: Message<'static>) -> Message<'static> {
    match &mut message {
        Message::Error(error) => error.code = ErrorCode::Unspecified,
        Message::Disconnect(disconnect) => {
            disconnect.reason = "".into();
            disconnect.close_code = 0;
        }
        _ => {}
    }
    message
}

proptest! {
    /// The text is valid JSON, and reading it gives the message back: compared as text once more,
    /// since -0 and the infinities are written as 0 and null.
    #[test]
    fn random_messages_read_back(message in test_messages::any_message()) {
        let message = as_json_tells(message);
        let text = json(&message);
        let parsed = serde_json::from_str::<serde_json::Value>(&text).unwrap();
        prop_assert_eq!(parsed["type"].as_str(), Some(message.type_name()));
        let read = read_message(text.as_bytes()).unwrap();
        prop_assert_eq!(json(&read), text);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>, message in test_messages::any_message(), cut: usize) {
        let _ = read_message(&bytes);
        let text = json(&message);
        prop_assert!(read_message(&text.as_bytes()[..cut % text.len()]).is_err());
    }
}

#[test]
fn bad_messages_are_refused_with_what_is_wrong() {
    let cases = [
        ("", "not a normalized message: EOF while parsing"),
        ("[]", "not a normalized message: "),
        ("{}", "not a normalized message: missing field `type`"),
        (r#"{"type":"candle"}"#, "unknown message type `candle`; known are trade, book_change,"),
        (r#"{"type":"trade"}"#, "bad trade message: missing field `symbol`"),
        (
            r#"{"type":"trade","symbol":"A","exchange":"b","price":"1","amount":1,"side":"buy"}"#,
            "bad trade message: invalid type: string",
        ),
        (
            r#"{"type":"trade","symbol":"A","exchange":"b","price":1,"amount":1,"side":"bid"}"#,
            "bad trade message: unknown variant `bid`, expected one of `buy`, `sell`, `unknown`",
        ),
        (
            r#"{"type":"disconnect","exchange":"b","localTimestamp":"yesterday"}"#,
            "bad disconnect message: `yesterday` is not a UTC time such as",
        ),
        (
            r#"{"type":"disconnect","exchange":"b","localTimestamp":null,"extra":1}"#,
            "bad disconnect message: unknown field `extra`, expected one of",
        ),
        (
            r#"{"type":"book_ticker","symbol":"A","exchange":"b","askPrice":1,"askPrice":2}"#,
            "bad book_ticker message: a value is given twice",
        ),
        (
            r#"{"type":"book_snapshot","symbol":"A","exchange":"b","name":"n","depth":1,
               "interval":0,"bids":[{"price":1}],"asks":[],"timestamp":null,"localTimestamp":null}"#,
            "bad book_snapshot message: missing field `amount`",
        ),
    ];
    for (text, expected) in cases {
        let error = read_message(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    let error = read_message(deep.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "not a normalized message: nested too deeply");
}

#[test]
fn fields_may_come_in_any_order_and_with_escapes() {
    let text = r#" {"localTimestamp":"2020-01-01T00:00:00.000Z","exchange":"a\u0062","type":"disconnect"}"#;
    let message = read_message(text.as_bytes()).unwrap();
    assert_eq!(
        json(&message),
        r#"{"type":"disconnect","exchange":"ab","localTimestamp":"2020-01-01T00:00:00.000Z"}"#
    );
}
