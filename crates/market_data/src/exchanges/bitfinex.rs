//! Bitfinex and its derivatives. Data comes in arrays that begin with a channel's id and end, in
//! newer recordings, with the channel's name and the symbol; where they do not, the answers to
//! subscriptions said what the id stands for.

mod address;
mod cells;
mod values;

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use address::Address;
use cells::Cells;
use values::{Book, Data, Liquidations, Row, TradeMessage};

use crate::exchange::{Exchange, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{BookChange, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::pending_tickers::PendingTickers;
use crate::raw::{self, Numeric, Text, date_of_millis};
use crate::time::Timestamp;

const TRADES: Normalizer =
    Normalizer { kind: Kind::Trades, periods: &[Period::open(Wanted::upper(&["trades"]))] };
const BOOK_CHANGES: Normalizer =
    Normalizer { kind: Kind::BookChanges, periods: &[Period::open(Wanted::upper(&["book"]))] };
const DERIVATIVE_TICKERS: Normalizer = Normalizer {
    kind: Kind::DerivativeTickers,
    periods: &[Period::open(Wanted::upper(&["status"]))],
};
/// One channel has the liquidations of all symbols.
const LIQUIDATIONS: Normalizer = Normalizer {
    kind: Kind::Liquidations,
    periods: &[Period::open(Wanted::Custom(|_| Wanted::as_given(&["liquidations"]).filters(None)))],
};
const BOOK_TICKERS: Normalizer =
    Normalizer { kind: Kind::BookTickers, periods: &[Period::open(Wanted::upper(&["ticker"]))] };

pub(super) const EXCHANGES: &[Exchange] = &[
    Exchange {
        id: "bitfinex",
        normalizers: &[TRADES, BOOK_CHANGES, BOOK_TICKERS],
        mapper: |setup| Box::new(Bitfinex::new(setup)),
    },
    Exchange {
        id: "bitfinex-derivatives",
        normalizers: &[TRADES, BOOK_CHANGES, DERIVATIVE_TICKERS, LIQUIDATIONS, BOOK_TICKERS],
        mapper: |setup| Box::new(Bitfinex::new(setup)),
    },
];

struct Bitfinex {
    setup: MapperSetup,
    channels: HashMap<u64, Symbols>,
    liquidations: Option<u64>,
    tickers: PendingTickers,
}

/// The symbol that a channel's id stands for, by kind. An id that is used anew for another channel
/// keeps what it stood for.
type Symbols = [Option<Box<str>>; Kind::ALL.len()];

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    event: Text<'a>,
}

#[derive(Deserialize)]
struct Subscribed<'a> {
    #[serde(borrow, default)]
    channel: Text<'a>,
    #[serde(default, rename = "chanId")]
    id: Numeric,
    pair: Option<Text<'a>>,
    prec: Option<Text<'a>>,
    key: Option<Text<'a>>,
}

impl Mapper for Bitfinex {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        if !message.trim_ascii_start().starts_with(b"[") {
            return self.subscribe(message);
        }
        let address = Address::of(self.setup.exchange, message)?;
        if let Some(channel) = &address.channel {
            let kind = match &**channel {
                "trades" => Kind::Trades,
                "book" => Kind::BookChanges,
                "status" => Kind::DerivativeTickers,
                "liquidations" => Kind::Liquidations,
                "ticker" => Kind::BookTickers,
                _ => return Ok(()),
            };
            return self.map_kind(kind, message, &address, local_timestamp, out);
        }
        for kind in Kind::ALL {
            self.map_kind(kind, message, &address, local_timestamp, out)?;
        }
        Ok(())
    }
}

impl Bitfinex {
    fn new(setup: &MapperSetup) -> Self {
        Self {
            setup: *setup,
            channels: HashMap::new(),
            liquidations: None,
            tickers: PendingTickers::new(setup.exchange),
        }
    }

    /// Learns what a channel's id stands for.
    fn subscribe(&mut self, message: &[u8]) -> Result<(), MapError> {
        let exchange = self.setup.exchange;
        let event = match raw::leading_text(message, "event") {
            Some(event) => Cow::Borrowed(event),
            None => raw::read::<Event<'_>>(exchange, message)?.event.0,
        };
        if event != "subscribed" {
            return Ok(());
        }
        let subscribed: Subscribed<'_> = raw::read(exchange, message)?;
        let Some(id) = address::channel_id(subscribed.id.number()) else { return Ok(()) };
        let (pair, key) = (subscribed.pair.as_deref(), subscribed.key.as_deref());
        let (kind, symbol) = match &*subscribed.channel {
            "trades" => (Kind::Trades, pair),
            "book" if subscribed.prec.as_deref() == Some("P0") => (Kind::BookChanges, pair),
            // Tickers of lending have no pair.
            "ticker" if pair.is_some() => (Kind::BookTickers, pair),
            "status" if key == Some("liq:global") => {
                self.liquidations = Some(id);
                return Ok(());
            }
            "status" if key.is_some_and(|key| key.starts_with("deriv:")) => {
                let symbol = key.map(|key| key.strip_prefix("deriv:t").unwrap_or(key));
                (Kind::DerivativeTickers, symbol)
            }
            _ => return Ok(()),
        };
        self.channels.entry(id).or_default()[kind as usize] = symbol.map(Box::from);
        Ok(())
    }

    /// Maps a message to `kind` if that is asked for and what the message is about.
    fn map_kind(
        &mut self,
        kind: Kind,
        message: &[u8],
        address: &Address<'_>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        if !self.setup.wants(kind) {
            return Ok(());
        }
        let exchange = self.setup.exchange;
        let is_named = address.channel.is_some();
        if kind == Kind::Liquidations {
            if is_named || address.id.is_some() && address.id == self.liquidations {
                return map_liquidations(exchange, message, local_timestamp, out);
            }
            return Ok(());
        }
        let symbols = address.id.and_then(|id| self.channels.get(&id));
        let learnt = symbols.and_then(|symbols| symbols[kind as usize].as_deref());
        let symbol = match (learnt, address.symbol.as_deref()) {
            (None, _) if !is_named => return Ok(()),
            (None, None) => return Ok(()),
            (_, Some(symbol)) | (Some(symbol), None) => symbol,
        };
        let of = Instrument { exchange, symbol };
        match kind {
            Kind::Trades => of.map_trade(message, local_timestamp, out),
            Kind::BookChanges => of.map_book(message, local_timestamp, out),
            Kind::BookTickers => of.map_ticker(message, local_timestamp, out),
            _ => of.map_status(message, &mut self.tickers, local_timestamp, out),
        }
    }
}

/// What a message is about.
struct Instrument<'a> {
    exchange: &'static str,
    symbol: &'a str,
}

impl Instrument<'_> {
    /// Trades come twice, first as executed, then with all their details: the first counts.
    fn map_trade(
        &self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let Cells(TradeMessage(trade)) = raw::read(self.exchange, message)?;
        if let Some(trade) = trade {
            let amount = trade.amount.number();
            out.take(&Message::Trade(Trade {
                symbol: Cow::Borrowed(self.symbol),
                exchange: Cow::Borrowed(self.exchange),
                id: trade.id.as_ref().map(Text::lend),
                price: trade.price.as_given(),
                amount: amount.abs(),
                side: if amount < 0.0 { Side::Sell } else { Side::Buy },
                timestamp: date_of_millis(trade.time),
                local_timestamp,
            }));
        }
        Ok(())
    }

    fn map_book(
        &self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let Cells(Data { values: Cells(book), time }) =
            raw::read::<Cells<Data<Cells<Book>>>>(self.exchange, message)?;
        if !book.is_heartbeat {
            out.take(&Message::BookChange(BookChange {
                symbol: Cow::Borrowed(self.symbol),
                exchange: Cow::Borrowed(self.exchange),
                is_snapshot: book.is_snapshot,
                bids: Cow::Borrowed(&book.bids),
                asks: Cow::Borrowed(&book.asks),
                timestamp: date_of_millis(time),
                local_timestamp,
            }));
        }
        Ok(())
    }

    fn map_status(
        &self,
        message: &[u8],
        tickers: &mut PendingTickers,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let Cells(Data { values: Cells(status), time }) =
            raw::read::<Cells<Data<Cells<Row>>>>(self.exchange, message)?;
        if status.is_note {
            return Ok(());
        }
        let ticker = tickers.of(self.symbol);
        ticker.update_funding_rate(status.at(11).number_if_given());
        let funding_time = status.at(7);
        let has_funding_time = funding_time.is_there();
        ticker.update_funding_timestamp(has_funding_time.then(|| date_of_millis(funding_time)));
        ticker.update_predicted_funding_rate(status.at(8).number_if_given());
        ticker.update_index_price(status.at(3).number_if_given());
        ticker.update_last_price(status.at(2).number_if_given());
        ticker.update_mark_price(status.at(14).number_if_given());
        ticker.update_open_interest(status.at(17).number_if_given());
        ticker.update_timestamp(date_of_millis(time));
        ticker.send_if_changed(local_timestamp, out);
        Ok(())
    }

    fn map_ticker(
        &self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        /// Tickers of lending have more values than those of pairs.
        const MOST_VALUES: usize = 11;
        let Cells(Data { values: Cells(ticker), time }) =
            raw::read::<Cells<Data<Cells<Row>>>>(self.exchange, message)?;
        if !ticker.is_note && ticker.len() <= MOST_VALUES {
            let value = |at| Some(ticker.at(at)).filter(|value| value.is_there());
            out.take(&Message::BookTicker(BookTicker {
                symbol: Cow::Borrowed(self.symbol),
                exchange: Cow::Borrowed(self.exchange),
                ask_amount: value(3).map(Numeric::as_given),
                ask_price: value(2).map(Numeric::as_given),
                bid_price: value(0).map(Numeric::as_given),
                bid_amount: value(1).map(Numeric::as_given),
                order: BookTickerOrder::DEFAULT,
                timestamp: date_of_millis(time),
                local_timestamp,
            }));
        }
        Ok(())
    }
}

/// A liquidation comes when it is triggered, and again with every match, which are passed over.
fn map_liquidations(
    exchange: &'static str,
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let Cells(Data { values: Cells(Liquidations(rows)), .. }) =
        raw::read::<Cells<Data<Cells<Liquidations<'_>>>>>(exchange, message)?;
    for Cells(row) in rows.iter().filter(|Cells(row)| row.is_match == Numeric::Value(0.0)) {
        let Some(symbol) = &row.symbol else {
            let reason = "a liquidation without a symbol".to_owned();
            return Err(MapError::Unreadable { exchange, reason });
        };
        let amount = row.amount.number();
        out.take(&Message::Liquidation(Trade {
            symbol: Cow::Owned(symbol.replacen('t', "", 1)),
            exchange: Cow::Borrowed(exchange),
            id: row.id.as_ref().map(Text::lend),
            price: row.price.as_given(),
            amount: amount.abs(),
            side: if amount < 0.0 { Side::Buy } else { Side::Sell },
            timestamp: date_of_millis(row.time),
            local_timestamp,
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
