//! Derivative tickers that are put together from several messages.

use std::borrow::Cow;

use hashbrown::HashMap;

use crate::mapper::Sink;
use crate::message::{DerivativeTicker, Message};
use crate::time::Timestamp;

/// What is known so far about each symbol of an exchange.
#[derive(Debug)]
pub(crate) struct PendingTickers {
    exchange: &'static str,
    tickers: HashMap<String, PendingTicker>,
}

/// What is known so far about one symbol. An update that brings nothing new, or no value, changes
/// nothing.
#[derive(Debug)]
pub(crate) struct PendingTicker {
    ticker: DerivativeTicker<'static>,
    has_timestamp: bool,
    has_changed: bool,
}

impl PendingTickers {
    /// Knows nothing yet.
    #[must_use]
    pub(crate) fn new(exchange: &'static str) -> Self {
        Self { exchange, tickers: HashMap::new() }
    }

    /// Whether something was said about `symbol` before.
    #[must_use]
    pub(crate) fn has(&self, symbol: &str) -> bool {
        self.tickers.contains_key(symbol)
    }

    /// What is known about `symbol`.
    pub(crate) fn of(&mut self, symbol: &str) -> &mut PendingTicker {
        let exchange = self.exchange;
        self.tickers.entry_ref(symbol).or_insert_with(|| PendingTicker::new(exchange, symbol))
    }
}

macro_rules! updates {
    ($($(#[$doc:meta])* $name:ident: $field:ident;)*) => {
        $(
            $(#[$doc])*
            pub(crate) fn $name(&mut self, value: Option<f64>) {
                if let Some(value) = value
                    && self.ticker.$field != Some(value)
                {
                    self.ticker.$field = Some(value);
                    self.has_changed = true;
                }
            }
        )*
    };
}

impl PendingTicker {
    fn new(exchange: &'static str, symbol: &str) -> Self {
        Self {
            ticker: DerivativeTicker {
                symbol: Cow::Owned(symbol.to_owned()),
                exchange: Cow::Borrowed(exchange),
                last_price: None,
                open_interest: None,
                funding_rate: None,
                funding_timestamp: None,
                predicted_funding_rate: None,
                index_price: None,
                mark_price: None,
                timestamp: Timestamp::INVALID,
                local_timestamp: Timestamp::INVALID,
            },
            has_timestamp: false,
            has_changed: false,
        }
    }

    updates! {
        /// Price of the last trade.
        update_last_price: last_price;
        /// Open interest.
        update_open_interest: open_interest;
        /// Funding rate.
        update_funding_rate: funding_rate;
        /// Funding rate expected next.
        update_predicted_funding_rate: predicted_funding_rate;
        /// Price of the index.
        update_index_price: index_price;
        /// Mark price.
        update_mark_price: mark_price;
    }

    /// When funding is paid next. A time that could not be read is never the same as another.
    pub(crate) fn update_funding_timestamp(&mut self, time: Option<Timestamp>) {
        let known = self.ticker.funding_timestamp.and_then(Timestamp::micros);
        if let Some(time) = time
            && (known.is_none() || known != time.micros())
        {
            self.ticker.funding_timestamp = Some(time);
            self.has_changed = true;
        }
    }

    /// The exchange's time; an earlier one than that known, by milliseconds, is passed over. After a
    /// date that could not be read no other one counts.
    pub(crate) fn update_timestamp(&mut self, time: Timestamp) {
        let millis = |time: Timestamp| time.micros().map(|micros| micros.div_euclid(1_000));
        let is_later =
            millis(self.ticker.timestamp).is_some_and(|known| Some(known) <= millis(time));
        if !self.has_timestamp || is_later {
            self.ticker.timestamp = time;
            self.has_timestamp = true;
        }
    }

    /// Whether something changed since it was last sent.
    #[must_use]
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Sends the ticker if something changed since it was last sent. Without a time of the exchange
    /// it has the time at which it was received.
    pub(crate) fn send_if_changed(&mut self, local_timestamp: Timestamp, out: &mut dyn Sink) {
        if !self.has_changed {
            return;
        }
        self.has_changed = false;
        self.ticker.local_timestamp = local_timestamp;
        if !self.has_timestamp {
            self.ticker.timestamp = local_timestamp;
            self.has_timestamp = true;
        }
        let ticker = &self.ticker;
        out.take(&Message::DerivativeTicker(DerivativeTicker {
            symbol: Cow::Borrowed(&ticker.symbol),
            exchange: Cow::Borrowed(&ticker.exchange),
            ..*ticker
        }));
    }
}
