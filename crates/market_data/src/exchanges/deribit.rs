//! Deribit. A message of a channel has the channel's name and what it sends in `params`.

mod book;
mod instrument;
mod ticker;

use std::borrow::Cow;

use serde::Deserialize;

use crate::exchange::{Exchange, Filter, Kind, Normalizer, Period, Wanted};
use crate::mapper::{MapError, Mapper, MapperSetup, Sink};
use crate::message::{Message, Side, Trade};
use crate::raw::{self, Numeric, Rows, Text, date_of_millis};
use crate::time::Timestamp;
use instrument::in_capitals;
use ticker::Tickers;

const NAME: &str = "deribit";

/// What stands before the parameters in a message of a channel.
const OPENING: &[u8] = br#"{"jsonrpc":"2.0","method":"subscription","params":"#;

const TRADES: &[Period] = &[Period::open(Wanted::Custom(|symbols| filters("trades", symbols)))];
const BOOKS: &[Period] = &[Period::open(Wanted::Custom(|symbols| filters("book", symbols)))];
const TICKERS: &[Period] = &[Period::open(Wanted::Custom(|symbols| filters("ticker", symbols)))];

pub(super) const EXCHANGES: &[Exchange] = &[Exchange {
    id: NAME,
    normalizers: &[
        Normalizer { kind: Kind::Trades, periods: TRADES },
        Normalizer { kind: Kind::BookChanges, periods: BOOKS },
        Normalizer { kind: Kind::DerivativeTickers, periods: TICKERS },
        Normalizer { kind: Kind::OptionsSummary, periods: TICKERS },
        Normalizer { kind: Kind::Liquidations, periods: TRADES },
        Normalizer { kind: Kind::BookTickers, periods: TICKERS },
    ],
    mapper: |setup| Box::new(Deribit { setup: *setup, tickers: Tickers::new(setup) }),
}];

fn filters(channel: &str, symbols: Option<&[String]>) -> Vec<Filter> {
    let written = |symbol: &String| instrument::as_in_channels(symbol);
    vec![Filter {
        channel: channel.to_owned(),
        symbols: symbols.map(|symbols| symbols.iter().map(written).collect()),
    }]
}

struct Deribit {
    setup: MapperSetup,
    tickers: Tickers,
}

#[derive(Deserialize)]
struct Subscription<T> {
    params: T,
}

#[derive(Deserialize)]
struct Sent<T> {
    data: T,
}

#[derive(Deserialize)]
struct Headed<'a> {
    #[serde(borrow)]
    params: Option<Channel<'a>>,
}

#[derive(Deserialize)]
struct Channel<'a> {
    #[serde(borrow)]
    channel: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow)]
    instrument_name: Text<'a>,
    trade_id: Option<Text<'a>>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    amount: Numeric,
    #[serde(default)]
    direction: Text<'a>,
    #[serde(default)]
    timestamp: Numeric,
    /// Which side was liquidated, if one was: the taker's (`T`), the maker's (`M`) or both (`MT`).
    liquidation: Option<Text<'a>>,
}

impl Mapper for Deribit {
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let leading =
            message.strip_prefix(OPENING).and_then(|params| raw::leading_text(params, "channel"));
        let channel = match leading {
            Some(channel) => Cow::Borrowed(channel),
            None => match any_channel(message)? {
                Some(channel) => channel,
                // An answer to a request, or a heartbeat.
                None => return Ok(()),
            },
        };
        if channel.starts_with("book") {
            if self.setup.wants(Kind::BookChanges) {
                book::send(&read(message)?, local_timestamp, out);
            }
        } else if channel.starts_with("ticker") {
            if self.tickers.are_wanted() {
                self.tickers.map(&read(message)?, local_timestamp, out);
            }
        } else if channel.starts_with("trades") {
            let wants_trades = self.setup.wants(Kind::Trades);
            let wants_liquidations = self.setup.wants(Kind::Liquidations);
            if !wants_trades && !wants_liquidations {
                return Ok(());
            }
            let trades: Rows<RawTrade<'_>> = read(message)?;
            if wants_trades {
                for trade in &trades {
                    out.take(&Message::Trade(trade.with_side(trade.side(), local_timestamp)));
                }
            }
            if wants_liquidations {
                for trade in &trades {
                    if let Some(side) = trade.liquidated_side() {
                        out.take(&Message::Liquidation(trade.with_side(side, local_timestamp)));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads what the channel sends.
fn read<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Result<T, MapError> {
    raw::read::<Subscription<Sent<T>>>(NAME, message).map(|message| message.params.data)
}

/// The channel of a message that does not begin as most do, if it has one.
#[cold]
fn any_channel(message: &[u8]) -> Result<Option<Cow<'_, str>>, MapError> {
    let headed: Headed<'_> = raw::read(NAME, message)?;
    Ok(headed.params.and_then(|params| params.channel).map(|channel| channel.0))
}

impl RawTrade<'_> {
    fn side(&self) -> Side {
        match &*self.direction {
            "buy" => Side::Buy,
            "sell" => Side::Sell,
            _ => Side::Unknown,
        }
    }

    /// The side of the liquidated one, if there is one.
    fn liquidated_side(&self) -> Option<Side> {
        let liquidation = self.liquidation.as_ref()?;
        Some(match self.side() {
            taker if &**liquidation == "T" => taker,
            Side::Buy => Side::Sell,
            Side::Sell | Side::Unknown => Side::Buy,
        })
    }

    fn with_side(&self, side: Side, local_timestamp: Timestamp) -> Trade<'_> {
        Trade {
            symbol: in_capitals(&self.instrument_name),
            exchange: Cow::Borrowed(NAME),
            id: self.trade_id.as_ref().map(Text::lend),
            price: self.price.number(),
            amount: self.amount.number(),
            side,
            timestamp: date_of_millis(self.timestamp),
            local_timestamp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Kinds;
    use crate::json_write::write_message;

    pub(super) fn mapper() -> Box<dyn Mapper> {
        EXCHANGES[0].mapper(Kinds::from_iter(Kind::ALL), None)
    }

    /// The lines that `message` gives.
    pub(super) fn lines(mapper: &mut dyn Mapper, message: &str) -> Vec<String> {
        let mut lines = Vec::new();
        let mut sink = |message: &Message<'_>| {
            let mut line = Vec::new();
            write_message(&mut line, message);
            lines.push(String::from_utf8(line).unwrap());
        };
        let local = Timestamp::parse("2024-01-01T00:00:00.000001Z").unwrap();
        mapper.map(message.as_bytes(), local, &mut sink).unwrap();
        lines
    }

    #[test]
    fn the_liquidated_side_follows_from_who_was_liquidated() {
        let trade = |direction: &str, liquidation: &str| {
            format!(
                r#"{{"method":"subscription","params":{{"data":[{{"trade_id":"1","timestamp":1,"price":2,"liquidation":"{liquidation}","instrument_name":"X-1d5-C","direction":"{direction}","amount":3}}],"channel":"trades.X.raw"}},"jsonrpc":"2.0"}}"#
            )
        };
        for (direction, liquidation, side) in [
            ("buy", "T", "buy"),
            ("sell", "T", "sell"),
            ("buy", "M", "sell"),
            ("sell", "M", "buy"),
            ("buy", "MT", "sell"),
        ] {
            let lines = lines(&mut *mapper(), &trade(direction, liquidation));
            assert_eq!(lines.len(), 2);
            assert_eq!(
                lines[1],
                format!(
                    r#"{{"type":"liquidation","symbol":"X-1D5-C","exchange":"deribit","id":"1","price":2,"amount":3,"side":"{side}","timestamp":"1970-01-01T00:00:00.001Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}}"#
                )
            );
        }
    }

    #[test]
    fn trades_come_before_liquidations() {
        let row = |id: u8, rest: &str| {
            format!(
                r#"{{"trade_id":"{id}","timestamp":1,"price":2,"instrument_name":"X","direction":"buy","amount":3{rest}}}"#
            )
        };
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"trades.X.raw","data":[{},{},{}]}}}}"#,
            row(1, r#","liquidation":"T""#),
            row(2, ""),
            row(3, r#","liquidation":"M""#)
        );
        let lines = lines(&mut *mapper(), &message);
        let field = |line: &str, name: &str| {
            line.split(&format!("\"{name}\":\""))
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .to_owned()
        };
        let sent: Vec<_> =
            lines.iter().map(|line| (field(line, "type"), field(line, "id"))).collect();
        let expected = [
            ("trade", "1"),
            ("trade", "2"),
            ("trade", "3"),
            ("liquidation", "1"),
            ("liquidation", "3"),
        ];
        assert_eq!(sent, expected.map(|(kind, id)| (kind.to_owned(), id.to_owned())));
    }

    #[test]
    fn other_messages_are_passed_over() {
        for message in [
            r#"{"jsonrpc":"2.0","id":1,"result":["trades.X.raw"]}"#,
            r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#,
            r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"quote.X","data":{}}}"#,
        ] {
            assert!(lines(&mut *mapper(), message).is_empty(), "{message}");
        }
    }
}
