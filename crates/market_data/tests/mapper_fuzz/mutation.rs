//! What is done to a good message to make it a hostile one.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::json_spans::{Span, spans};

/// More levels than any stack has room for at a call each.
const TOWER: usize = 10_000;
const LONG: usize = 100_000;

/// One change of a message.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// Its end is missing.
    Cut(Index),
    /// A byte is another one.
    Flip(Index, u8),
    /// Bytes come in between.
    Insert(Index, Vec<u8>),
    /// A value is another one.
    Replace(Index, Vec<u8>),
    /// A value is that of another place.
    Copy(Index, Index),
    /// A field or element is missing.
    Delete(Index),
    /// A field or element comes again.
    Repeat(Index, usize),
    /// A field has another name.
    Rename(Index, &'static str),
    /// A field has the name of another.
    Confuse(Index, Index),
}

/// Values where others are expected.
fn hostile_value() -> impl Strategy<Value = Vec<u8>> {
    let plain: Vec<&[u8]> = vec![
        b"null",
        b"true",
        b"false",
        b"0",
        b"-0",
        b"-1",
        b"1e400",
        b"-1e400",
        b"1e-400",
        b"1.5",
        b"18446744073709551616",
        b"-9223372036854775809",
        b"9007199254740993",
        b"123456789012345678901234567890123456789012345678901234567890",
        b"\"\"",
        b"\" \"",
        b"\"-5\"",
        b"\"NaN\"",
        b"\"1e999\"",
        b"\"0x\"",
        b"\"--\"",
        b"\"-\"",
        b"\":\"",
        b"\"@\"",
        b"\".\"",
        b"\"2021-99-99T00:00:00Z\"",
        b"\"-271821-04-20T00:00:00.000Z\"",
        b"\"9999-12-31T23:59:59.999999999+99:99\"",
        b"\"99999999999999999999\"",
        b"\"\\u0000\\n\\\"\"",
        b"\"\\ud800\"",
        "\"é💥ſ\"".as_bytes(),
        b"\"\xff\xfe\"",
        b"\"\xc3\"",
        b"[]",
        b"[[]]",
        b"[null]",
        b"[[],[],[]]",
        b"{}",
        b"{\"\":{}}",
        b"[{}]",
    ];
    let plain: Vec<Vec<u8>> = plain.into_iter().map(<[u8]>::to_vec).collect();
    prop_oneof![
        40 => select(plain),
        1 => Just(tower()),
        1 => Just(vec![b'['; TOWER]),
        1 => Just(br#"{"a":"#.repeat(TOWER)),
        1 => Just(format!("\"{}\"", "a".repeat(LONG)).into_bytes()),
        1 => Just(format!("1{}", "0".repeat(LONG)).into_bytes()),
        4 => any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        4 => any::<f64>().prop_map(|number| format!("\"{number}\"").into_bytes()),
    ]
}

fn tower() -> Vec<u8> {
    ["[".repeat(TOWER), "]".repeat(TOWER)].concat().into_bytes()
}

/// Any of the mutations.
pub(crate) fn any_mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    let names = vec!["", "symbol", "data", "s", "\\u0064ata", "id", "type"];
    prop_oneof![
        1 => at().prop_map(Mutation::Cut),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Flip(at, byte)),
        1 => (at(), prop_oneof![Just(b" ".to_vec()), hostile_value()])
            .prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        6 => (at(), hostile_value()).prop_map(|(at, value)| Mutation::Replace(at, value)),
        2 => (at(), at()).prop_map(|(to, from)| Mutation::Copy(to, from)),
        3 => at().prop_map(Mutation::Delete),
        2 => (at(), prop_oneof![4 => Just(1), 1 => Just(300)])
            .prop_map(|(at, times)| Mutation::Repeat(at, times)),
        1 => (at(), select(names)).prop_map(|(at, name)| Mutation::Rename(at, name)),
        1 => (at(), at()).prop_map(|(to, from)| Mutation::Confuse(to, from)),
    ]
}

/// `message` with `mutation`; as it is where the mutation finds no place.
pub(crate) fn apply(message: Vec<u8>, mutation: &Mutation) -> Vec<u8> {
    if message.is_empty() {
        return message;
    }
    let found = spans(&message);
    let span = |at: &Index| (!found.is_empty()).then(|| at.get(&found));
    let field = |at: &Index| span(at).and_then(|span| span.key.clone());
    match mutation {
        Mutation::Cut(at) => message[..at.index(message.len())].to_vec(),
        Mutation::Flip(at, byte) => {
            let mut flipped = message;
            let place = at.index(flipped.len());
            flipped[place] = *byte;
            flipped
        }
        Mutation::Insert(at, bytes) => {
            let place = at.index(message.len());
            spliced(&message, place..place, bytes)
        }
        Mutation::Replace(at, value) => span(at)
            .map_or_else(|| value.clone(), |span| spliced(&message, span.value.clone(), value)),
        Mutation::Copy(to, from) => match (span(to), span(from)) {
            (Some(to), Some(from)) => {
                spliced(&message, to.value.clone(), &message[from.value.clone()])
            }
            _ => message,
        },
        Mutation::Delete(at) => match span(at) {
            Some(span) => without(&message, span),
            None => message,
        },
        Mutation::Repeat(at, times) => match span(at) {
            Some(span) => {
                let again = [b",", &message[span.whole()]].concat().repeat(*times);
                spliced(&message, span.value.end..span.value.end, &again)
            }
            None => message,
        },
        Mutation::Rename(at, name) => match field(at) {
            Some(key) => spliced(&message, key, format!("\"{name}\"").as_bytes()),
            None => message,
        },
        Mutation::Confuse(to, from) => match (field(to), field(from)) {
            (Some(to), Some(from)) => spliced(&message, to, &message[from]),
            _ => message,
        },
    }
}

fn spliced(message: &[u8], place: std::ops::Range<usize>, bytes: &[u8]) -> Vec<u8> {
    [&message[..place.start], bytes, &message[place.end..]].concat()
}

/// `message` without a field or element and one of the commas beside it.
fn without(message: &[u8], span: &Span) -> Vec<u8> {
    let mut place = span.whole();
    if message.get(place.end) == Some(&b',') {
        place.end += 1;
    } else if message[..place.start].ends_with(b",") {
        place.start -= 1;
    }
    spliced(message, place, b"")
}

/// `message` with each of its values, and a new field, as a tower of brackets.
pub(crate) fn towers(message: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let found = spans(message);
    let field = [br#"{"new":"#, &tower()[..], b","].concat();
    let added = message.strip_prefix(b"{").map(|rest| [&field, rest].concat());
    let replaced =
        found.into_iter().map(|span| spliced(message, span.value, &tower())).chain(added);
    replaced.collect::<Vec<_>>().into_iter()
}
