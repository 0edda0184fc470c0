//! The third version of the API: a message names its table, `swap/trade`, and times are texts.

use std::borrow::Cow;

use serde::Deserialize;
use smallvec::SmallVec;

use super::options::{RawIndex, RawWholeSummary, WholeSummaries};
use crate::exchange::Kind;
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{BookChange, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::pending_tickers::PendingTickers;
use crate::raw::{self, Levels, Numeric, Rows, Text, iso_date, only_string};
use crate::time::Timestamp;

/// The type of an order that closes a long position by force.
const CLOSE_LONG: &str = "3";

pub(super) struct V3 {
    setup: MapperSetup,
    /// What its tables begin with.
    market: &'static str,
    /// The table that books are made from, if they are asked for.
    book_table: Option<String>,
    /// The tables that derivative tickers are made from, if they are asked for.
    ticker_tables: Vec<String>,
    tickers: PendingTickers,
    summaries: WholeSummaries,
}

#[derive(Deserialize)]
struct Table<'a> {
    #[serde(borrow, default)]
    table: Text<'a>,
}

#[derive(Deserialize)]
struct Rowed<'a, D> {
    #[serde(borrow, default)]
    action: Text<'a>,
    data: D,
}

#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow)]
    instrument_id: Text<'a>,
    #[serde(default, deserialize_with = "only_string")]
    trade_id: Option<Text<'a>>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    qty: Numeric,
    #[serde(default)]
    size: Numeric,
    #[serde(default)]
    side: Text<'a>,
    timestamp: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawBook<'a> {
    #[serde(borrow)]
    instrument_id: Text<'a>,
    #[serde(default)]
    bids: Levels,
    #[serde(default)]
    asks: Levels,
    timestamp: Option<Text<'a>>,
}

/// A row of the tables that tickers are put together from.
#[derive(Deserialize)]
struct RawTicker<'a> {
    #[serde(borrow)]
    instrument_id: Text<'a>,
    #[serde(default)]
    last: Numeric,
    #[serde(default)]
    best_bid: Numeric,
    #[serde(default)]
    best_ask: Numeric,
    #[serde(default)]
    best_bid_size: Numeric,
    #[serde(default)]
    best_ask_size: Numeric,
    #[serde(default)]
    open_interest: Numeric,
    #[serde(default)]
    mark_price: Numeric,
    #[serde(default)]
    funding_rate: Numeric,
    #[serde(default)]
    estimated_rate: Numeric,
    funding_time: Option<Text<'a>>,
    timestamp: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawLiquidation<'a> {
    #[serde(borrow)]
    instrument_id: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    size: Numeric,
    #[serde(default, rename = "type")]
    order_type: Text<'a>,
    created_at: Option<Text<'a>>,
}

impl Mapper for V3 {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let exchange = self.setup.exchange;
        let table = match raw::leading_text(message, "table") {
            Some(table) => Cow::Borrowed(table),
            None => raw::read::<Table<'_>>(exchange, message)?.table.0,
        };
        let Some((market, name)) = table.split_once('/') else { return Ok(()) };
        if market != self.market && market != "index" {
            return Ok(());
        }
        let wants = |kind| self.setup.wants(kind);
        match (market, name) {
            ("index", "ticker") if wants(Kind::OptionsSummary) => {
                let message: Rowed<'_, Rows<RawIndex<'_>>> = raw::read(exchange, message)?;
                self.summaries.learn_indexes(&message.data);
            }
            ("index", _) => {}
            (_, "trade") if wants(Kind::Trades) => {
                self.map_trades(&raw::read(exchange, message)?, local_timestamp, out);
            }
            (_, "depth" | "depth_l2_tbt") if self.book_table.as_deref() == Some(&*table) => {
                self.map_books(&raw::read(exchange, message)?, local_timestamp, out);
            }
            (_, "ticker" | "mark_price" | "funding_rate") => {
                let has_quotes = name == "ticker" && wants(Kind::BookTickers);
                let has_figures = self.ticker_tables.iter().any(|known| *known == *table);
                if !has_quotes && !has_figures {
                    return Ok(());
                }
                let message: Rowed<'_, Rows<RawTicker<'_>>> = raw::read(exchange, message)?;
                if has_figures {
                    self.map_derivatives(&message.data, local_timestamp, out);
                }
                if has_quotes {
                    self.map_quotes(&message.data, local_timestamp, out);
                }
            }
            (_, "summary") if wants(Kind::OptionsSummary) => {
                let message: Rowed<'_, Rows<RawWholeSummary<'_>>> = raw::read(exchange, message)?;
                self.summaries.map(&message.data, local_timestamp, out);
            }
            (_, "liquidation") if wants(Kind::Liquidations) => {
                self.map_liquidations(&raw::read(exchange, message)?, local_timestamp, out);
            }
            _ => {}
        }
        Ok(())
    }
}

impl V3 {
    pub(super) fn new(
        setup: &MapperSetup,
        market: &'static str,
        book_table: Option<String>,
        ticker_tables: Vec<String>,
    ) -> Self {
        Self {
            setup: *setup,
            market,
            book_table,
            ticker_tables,
            tickers: PendingTickers::new(setup.exchange),
            summaries: WholeSummaries::default(),
        }
    }

    fn exchange(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.setup.exchange)
    }

    fn map_trades(
        &self,
        message: &Rowed<'_, Rows<RawTrade<'_>>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in &message.data {
            let side = match &*row.side {
                "buy" => Side::Buy,
                "sell" => Side::Sell,
                _ => Side::Unknown,
            };
            out.take(&Message::Trade(Trade {
                symbol: row.instrument_id.lend(),
                exchange: self.exchange(),
                id: row.trade_id.as_ref().map(Text::lend),
                price: row.price.number(),
                amount: row.qty.number_if_there().unwrap_or_else(|| row.size.number()),
                side,
                timestamp: time(row.timestamp.as_ref()),
                local_timestamp,
            }));
        }
    }

    fn map_books(
        &self,
        message: &Rowed<'_, SmallVec<[RawBook<'_>; 1]>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let is_snapshot = &*message.action == "partial";
        for row in &message.data {
            let timestamp = time(row.timestamp.as_ref());
            let is_empty = row.bids.0.is_empty() && row.asks.0.is_empty();
            if is_empty && !is_snapshot || timestamp.micros() == Some(0) {
                continue;
            }
            out.take(&Message::BookChange(BookChange {
                symbol: row.instrument_id.lend(),
                exchange: self.exchange(),
                is_snapshot,
                bids: Cow::Borrowed(&row.bids.0),
                asks: Cow::Borrowed(&row.asks.0),
                timestamp,
                local_timestamp,
            }));
        }
    }

    fn map_derivatives(
        &mut self,
        rows: &[RawTicker<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in rows {
            let ticker = self.tickers.of(&row.instrument_id);
            if row.funding_rate.is_there() {
                ticker.update_funding_rate(Some(row.funding_rate.number()));
                ticker.update_funding_timestamp(Some(time(row.funding_time.as_ref())));
                ticker.update_predicted_funding_rate(row.estimated_rate.number_if_there());
            }
            ticker.update_mark_price(row.mark_price.number_if_there());
            let open_interest = row.open_interest.number();
            ticker.update_open_interest(Some(open_interest).filter(|interest| *interest > 0.0));
            ticker.update_last_price(row.last.number_if_there());
            if let Some(text) = &row.timestamp {
                ticker.update_timestamp(iso_date(text));
            }
            ticker.send_if_changed(local_timestamp, out);
        }
    }

    fn map_quotes(&self, rows: &[RawTicker<'_>], local_timestamp: Timestamp, out: &mut dyn Sink) {
        for row in rows {
            out.take(&Message::BookTicker(BookTicker {
                symbol: row.instrument_id.lend(),
                exchange: self.exchange(),
                ask_amount: row.best_ask_size.non_zero(),
                ask_price: row.best_ask.non_zero(),
                bid_price: row.best_bid.non_zero(),
                bid_amount: row.best_bid_size.non_zero(),
                order: BookTickerOrder::DEFAULT,
                timestamp: time(row.timestamp.as_ref()),
                local_timestamp,
            }));
        }
    }

    fn map_liquidations(
        &self,
        message: &Rowed<'_, Rows<RawLiquidation<'_>>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in &message.data {
            out.take(&Message::Liquidation(Trade {
                symbol: row.instrument_id.lend(),
                exchange: self.exchange(),
                id: None,
                price: row.price.number(),
                amount: row.size.number(),
                side: if &*row.order_type == CLOSE_LONG { Side::Sell } else { Side::Buy },
                timestamp: time(row.created_at.as_ref()),
                local_timestamp,
            }));
        }
    }
}

fn time(text: Option<&Text<'_>>) -> Timestamp {
    text.map_or(Timestamp::INVALID, |text| iso_date(text))
}

#[cfg(test)]
mod tests {
    use super::super::tests::mapped;
    use super::*;

    const AT: Timestamp = Timestamp::of_day(2020, 6, 1);

    #[test]
    fn a_trade_id_is_a_string_or_none_and_a_side_may_be_unknown() {
        let trade = r#"{"data":[{"instrument_id":"BTC-USD-SWAP","price":9000,"size":"2","side":"?","timestamp":"2020-06-01T00:00:01.5Z","trade_id":17}],"table":"swap/trade"}"#;
        assert_eq!(
            mapped("okex-swap", &[Kind::Trades], AT, &[trade]),
            [
                r#"{"type":"trade","symbol":"BTC-USD-SWAP","exchange":"okex-swap","price":9000,"amount":2,"side":"unknown","timestamp":"2020-06-01T00:00:01.500Z""#
            ]
        );
    }

    #[test]
    fn books_without_levels_count_only_as_snapshots_and_never_without_a_time() {
        let book = |action: &str, time: &str| {
            format!(
                r#"{{"table":"spot/depth_l2_tbt","action":"{action}","data":[{{"instrument_id":"BTC-USDT","asks":[],"bids":[],"timestamp":"{time}"}}]}}"#
            )
        };
        let messages = [
            book("update", "2020-06-01T00:00:01.000Z"),
            book("partial", "1970-01-01T00:00:00.000Z"),
            book("partial", "2020-06-01T00:00:02.000Z"),
        ];
        assert_eq!(
            mapped("okex", &[Kind::BookChanges], AT, &messages.each_ref().map(|text| &**text)),
            [
                r#"{"type":"book_change","symbol":"BTC-USDT","exchange":"okex","isSnapshot":true,"bids":[],"asks":[],"timestamp":"2020-06-01T00:00:02.000Z""#
            ]
        );
    }

    #[test]
    fn open_interest_of_nothing_is_passed_over_and_other_markets_too() {
        let messages = [
            r#"{"table":"swap/ticker","data":[{"instrument_id":"BTC-USD-200626","last":"1","timestamp":"2020-06-01T00:00:01Z"}]}"#,
            r#"{"table":"futures/funding_rate","data":[{"instrument_id":"BTC-USD-200626","funding_rate":"1"}]}"#,
            r#"{"event":"subscribe","channel":"futures/ticker:BTC-USD-200626"}"#,
            r#"{"table":"futures/ticker","data":[{"instrument_id":"BTC-USD-200626","last":"","open_interest":"0","timestamp":"2020-06-01T00:00:01Z"}]}"#,
        ];
        assert_eq!(
            mapped("okex-futures", &[Kind::DerivativeTickers], AT, &messages),
            [
                r#"{"type":"derivative_ticker","symbol":"BTC-USD-200626","exchange":"okex-futures","lastPrice":0,"timestamp":"2020-06-01T00:00:01.000Z""#
            ]
        );
    }

    #[test]
    fn rows_give_their_tickers_first_and_their_quotes_then() {
        let tickers = r#"{"table":"swap/ticker","data":[{"instrument_id":"A-USD-SWAP","last":1,"best_bid":0},{"instrument_id":"B-USD-SWAP","last":2,"best_ask":"3"}]}"#;
        let kinds = [Kind::DerivativeTickers, Kind::BookTickers];
        let begin = |line: &String| line.split(",\"exchange\"").next().unwrap().to_owned();
        let lines = mapped("okex-swap", &kinds, AT, &[tickers]);
        assert_eq!(
            lines.iter().map(begin).collect::<Vec<_>>(),
            [
                r#"{"type":"derivative_ticker","symbol":"A-USD-SWAP""#,
                r#"{"type":"derivative_ticker","symbol":"B-USD-SWAP""#,
                r#"{"type":"book_ticker","symbol":"A-USD-SWAP""#,
                r#"{"type":"book_ticker","symbol":"B-USD-SWAP""#,
            ]
        );
        assert!(lines[2].ends_with(r#""exchange":"okex-swap","timestamp":null"#), "{}", lines[2]);
    }

    #[test]
    fn a_first_time_that_cannot_be_read_stays() {
        let ticker = |price: u32, time: &str| {
            format!(
                r#"{{"table":"swap/mark_price","data":[{{"instrument_id":"BTC-USD-SWAP","mark_price":{price},"timestamp":"{time}"}}]}}"#
            )
        };
        let messages = [ticker(1, "soon"), ticker(2, "2020-06-01T00:00:01.000Z")];
        assert_eq!(
            mapped("okex-swap", &[Kind::DerivativeTickers], AT, &messages.each_ref().map(|text| &**text)),
            [1, 2].map(|price| format!(
                r#"{{"type":"derivative_ticker","symbol":"BTC-USD-SWAP","exchange":"okex-swap","markPrice":{price},"timestamp":null"#
            ))
        );
    }
}
