//! A plain, slow order book, snapshots and bars.

use std::collections::BTreeMap;

use market_data::{
    BarKind, BookChange, BookLevel, BookSnapshot, Message, Side, Timestamp, Trade, TradeBar,
};

use crate::json;

/// Prices are whole numbers of this.
const TICK: f64 = 0.5;
pub(crate) const SYMBOLS: [&str; 2] = ["XBTUSD", "ETHUSD"];

/// Levels by price in ticks.
#[derive(Clone, Default)]
pub(crate) struct PlainBook {
    bids: BTreeMap<i64, u32>,
    asks: BTreeMap<i64, u32>,
    has_snapshot: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct PlainChange {
    pub(crate) symbol: usize,
    pub(crate) is_snapshot: bool,
    pub(crate) bids: Vec<(i64, u32)>,
    pub(crate) asks: Vec<(i64, u32)>,
    pub(crate) timestamp: Timestamp,
    pub(crate) local_timestamp: Timestamp,
}

#[allow(clippy::cast_precision_loss)] // small
pub(crate) fn price(ticks: i64) -> f64 {
    ticks as f64 * TICK
}

fn level((ticks, amount): (i64, u32)) -> BookLevel {
    BookLevel { price: price(ticks), amount: f64::from(amount) }
}

impl PlainChange {
    pub(crate) fn message(&self) -> BookChange<'static> {
        BookChange {
            symbol: SYMBOLS[self.symbol].into(),
            exchange: "bitmex".into(),
            is_snapshot: self.is_snapshot,
            bids: self.bids.iter().copied().map(level).collect(),
            asks: self.asks.iter().copied().map(level).collect(),
            timestamp: self.timestamp,
            local_timestamp: self.local_timestamp,
        }
    }
}

impl PlainBook {
    pub(crate) fn update(&mut self, change: &PlainChange) {
        if change.is_snapshot {
            *self = Self { has_snapshot: true, ..Self::default() };
        }
        if !self.has_snapshot {
            return;
        }
        for (side, changes) in [(&mut self.asks, &change.asks), (&mut self.bids, &change.bids)] {
            for (price, amount) in changes {
                side.insert(*price, *amount);
                side.retain(|_, amount| *amount != 0);
            }
        }
        let Some(first_ask) = self.crossed_ask() else { return };
        let is_ask_new = change.asks.iter().any(|(price, _)| *price == first_ask);
        while self.crossed_ask().is_some() {
            if is_ask_new {
                self.bids.pop_last();
            } else {
                self.asks.pop_first();
            }
        }
    }

    fn crossed_ask(&self) -> Option<i64> {
        let (bid, ask) = (*self.bids.keys().next_back()?, *self.asks.keys().next()?);
        (bid >= ask).then_some(ask)
    }

    /// The top of both sides, with prices rounded to `bucket` ticks.
    pub(crate) fn top(&self, depth: u32, bucket: i64) -> [Vec<Option<BookLevel>>; 2] {
        let down = |price: i64| price - price % bucket;
        let up = |price: i64| down(price + bucket - 1);
        let mut bids = BTreeMap::new();
        for (price, amount) in &self.bids {
            *bids.entry(down(*price)).or_insert(0) += amount;
        }
        let mut asks = BTreeMap::new();
        for (price, amount) in &self.asks {
            *asks.entry(up(*price)).or_insert(0) += amount;
        }
        let cut = |levels: &mut dyn Iterator<Item = (i64, u32)>| {
            let mut levels: Vec<_> =
                levels.take(depth as usize).map(|found| Some(level(found))).collect();
            levels.resize(depth as usize, None);
            levels
        };
        [cut(&mut bids.into_iter().rev()), cut(&mut asks.into_iter())]
    }
}

fn millis(time: Timestamp) -> Option<i64> {
    time.micros().map(|micros| micros.div_euclid(1_000))
}

/// The end of the interval of `last`, if `now` is in a later one.
fn end(interval: u64, last: Timestamp, now: Timestamp) -> Option<Timestamp> {
    let interval = i64::try_from(interval).unwrap();
    let bucket = millis(last)?.div_euclid(interval);
    (millis(now)?.div_euclid(interval) > bucket)
        .then(|| Timestamp::from_millis((bucket + 1) * interval))
}

/// Looks at the whole top after every change.
pub(crate) struct PlainSnapshots {
    name: String,
    depth: u32,
    interval: u64,
    grouping: Option<f64>,
    book: PlainBook,
    top: [Vec<Option<BookLevel>>; 2],
    has_changed: bool,
    is_first: bool,
    last: Timestamp,
}

impl PlainSnapshots {
    pub(crate) fn new(name: &str, depth: u32, interval: u64, grouping: Option<f64>) -> Self {
        Self {
            name: name.to_owned(),
            depth,
            interval,
            grouping,
            book: PlainBook::default(),
            top: [vec![None; depth as usize], vec![None; depth as usize]],
            has_changed: false,
            is_first: true,
            last: Timestamp::from_millis(-1),
        }
    }

    fn is_due(&mut self, now: Timestamp) -> bool {
        if !self.has_changed || self.interval == 0 || self.is_first {
            return self.has_changed;
        }
        let end = end(self.interval, self.last, now);
        self.last = end.unwrap_or(self.last);
        end.is_some()
    }

    pub(crate) fn take(&mut self, change: &PlainChange, out: &mut Vec<String>) {
        if self.is_due(change.timestamp) {
            self.send(change, out);
        }
        self.book.update(change);
        #[allow(clippy::cast_possible_truncation)] // small
        let bucket = self.grouping.map_or(1, |grouping| (grouping / TICK) as i64);
        let top = self.book.top(self.depth, bucket);
        self.has_changed |= top != self.top;
        self.top = top;
        self.last = change.timestamp;
        if self.is_due(change.timestamp) {
            self.send(change, out);
            self.is_first = false;
        }
    }

    fn send(&mut self, change: &PlainChange, out: &mut Vec<String>) {
        self.has_changed = false;
        out.push(json(&Message::BookSnapshot(BookSnapshot {
            symbol: SYMBOLS[change.symbol].into(),
            exchange: "bitmex".into(),
            name: self.name.as_str().into(),
            depth: self.depth,
            interval: self.interval,
            grouping: self.grouping,
            bids: (&*self.top[0]).into(),
            asks: (&*self.top[1]).into(),
            timestamp: self.last,
            local_timestamp: change.local_timestamp,
        })));
    }
}

/// Keeps all trades of a bar and sums them up at its end.
pub(crate) struct PlainBars {
    name: String,
    kind: BarKind,
    interval: u64,
    trades: Vec<Trade<'static>>,
}

impl PlainBars {
    pub(crate) fn new(name: &str, kind: BarKind, interval: u64) -> Self {
        Self { name: name.to_owned(), kind, interval, trades: Vec::new() }
    }

    pub(crate) fn take(&mut self, trade: &Trade<'static>, out: &mut Vec<String>) {
        if self.kind == BarKind::Time
            && let Some(first) = self.trades.first()
            && let Some(end) = end(self.interval, first.timestamp, trade.timestamp)
        {
            self.send(trade, Some(end), out);
        }
        self.trades.push(trade.clone());
        let volume: f64 = self.trades.iter().map(|trade| trade.amount).sum();
        #[allow(clippy::cast_precision_loss)] // small
        let is_full = match self.kind {
            BarKind::Time => false,
            BarKind::Tick => self.trades.len() as u64 == self.interval,
            BarKind::Volume => volume >= self.interval as f64,
        };
        if is_full {
            self.send(trade, None, out);
        }
    }

    fn send(&mut self, now: &Trade<'static>, end: Option<Timestamp>, out: &mut Vec<String>) {
        let trades = std::mem::take(&mut self.trades);
        let volume_of = |side: Option<Side>| -> f64 {
            let of_side = |trade: &&Trade<'_>| side.is_none_or(|side| trade.side == side);
            trades.iter().filter(of_side).map(|trade| trade.amount).fold(0.0, |sum, n| sum + n)
        };
        let mut vwap = 0.0;
        let mut volume = 0.0;
        let mut last: Option<&Trade<'_>> = None;
        for trade in &trades {
            vwap = (vwap * volume + trade.price * trade.amount) / (volume + trade.amount);
            volume += trade.amount;
            let latest = last.map_or(Some(-1), |last| millis(last.timestamp));
            if millis(trade.timestamp).is_some() && millis(trade.timestamp) >= latest {
                last = Some(trade);
            }
        }
        let prices = || trades.iter().map(|trade| trade.price);
        let no_time = Timestamp::from_millis(-1);
        let close_timestamp = last.map_or(no_time, |trade| trade.timestamp);
        out.push(json(&Message::TradeBar(TradeBar {
            symbol: now.symbol.clone(),
            exchange: now.exchange.clone(),
            name: self.name.as_str().into(),
            interval: self.interval,
            kind: self.kind,
            open: trades[0].price,
            high: prices().fold(f64::MIN, f64::max),
            low: prices().fold(f64::MAX, f64::min),
            close: last.map_or(0.0, |trade| trade.price),
            volume: volume_of(None),
            buy_volume: volume_of(Some(Side::Buy)),
            sell_volume: volume_of(Some(Side::Sell)),
            trades: trades.len() as u64,
            vwap,
            open_timestamp: trades[0].timestamp,
            close_timestamp,
            local_timestamp: now.local_timestamp,
            timestamp: end.unwrap_or(close_timestamp),
        })));
    }
}
