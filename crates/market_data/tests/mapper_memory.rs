//! Updates of a book that wait for its snapshot do not pile up without end. The test is alone in its
//! process, whose memory it looks at.

#![allow(clippy::expect_used, clippy::panic)] // in what the tests share, too

#[path = "mapper_fuzz/corpus.rs"]
mod corpus;

use std::fs;

use corpus::{moments_of, own_messages};
use market_data::{Kind, Kinds, Mapper, Message, Timestamp, normalized_exchanges};

/// Several times what any mapper keeps.
const COPIES: usize = 10_000;

/// Memory of the process, in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a Linux process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    let kilobytes = line.trim().trim_end_matches(" kB");
    kilobytes.parse::<usize>().expect("a number") * 1_024
}

/// Whether `message` changes a book.
fn changes_book(mapper: &mut dyn Mapper, message: &str) -> bool {
    let mut has_changed = false;
    let mut sink = |message: &Message<'_>| has_changed |= matches!(message, Message::BookChange(_));
    let received = Timestamp::of_day(2026, 1, 1);
    // A message of another period may be an error.
    let _ = mapper.map(message.as_bytes(), received, &mut sink);
    has_changed
}

#[test]
fn updates_before_a_snapshot_are_bounded() {
    for exchange in normalized_exchanges() {
        for at in moments_of(exchange) {
            let new_mapper = || exchange.mapper(Kinds::default().with(Kind::BookChanges), at);
            let mut in_order = new_mapper();
            for message in own_messages(exchange.id) {
                let changes = changes_book(&mut *in_order, &message);
                if !changes || changes_book(&mut *new_mapper(), &message) {
                    continue;
                }
                let mut mapper = new_mapper();
                let before = resident();
                for _ in 0..COPIES {
                    changes_book(&mut *mapper, &message);
                }
                let grown = resident().saturating_sub(before);
                let fed = COPIES * message.len();
                assert!(grown < fed / 2, "{}: {grown} of {fed} bytes kept: {message}", exchange.id);
            }
        }
    }
}
