//! The fifth version of the API: a message begins with its channel and mostly its instrument, and
//! times are milliseconds.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::derivatives::Derivatives;
use super::options::{RawSummary, Summaries};
use super::symbols::UsdcIndex;
use super::v5_rows::{
    Head, Pushed, RawBook, RawFigures, RawForcedOrders, RawFunding, RawLiquidation, RawTicker,
    RawTrade,
};
use crate::exchange::Kind;
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{BookChange, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::raw::{self, Rows, Text, date_of_millis};
use crate::time::Timestamp;

pub(super) struct V5 {
    setup: MapperSetup,
    /// The channel that books are made from, if they are asked for.
    book_channel: Option<String>,
    /// The channel that book tickers are made from, if they are asked for.
    quote_channel: Option<String>,
    derivatives: Option<Derivatives>,
    summaries: Option<Summaries>,
    /// The first message of forced orders repeats those from before the subscription.
    has_seen_forced_orders: bool,
}

impl Mapper for V5 {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let subject = message.strip_prefix(br#"{"arg":"#);
        if let Some(channel) = subject.and_then(|subject| raw::leading_text(subject, "channel")) {
            return self.map_channel(channel, message, local_timestamp, out);
        }
        let head: Head<'_> = raw::read(self.setup.exchange, message)?;
        if head.event.is_some() {
            return Ok(());
        }
        self.map_channel(&head.arg.channel, message, local_timestamp, out)
    }
}

impl V5 {
    pub(super) fn new(
        setup: &MapperSetup,
        book_channel: Option<String>,
        quote_channel: Option<String>,
        usdc_index: UsdcIndex,
    ) -> Self {
        let wants_derivatives = setup.wants(Kind::DerivativeTickers);
        Self {
            setup: *setup,
            book_channel,
            quote_channel,
            derivatives: wants_derivatives.then(|| Derivatives::new(setup.exchange, usdc_index)),
            summaries: setup.wants(Kind::OptionsSummary).then(Summaries::default),
            has_seen_forced_orders: false,
        }
    }

    fn map_channel(
        &mut self,
        channel: &str,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let exchange = self.setup.exchange;
        let wants = |kind| self.setup.wants(kind);
        match channel {
            _ if self.book_channel.as_deref() == Some(channel) => {
                self.map_books(&raw::read(exchange, message)?, local_timestamp, out);
            }
            "trades" | "trades-all" if wants(Kind::Trades) => {
                self.map_trades(&raw::read(exchange, message)?, local_timestamp, out);
            }
            "bbo-tbt" if self.quote_channel.as_deref() == Some(channel) => {
                self.map_tops(&raw::read(exchange, message)?, local_timestamp, out);
            }
            "tickers" => {
                let has_quotes = self.quote_channel.as_deref() == Some(channel);
                if has_quotes || self.derivatives.is_some() || self.summaries.is_some() {
                    let message = raw::read(exchange, message)?;
                    self.map_tickers(&message, has_quotes, local_timestamp, out);
                }
            }
            "index-tickers" | "mark-price" | "open-interest"
                if self.derivatives.is_some() || self.summaries.is_some() =>
            {
                let message: Pushed<'_, Rows<RawFigures<'_>>> = raw::read(exchange, message)?;
                if let Some(derivatives) = &mut self.derivatives {
                    derivatives.map_figures(channel, message.rows(), local_timestamp, out);
                }
                if let Some(summaries) = &mut self.summaries {
                    summaries.learn_figures(channel, message.rows());
                }
            }
            "funding-rate" => {
                if let Some(derivatives) = &mut self.derivatives {
                    let message: Pushed<'_, Rows<RawFunding<'_>>> = raw::read(exchange, message)?;
                    derivatives.map_funding(message.rows(), local_timestamp, out);
                }
            }
            "opt-summary" => {
                if let Some(summaries) = &self.summaries {
                    let message: Pushed<'_, Rows<RawSummary<'_>>> = raw::read(exchange, message)?;
                    summaries.map(message.rows(), local_timestamp, out);
                }
            }
            "liquidations" if wants(Kind::Liquidations) => {
                let message: Pushed<'_, Rows<RawLiquidation<'_>>> = raw::read(exchange, message)?;
                self.send_liquidations(&message.arg.inst_id, message.rows(), local_timestamp, out);
            }
            "liquidation-orders" if wants(Kind::Liquidations) => {
                self.map_forced_orders(&raw::read(exchange, message)?, local_timestamp, out);
            }
            _ => {}
        }
        Ok(())
    }

    fn exchange(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.setup.exchange)
    }

    fn map_trades(
        &self,
        message: &Pushed<'_, Rows<RawTrade<'_>>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in message.rows() {
            out.take(&Message::Trade(Trade {
                symbol: row.inst_id.lend(),
                exchange: self.exchange(),
                id: row.trade_id.as_ref().map(Text::lend),
                price: row.px.number(),
                amount: row.sz.number(),
                side: side(&row.side),
                timestamp: date_of_millis(row.ts),
                local_timestamp,
            }));
        }
    }

    fn map_books(
        &self,
        message: &Pushed<'_, SmallVec<[RawBook; 1]>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in message.rows() {
            let timestamp = date_of_millis(row.ts);
            let is_empty = row.bids.0.is_empty() && row.asks.0.is_empty();
            if is_empty && &*message.action == "update" || timestamp.micros() == Some(0) {
                continue;
            }
            out.take(&Message::BookChange(BookChange {
                symbol: message.arg.inst_id.lend(),
                exchange: self.exchange(),
                is_snapshot: &*message.action == "snapshot",
                bids: Cow::Borrowed(&row.bids.0),
                asks: Cow::Borrowed(&row.asks.0),
                timestamp,
                local_timestamp,
            }));
        }
    }

    fn map_tops(
        &self,
        message: &Pushed<'_, SmallVec<[RawBook; 1]>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in message.rows() {
            let (ask, bid) = (row.asks.0.first(), row.bids.0.first());
            out.take(&Message::BookTicker(BookTicker {
                symbol: message.arg.inst_id.lend(),
                exchange: self.exchange(),
                ask_amount: ask.map(|level| level.amount),
                ask_price: ask.map(|level| level.price),
                bid_price: bid.map(|level| level.price),
                bid_amount: bid.map(|level| level.amount),
                order: BookTickerOrder::DEFAULT,
                timestamp: date_of_millis(row.ts),
                local_timestamp,
            }));
        }
    }

    fn map_tickers(
        &mut self,
        message: &Pushed<'_, Rows<RawTicker<'_>>>,
        has_quotes: bool,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        if let Some(derivatives) = &mut self.derivatives {
            derivatives.map_tickers(message.rows(), local_timestamp, out);
        }
        if let Some(summaries) = &mut self.summaries {
            summaries.learn_tickers(message.rows());
        }
        for row in message.rows().iter().filter(|_| has_quotes) {
            out.take(&Message::BookTicker(BookTicker {
                symbol: row.inst_id.lend(),
                exchange: self.exchange(),
                ask_amount: row.ask_sz.non_zero(),
                ask_price: row.ask_px.non_zero(),
                bid_price: row.bid_px.non_zero(),
                bid_amount: row.bid_sz.non_zero(),
                order: BookTickerOrder::DEFAULT,
                timestamp: date_of_millis(row.ts),
                local_timestamp,
            }));
        }
    }

    fn map_forced_orders(
        &mut self,
        message: &Pushed<'_, Rows<RawForcedOrders<'_>>>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        if message.event.is_some() || !std::mem::replace(&mut self.has_seen_forced_orders, true) {
            return;
        }
        for row in message.rows() {
            self.send_liquidations(&row.inst_id, &row.details, local_timestamp, out);
        }
    }

    fn send_liquidations(
        &self,
        symbol: &str,
        rows: &[RawLiquidation<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in rows {
            out.take(&Message::Liquidation(Trade {
                symbol: Cow::Borrowed(symbol),
                exchange: self.exchange(),
                id: None,
                price: row.bk_px.number(),
                amount: row.sz.number(),
                side: side(&row.side),
                timestamp: date_of_millis(row.ts),
                local_timestamp,
            }));
        }
    }
}

fn side(text: &str) -> Side {
    if text == "buy" { Side::Buy } else { Side::Sell }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LOCAL, mapped};
    use super::*;

    #[test]
    fn the_channel_need_not_come_first() {
        let messages = [
            r#"{"data":[{"instId":"BTC-USDT","tradeId":"7","px":"2","sz":"3","side":"SELL","ts":1640131206623}],"arg":{"instId":"BTC-USDT","channel":"trades-all"}}"#,
            r#"{"arg":{"channel":"trades-all","instId":"BTC-USDT"},"event":"subscribe","connId":"a4"}"#,
            r#"{"event":"error","msg":"no such channel","code":"60018"}"#,
        ];
        assert_eq!(
            mapped("okex", &[Kind::Trades], LOCAL, &messages),
            [
                r#"{"type":"trade","symbol":"BTC-USDT","exchange":"okex","id":"7","price":2,"amount":3,"side":"sell","timestamp":"2021-12-22T00:00:06.623Z""#
            ]
        );
    }

    #[test]
    fn books_come_from_the_channel_of_their_time() {
        let message = |channel: &str, action: &str, ts: &str| {
            format!(
                r#"{{"arg":{{"channel":"{channel}","instId":"BTC-USDT"}},"action":"{action}","data":[{{"asks":[],"bids":[],"ts":"{ts}"}}]}}"#
            )
        };
        let messages = [
            message("books", "snapshot", "1677283200000"),
            message("books-l2-tbt", "snapshot", "1677283200001"),
            message("books-l2-tbt", "update", "1677283200001"),
            message("books", "update", "1677283200000"),
            message("books", "snapshot", ""),
            message("books-l2-tbt", "snapshot", "0"),
        ];
        for (at, time) in [
            (Timestamp::of_day(2023, 2, 24), "00:00:00.001Z"),
            (Timestamp::of_day(2023, 2, 25), "00:00:00.000Z"),
            (Timestamp::of_day(2023, 3, 9), "00:00:00.001Z"),
            (Timestamp::of_day(2026, 5, 21), "00:00:00.000Z"),
        ] {
            assert_eq!(
                mapped("okex", &[Kind::BookChanges], at, &messages.each_ref().map(|text| &**text)),
                [format!(
                    r#"{{"type":"book_change","symbol":"BTC-USDT","exchange":"okex","isSnapshot":true,"bids":[],"asks":[],"timestamp":"2023-02-25T{time}""#
                )]
            );
        }
    }

    #[test]
    fn the_top_of_a_book_may_lack_a_side() {
        let messages = [
            r#"{"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"}}"#,
            r#"{"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"data":null}"#,
            r#"{"arg":{"channel":"bbo-tbt","instId":"BTC-USDT"},"data":[{"asks":[],"bids":[["5","0","0","1"]],"ts":"1651761120004"}]}"#,
        ];
        assert_eq!(
            mapped("okex", &[Kind::BookTickers], LOCAL, &messages),
            [
                r#"{"type":"book_ticker","symbol":"BTC-USDT","exchange":"okex","bidPrice":5,"bidAmount":0,"timestamp":"2022-05-05T14:32:00.004Z""#
            ]
        );
    }

    #[test]
    fn only_forced_orders_begin_with_a_repetition() {
        let order = r#"{"arg":{"channel":"liquidation-orders","instType":"SWAP"},"data":[{"details":[{"bkPx":"2","side":"sell","sz":"3","ts":"1680173247614"},{"bkPx":"4","side":"buy","sz":"5","ts":"1680173247615"}],"instId":"XRP-USD-SWAP"}]}"#;
        let answer =
            r#"{"arg":{"channel":"liquidation-orders","instType":"SWAP"},"event":"subscribe"}"#;
        let older = r#"{"arg":{"channel":"liquidations","instId":"BTC-USD-SWAP"},"data":[{"bkPx":"1","side":"buy","sz":"1","ts":"1640140210617"}]}"#;
        let prices: Vec<String> =
            mapped("okex-swap", &[Kind::Liquidations], LOCAL, &[older, answer, order, order])
                .iter()
                .map(|line| line.split(r#""okex-swap","#).nth(1).unwrap().to_owned())
                .collect();
        assert_eq!(
            prices,
            [
                r#""price":1,"amount":1,"side":"buy","timestamp":"2021-12-22T02:30:10.617Z""#,
                r#""price":2,"amount":3,"side":"sell","timestamp":"2023-03-30T10:47:27.614Z""#,
                r#""price":4,"amount":5,"side":"buy","timestamp":"2023-03-30T10:47:27.615Z""#,
            ]
        );
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let exchange = super::super::EXCHANGES[0];
        let mut mapper = exchange.mapper([Kind::Trades].into_iter().collect(), Some(LOCAL));
        for text in ["", "pong", r#"{"arg":{"channel":"trades"},"data":[{"instId":"A"#] {
            let error = mapper.map(text.as_bytes(), LOCAL, &mut |_: &Message<'_>| {}).unwrap_err();
            assert!(error.to_string().starts_with("not a message of okex: "), "{error}");
        }
    }
}
