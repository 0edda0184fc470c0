//! Option summaries. The third version sends them whole but for the price of the underlying; the
//! fifth sends greeks and volatilities, and the rest in channels of their own.

use std::borrow::Cow;

use hashbrown::HashMap;
use serde::Deserialize;

use super::symbols::OptionTerms;
use super::v5_rows::{RawFigures, RawTicker};
use crate::mapper::Sink;
use crate::message::{Message, OptionSummary};
use crate::raw::{Numeric, Text, date_of_millis, iso_date};
use crate::time::Timestamp;

const NAME: &str = "okex-options";

/// A summary of the third version.
#[derive(Deserialize)]
pub(super) struct RawWholeSummary<'a> {
    #[serde(borrow)]
    instrument_id: Text<'a>,
    underlying: Option<Text<'a>>,
    #[serde(default)]
    best_ask: Numeric,
    #[serde(default)]
    best_bid: Numeric,
    #[serde(default)]
    best_ask_size: Numeric,
    #[serde(default)]
    best_bid_size: Numeric,
    #[serde(default)]
    delta: Numeric,
    #[serde(default)]
    gamma: Numeric,
    #[serde(default)]
    bid_vol: Numeric,
    #[serde(default)]
    ask_vol: Numeric,
    #[serde(default)]
    mark_vol: Numeric,
    #[serde(default)]
    last: Numeric,
    #[serde(default)]
    mark_price: Numeric,
    #[serde(default)]
    theta: Numeric,
    #[serde(default)]
    vega: Numeric,
    #[serde(default)]
    open_interest: Numeric,
    timestamp: Option<Text<'a>>,
}

/// An index of the third version.
#[derive(Deserialize)]
pub(super) struct RawIndex<'a> {
    #[serde(borrow)]
    instrument_id: Text<'a>,
    #[serde(default)]
    last: Numeric,
}

/// A summary of the fifth version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawSummary<'a> {
    #[serde(borrow)]
    inst_id: Text<'a>,
    uly: Option<Text<'a>>,
    #[serde(default)]
    delta: Numeric,
    #[serde(default)]
    gamma: Numeric,
    #[serde(default)]
    vega: Numeric,
    #[serde(default)]
    theta: Numeric,
    #[serde(default)]
    mark_vol: Numeric,
    #[serde(default)]
    bid_vol: Numeric,
    #[serde(default)]
    ask_vol: Numeric,
    #[serde(default)]
    ts: Numeric,
}

/// Summaries of the third version.
#[derive(Default)]
pub(super) struct WholeSummaries {
    index_prices: HashMap<String, f64>,
}

impl WholeSummaries {
    pub(super) fn learn_indexes(&mut self, rows: &[RawIndex<'_>]) {
        for row in rows {
            let price = row.last.number();
            if price > 0.0 {
                *self.index_prices.entry_ref(&*row.instrument_id).or_default() = price;
            }
        }
    }

    pub(super) fn map(
        &self,
        rows: &[RawWholeSummary<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in rows {
            let underlying = row.underlying.as_deref();
            out.take(&Message::OptionSummary(OptionSummary {
                best_bid_price: row.best_bid.non_zero(),
                best_bid_amount: row.best_bid_size.non_zero(),
                best_bid_iv: row.bid_vol.non_zero(),
                best_ask_price: row.best_ask.non_zero(),
                best_ask_amount: row.best_ask_size.non_zero(),
                best_ask_iv: row.ask_vol.non_zero(),
                last_price: row.last.non_zero(),
                open_interest: row.open_interest.non_zero(),
                mark_price: row.mark_price.non_zero(),
                mark_iv: row.mark_vol.non_zero(),
                delta: row.delta.non_zero(),
                gamma: row.gamma.non_zero(),
                vega: row.vega.non_zero(),
                theta: row.theta.non_zero(),
                underlying_price: underlying
                    .and_then(|index| self.index_prices.get(index))
                    .copied(),
                underlying_index: underlying.map(Cow::Borrowed),
                timestamp: row.timestamp.as_deref().map_or(Timestamp::INVALID, iso_date),
                ..terms_only(&row.instrument_id, local_timestamp)
            }));
        }
    }
}

/// Summaries of the fifth version.
#[derive(Default)]
pub(super) struct Summaries {
    index_prices: HashMap<String, f64>,
    options: HashMap<String, Known>,
}

/// What other channels said about an option.
#[derive(Clone, Copy, Default)]
struct Known {
    open_interest: Option<f64>,
    mark_price: Option<f64>,
    last_price: Option<f64>,
    bid_price: Option<f64>,
    bid_amount: Option<f64>,
    ask_price: Option<f64>,
    ask_amount: Option<f64>,
}

impl Summaries {
    /// Keeps rows of `channel`: index tickers, mark prices or open interest. A value that is none
    /// leaves the one before.
    pub(super) fn learn_figures(&mut self, channel: &str, rows: &[RawFigures<'_>]) {
        for row in rows {
            let id = &*row.inst_id;
            match channel {
                "mark-price" => {
                    if let Some(price) = row.mark_px.non_zero() {
                        self.options.entry_ref(id).or_default().mark_price = Some(price);
                    }
                }
                "open-interest" => {
                    if let Some(interest) = row.oi.non_zero() {
                        self.options.entry_ref(id).or_default().open_interest = Some(interest);
                    }
                }
                _ => {
                    if let Some(price) = row.idx_px.non_zero() {
                        *self.index_prices.entry_ref(id).or_default() = price;
                    }
                }
            }
        }
    }

    /// Keeps tickers; each replaces the whole one before.
    pub(super) fn learn_tickers(&mut self, rows: &[RawTicker<'_>]) {
        for row in rows {
            let known = self.options.entry_ref(&*row.inst_id).or_default();
            known.last_price = row.last.non_zero();
            known.bid_price = row.bid_px.non_zero();
            known.bid_amount = row.bid_sz.non_zero();
            known.ask_price = row.ask_px.non_zero();
            known.ask_amount = row.ask_sz.non_zero();
        }
    }

    pub(super) fn map(
        &self,
        rows: &[RawSummary<'_>],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        for row in rows {
            let known = self.options.get(&*row.inst_id).copied().unwrap_or_default();
            let underlying = row.uly.as_deref();
            out.take(&Message::OptionSummary(OptionSummary {
                best_bid_price: known.bid_price,
                best_bid_amount: known.bid_amount,
                best_bid_iv: row.bid_vol.non_zero(),
                best_ask_price: known.ask_price,
                best_ask_amount: known.ask_amount,
                best_ask_iv: row.ask_vol.non_zero(),
                last_price: known.last_price,
                open_interest: known.open_interest,
                mark_price: known.mark_price,
                mark_iv: row.mark_vol.non_zero(),
                delta: row.delta.non_zero(),
                gamma: row.gamma.non_zero(),
                vega: row.vega.non_zero(),
                theta: row.theta.non_zero(),
                underlying_price: underlying
                    .and_then(|index| self.index_prices.get(index))
                    .copied(),
                underlying_index: underlying.map(Cow::Borrowed),
                timestamp: date_of_millis(row.ts),
                ..terms_only(&row.inst_id, local_timestamp)
            }));
        }
    }
}

/// A summary that says no more than the option's name.
fn terms_only(symbol: &str, local_timestamp: Timestamp) -> OptionSummary<'_> {
    let terms = OptionTerms::of(symbol);
    OptionSummary {
        symbol: Cow::Borrowed(symbol),
        exchange: Cow::Borrowed(NAME),
        option_type: Some(terms.option_type),
        strike_price: Some(terms.strike_price),
        expiration_date: terms.expiration_date,
        best_bid_price: None,
        best_bid_amount: None,
        best_bid_iv: None,
        best_ask_price: None,
        best_ask_amount: None,
        best_ask_iv: None,
        last_price: None,
        open_interest: None,
        mark_price: None,
        mark_iv: None,
        delta: None,
        gamma: None,
        vega: None,
        theta: None,
        rho: None,
        underlying_price: None,
        underlying_index: None,
        timestamp: Timestamp::INVALID,
        local_timestamp,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{LOCAL, mapped};
    use crate::exchange::Kind;
    use crate::time::Timestamp;

    const BEGIN: &str = r#"{"type":"option_summary","symbol":"BTC-USD-220128-40000-C","exchange":"okex-options","optionType":"call","strikePrice":40000,"expirationDate":"2022-01-28T08:00:00.000Z","#;

    fn message(channel: &str, fields: &str) -> String {
        format!(
            r#"{{"arg":{{"channel":"{channel}","instId":"BTC-USD-220128-40000-C"}},"data":[{{"instId":"BTC-USD-220128-40000-C",{fields},"ts":"1640001659301"}}]}}"#
        )
    }

    #[test]
    fn a_ticker_replaces_the_one_before_and_a_figure_of_nothing_does_not() {
        let messages = [
            message("tickers", r#""last":"1","askPx":"2","askSz":"3","bidPx":"4","bidSz":"5""#),
            message("mark-price", r#""markPx":"6""#),
            message("open-interest", r#""oi":"7","oiCcy":"0""#),
            message("tickers", r#""last":"8","askPx":"","bidPx":"9","bidSz":"0""#),
            message("mark-price", r#""markPx":"0""#),
            message("open-interest", r#""oi":"""#),
            message("opt-summary", r#""delta":"0","theta":"-1","markVol":"∞""#),
        ];
        assert_eq!(
            mapped(
                "okex-options",
                &[Kind::OptionsSummary],
                LOCAL,
                &messages.each_ref().map(|text| &**text)
            ),
            [format!(
                r#"{BEGIN}"bestBidPrice":9,"lastPrice":8,"openInterest":7,"markPrice":6,"theta":-1,"timestamp":"2021-12-20T12:00:59.301Z""#
            )]
        );
    }

    #[test]
    fn tickers_serve_summaries_and_quotes_at_once() {
        let messages = [
            message("tickers", r#""askPx":"2","askSz":"3""#),
            message("opt-summary", r#""uly":"BTC-USD""#),
        ];
        let kinds = [Kind::OptionsSummary, Kind::BookTickers];
        let at = Timestamp::of_day(2022, 1, 1);
        assert_eq!(
            mapped("okex-options", &kinds, at, &messages.each_ref().map(|text| &**text)),
            [
                r#"{"type":"book_ticker","symbol":"BTC-USD-220128-40000-C","exchange":"okex-options","askAmount":3,"askPrice":2,"timestamp":"2021-12-20T12:00:59.301Z""#.to_owned(),
                format!(
                    r#"{BEGIN}"bestAskPrice":2,"bestAskAmount":3,"underlyingIndex":"BTC-USD","timestamp":"2021-12-20T12:00:59.301Z""#
                ),
            ]
        );
    }

    #[test]
    fn an_index_without_a_price_leaves_the_one_before() {
        let index = |price: &str| {
            format!(
                r#"{{"table":"index/ticker","data":[{{"instrument_id":"BTC-USD","last":{price}}}]}}"#
            )
        };
        let (first, none) = (index("\"5\""), index("0"));
        let summary = r#"{"table":"option/summary","data":[{"instrument_id":"BTC-USD-220128-40000-C","underlying":"BTC-USD"}]}"#;
        assert_eq!(
            mapped(
                "okex-options",
                &[Kind::OptionsSummary],
                Timestamp::of_day(2021, 12, 1),
                &[&first, &none, summary]
            ),
            [format!(r#"{BEGIN}"underlyingPrice":5,"underlyingIndex":"BTC-USD","timestamp":null"#)]
        );
    }
}
