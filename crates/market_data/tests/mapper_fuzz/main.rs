//! Every mapper, in every period, over hostile messages: it gives messages or an error, never a
//! panic. `PROPTEST_CASES` makes the run longer.

#![allow(clippy::expect_used, clippy::panic)] // in what the tests share, too

mod corpus;
mod json_spans;
mod mutation;

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;
use std::thread;

use corpus::{moments_of, own_messages};
use market_data::{
    Exchange, Kind, Kinds, Mapper, Message, Timestamp, normalized_exchanges, read_message,
    write_message,
};
use mutation::{Mutation, any_mutation, apply};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use test_messages::mapper_cases;

/// When the test's messages are received.
const RECEIVED: Timestamp = Timestamp::of_day(2026, 1, 1);
/// Cases of a run that nobody asked to be longer: a few seconds unoptimized.
const CASES: u32 = 1_000;

/// A mapper and what it is fed.
struct Attack {
    exchange: &'static Exchange,
    kinds: Kinds,
    at: Option<Timestamp>,
    messages: Vec<Vec<u8>>,
}

impl fmt::Debug for Attack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<Kind> = self.kinds.iter().collect();
        write!(formatter, "{} at {}, {kinds:?}", self.exchange.id, name_of(self.at))?;
        for message in &self.messages {
            write!(formatter, "\n  {}", readable(message))?;
        }
        Ok(())
    }
}

fn name_of(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "newest".to_owned(), |at| at.to_string())
}

/// `message` as text, with the middle of a very long one left out.
fn readable(message: &[u8]) -> String {
    const LONGEST: usize = 2_000;
    if message.len() <= LONGEST {
        return message.escape_ascii().to_string();
    }
    let (start, end) = (&message[..LONGEST / 2], &message[message.len() - LONGEST / 2..]);
    let left_out = message.len() - LONGEST;
    format!("{} …{left_out} bytes… {}", start.escape_ascii(), end.escape_ascii())
}

/// The project's own messages of `exchange`, and the recorded ones where they are.
fn messages_of(exchange: &str) -> &'static [String] {
    static MESSAGES: OnceLock<HashMap<&str, Vec<String>>> = OnceLock::new();
    let messages = MESSAGES.get_or_init(|| {
        let own = normalized_exchanges().map(|exchange| (exchange.id, own_messages(exchange.id)));
        let mut messages: HashMap<&str, Vec<String>> = own.collect();
        for case in mapper_cases().into_iter().flatten() {
            if let Some(messages) = messages.get_mut(&*case.exchange) {
                messages.extend(case.steps.into_iter().map(|step| step.message));
            }
        }
        messages
    });
    &messages[exchange]
}

fn all_kinds() -> Kinds {
    Kind::ALL.into_iter().collect()
}

/// Feeds `message` and returns how many messages it gives, each of which is readable JSON.
fn feed(mapper: &mut dyn Mapper, message: &[u8]) -> usize {
    let mut count = 0;
    let mut json = Vec::new();
    let mut sink = |message: &Message<'_>| {
        count += 1;
        json.clear();
        write_message(&mut json, message);
        if let Err(error) = read_message(&json) {
            panic!("{error}: {}", json.escape_ascii());
        }
    };
    // An error is as good as messages.
    let _ = mapper.map(message, RECEIVED, &mut sink);
    count
}

fn any_attack() -> impl Strategy<Value = Attack> {
    let kinds = prop_oneof![
        3 => Just(all_kinds()),
        1 => vec(select(Kind::ALL.to_vec()), 1..3).prop_map(|kinds| kinds.into_iter().collect()),
    ];
    let step = (any::<Index>(), vec(any_mutation(), 0..4));
    (select(normalized_exchanges().collect::<Vec<_>>()), any::<Index>(), kinds, vec(step, 1..16))
        .prop_map(|(exchange, moment, kinds, steps)| {
            let known = messages_of(exchange.id);
            let message = |(index, mutations): (Index, Vec<Mutation>)| {
                mutations.iter().fold(index.get(known).clone().into_bytes(), apply)
            };
            Attack {
                exchange,
                kinds,
                at: *moment.get(&moments_of(exchange)),
                messages: steps.into_iter().map(message).collect(),
            }
        })
}

fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return config;
    }
    ProptestConfig { cases: CASES, ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn hostile_messages_give_messages_or_an_error(attack in any_attack()) {
        let mut mapper = attack.exchange.mapper(attack.kinds, attack.at);
        let mut bytes_in = 0;
        let mut messages_out = 0;
        for message in &attack.messages {
            bytes_in += message.len();
            messages_out += feed(&mut *mapper, message);
            // Work is in step with what came in.
            prop_assert!(messages_out <= bytes_in, "{messages_out} messages");
        }
    }
}

/// Without this, the mutations would be those of messages that no mapper looks at.
#[test]
fn the_corpus_reaches_every_kind_in_every_period() {
    for exchange in normalized_exchanges() {
        for normalizer in exchange.normalizers {
            for at in moments_of(exchange) {
                let mut mapper = exchange.mapper(Kinds::default().with(normalizer.kind), at);
                let corpus = own_messages(exchange.id);
                let count: usize =
                    corpus.iter().map(|message| feed(&mut *mapper, message.as_bytes())).sum();
                let (kind, at) = (normalizer.kind, name_of(at));
                assert!(count > 0, "{} {kind:?} at {at}: nothing", exchange.id);
            }
        }
    }
}

/// Each value of each message becomes a tower of brackets. A stack that overflows ends the process;
/// the name of the thread then says where.
#[test]
fn towers_of_brackets_fit_on_the_stack() {
    const STACK: usize = 2 << 20;
    for exchange in normalized_exchanges() {
        for at in moments_of(exchange) {
            let name = format!("{} at {}", exchange.id, name_of(at));
            let feed_all = move || {
                let mut mapper = exchange.mapper(all_kinds(), at);
                for message in own_messages(exchange.id) {
                    for tower in mutation::towers(message.as_bytes()) {
                        feed(&mut *mapper, &tower);
                    }
                }
            };
            let thread = thread::Builder::new().name(name).stack_size(STACK).spawn(feed_all);
            thread.expect("a thread").join().expect("no panic");
        }
    }
}
