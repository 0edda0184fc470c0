//! Binance: spot, its exchange in the United States, and futures. A message names its stream, such
//! as `btcusdt@depth@100ms`, and what the stream sends is in `data`.

mod book;
mod book_side;
mod sequence;
mod ticker;
mod trade;

use std::borrow::Cow;

use serde::Deserialize;

use crate::exchange::{Exchange, Filter, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{BookTicker, BookTickerOrder, Message};
use crate::raw::{self, Numeric, Text, date_of_micros};
use crate::time::Timestamp;
use book::Books;
use sequence::Joint;
use ticker::Tickers;

const TRADES: Normalizer =
    Normalizer { kind: Kind::Trades, periods: &[Period::open(Wanted::lower(&["trade"]))] };
const BOOK_CHANGES: Normalizer = Normalizer {
    kind: Kind::BookChanges,
    periods: &[Period::open(Wanted::lower(&["depth", "depthSnapshot"]))],
};
const LIQUIDATIONS: Normalizer = Normalizer {
    kind: Kind::Liquidations,
    periods: &[Period::open(Wanted::lower(&["forceOrder"]))],
};
const BOOK_TICKERS: Normalizer = Normalizer {
    kind: Kind::BookTickers,
    periods: &[Period::open(Wanted::lower(&["bookTicker"]))],
};

/// The channels of derivative tickers; coin-margined futures have one more.
const TICKER_CHANNELS: &[&str] = &["markPrice", "ticker", "openInterest"];

const SPOT: &[Normalizer] = &[TRADES, BOOK_CHANGES, BOOK_TICKERS];

pub(super) const EXCHANGES: &[Exchange] = &[
    Exchange {
        id: "binance",
        normalizers: SPOT,
        mapper: |setup| Box::new(Binance::new(setup, Joint::Spot)),
    },
    Exchange {
        id: "binance-us",
        normalizers: SPOT,
        mapper: |setup| Box::new(Binance::new(setup, Joint::Spot)),
    },
    Exchange {
        id: "binance-futures",
        normalizers: &[
            TRADES,
            BOOK_CHANGES,
            Normalizer {
                kind: Kind::DerivativeTickers,
                periods: &[Period::open(Wanted::lower(TICKER_CHANNELS))],
            },
            LIQUIDATIONS,
            BOOK_TICKERS,
        ],
        mapper: |setup| Box::new(Binance::new(setup, Joint::Futures)),
    },
    Exchange {
        id: "binance-delivery",
        normalizers: &[
            TRADES,
            BOOK_CHANGES,
            Normalizer {
                kind: Kind::DerivativeTickers,
                periods: &[Period::open(Wanted::Custom(delivery_ticker_filters))],
            },
            LIQUIDATIONS,
            BOOK_TICKERS,
        ],
        mapper: |setup| Box::new(Binance::new(setup, Joint::Futures)),
    },
];

/// The channel of index prices is asked for by pair: `btcusd` for `btcusd_200925`.
fn delivery_ticker_filters(symbols: Option<&[String]>) -> Vec<Filter> {
    let mut filters = Wanted::lower(TICKER_CHANNELS).filters(symbols);
    let pair = |symbol: &String| ticker::pair(&symbol.to_lowercase()).to_owned();
    filters.push(Filter {
        channel: "indexPrice".to_owned(),
        symbols: symbols.map(|symbols| symbols.iter().map(pair).collect()),
    });
    filters
}

struct Binance {
    setup: MapperSetup,
    books: Books,
    tickers: Tickers,
}

#[derive(Deserialize)]
struct Stream<'a> {
    #[serde(borrow)]
    stream: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Sent<T> {
    data: T,
}

/// Reads what is in `data`.
fn read<'a, T: Deserialize<'a>>(exchange: &'static str, message: &'a [u8]) -> Result<T, MapError> {
    raw::read::<Sent<T>>(exchange, message).map(|sent| sent.data)
}

#[derive(Deserialize)]
struct RawBookTicker<'a> {
    #[serde(borrow, rename = "s")]
    symbol: Text<'a>,
    #[serde(rename = "b", default)]
    bid_price: Numeric,
    #[serde(rename = "B", default)]
    bid_amount: Numeric,
    #[serde(rename = "a", default)]
    ask_price: Numeric,
    #[serde(rename = "A", default)]
    ask_amount: Numeric,
    #[serde(rename = "E", default)]
    time: Numeric,
}

impl Mapper for Binance {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let exchange = self.setup.exchange;
        let stream = match raw::leading_text(message, "stream") {
            Some(stream) => Cow::Borrowed(stream),
            None => match raw::read::<Stream<'_>>(exchange, message)?.stream {
                Some(stream) => stream.0,
                // An answer to a request.
                None => return Ok(()),
            },
        };
        let Some((symbol, channel)) = stream.split_once('@') else { return Ok(()) };
        let wants = |kind| self.setup.wants(kind);
        match channel {
            "trade" if wants(Kind::Trades) => {
                trade::send(exchange, &read(exchange, message)?, local_timestamp, out);
            }
            "bookTicker" if wants(Kind::BookTickers) => {
                send_book_ticker(exchange, &read(exchange, message)?, local_timestamp, out);
            }
            "forceOrder" if wants(Kind::Liquidations) => {
                trade::send_liquidation(exchange, &read(exchange, message)?, local_timestamp, out);
            }
            _ if channel.starts_with("depth") && wants(Kind::BookChanges) => {
                self.books.map(message, symbol, channel, local_timestamp, out)?;
            }
            _ if ticker::is_channel(channel) && wants(Kind::DerivativeTickers) => {
                self.tickers.map(message, channel, local_timestamp, out)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Binance {
    fn new(setup: &MapperSetup, joint: Joint) -> Self {
        Self {
            setup: *setup,
            books: Books::new(setup, joint),
            tickers: Tickers::new(setup.exchange),
        }
    }
}

fn send_book_ticker(
    exchange: &'static str,
    ticker: &RawBookTicker<'_>,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) {
    // Spot does not say when.
    let timestamp =
        if ticker.time.is_there() { date_of_micros(ticker.time) } else { local_timestamp };
    out.take(&Message::BookTicker(BookTicker {
        symbol: ticker.symbol.lend(),
        exchange: Cow::Borrowed(exchange),
        ask_amount: ticker.ask_amount.number_if_there(),
        ask_price: ticker.ask_price.number_if_there(),
        bid_price: ticker.bid_price.number_if_there(),
        bid_amount: ticker.bid_amount.number_if_there(),
        order: BookTickerOrder::DEFAULT,
        timestamp,
        local_timestamp,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Kinds;
    use crate::json_write::write_message;

    /// A mapper of an exchange to all kinds, and the lines that it makes.
    pub(super) struct Mapping(Box<dyn Mapper>);

    impl Mapping {
        pub(super) fn live(exchange: &str) -> Self {
            Self::new(exchange, None)
        }

        pub(super) fn of_history(exchange: &str) -> Self {
            Self::new(exchange, Some(Timestamp::of_day(2024, 1, 1)))
        }

        fn new(exchange: &str, at: Option<Timestamp>) -> Self {
            let exchange = EXCHANGES.iter().find(|known| known.id == exchange).unwrap();
            Self(exchange.mapper(Kinds::from_iter(Kind::ALL), at))
        }

        /// The line that `message` gives, if it gives one.
        pub(super) fn map(&mut self, message: &str) -> Result<Option<String>, MapError> {
            let mut lines = Vec::new();
            let mut sink = |message: &Message<'_>| {
                let mut line = Vec::new();
                write_message(&mut line, message);
                lines.push(String::from_utf8(line).unwrap());
            };
            let local = Timestamp::parse("2024-01-01T00:00:00.000001Z").unwrap();
            self.0.map(message.as_bytes(), local, &mut sink)?;
            assert!(lines.len() <= 1);
            Ok(lines.pop())
        }

        pub(super) fn line(&mut self, message: &str) -> String {
            self.map(message).unwrap().unwrap_or_default()
        }
    }

    #[test]
    fn book_tickers_leave_out_what_is_not_there() {
        let ticker =
            r#"{"stream":"ab@bookTicker","data":{"u":1,"s":"AB","b":"0.0","B":"","a":null}}"#;
        assert_eq!(
            Mapping::of_history("binance").line(ticker),
            r#"{"type":"book_ticker","symbol":"AB","exchange":"binance","askPrice":0,"bidPrice":0,"bidAmount":0,"timestamp":"2024-01-01T00:00:00.000001Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
        );
    }

    #[test]
    fn other_messages_are_passed_over_and_broken_ones_refused() {
        let mut mapping = Mapping::of_history("binance");
        for message in [
            r#"{"result":null,"id":1}"#,
            r#"{"stream":"!ticker@arr","data":[]}"#,
            r#"{"stream":"!bookTicker","data":{}}"#,
            r#"{"stream":"ab@aggTrade","data":{}}"#,
            r#"{"stream":"ab@ticker","data":{}}"#,
        ] {
            assert_eq!(mapping.map(message), Ok(None), "{message}");
        }
        for message in ["", "{", r#"{"stream":"ab@trade"}"#, r#"{"stream":"ab@trade","data":[]}"#] {
            let error = mapping.map(message).unwrap_err();
            assert!(error.to_string().starts_with("not a message of binance: "), "{error}");
        }
    }

    #[test]
    fn index_prices_are_asked_for_by_pair() {
        let symbols = ["BTCUSD_200925".to_owned(), "ETHUSD_PERP".to_owned()];
        let filters = delivery_ticker_filters(Some(&symbols));
        let of = |channel: &str| {
            let filter = filters.iter().find(|filter| filter.channel == channel).unwrap();
            filter.symbols.clone().unwrap()
        };
        assert_eq!(of("markPrice"), ["btcusd_200925", "ethusd_perp"]);
        assert_eq!(of("indexPrice"), ["btcusd", "ethusd"]);
    }
}
