//! The exchanges: a file for each family of them, and a line in the list here.

mod binance;
mod bitfinex;
mod bitmex;
mod bybit;
mod bybit_spot;
mod channels;
mod coinbase;
mod deribit;
mod hyperliquid;
mod kraken;
mod okex;

use crate::exchange::Exchange;

/// The exchanges that can be normalized, family by family.
const FAMILIES: &[&[Exchange]] = &[
    binance::EXCHANGES,
    bitfinex::EXCHANGES,
    bitmex::EXCHANGES,
    bybit::EXCHANGES,
    bybit_spot::EXCHANGES,
    coinbase::EXCHANGES,
    deribit::EXCHANGES,
    hyperliquid::EXCHANGES,
    kraken::EXCHANGES,
    okex::EXCHANGES,
];

/// An exchange that can be normalized, by its name.
#[must_use]
pub fn exchange(id: &str) -> Option<&'static Exchange> {
    normalized_exchanges().find(|exchange| exchange.id == id)
}

/// All exchanges that can be normalized.
pub fn normalized_exchanges() -> impl Iterator<Item = &'static Exchange> {
    FAMILIES.iter().copied().flatten()
}

/// The channels of an exchange in the archive; `None` if the archive does not have the exchange.
#[must_use]
pub fn exchange_channels(id: &str) -> Option<&'static [&'static str]> {
    channels::CHANNELS.iter().find(|(exchange, _)| *exchange == id).map(|(_, channels)| *channels)
}

/// The names of all exchanges in the archive: each can be replayed raw.
pub fn exchange_ids() -> impl Iterator<Item = &'static str> {
    channels::CHANNELS.iter().map(|(exchange, _)| *exchange)
}

/// What the mapper of `id` to all its kinds, made for the time `at`, gives for each of `messages`,
/// which are received at 2024-01-01T00:00:00.000001Z.
#[cfg(test)]
fn map_all(id: &str, at: &str, messages: &[&str]) -> Vec<Vec<String>> {
    use crate::time::Timestamp;
    use crate::{Kind, Message, write_message};

    let at = Timestamp::parse(at).expect("a time");
    let local_timestamp = Timestamp::parse("2024-01-01T00:00:00.000001Z").expect("a time");
    let exchange = exchange(id).expect("a known exchange");
    let mut mapper = exchange.mapper(Kind::ALL.into_iter().collect(), Some(at));
    let map = |message: &&str| {
        let mut found = Vec::new();
        let mut sink = |message: &Message<'_>| {
            let mut json = Vec::new();
            write_message(&mut json, message);
            found.push(String::from_utf8(json).expect("text"));
        };
        mapper.map(message.as_bytes(), local_timestamp, &mut sink).expect("a message");
        found
    };
    messages.iter().map(map).collect()
}
