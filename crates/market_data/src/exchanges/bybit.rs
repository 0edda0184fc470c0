//! Bybit's derivatives: the v5 formats, and the older ones that they replaced.

mod list_or_object;
mod v2;
pub(super) mod v5;

use std::borrow::Cow;

use serde::Deserialize;

use crate::exchange::{Exchange, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::Side;
use crate::pending_tickers::PendingTickers;
use crate::raw::{self, Text};
use crate::time::Timestamp;
use v5::V5;

const NAME: &str = "bybit";

/// When the v5 formats came, for spot markets too.
pub(super) const V5_FROM: Timestamp = Timestamp::of_day(2023, 4, 5);
/// When liquidations came in a channel that has all of them, not one a second.
const ALL_LIQUIDATIONS_FROM: Timestamp = Timestamp::of_day(2025, 2, 26);

pub(super) const EXCHANGES: &[Exchange] = &[Exchange {
    id: NAME,
    normalizers: &[
        Normalizer {
            kind: Kind::Trades,
            periods: &[
                Period::until(V5_FROM, Wanted::upper(&["trade"])),
                Period::open(Wanted::upper(&["publicTrade"])),
            ],
        },
        Normalizer {
            kind: Kind::BookChanges,
            periods: &[
                Period::until(V5_FROM, Wanted::upper(&["orderBookL2_25"])),
                Period::open(Wanted::upper(&["orderbook.50"])),
            ],
        },
        Normalizer {
            kind: Kind::DerivativeTickers,
            periods: &[
                Period::until(V5_FROM, Wanted::upper(&["instrument_info"])),
                Period::open(Wanted::upper(&["tickers"])),
            ],
        },
        Normalizer {
            kind: Kind::Liquidations,
            periods: &[
                Period::until(V5_FROM, Wanted::upper(&["liquidation"])),
                Period::until(ALL_LIQUIDATIONS_FROM, Wanted::upper(&["liquidation"])),
                Period::open(Wanted::upper(&["allLiquidation"])),
            ],
        },
        Normalizer {
            kind: Kind::BookTickers,
            periods: &[Period::open(Wanted::upper(&["orderbook.1"]))],
        },
    ],
    mapper: |setup| Box::new(Bybit::new(setup)),
}];

struct Bybit {
    setup: MapperSetup,
    v5: V5,
    tickers: PendingTickers,
}

#[derive(Deserialize)]
struct Topic<'a> {
    #[serde(borrow, default)]
    topic: Text<'a>,
}

impl Mapper for Bybit {
    fn map(
        &mut self,
        message: &[u8],
        local: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let topic = topic(NAME, message)?;
        let Some((channel, rest)) = topic.split_once('.') else { return Ok(()) };
        let period = |kind| self.setup.period(kind);
        match channel {
            "trade" if period(Kind::Trades) == Some(0) => v2::map_trades(message, local, out),
            "publicTrade" if period(Kind::Trades) == Some(1) => {
                self.v5.map_trades(message, local, out)
            }
            "orderBookL2_25" if period(Kind::BookChanges) == Some(0) => {
                let symbol = rest.rsplit_once('.').map_or(rest, |(_, symbol)| symbol);
                v2::map_book(message, symbol, local, out)
            }
            "orderbook" if rest.starts_with("50.") && period(Kind::BookChanges) == Some(1) => {
                self.v5.map_book(message, local, out)
            }
            "orderbook" if rest.starts_with("1.") && self.setup.wants(Kind::BookTickers) => {
                self.v5.map_best_levels(message, local, out)
            }
            "instrument_info" if period(Kind::DerivativeTickers) == Some(0) => {
                v2::map_instrument(message, &mut self.tickers, local, out)
            }
            "tickers" if period(Kind::DerivativeTickers) == Some(1) => {
                v5::map_ticker(NAME, message, &mut self.tickers, local, out)
            }
            "liquidation" if period(Kind::Liquidations) == Some(0) => {
                v2::map_liquidations(message, local, out)
            }
            "liquidation" if period(Kind::Liquidations) == Some(1) => {
                v5::map_liquidation(NAME, message, local, out)
            }
            "allLiquidation" if period(Kind::Liquidations) == Some(2) => {
                v5::map_all_liquidations(NAME, message, local, out)
            }
            _ => Ok(()),
        }
    }
}

impl Bybit {
    fn new(setup: &MapperSetup) -> Self {
        Self { setup: *setup, v5: V5::new(NAME), tickers: PendingTickers::new(NAME) }
    }
}

/// What `message` is about: a channel, a point and what it is about; empty for answers to requests.
pub(super) fn topic<'a>(
    exchange: &'static str,
    message: &'a [u8],
) -> Result<Cow<'a, str>, MapError> {
    match raw::leading_text(message, "topic") {
        Some(topic) => Ok(Cow::Borrowed(topic)),
        None => Ok(raw::read::<Topic<'_>>(exchange, message)?.topic.0),
    }
}

fn taker_side(side: &str) -> Side {
    match side {
        "Buy" => Side::Buy,
        "Sell" => Side::Sell,
        _ => Side::Unknown,
    }
}

/// The exchange gives the side of the position: the order that closes a long one sells.
fn closing_side(position: &str) -> Side {
    if position == "Buy" { Side::Sell } else { Side::Buy }
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    #[test]
    fn every_period_maps_its_own_channels_only() {
        let trade = r#"{"topic":"trade.BTCUSD","data":[{"timestamp":"2019-11-06T12:50:52.000Z","symbol":"BTCUSD","side":"None","size":6000,"price":9366,"trade_id":"8c53"}]}"#;
        let public_trade = r#"{"topic":"publicTrade.BTCUSD","type":"snapshot","ts":1680673823566,"data":[{"T":1680673823564,"s":"BTCUSD","S":"","v":"3","p":"28560.50","i":"912e"}]}"#;
        let liquidation = r#"{"data":{"price":"0.03803","side":"Buy","size":"1637","symbol":"GALAUSDT","updatedTime":1673251091822},"topic":"liquidation.GALAUSDT","ts":1673251091822,"type":"snapshot"}"#;
        let all_liquidation = r#"{"topic":"allLiquidation.KAITOUSDT","type":"snapshot","ts":1740480190078,"data":[{"T":1740480189987,"s":"KAITOUSDT","S":"Buy","v":"43","p":"1.7531"}]}"#;
        let messages = [trade, public_trade, liquidation, all_liquidation];
        let counts = |at: &str| -> Vec<usize> {
            map_all("bybit", at, &messages).iter().map(Vec::len).collect()
        };
        assert_eq!(counts("2023-04-04T23:59:59.999Z"), [1, 0, 1, 0]);
        assert_eq!(counts("2023-04-05T00:00:00.000Z"), [0, 1, 1, 0]);
        assert_eq!(counts("2025-02-26T00:00:00.000Z"), [0, 1, 0, 1]);
    }

    #[test]
    fn a_side_that_is_not_said_is_unknown() {
        let trade = r#"{"topic":"publicTrade.BTCUSD","type":"snapshot","ts":1680673823566,"data":[{"T":1680673823564,"s":"BTCUSD","S":"","v":"3","p":"28560.50","i":"912e"}]}"#;
        let found = map_all("bybit", "2024-01-01T00:00:00.000Z", &[trade]);
        assert_eq!(
            found[0],
            [
                r#"{"type":"trade","symbol":"BTCUSD","exchange":"bybit","id":"912e","price":28560.5,"amount":3,"side":"unknown","timestamp":"2023-04-05T05:50:23.564Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
            ]
        );
    }

    #[test]
    fn answers_and_other_channels_are_passed_over() {
        let messages = [
            r#"{"success":true,"ret_msg":"pong","conn_id":"36e3","op":"ping"}"#,
            r#"{"topic":"orderbook.500.BTCUSDT","type":"delta","ts":1,"data":{}}"#,
            r#"{"topic":"orderbook.50","type":"delta","ts":1,"data":{}}"#,
            r#"{"topic":"insurance.BTC","data":[]}"#,
        ];
        assert!(map_all("bybit", "2024-01-01T00:00:00.000Z", &messages).concat().is_empty());
    }
}
