//! The project's own messages of each exchange, and the times at which its mappers differ.

use std::fs;
use std::path::Path;

use market_data::{Exchange, Kind, Timestamp};

/// The project's own messages of `exchange`, in an order in which it could send them.
pub(crate) fn own_messages(exchange: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/{exchange}.jsonl"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// A moment in each period: just before each switch, and the newest.
pub(crate) fn moments_of(exchange: &Exchange) -> Vec<Option<Timestamp>> {
    let last_moment = |end: Timestamp| end.micros().map(|end| Timestamp::from_micros(end - 1));
    let switches = exchange.switch_times(Kind::ALL.into_iter().collect());
    switches.into_iter().map(last_moment).chain([None]).collect()
}
