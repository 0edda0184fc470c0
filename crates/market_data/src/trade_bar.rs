//! Trade bars: trades summed up by time, number or volume.

use std::borrow::Cow;

use crate::mapper::Sink;
use crate::message::{BarKind, Message, Side, Trade, TradeBar};
use crate::null_number::counted;
use crate::time::Timestamp;

/// JavaScript's largest and smallest safe integers: the bounds a bar starts from, which show where
/// no price of it was a number.
const HIGHEST: f64 = 9_007_199_254_740_991.0;
const LOWEST: f64 = -HIGHEST;
/// The times of a bar none of whose trades has a time.
const NO_TIME: Timestamp = Timestamp::from_millis(-1);

/// What bars are asked for.
#[derive(Clone, Debug)]
pub(crate) struct TradeBarSetup {
    pub(crate) name: String,
    pub(crate) kind: BarKind,
    pub(crate) interval: u64,
}

/// The bar of one symbol that is not complete yet.
///
/// The arithmetic keeps one order of operations, since it decides the last digit that is printed.
#[derive(Clone, Debug)]
pub(crate) struct OpenBar {
    open: f64,
    high: f64,
    low: f64,
    close: f64,
    volume: f64,
    buy_volume: f64,
    sell_volume: f64,
    trades: u64,
    vwap: f64,
    open_timestamp: Timestamp,
    close_timestamp: Timestamp,
}

impl OpenBar {
    /// A bar without trades.
    pub(crate) const EMPTY: Self = Self {
        open: 0.0,
        high: LOWEST,
        low: HIGHEST,
        close: 0.0,
        volume: 0.0,
        buy_volume: 0.0,
        sell_volume: 0.0,
        trades: 0,
        vwap: 0.0,
        open_timestamp: NO_TIME,
        close_timestamp: NO_TIME,
    };

    /// Takes a trade. A bar of time is complete when a trade of a later interval comes, which is
    /// then the first of the next bar; the others are complete with the trade that fills them.
    pub(crate) fn take(&mut self, setup: &TradeBarSetup, trade: &Trade<'_>, out: &mut dyn Sink) {
        if setup.kind == BarKind::Time
            && let Some(end) = self.end_before(trade, setup.interval)
        {
            self.send(setup, trade, end, out);
        }
        self.add(trade);
        #[allow(clippy::cast_precision_loss)] // intervals are below 2^53
        let is_full = match setup.kind {
            BarKind::Time => false,
            BarKind::Tick => self.trades >= setup.interval,
            BarKind::Volume => self.volume >= setup.interval as f64,
        };
        if is_full {
            self.send(setup, trade, self.close_timestamp, out);
        }
    }

    /// The end of the bar's interval, if `trade` is of a later one.
    fn end_before(&self, trade: &Trade<'_>, interval: u64) -> Option<Timestamp> {
        if self.trades == 0 {
            return None;
        }
        let bucket = self.open_timestamp.bucket(interval)?;
        (trade.timestamp.bucket(interval)? > bucket)
            .then(|| Timestamp::of_bucket_end(bucket, interval))
    }

    fn add(&mut self, trade: &Trade<'_>) {
        if self.trades == 0 {
            self.open = trade.price;
            self.open_timestamp = trade.timestamp;
        }
        let (price, amount) = (counted(trade.price), counted(trade.amount));
        if counted(self.high) < price {
            self.high = trade.price;
        }
        if counted(self.low) > price {
            self.low = trade.price;
        }
        // Some exchanges send trades late: an older trade is not the last one. Times count by the
        // millisecond.
        if trade.timestamp.millis().is_some_and(|at| Some(at) >= self.close_timestamp.millis()) {
            self.close = trade.price;
            self.close_timestamp = trade.timestamp;
        }
        match trade.side {
            Side::Buy => self.buy_volume += amount,
            Side::Sell => self.sell_volume += amount,
            Side::Unknown => {}
        }
        self.trades += 1;
        self.vwap = (self.vwap * self.volume + price * amount) / (self.volume + amount);
        self.volume += amount;
    }

    fn send(
        &mut self,
        setup: &TradeBarSetup,
        trade: &Trade<'_>,
        timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        out.take(&Message::TradeBar(TradeBar {
            symbol: Cow::Borrowed(&trade.symbol),
            exchange: Cow::Borrowed(&trade.exchange),
            name: Cow::Borrowed(&setup.name),
            interval: setup.interval,
            kind: setup.kind,
            open: self.open,
            high: self.high,
            low: self.low,
            close: self.close,
            volume: self.volume,
            buy_volume: self.buy_volume,
            sell_volume: self.sell_volume,
            trades: self.trades,
            vwap: self.vwap,
            open_timestamp: self.open_timestamp,
            close_timestamp: self.close_timestamp,
            local_timestamp: trade.local_timestamp,
            timestamp,
        }));
        *self = Self::EMPTY;
    }
}
