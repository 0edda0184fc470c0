//! Recorded answers: what is computed from their messages is what they hold.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

use market_data::{
    Computing, DataForm, DataType, Message, NULL_NUMBER, Trade, read_message, write_message,
};
use test_messages::{RecordedAnswer, recorded_answers};

fn data_types(answer: &RecordedAnswer) -> Vec<DataType> {
    answer.data_types.iter().map(|name| name.parse().unwrap()).collect()
}

fn is_computed(data_type: &DataType) -> bool {
    !matches!(data_type.form(), DataForm::Plain(_))
}

/// In text `null` may have been NaN. Where it was not: `BitMEX` sends numbers, which pass as they
/// are, while the others send texts, which are read.
fn restore_null(trade: &mut Trade<'_>) {
    if trade.exchange == "bitmex" && trade.price.is_nan() {
        trade.price = NULL_NUMBER;
    }
}

/// The lines that are made of the messages in `body` when `data_types` are asked for.
fn compute(data_types: &[DataType], body: &str) -> Vec<String> {
    let mut computing = Computing::new(data_types);
    let mut lines = Vec::new();
    for line in body.lines() {
        let mut message = read_message(line.as_bytes()).unwrap();
        if matches!(message, Message::BookSnapshot(_) | Message::TradeBar(_)) {
            continue;
        }
        if let Message::Trade(trade) = &mut message {
            restore_null(trade);
        }
        computing.take(&message, &mut |message: &Message<'_>| {
            let is_asked_for = matches!(message, Message::Disconnect(_))
                || data_types.iter().any(|asked| asked.message_type() == message.type_name());
            if is_asked_for {
                let mut line = Vec::new();
                write_message(&mut line, message);
                lines.push(String::from_utf8(line).unwrap());
            }
        });
    }
    lines
}

fn check(answer: &RecordedAnswer, found: &[String]) {
    for (number, (expected, found)) in answer.body.lines().zip(found).enumerate() {
        assert_eq!(found, expected, "{} line {}", answer.name, number + 1);
    }
    assert_eq!(found.len(), answer.body.lines().count(), "{}", answer.name);
}

/// An answer that holds all messages it was computed from.
fn holds_its_source(data_types: &[DataType]) -> bool {
    data_types.iter().all(|computed| {
        let is_source = |asked: &DataType| asked.form() == DataForm::Plain(computed.kind());
        data_types.iter().any(is_source)
    })
}

#[test]
fn answers_are_computed_from_their_own_messages() {
    let Some(answers) = recorded_answers() else { return };
    let mut count = 0;
    for answer in &answers {
        let data_types = data_types(answer);
        if data_types.iter().any(is_computed) && holds_its_source(&data_types) {
            check(answer, &compute(&data_types, &answer.body));
            count += 1;
        }
    }
    println!("{count} answers with plain and computed messages");
    assert!(count >= 15, "only {count} answers");
}

#[test]
fn answers_are_computed_from_those_of_their_source() {
    let Some(answers) = recorded_answers() else { return };
    let mut count = 0;
    for answer in &answers {
        let data_types = data_types(answer);
        let [data_type] = &*data_types else { continue };
        if !is_computed(data_type) {
            continue;
        }
        let (recording, _) = answer.name.split_once('/').unwrap();
        let name = format!("{recording}/{}", data_type.kind().data_type());
        let source = answers.iter().find(|source| source.name == name).unwrap();
        assert_eq!(source.symbols, answer.symbols, "{name}");
        check(answer, &compute(&data_types, &source.body));
        count += 1;
    }
    println!("{count} answers with computed messages only");
    assert!(count >= 30, "only {count} answers");
}
