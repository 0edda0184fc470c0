//! Hyperliquid. Every book message is a whole book; a faster channel of them replaced the first one.

mod levels;

use std::borrow::Cow;

use hashbrown::HashSet;
use serde::Deserialize;

use levels::{Level, Levels, Sides};

use crate::exchange::{Exchange, Filter, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{
    BookChange, BookTicker, BookTickerField, BookTickerOrder, Message, Side, Trade,
};
use crate::pending_tickers::PendingTickers;
use crate::raw::{self, Numeric, Rows, Text, date_of_millis};
use crate::time::Timestamp;

const NAME: &str = "hyperliquid";
const FAST_BOOKS_FROM: Timestamp = Timestamp::of_day(2026, 6, 17);
/// The period of [`Kind::BookChanges`] that asks for fast books.
const FAST_BOOKS: usize = 1;

pub(super) const EXCHANGES: &[Exchange] = &[Exchange {
    id: NAME,
    normalizers: &[
        Normalizer {
            kind: Kind::Trades,
            periods: &[Period::open(Wanted::Custom(|symbols| filters("trades", symbols)))],
        },
        Normalizer {
            kind: Kind::BookChanges,
            periods: &[
                Period::until(
                    FAST_BOOKS_FROM,
                    Wanted::Custom(|symbols| filters("l2Book", symbols)),
                ),
                Period::open(Wanted::Custom(|symbols| filters("fastBook", symbols))),
            ],
        },
        Normalizer {
            kind: Kind::DerivativeTickers,
            periods: &[Period::open(Wanted::Custom(|symbols| filters("activeAssetCtx", symbols)))],
        },
        Normalizer {
            kind: Kind::BookTickers,
            periods: &[Period::open(Wanted::Custom(|symbols| filters("bbo", symbols)))],
        },
    ],
    mapper: |setup| Box::new(Hyperliquid::new(setup)),
}];

fn filters(channel: &str, symbols: Option<&[String]>) -> Vec<Filter> {
    let symbols = symbols.map(|symbols| symbols.iter().map(|symbol| coin_of(symbol)).collect());
    vec![Filter { channel: channel.to_owned(), symbols }]
}

/// The exchange's name of a symbol, which in normalized messages is all capitals.
fn coin_of(symbol: &str) -> String {
    const THOUSANDS: [&str; 7] = ["kPEPE", "kSHIB", "kBONK", "kFLOKI", "kLUNC", "kDOGS", "kNEIRO"];
    let of_thousand =
        |coin: &&str| symbol.get(1..) == coin.get(1..) && symbol.starts_with(['k', 'K']);
    if let Some(coin) = THOUSANDS.into_iter().find(of_thousand) {
        return coin.to_owned();
    }
    // Markets of others are named `market:COIN`.
    let mut parts = symbol.split(':');
    match (parts.next(), parts.next()) {
        (Some(market), Some(coin)) => format!("{}:{coin}", market.to_lowercase()),
        _ => symbol.to_owned(),
    }
}

struct Hyperliquid {
    setup: MapperSetup,
    coins_traded: HashSet<String>,
    tickers: PendingTickers,
}

#[derive(Deserialize)]
struct Channel<'a> {
    #[serde(borrow, default)]
    channel: Text<'a>,
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow)]
    coin: Text<'a>,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    px: Numeric,
    #[serde(default)]
    sz: Numeric,
    #[serde(default)]
    time: Numeric,
    tid: Text<'a>,
}

#[derive(Deserialize)]
struct RawBook<'a> {
    #[serde(borrow)]
    coin: Text<'a>,
    #[serde(default)]
    time: Numeric,
    levels: Sides<Levels>,
    fast: Option<bool>,
}

#[derive(Deserialize)]
struct RawBest<'a> {
    #[serde(borrow)]
    coin: Text<'a>,
    #[serde(default)]
    time: Numeric,
    bbo: Sides<Level>,
}

#[derive(Deserialize)]
struct RawContext<'a> {
    #[serde(borrow)]
    coin: Text<'a>,
    ctx: Values,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Values {
    #[serde(default)]
    funding: Numeric,
    #[serde(default)]
    mark_px: Numeric,
    #[serde(default)]
    open_interest: Numeric,
    #[serde(default)]
    oracle_px: Numeric,
}

impl Mapper for Hyperliquid {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let channel = match raw::leading_text(message, "channel") {
            Some(channel) => Cow::Borrowed(channel),
            None => raw::read::<Channel<'_>>(NAME, message)?.channel.0,
        };
        let wants = |kind| self.setup.wants(kind);
        match &*channel {
            "trades" if wants(Kind::Trades) => {
                self.map_trades(&raw::read(NAME, message)?, local_timestamp, out);
            }
            "l2Book" | "fastBook" if wants(Kind::BookChanges) => {
                self.map_book(&channel, message, local_timestamp, out)?;
            }
            "activeAssetCtx" if wants(Kind::DerivativeTickers) => {
                self.map_context(&raw::read(NAME, message)?, local_timestamp, out);
            }
            "bbo" if wants(Kind::BookTickers) => {
                map_best(&raw::read(NAME, message)?, local_timestamp, out);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Hyperliquid {
    fn new(setup: &MapperSetup) -> Self {
        Self { setup: *setup, coins_traded: HashSet::new(), tickers: PendingTickers::new(NAME) }
    }

    /// The first message about a coin has trades from before the subscription, newest of all first:
    /// it is passed over.
    fn map_trades(
        &mut self,
        message: &Envelope<Rows<RawTrade<'_>>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for trade in &message.data {
            if !self.coins_traded.contains(&*trade.coin) {
                self.coins_traded.insert(trade.coin.0.clone().into_owned());
                return;
            }
            out.take(&Message::Trade(Trade {
                symbol: symbol_of(&trade.coin),
                exchange: Cow::Borrowed(NAME),
                id: Some(trade.tid.lend()),
                price: trade.px.number(),
                amount: trade.sz.number(),
                side: if &*trade.side == "B" { Side::Buy } else { Side::Sell },
                timestamp: date_of_millis(trade.time),
                local_timestamp,
            }));
        }
    }

    /// A fast book is told by its channel in recordings and by a flag as it happens.
    fn map_book(
        &mut self,
        channel: &str,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let wants_fast = self.setup.period(Kind::BookChanges) == Some(FAST_BOOKS);
        if channel == "fastBook" && !wants_fast {
            return Ok(());
        }
        let book = raw::read::<Envelope<RawBook<'_>>>(NAME, message)?.data;
        let is_fast = channel == "fastBook" || book.fast == Some(true);
        if is_fast != wants_fast {
            return Ok(());
        }
        let Sides { bid: bids, ask: asks } = &book.levels;
        out.take(&Message::BookChange(BookChange {
            symbol: symbol_of(&book.coin),
            exchange: Cow::Borrowed(NAME),
            is_snapshot: true,
            bids: Cow::Borrowed(bids.as_ref().map_or(&[], |levels| &levels.0[..])),
            asks: Cow::Borrowed(asks.as_ref().map_or(&[], |levels| &levels.0[..])),
            timestamp: date_of_millis(book.time),
            local_timestamp,
        }));
        Ok(())
    }

    fn map_context(
        &mut self,
        message: &Envelope<RawContext<'_>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let values = &message.data.ctx;
        let ticker = self.tickers.of(&symbol_of(&message.data.coin));
        ticker.update_funding_rate(values.funding.number_if_there());
        ticker.update_mark_price(values.mark_px.number_if_there());
        ticker.update_open_interest(values.open_interest.number_if_there());
        ticker.update_index_price(values.oracle_px.number_if_there());
        if ticker.has_changed() {
            ticker.update_timestamp(local_timestamp);
            ticker.send_if_changed(local_timestamp, out);
        }
    }
}

/// A coin as a symbol: in capitals.
fn symbol_of(coin: &str) -> Cow<'_, str> {
    let is_capital = |byte: u8| byte.is_ascii() && !byte.is_ascii_lowercase();
    if coin.bytes().all(is_capital) { Cow::Borrowed(coin) } else { Cow::Owned(coin.to_uppercase()) }
}

fn map_best(message: &Envelope<RawBest<'_>>, local_timestamp: Timestamp, out: &mut dyn Sink) {
    let Sides { bid, ask } = message.data.bbo;
    out.take(&Message::BookTicker(BookTicker {
        symbol: symbol_of(&message.data.coin),
        exchange: Cow::Borrowed(NAME),
        ask_amount: ask.map(|Level(ask)| ask.amount),
        ask_price: ask.map(|Level(ask)| ask.price),
        bid_price: bid.map(|Level(bid)| bid.price),
        bid_amount: bid.map(|Level(bid)| bid.amount),
        order: BookTickerOrder::of(&[
            BookTickerField::BidPrice,
            BookTickerField::BidAmount,
            BookTickerField::AskPrice,
            BookTickerField::AskAmount,
        ]),
        timestamp: date_of_millis(message.data.time),
        local_timestamp,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Kinds;
    use crate::json_write::write_message;

    fn map(at: Option<Timestamp>, messages: &[&str]) -> Vec<String> {
        let kinds: Kinds = Kind::ALL.into_iter().collect();
        let mut mapper = EXCHANGES[0].mapper(kinds, at);
        let mut found = Vec::new();
        let mut sink = |message: &Message<'_>| {
            let mut json = Vec::new();
            write_message(&mut json, message);
            found.push(String::from_utf8(json).unwrap());
        };
        for message in messages {
            mapper.map(message.as_bytes(), Timestamp::of_day(2020, 1, 1), &mut sink).unwrap();
        }
        found
    }

    #[test]
    fn symbols_are_asked_for_as_the_exchange_writes_them() {
        for (symbol, coin) in [
            ("BTC", "BTC"),
            ("KPEPE", "kPEPE"),
            ("kNEIRO", "kNEIRO"),
            ("KAS", "KAS"),
            ("XYZ:TSLA", "xyz:TSLA"),
            ("A:b:c", "a:b"),
            ("", ""),
            ("éPEPE", "éPEPE"),
        ] {
            assert_eq!(coin_of(symbol), coin);
        }
    }

    #[test]
    fn books_are_of_the_channel_of_their_period() {
        let book = |channel: &str, flag: &str| {
            format!(
                r#"{{"channel":"{channel}","data":{{"coin":"kPEPE","time":1,{flag}"levels":[]}}}}"#
            )
        };
        let [slow, fast, flagged] =
            [book("l2Book", ""), book("fastBook", ""), book("l2Book", r#""fast":true,"#)];
        let before = FAST_BOOKS_FROM.micros().map(|end| Timestamp::from_micros(end - 1));
        for (message, is_fast) in [(&slow, false), (&fast, true), (&flagged, true)] {
            assert_eq!(map(None, &[message]).len(), usize::from(is_fast), "{message}");
            assert_eq!(map(before, &[message]).len(), usize::from(!is_fast), "{message}");
        }
        assert_eq!(
            map(None, &[&fast]),
            [
                r#"{"type":"book_change","symbol":"KPEPE","exchange":"hyperliquid","isSnapshot":true,"bids":[],"asks":[],"timestamp":"1970-01-01T00:00:00.001Z","localTimestamp":"2020-01-01T00:00:00.000Z"}"#
            ]
        );
    }

    #[test]
    fn a_coin_not_seen_ends_its_message() {
        let trades = |coins: &[&str]| {
            let trade = |coin: &&str| format!(r#"{{"coin":"{coin}","px":"1","sz":"","tid":5}}"#);
            let rows: Vec<String> = coins.iter().map(trade).collect();
            format!(r#"{{"data":[{}],"channel":"trades"}}"#, rows.join(","))
        };
        let messages = [trades(&["a", "a"]), trades(&["a", "B", "a"]), trades(&["B"])];
        let found = map(None, &[&messages[0], &messages[1], &messages[2]]);
        let symbols: Vec<&str> = found.iter().map(|json| &json[26..27]).collect();
        assert_eq!(symbols, ["A", "B"]);
        assert!(
            found[0].contains(r#""id":"5","price":1,"amount":0,"side":"sell","timestamp":null"#)
        );
    }

    #[test]
    fn a_side_may_be_missing() {
        let best =
            r#"{"channel":"bbo","data":{"coin":"B","time":1,"bbo":[null,{"px":"2","sz":"3"}]}}"#;
        let [found] = &map(None, &[best])[..] else { panic!("one ticker") };
        assert!(
            found.contains(r#""exchange":"hyperliquid","askPrice":2,"askAmount":3,"#),
            "{found}"
        );
    }

    #[test]
    fn a_context_counts_only_if_it_brings_something_new() {
        let context = |values: &str| {
            format!(r#"{{"channel":"activeAssetCtx","data":{{"coin":"B","ctx":{{{values}}}}}}}"#)
        };
        let messages = [
            context(r#""funding":"0.1""#),
            context(r#""funding":"0.10""#),
            context(r#""oraclePx":null"#),
            context(""),
        ];
        let found = map(None, &messages.each_ref().map(String::as_str));
        assert_eq!(found.len(), 2);
        assert!(found[1].contains(r#""fundingRate":0.1,"indexPrice":0,"#), "{}", found[1]);
    }
}
