//! The feeds: a file for each family of exchanges, and a line in the list here.

mod binance;
mod bitfinex;
mod bitmex;
mod bybit;
mod coinbase;
mod deribit;
mod hyperliquid;
mod kraken;
mod okex;

use super::feed::Feed;

/// An exchange and its feed.
type Entry = (&'static str, &'static dyn Feed);

/// The exchanges that can be streamed, family by family.
const FAMILIES: &[&[Entry]] = &[
    binance::FEEDS,
    bitfinex::FEEDS,
    bitmex::FEEDS,
    bybit::FEEDS,
    coinbase::FEEDS,
    deribit::FEEDS,
    hyperliquid::FEEDS,
    kraken::FEEDS,
    okex::FEEDS,
];

/// The feed of an exchange, by its name.
pub(super) fn feed(exchange: &str) -> Option<&'static dyn Feed> {
    feeds().find(|(id, _)| *id == exchange).map(|(_, feed)| feed)
}

/// All exchanges with their feeds.
pub(super) fn feeds() -> impl Iterator<Item = Entry> {
    FAMILIES.iter().copied().flatten().copied()
}

#[cfg(test)]
mod tests;
