//! A made-up market that serves what the archive serves: the lines of any minute of an exchange,
//! in the exchange's own format. No network, no files, and the same lines for the same options.
//!
//! Each minute can be had without those before it, and yet a replay over many is consistent: prices
//! are a function of time, the book at a minute's beginning is a function of the minute, and a
//! minute's last messages make the next one's book. As in the archive, full snapshots come at 00:00
//! UTC of each day and after each lost connection; a range that begins in mid-day has none before
//! that.
//!
//! ```
//! use market_data::{Filter, Timestamp};
//! use sample_market::{SampleMarket, SampleOptions};
//!
//! let market = SampleMarket::new(SampleOptions::default());
//! let trades = [Filter { channel: "trade".to_owned(), symbols: Some(vec!["XBTUSD".to_owned()]) }];
//! let mut lines = Vec::new();
//! market.minute("bitmex", Timestamp::of_minute(2020, 2, 1, 0, 0), &trades, &mut lines)?;
//! assert!(lines.starts_with(b"2020-02-01T00:00:0"));
//! # Ok::<(), sample_market::SampleError>(())
//! ```

mod binance_futures;
mod bitmex;
mod book;
mod clock;
mod decimal;
mod deribit;
mod instrument;
mod lines;
mod live;
mod market;
mod minute;
mod option_terms;
mod options;
mod price_path;
mod random;
mod text;

use market_data::{Filter, Timestamp, exchange_channels};
use thiserror::Error;

use crate::clock::{Clock, MINUTE, SECOND};
use crate::decimal::scaled_up;
use crate::instrument::{Exchange, Instrument};
use crate::lines::Lines;
use crate::market::Market;
use crate::minute::{Minute, Pace, Venue};
use crate::random::hash_text;

pub use crate::live::SampleStream;
pub use crate::options::SampleOptions;

/// Why the sample market has no such lines.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SampleError {
    /// It does not have this exchange.
    #[error("the sample market has no exchange `{exchange}`; it has {known}")]
    UnknownExchange {
        /// What was asked for.
        exchange: String,
        /// What there is.
        known: String,
    },
    /// The exchange has no such channel.
    #[error("{exchange} has no channel `{channel}`; it has {known}")]
    UnknownChannel {
        /// The exchange.
        exchange: &'static str,
        /// What was asked for.
        channel: String,
        /// What there is.
        known: String,
    },
    /// The time cannot be written as the archive does.
    #[error("the sample market has no minute at {time}; its years are 0000 to 9999")]
    TimeOutOfRange {
        /// What was asked for.
        time: Timestamp,
    },
}

/// The book of a symbol: what whoever applied all changes has.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleBook {
    /// The symbol, as the exchange writes it.
    pub symbol: String,
    /// Prices and amounts of the bids, best first.
    pub bids: Vec<(f64, f64)>,
    /// Prices and amounts of the asks, best first.
    pub asks: Vec<(f64, f64)>,
}

/// The sample market.
#[derive(Clone, Debug)]
pub struct SampleMarket {
    options: SampleOptions,
}

impl SampleMarket {
    /// A market with these options; values out of their range count as the nearest in it.
    #[must_use]
    pub fn new(options: SampleOptions) -> Self {
        Self { options: options.in_range() }
    }

    /// The exchanges that it has.
    pub fn exchanges() -> impl Iterator<Item = &'static str> {
        Exchange::ALL.into_iter().map(Exchange::id)
    }

    /// The symbols that an exchange has on the day of `time`.
    pub fn symbols(&self, exchange: &str, time: Timestamp) -> Result<Vec<String>, SampleError> {
        let (exchange, clock) = (find(exchange)?, clock_of(time)?);
        let instruments = self.instruments(exchange, &clock);
        Ok(instruments.into_iter().map(|instrument| instrument.symbol).collect())
    }

    /// Adds the lines of the minute that holds `minute` to `out`: those of the channels and symbols
    /// in `filters`, all if there are none. Lost connections are always there.
    pub fn minute(
        &self,
        exchange: &str,
        minute: Timestamp,
        filters: &[Filter],
        out: &mut Vec<u8>,
    ) -> Result<(), SampleError> {
        self.write_minute(exchange, minute, filters, out, None)
    }

    /// Adds the lines to `out` that somebody gets who connects to the exchange at `time` and asks for
    /// `filters`: snapshots as the exchange sends or answers them. They may be up to a second old, as
    /// books cannot be had while they settle; then all messages since follow. As in a [`SampleStream`],
    /// no connection is ever lost.
    pub fn state(
        &self,
        exchange: &str,
        time: Timestamp,
        filters: &[Filter],
        out: &mut Vec<u8>,
    ) -> Result<(), SampleError> {
        let micros = time.micros().ok_or(SampleError::TimeOutOfRange { time })?;
        let at = micros.rem_euclid(MINUTE / 10) * 10;
        self.without_losses().write_minute(exchange, time, filters, out, Some(at))
    }

    fn write_minute(
        &self,
        exchange: &str,
        time: Timestamp,
        filters: &[Filter],
        out: &mut Vec<u8>,
        joined_at: Option<i64>,
    ) -> Result<(), SampleError> {
        let (exchange, clock) = (find(exchange)?, clock_of(time)?);
        check_channels(exchange, filters)?;
        let venue = venue(exchange);
        let instruments = self.instruments(exchange, &clock);
        let markets = instruments
            .iter()
            .enumerate()
            .map(|(index, instrument)| Market::new(instrument, index, &clock))
            .collect();
        let lines = Lines::new(out, clock, venue.channels(), &instruments, filters);
        let seed = hash_text(self.options.seed, exchange.id());
        let minute = Minute::new(venue, seed, markets, lines, self.pace());
        match joined_at {
            None => minute.write(),
            Some(at) => minute.write_joined(at),
        }
        Ok(())
    }

    /// The books of an exchange at the beginning of a minute, before any of its messages.
    pub fn books(&self, exchange: &str, minute: Timestamp) -> Result<Vec<SampleBook>, SampleError> {
        let (exchange, clock) = (find(exchange)?, clock_of(minute)?);
        let book = |instrument: &Instrument| {
            let market = Market::new(instrument, 0, &clock);
            let level =
                |(cell, size)| (instrument.price_number(cell), instrument.size_number(size));
            SampleBook {
                symbol: instrument.symbol.clone(),
                bids: market.book.bids().map(level).collect(),
                asks: market.book.asks().map(level).collect(),
            }
        };
        Ok(self.instruments(exchange, &clock).iter().map(book).collect())
    }

    /// The same market, whose connections are never lost: as it is live.
    fn without_losses(&self) -> Self {
        Self::new(SampleOptions { disconnects_per_hour: 0.0, ..self.options.clone() })
    }

    fn instruments(&self, exchange: Exchange, clock: &Clock) -> Vec<Instrument> {
        let mut instruments =
            exchange.instruments(self.options.seed, clock.day(), self.options.book_levels);
        instruments.truncate(self.options.symbols);
        instruments
    }

    fn pace(&self) -> Pace {
        let chance = self.options.disconnects_per_hour / 60.0;
        Pace {
            gap: SECOND.unsigned_abs() / u64::from(self.options.messages_per_second),
            disconnect_chance: scaled_up(chance * 4_294_967_296.0, 0),
        }
    }
}

fn find(exchange: &str) -> Result<Exchange, SampleError> {
    Exchange::ALL.into_iter().find(|known| known.id() == exchange).ok_or_else(|| {
        SampleError::UnknownExchange {
            exchange: exchange.to_owned(),
            known: Exchange::ALL.map(Exchange::id).join(", "),
        }
    })
}

fn clock_of(time: Timestamp) -> Result<Clock, SampleError> {
    Clock::new(time).ok_or(SampleError::TimeOutOfRange { time })
}

fn venue(exchange: Exchange) -> &'static dyn Venue {
    match exchange {
        Exchange::Bitmex => &bitmex::Bitmex,
        Exchange::BinanceFutures => &binance_futures::BinanceFutures,
        Exchange::Deribit => &deribit::Deribit,
    }
}

/// A channel that the archive has but the sample market does not is merely silent.
fn check_channels(exchange: Exchange, filters: &[Filter]) -> Result<(), SampleError> {
    let known = exchange_channels(exchange.id()).unwrap_or(venue(exchange).channels());
    match filters.iter().find(|filter| !known.contains(&filter.channel.as_str())) {
        None => Ok(()),
        Some(filter) => Err(SampleError::UnknownChannel {
            exchange: exchange.id(),
            channel: filter.channel.clone(),
            known: known.join(", "),
        }),
    }
}
