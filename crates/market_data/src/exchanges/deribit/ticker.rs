//! Tickers. Each names the best bid and ask; an option's is also its summary, that of all others,
//! and of active combinations of options, a derivative ticker.

use std::borrow::Cow;

use serde::Deserialize;

use crate::exchange::Kind;
use crate::exchanges::deribit::NAME;
use crate::exchanges::deribit::instrument::{OptionTerms, in_capitals, is_option};
use crate::mapper::{MapperSetup, Sink};
use crate::message::{BookTicker, BookTickerOrder, Message, OptionSummary};
use crate::pending_tickers::PendingTickers;
use crate::raw::{Numeric, Text, date_of_millis};
use crate::time::Timestamp;

pub(super) struct Tickers {
    setup: MapperSetup,
    pending: PendingTickers,
}

#[derive(Deserialize)]
pub(super) struct RawTicker<'a> {
    #[serde(borrow)]
    instrument_name: Text<'a>,
    #[serde(default)]
    timestamp: Numeric,
    #[serde(default)]
    open_interest: Numeric,
    #[serde(default)]
    mark_price: Numeric,
    #[serde(default)]
    last_price: Numeric,
    #[serde(default)]
    index_price: Numeric,
    #[serde(default)]
    current_funding: Numeric,
    #[serde(default)]
    best_bid_price: Numeric,
    #[serde(default)]
    best_bid_amount: Numeric,
    #[serde(default)]
    best_ask_price: Numeric,
    #[serde(default)]
    best_ask_amount: Numeric,
    #[serde(default)]
    bid_iv: Numeric,
    #[serde(default)]
    ask_iv: Numeric,
    #[serde(default)]
    mark_iv: Numeric,
    #[serde(default)]
    underlying_price: Numeric,
    underlying_index: Option<Text<'a>>,
    /// Only combinations have it.
    combo_state: Option<Text<'a>>,
    greeks: Option<RawGreeks>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct RawGreeks {
    delta: Numeric,
    gamma: Numeric,
    vega: Numeric,
    theta: Numeric,
    rho: Numeric,
}

impl Tickers {
    pub(super) fn new(setup: &MapperSetup) -> Self {
        Self { setup: *setup, pending: PendingTickers::new(NAME) }
    }

    pub(super) fn are_wanted(&self) -> bool {
        [Kind::DerivativeTickers, Kind::OptionsSummary, Kind::BookTickers]
            .into_iter()
            .any(|kind| self.setup.wants(kind))
    }

    pub(super) fn map(
        &mut self,
        ticker: &RawTicker<'_>,
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) {
        let is_active_combo = || ticker.combo_state.as_deref() == Some("active");
        if self.setup.wants(Kind::DerivativeTickers)
            && (ticker.greeks.is_none() || is_active_combo())
        {
            self.update(ticker, local_timestamp, out);
        }
        if self.setup.wants(Kind::OptionsSummary)
            && is_option(&ticker.instrument_name)
            && let Some(terms) = OptionTerms::of(&ticker.instrument_name)
        {
            let summary = summary(ticker, &terms, local_timestamp);
            out.take(&Message::OptionSummary(summary));
        }
        if self.setup.wants(Kind::BookTickers) {
            out.take(&Message::BookTicker(BookTicker {
                symbol: in_capitals(&ticker.instrument_name),
                exchange: Cow::Borrowed(NAME),
                ask_amount: ticker.best_ask_amount.non_zero(),
                ask_price: ticker.best_ask_price.non_zero(),
                bid_price: ticker.best_bid_price.non_zero(),
                bid_amount: ticker.best_bid_amount.non_zero(),
                order: BookTickerOrder::DEFAULT,
                timestamp: date_of_millis(ticker.timestamp),
                local_timestamp,
            }));
        }
    }

    fn update(&mut self, ticker: &RawTicker<'_>, local_timestamp: Timestamp, out: &mut dyn Sink) {
        let pending = self.pending.of(&ticker.instrument_name);
        pending.update_funding_rate(ticker.current_funding.number_if_given());
        pending.update_index_price(ticker.index_price.number_if_given());
        pending.update_mark_price(ticker.mark_price.number_if_given());
        pending.update_open_interest(ticker.open_interest.number_if_given());
        pending.update_last_price(ticker.last_price.number_if_given());
        pending.update_timestamp(date_of_millis(ticker.timestamp));
        pending.send_if_changed(local_timestamp, out);
    }
}

fn summary<'a>(
    ticker: &'a RawTicker<'_>,
    terms: &OptionTerms,
    local_timestamp: Timestamp,
) -> OptionSummary<'a> {
    let greeks = ticker.greeks.unwrap_or_default();
    OptionSummary {
        symbol: in_capitals(&ticker.instrument_name),
        exchange: Cow::Borrowed(NAME),
        option_type: Some(terms.option_type),
        strike_price: Some(terms.strike),
        expiration_date: Some(terms.expiry),
        best_bid_price: ticker.best_bid_price.non_zero(),
        best_bid_amount: ticker.best_bid_amount.non_zero(),
        best_bid_iv: ticker.bid_iv.non_zero(),
        best_ask_price: ticker.best_ask_price.non_zero(),
        best_ask_amount: ticker.best_ask_amount.non_zero(),
        best_ask_iv: ticker.ask_iv.non_zero(),
        last_price: ticker.last_price.non_zero(),
        open_interest: as_given(ticker.open_interest),
        mark_price: as_given(ticker.mark_price),
        mark_iv: as_given(ticker.mark_iv),
        delta: as_given(greeks.delta),
        gamma: as_given(greeks.gamma),
        vega: as_given(greeks.vega),
        theta: as_given(greeks.theta),
        rho: as_given(greeks.rho),
        underlying_price: as_given(ticker.underlying_price),
        underlying_index: ticker.underlying_index.as_ref().map(Text::lend),
        timestamp: date_of_millis(ticker.timestamp),
        local_timestamp,
    }
}

/// The value as it is: `null` stays one, which NaN prints as.
fn as_given(value: Numeric) -> Option<f64> {
    match value {
        Numeric::Absent => None,
        Numeric::Null | Numeric::Empty => Some(f64::NAN),
        Numeric::Value(value) => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::deribit::tests::{lines, mapper};
    use crate::mapper::Mapper;

    fn sent(mapper: &mut dyn Mapper, name: &str, rest: &str) -> Vec<String> {
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"ticker.{name}.raw","data":{{"timestamp":1,"instrument_name":"{name}"{rest}}}}}}}"#
        );
        lines(mapper, &message)
    }

    fn types(lines: &[String]) -> Vec<&str> {
        lines.iter().map(|line| line.split('"').nth(3).unwrap()).collect()
    }

    #[test]
    fn what_a_ticker_is_depends_on_the_instrument() {
        let greeks = r#","mark_price":1,"greeks":{"delta":0.5}"#;
        let active = r#","mark_price":1,"combo_state":"active","greeks":{}"#;
        let closed = r#","mark_price":1,"combo_state":"closed","greeks":{}"#;
        for (name, rest, expected) in [
            ("BTC-PERPETUAL", r#","mark_price":1"#, &["derivative_ticker", "book_ticker"][..]),
            ("BTC-8JUN20-8750-P", greeks, &["option_summary", "book_ticker"]),
            ("BTC-STRD-30SEP22-20000", active, &["derivative_ticker", "book_ticker"]),
            ("BTC-STRD-30SEP22-20000", closed, &["book_ticker"]),
            ("BTC-C", greeks, &["book_ticker"]),
        ] {
            assert_eq!(types(&sent(&mut *mapper(), name, rest)), expected, "{name}{rest}");
        }
    }

    #[test]
    fn a_derivative_ticker_is_sent_when_it_changes() {
        let mut mapper = mapper();
        let values = r#","mark_price":1,"last_price":null,"best_bid_price":0,"best_ask_price":2"#;
        let first = sent(&mut *mapper, "X_usdc", values);
        assert!(
            first[0]
                .contains(r#""symbol":"X_usdc","exchange":"deribit","markPrice":1,"timestamp""#),
            "{first:?}"
        );
        assert!(first[1].contains(r#""symbol":"X_USDC","exchange":"deribit","askPrice":2,"#));
        assert_eq!(types(&sent(&mut *mapper, "X_usdc", values)), ["book_ticker"]);
    }

    #[test]
    fn a_summary_keeps_null_and_leaves_out_what_is_missing() {
        let rest = r#","mark_price":0,"mark_iv":null,"bid_iv":0,"ask_iv":"","last_price":0,"greeks":{"delta":-1,"rho":null}"#;
        let lines = sent(&mut *mapper(), "BTC-STRD-1d5-C", rest);
        assert_eq!(
            lines[0],
            r#"{"type":"option_summary","symbol":"BTC-STRD-1D5-C","exchange":"deribit","optionType":"call","strikePrice":1.5,"expirationDate":null,"markPrice":0,"markIV":null,"delta":-1,"rho":null,"timestamp":"1970-01-01T00:00:00.001Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
        );
    }
}
