//! `BitMEX`. A book message names a level by its id; the price comes with the first message about it.

mod usual;

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;
use smallvec::SmallVec;

use crate::exchange::{Exchange, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{BookChange, BookLevel, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::pending_tickers::PendingTickers;
use crate::raw::{self, Numeric, Rows, Text, iso_date};
use crate::time::Timestamp;

const NAME: &str = "bitmex";

pub(super) const EXCHANGES: &[Exchange] = &[Exchange {
    id: NAME,
    normalizers: &[
        Normalizer { kind: Kind::Trades, periods: &[Period::open(Wanted::upper(&["trade"]))] },
        Normalizer {
            kind: Kind::BookChanges,
            periods: &[Period::open(Wanted::upper(&["orderBookL2"]))],
        },
        Normalizer {
            kind: Kind::DerivativeTickers,
            periods: &[Period::open(Wanted::upper(&["instrument"]))],
        },
        Normalizer {
            kind: Kind::Liquidations,
            periods: &[Period::open(Wanted::upper(&["liquidation"]))],
        },
        Normalizer { kind: Kind::BookTickers, periods: &[Period::open(Wanted::upper(&["quote"]))] },
    ],
    mapper: |setup| Box::new(Bitmex::new(setup)),
}];

struct Bitmex {
    setup: MapperSetup,
    prices: HashMap<u64, f64>,
    tickers: PendingTickers,
}

#[derive(Deserialize)]
struct Table<'a> {
    #[serde(borrow, default)]
    table: Text<'a>,
}

#[derive(Deserialize)]
struct Rowed<'a, T> {
    #[serde(borrow, default)]
    action: Text<'a>,
    filter: Option<Named<'a>>,
    data: Rows<T>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    symbol: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow, default)]
    timestamp: Text<'a>,
    symbol: Text<'a>,
    side: Option<Text<'a>>,
    #[serde(default)]
    size: Numeric,
    #[serde(default)]
    price: Numeric,
    #[serde(rename = "trdMatchID")]
    id: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
struct RawLevel<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    id: u64,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    size: Numeric,
    #[serde(default)]
    price: Numeric,
    timestamp: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawInstrument<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    state: Option<Text<'a>>,
    #[serde(default)]
    open_interest: Numeric,
    #[serde(default)]
    funding_rate: Numeric,
    #[serde(default)]
    mark_price: Numeric,
    #[serde(default)]
    last_price: Numeric,
    #[serde(default)]
    indicative_settle_price: Numeric,
    #[serde(default)]
    indicative_funding_rate: Numeric,
    funding_timestamp: Option<Text<'a>>,
    timestamp: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawLiquidation<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    #[serde(rename = "orderID")]
    id: Option<Text<'a>>,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    leaves_qty: Numeric,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawQuote<'a> {
    #[serde(borrow, default)]
    timestamp: Text<'a>,
    symbol: Text<'a>,
    #[serde(default)]
    bid_size: Numeric,
    #[serde(default)]
    bid_price: Numeric,
    #[serde(default)]
    ask_price: Numeric,
    #[serde(default)]
    ask_size: Numeric,
}

impl Mapper for Bitmex {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        if self.map_usual(message, local_timestamp, out) {
            return Ok(());
        }
        let table = match raw::leading_text(message, "table") {
            Some(table) => Cow::Borrowed(table),
            None => raw::read::<Table<'_>>(NAME, message)?.table.0,
        };
        let wants = |kind| self.setup.wants(kind);
        match &*table {
            "trade" if wants(Kind::Trades) => {
                let message: Rowed<'_, _> = raw::read(NAME, message)?;
                map_trades(&message.action, &message.data, local_timestamp, out);
            }
            "orderBookL2" if wants(Kind::BookChanges) => {
                let Rowed { action, filter, data }: Rowed<'_, _> = raw::read(NAME, message)?;
                let symbol = filter.and_then(|filter| filter.symbol);
                self.map_book(&action, symbol.as_deref(), &data, local_timestamp, out);
            }
            "instrument" if wants(Kind::DerivativeTickers) => {
                self.map_instruments(&raw::read(NAME, message)?, local_timestamp, out);
            }
            "liquidation" if wants(Kind::Liquidations) => {
                map_liquidations(&raw::read(NAME, message)?, local_timestamp, out);
            }
            "quote" if wants(Kind::BookTickers) => {
                map_quotes(&raw::read(NAME, message)?, local_timestamp, out);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Bitmex {
    fn new(setup: &MapperSetup) -> Self {
        Self { setup: *setup, prices: HashMap::new(), tickers: PendingTickers::new(NAME) }
    }

    /// Maps levels or trades that are written as usual. Says whether they were.
    fn map_usual(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> bool {
        if self.setup.wants(Kind::BookChanges) {
            let mut levels = Rows::new();
            if let Ok(action) = usual::read_levels(message, &mut levels) {
                self.map_book(action, None, &levels, local_timestamp, out);
                return true;
            }
        }
        if self.setup.wants(Kind::Trades) {
            let mut trades = Rows::new();
            if let Ok(action) = usual::read_trades(message, &mut trades) {
                map_trades(action, &trades, local_timestamp, out);
                return true;
            }
        }
        false
    }

    /// Maps levels. An empty snapshot says which symbol has an empty book.
    fn map_book(
        &mut self,
        action: &str,
        empty_symbol: Option<&str>,
        levels: &[RawLevel<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let is_snapshot = action == "partial";
        if levels.is_empty() {
            if let Some(symbol) = empty_symbol.filter(|_| is_snapshot) {
                send_book(symbol, true, (&[], &[]), local_timestamp, local_timestamp, out);
            }
            return;
        }
        // Only a snapshot holds several symbols.
        let mut done = 0;
        while let Some(first) = levels.get(done) {
            let is_new = |row: &RawLevel<'_>| row.symbol == first.symbol;
            if !levels[..done].iter().any(is_new) {
                self.map_symbol(action, &levels[done..], is_snapshot, local_timestamp, out);
            }
            if !is_snapshot {
                return;
            }
            done += levels[done..].iter().take_while(|row| is_new(row)).count();
        }
    }

    /// Maps those of `rows` that have the symbol of the first.
    fn map_symbol(
        &mut self,
        action: &str,
        rows: &[RawLevel<'_>],
        is_snapshot: bool,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let symbol = &rows[0].symbol;
        let mut bids = SmallVec::<[BookLevel; 8]>::new();
        let mut asks = SmallVec::<[BookLevel; 8]>::new();
        let mut latest: Option<Timestamp> = None;
        for row in rows.iter().filter(|row| !is_snapshot || row.symbol == *symbol) {
            if let Some(text) = &row.timestamp {
                let time = iso_date(text);
                if latest.is_none_or(|latest| time.micros() > latest.micros()) {
                    latest = Some(time);
                }
            }
            let price = if row.price.is_there() {
                let price = row.price.number();
                self.prices.insert(row.id, price);
                price
            } else if let Some(price) = self.prices.get(&row.id) {
                *price
            } else {
                // An update from before the snapshot.
                continue;
            };
            let amount = row.size.finite().unwrap_or(0.0);
            let side = if &*row.side == "Buy" { &mut bids } else { &mut asks };
            side.push(BookLevel { price, amount });
            if action == "delete" {
                self.prices.remove(&row.id);
            }
        }
        if is_snapshot || !bids.is_empty() || !asks.is_empty() {
            let timestamp = latest.unwrap_or(local_timestamp);
            send_book(symbol, is_snapshot, (&bids, &asks), timestamp, local_timestamp, out);
        }
    }

    /// Instruments count once their snapshot was seen, and unless they are settled or unlisted.
    fn map_instruments(
        &mut self,
        message: &Rowed<'_, RawInstrument<'_>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let is_snapshot = &*message.action == "partial";
        for row in &message.data {
            let is_open =
                row.state.as_ref().is_none_or(|state| matches!(&**state, "Open" | "Closed"));
            if !is_open || !(is_snapshot || self.tickers.has(&row.symbol)) {
                continue;
            }
            let ticker = self.tickers.of(&row.symbol);
            ticker.update_funding_rate(row.funding_rate.number_if_given());
            ticker.update_predicted_funding_rate(row.indicative_funding_rate.number_if_given());
            let funding_time = row.funding_timestamp.as_ref().filter(|text| !text.is_empty());
            ticker.update_funding_timestamp(funding_time.map(|text| iso_date(text)));
            ticker.update_index_price(row.indicative_settle_price.number_if_given());
            ticker.update_mark_price(row.mark_price.number_if_given());
            ticker.update_open_interest(row.open_interest.number_if_given());
            ticker.update_last_price(row.last_price.number_if_given());
            if let Some(text) = &row.timestamp {
                ticker.update_timestamp(iso_date(text));
            }
            ticker.send_if_changed(local_timestamp, out);
        }
    }
}

fn map_trades(
    action: &str,
    trades: &[RawTrade<'_>],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) {
    if action != "insert" {
        return;
    }
    for row in trades {
        let side = match row.side.as_deref() {
            None => Side::Unknown,
            Some("Buy") => Side::Buy,
            Some(_) => Side::Sell,
        };
        out.take(&Message::Trade(Trade {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            id: row.id.as_ref().map(Text::lend),
            price: row.price.as_given(),
            amount: row.size.as_given(),
            side,
            timestamp: iso_date(&row.timestamp),
            local_timestamp,
        }));
    }
}

fn send_book(
    symbol: &str,
    is_snapshot: bool,
    (bids, asks): (&[BookLevel], &[BookLevel]),
    timestamp: Timestamp,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) {
    out.take(&Message::BookChange(BookChange {
        symbol: Cow::Borrowed(symbol),
        exchange: Cow::Borrowed(NAME),
        is_snapshot,
        bids: Cow::Borrowed(bids),
        asks: Cow::Borrowed(asks),
        timestamp,
        local_timestamp,
    }));
}

fn map_liquidations(
    message: &Rowed<'_, RawLiquidation<'_>>,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) {
    if &*message.action != "insert" {
        return;
    }
    for row in &message.data {
        out.take(&Message::Liquidation(Trade {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            id: row.id.as_ref().map(Text::lend),
            price: row.price.as_given(),
            amount: row.leaves_qty.as_given(),
            side: if &*row.side == "Buy" { Side::Buy } else { Side::Sell },
            timestamp: local_timestamp,
            local_timestamp,
        }));
    }
}

fn map_quotes(message: &Rowed<'_, RawQuote<'_>>, local_timestamp: Timestamp, out: &mut dyn Sink) {
    if &*message.action != "insert" {
        return;
    }
    for row in &message.data {
        out.take(&Message::BookTicker(BookTicker {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            ask_amount: row.ask_size.non_zero(),
            ask_price: row.ask_price.non_zero(),
            bid_price: row.bid_price.non_zero(),
            bid_amount: row.bid_size.non_zero(),
            order: BookTickerOrder::DEFAULT,
            timestamp: iso_date(&row.timestamp),
            local_timestamp,
        }));
    }
}
