//! Derivative tickers of the fifth version: each channel brings one part of them. The index has a
//! channel of its own, and counts from the next message about a contract that follows it.

use hashbrown::HashMap;

use super::symbols::{UsdcIndex, index_of};
use super::v5_rows::{RawFigures, RawFunding, RawTicker};
use crate::mapper::Sink;
use crate::pending_tickers::{PendingTicker, PendingTickers};
use crate::raw::{Numeric, date_of_millis};
use crate::time::Timestamp;

pub(super) struct Derivatives {
    tickers: PendingTickers,
    index_prices: HashMap<String, f64>,
    usdc_index: UsdcIndex,
}

impl Derivatives {
    pub(super) fn new(exchange: &'static str, usdc_index: UsdcIndex) -> Self {
        Self { tickers: PendingTickers::new(exchange), index_prices: HashMap::new(), usdc_index }
    }

    pub(super) fn map_tickers(
        &mut self,
        rows: &[RawTicker<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in rows {
            let ticker = self.ticker(&row.inst_id);
            update_at(ticker, PendingTicker::update_last_price, row.last, row.ts);
            ticker.send_if_changed(local_timestamp, out);
        }
    }

    /// Maps rows of `channel`: index tickers, mark prices or open interest.
    pub(super) fn map_figures(
        &mut self,
        channel: &str,
        rows: &[RawFigures<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in rows {
            let (update, value): (Update, _) = match channel {
                "mark-price" => (PendingTicker::update_mark_price, row.mark_px),
                "open-interest" => (PendingTicker::update_open_interest, row.oi),
                _ => {
                    self.learn_index(row);
                    continue;
                }
            };
            let ticker = self.ticker(&row.inst_id);
            update_at(ticker, update, value, row.ts);
            ticker.send_if_changed(local_timestamp, out);
        }
    }

    pub(super) fn map_funding(
        &mut self,
        rows: &[RawFunding<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let date_if_there = |value: Numeric| value.is_there().then(|| date_of_millis(value));
        for row in rows {
            let ticker = self.ticker(&row.inst_id);
            ticker.update_funding_rate(row.funding_rate.number_if_there());
            ticker.update_funding_timestamp(date_if_there(row.funding_time));
            if row.next_funding_rate != Numeric::Empty {
                ticker.update_predicted_funding_rate(row.next_funding_rate.number_if_there());
            }
            if let Some(time) = date_if_there(row.ts) {
                ticker.update_timestamp(time);
            }
            ticker.send_if_changed(local_timestamp, out);
        }
    }

    fn learn_index(&mut self, row: &RawFigures<'_>) {
        let price = row.idx_px.number();
        if price > 0.0 {
            *self.index_prices.entry_ref(&*row.inst_id).or_default() = price;
        }
    }

    /// What is known about a contract, with the newest price of its index.
    fn ticker(&mut self, symbol: &str) -> &mut PendingTicker {
        let index = index_of(symbol, self.usdc_index);
        let index_price = index.and_then(|index| self.index_prices.get(index)).copied();
        let ticker = self.tickers.of(symbol);
        ticker.update_index_price(index_price);
        ticker
    }
}

type Update = fn(&mut PendingTicker, Option<f64>);

/// A value that is not positive is none, and its time does not count either.
fn update_at(ticker: &mut PendingTicker, update: Update, value: Numeric, time: Numeric) {
    let value = value.number();
    if value > 0.0 {
        update(ticker, Some(value));
        ticker.update_timestamp(date_of_millis(time));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LOCAL, mapped};
    use super::*;
    use crate::exchange::Kind;

    #[test]
    fn funding_leaves_what_it_does_not_say_and_a_figure_of_nothing_brings_no_time() {
        let messages = [
            r#"{"arg":{"channel":"funding-rate","instId":"BTC-USD-SWAP"},"data":[{"instId":"BTC-USD-SWAP","fundingRate":"0.1","fundingTime":"1640131200000","nextFundingRate":"0.2","ts":"1640131100000"}]}"#,
            r#"{"arg":{"channel":"mark-price","instId":"BTC-USD-SWAP"},"data":[{"instId":"BTC-USD-SWAP","markPx":"0","ts":"1640131300000"}]}"#,
            r#"{"arg":{"channel":"funding-rate","instId":"BTC-USD-SWAP"},"data":[{"instId":"BTC-USD-SWAP","fundingRate":"","nextFundingRate":""}]}"#,
        ];
        assert_eq!(
            mapped("okex-swap", &[Kind::DerivativeTickers], LOCAL, &messages),
            ["0.1", "0"].map(|rate| format!(
                r#"{{"type":"derivative_ticker","symbol":"BTC-USD-SWAP","exchange":"okex-swap","fundingRate":{rate},"fundingTimestamp":"2021-12-22T00:00:00.000Z","predictedFundingRate":0.2,"timestamp":"2021-12-21T23:58:20.000Z""#
            ))
        );
    }

    #[test]
    fn a_changed_index_alone_is_sent_with_the_next_message_of_the_contract() {
        let interest = r#"{"arg":{"channel":"open-interest","instId":"BTC-USDC-SWAP"},"data":[{"instId":"BTC-USDC-SWAP","oi":"5","oiCcy":"1","ts":"1640131100000"}]}"#;
        let index = |id: &str, price: &str| {
            format!(
                r#"{{"arg":{{"channel":"index-tickers","instId":"{id}"}},"data":[{{"instId":"{id}","idxPx":"{price}","ts":"1640131200000"}}]}}"#
            )
        };
        let (usd, usdc, none) =
            (index("BTC-USD", "1"), index("BTC-USDC", "2"), index("BTC-USDC", "-3"));
        let messages = [interest, interest, &usd, &usdc, interest, &none, interest];
        for (at, price) in [(Timestamp::of_day(2023, 4, 10), 1), (LOCAL, 2)] {
            let lines = mapped("okex-swap", &[Kind::DerivativeTickers], at, &messages);
            let figures: Vec<&str> =
                lines.iter().map(|line| line.split(r#""okex-swap","#).nth(1).unwrap()).collect();
            let time = r#""timestamp":"2021-12-21T23:58:20.000Z""#;
            assert_eq!(
                figures,
                [
                    format!(r#""openInterest":5,{time}"#),
                    format!(r#""openInterest":5,"indexPrice":{price},{time}"#),
                ]
            );
        }
    }

    #[test]
    fn a_contract_without_a_pair_has_no_index() {
        let ticker = r#"{"arg":{"channel":"tickers","instId":"SYM"},"data":[{"instId":"SYM","last":"5","ts":"1640131100000"}]}"#;
        assert_eq!(mapped("okex-futures", &[Kind::DerivativeTickers], LOCAL, &[ticker]).len(), 1);
    }
}
