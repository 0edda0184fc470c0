//! What a client subscribes to, in the exchange's own words, as filters of the archive.
//!
//! A client of a raw replay speaks as it would to the exchange. Every exchange has a dialect; where
//! an exchange changed its own over the years, all of its forms are understood at all times: they
//! are told apart by their shape. Messages that are no subscriptions, such as pings and log-ins, mean
//! nothing here.

mod ascendex;
mod binance;
mod binance_dex;
mod bitfinex;
mod bitflyer;
mod bitget;
mod bitmex;
mod bitnomial;
mod bitstamp;
mod blockchain_com;
mod bullish;
mod bybit;
mod coinbase;
mod coinbase_international;
mod crypto_com;
mod cryptofacilities;
mod delta;
mod deribit;
mod dydx;
mod ftx;
mod gate_io;
mod gemini;
mod hitbtc;
mod huobi;
mod hyperliquid;
mod kraken;
mod kucoin;
mod lighter;
mod message;
mod mexc;
mod okex;
mod phemex;
mod poloniex;
mod polymarket;
mod serum;
mod upbit;
mod woo_x;

use market_data::{Filter, exchange_channels};
use serde_json::Value;
use thiserror::Error;

use message::{Misread, Reading};

/// How clients of an exchange subscribe.
struct Dialect {
    read: fn(&Value) -> Reading,
    /// A subscription as it may be.
    example: &'static str,
}

const DIALECTS: &[(&str, &Dialect)] = &[
    ("ascendex", &ascendex::DIALECT),
    ("aster", &binance::DIALECT),
    ("aster-futures", &binance::DIALECT),
    ("binance", &binance::DIALECT),
    ("binance-delivery", &binance::DIALECT),
    ("binance-dex", &binance_dex::DIALECT),
    ("binance-european-options", &binance::OPTIONS),
    ("binance-futures", &binance::DIALECT),
    ("binance-jersey", &binance::DIALECT),
    ("binance-us", &binance::DIALECT),
    ("bitfinex", &bitfinex::DIALECT),
    ("bitfinex-derivatives", &bitfinex::DIALECT),
    ("bitflyer", &bitflyer::DIALECT),
    ("bitget", &bitget::DIALECT),
    ("bitget-futures", &bitget::DIALECT),
    ("bitmex", &bitmex::DIALECT),
    ("bitnomial", &bitnomial::DIALECT),
    ("bitstamp", &bitstamp::DIALECT),
    ("blockchain-com", &blockchain_com::DIALECT),
    ("bullish", &bullish::DIALECT),
    ("bybit", &bybit::DIALECT),
    ("bybit-options", &bybit::OPTIONS),
    ("bybit-spot", &bybit::SPOT),
    ("coinbase", &coinbase::DIALECT),
    ("coinbase-international", &coinbase_international::DIALECT),
    ("coinflex", &bitmex::COINFLEX),
    ("crypto-com", &crypto_com::DIALECT),
    ("cryptofacilities", &cryptofacilities::DIALECT),
    ("delta", &delta::DIALECT),
    ("deribit", &deribit::DIALECT),
    ("dydx", &dydx::DIALECT),
    ("dydx-v4", &dydx::V4),
    ("ftx", &ftx::DIALECT),
    ("ftx-us", &ftx::DIALECT),
    ("gate-io", &gate_io::DIALECT),
    ("gate-io-futures", &gate_io::FUTURES),
    ("gemini", &gemini::DIALECT),
    ("hitbtc", &hitbtc::DIALECT),
    ("huobi", &huobi::DIALECT),
    ("huobi-dm", &huobi::DIALECT),
    ("huobi-dm-linear-swap", &huobi::DIALECT),
    ("huobi-dm-options", &huobi::DIALECT),
    ("huobi-dm-swap", &huobi::DIALECT),
    ("hyperliquid", &hyperliquid::DIALECT),
    ("kraken", &kraken::DIALECT),
    ("kucoin", &kucoin::DIALECT),
    ("kucoin-futures", &kucoin::FUTURES),
    ("lighter", &lighter::DIALECT),
    ("mango", &serum::DIALECT),
    ("mexc", &mexc::DIALECT),
    ("mexc-futures", &mexc::FUTURES),
    ("okcoin", &okex::DIALECT),
    ("okex", &okex::DIALECT),
    ("okex-futures", &okex::DIALECT),
    ("okex-options", &okex::DIALECT),
    ("okex-spreads", &okex::SPREADS),
    ("okex-swap", &okex::DIALECT),
    ("phemex", &phemex::DIALECT),
    ("poloniex", &poloniex::DIALECT),
    ("polymarket", &polymarket::DIALECT),
    ("serum", &serum::DIALECT),
    ("star-atlas", &serum::DIALECT),
    ("upbit", &upbit::DIALECT),
    ("woo-x", &woo_x::DIALECT),
];

/// Why a subscription is not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SubscriptionError {
    /// Nobody subscribes to this exchange here.
    #[error(
        "Exchange {exchange} is not supported via /ws-replay Websocket API, please use HTTP streaming API instead."
    )]
    Exchange {
        /// Its name.
        exchange: String,
    },
    /// The message is a subscription, but does not say to what, or not in a known form.
    #[error(
        "this subscription to {exchange} is not understood: {message}; subscribe as with {example}"
    )]
    Form {
        /// The exchange.
        exchange: &'static str,
        /// How the message begins.
        message: String,
        /// A subscription as it may be.
        example: &'static str,
    },
    /// A channel that the archive does not have.
    #[error(
        "the archive does not have `{channel}` of {exchange}, only {}; subscribe as with {example}",
        exchange_channels(exchange).unwrap_or_default().join(", ")
    )]
    Channel {
        /// The exchange.
        exchange: &'static str,
        /// The channel, as the message names it.
        channel: String,
        /// A subscription as it may be.
        example: &'static str,
    },
}

/// Whether subscriptions to an exchange are understood.
#[must_use]
pub fn can_subscribe(exchange: &str) -> bool {
    dialect(exchange).is_some()
}

/// What a client's message asks for. `None`: it is no subscription, and perhaps not even JSON; it is
/// to be ignored. Otherwise there is at least one filter, and the archive has all of the channels.
pub fn subscribed_filters(
    exchange: &str,
    message: &str,
) -> Result<Option<Vec<Filter>>, SubscriptionError> {
    let Some((exchange, Dialect { read, example })) = dialect(exchange) else {
        return Err(SubscriptionError::Exchange { exchange: exchange.to_owned() });
    };
    let Ok(value) = serde_json::from_str::<Value>(message) else { return Ok(None) };
    let unknown =
        |channel: &str| SubscriptionError::Channel { exchange, channel: excerpt(channel), example };
    let form = || SubscriptionError::Form { exchange, message: excerpt(message), example };
    let filters = match read(&value) {
        Ok(None) => return Ok(None),
        Ok(Some(filters)) => filters,
        Err(Misread::Form) => return Err(form()),
        Err(Misread::Channel(channel)) => return Err(unknown(&channel)),
    };
    if filters.is_empty() {
        // Without filters the archive gives everything, which nobody asked for here.
        return Err(form());
    }
    let channels = exchange_channels(exchange).unwrap_or_default();
    match filters.iter().find(|filter| !channels.contains(&&*filter.channel)) {
        Some(filter) => Err(unknown(&filter.channel)),
        None => Ok(Some(filters)),
    }
}

fn dialect(exchange: &str) -> Option<(&'static str, &'static Dialect)> {
    DIALECTS.iter().find(|(known, _)| *known == exchange).copied()
}

/// Enough of a text to recognise it.
fn excerpt(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Checks a table of messages and what they must mean: `channel=symbol,symbol channel`, `nothing` for
/// what is no subscription, `error` for one that is not understood.
#[cfg(test)]
fn assert_meanings(exchange: &str, table: &[(&str, &str)]) {
    for (message, meaning) in table {
        let found = match subscribed_filters(exchange, message) {
            Ok(Some(filters)) => {
                let text = |filter: Filter| match filter.symbols {
                    Some(symbols) => format!("{}={}", filter.channel, symbols.join(",")),
                    None => filter.channel,
                };
                filters.into_iter().map(text).collect::<Vec<_>>().join(" ")
            }
            Ok(None) => "nothing".to_owned(),
            Err(_) => "error".to_owned(),
        };
        assert_eq!(found, *meaning, "{exchange}: {message}");
    }
}

#[cfg(test)]
mod tests;
