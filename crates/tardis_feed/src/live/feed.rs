//! What must be known of an exchange to stream from it.

use std::time::Duration;

use market_data::Filter;
use memchr::memmem;
use thiserror::Error;

/// An exchange's live interface.
pub(super) trait Feed: Sync {
    /// The connections that give `filters`, which are one per channel and in order.
    fn connections(&self, filters: &[Filter]) -> Result<Vec<ConnectionPlan>, SymbolsNeeded>;

    /// What a message means for its connection.
    fn read(&self, message: &[u8]) -> Incoming;

    /// What keeps a connection alive.
    fn ping(&self) -> Ping {
        Ping::Frame
    }

    /// The paths that its addresses have, where there are several.
    fn paths(&self) -> &'static [&'static str] {
        &[]
    }

    /// What it has over HTTP.
    fn rest(&self) -> Option<Rest> {
        None
    }
}

/// A channel is only sent for symbols that are named.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the channel `{channel}` needs symbols")]
pub(super) struct SymbolsNeeded {
    pub(super) channel: String,
}

/// One connection of a feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionPlan {
    /// Its address.
    pub(super) url: &'static str,
    /// What is sent first.
    pub(super) greeting: Vec<String>,
    /// What is sent to subscribe.
    pub(super) subscribe: Vec<String>,
    /// The wait after each of these.
    pub(super) throttle: Duration,
    /// Symbols whose order books are fetched over HTTP once the connection is there.
    pub(super) depth_snapshots: Vec<String>,
    /// Symbols whose open interest is fetched over HTTP again and again.
    pub(super) open_interest: Vec<String>,
}

/// What an exchange has over HTTP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// Its address.
    pub(super) url: &'static str,
    /// What an order book counts against the exchange's limit.
    pub(super) depth_weight: u64,
}

/// What keeps a connection alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ping {
    /// A WebSocket ping.
    Frame,
    /// A message.
    Text(&'static str),
}

/// What a message means for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// It is for the mapper, which passes over what it does not know.
    Data,
    /// A sign of life, not of data.
    Heartbeat,
    /// A sign of life that must be answered so.
    Question(&'static str),
    /// An error.
    Refusal,
}

/// The symbols of `filter`, of which there must be some.
pub(super) fn named_symbols(filter: &Filter) -> Result<&[String], SymbolsNeeded> {
    match filter.symbols.as_deref() {
        Some(symbols) if !symbols.is_empty() => Ok(symbols),
        _ => Err(SymbolsNeeded { channel: filter.channel.clone() }),
    }
}

/// Whether a message has one of `words`. What exchanges say about a connection is short, or says
/// what it is about at its beginning, so not all of a long message is looked at: most messages are
/// data, and are not to be read twice.
pub(super) fn mentions(message: &[u8], words: &[&str]) -> bool {
    const SHORT: usize = 4 << 10;
    const BEGINNING: usize = 512;
    let seen = if message.len() <= SHORT { message } else { &message[..BEGINNING] };
    words.iter().any(|word| memmem::find(seen, word.as_bytes()).is_some())
}
