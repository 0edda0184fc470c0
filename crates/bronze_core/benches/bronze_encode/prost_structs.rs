//! The reference encoder: builds the generated structs the plain way and lets prost encode them.
//!
//! The round-trip tests hold the direct encoder's bytes against these, the bench its speed.

use std::collections::BTreeMap;

use bronze_core::generated::bronze::{self, normalized_event::Payload};
use market_data::{
    BarKind, BookLevel, BookSnapshot, BookTickerField, BookTickerOrder, ErrorCode, Message,
    OptionType, Precision, Side, Timestamp, write_decimal,
};

/// What all events of a session have in common.
pub(crate) struct Session {
    /// The producer.
    pub(crate) source: String,
    /// How the events come to be.
    pub(crate) origin: bronze::Origin,
    /// Pairs of every event.
    pub(crate) meta: BTreeMap<String, String>,
    /// Whether book changes are split into levels.
    pub(crate) per_level: bool,
}

fn decimal(value: f64) -> String {
    let mut text = Vec::new();
    write_decimal(&mut text, value);
    String::from_utf8(text).unwrap()
}

fn optional(value: Option<f64>) -> String {
    value.map(decimal).unwrap_or_default()
}

fn time(time: Timestamp) -> Option<prost_types::Timestamp> {
    time.micros().map(|micros| prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap(),
    })
}

fn has_micros(time: Timestamp) -> bool {
    time != Timestamp::INVALID && time.precision() == Precision::Micros
}

fn side(side: Side) -> i32 {
    match side {
        Side::Buy => bronze::Side::Buy as i32,
        Side::Sell => bronze::Side::Sell as i32,
        Side::Unknown => bronze::Side::Unspecified as i32,
    }
}

/// The events of `message`, the first numbered `seq`.
pub(crate) fn events(
    session: &Session,
    message: &Message<'_>,
    ingest: Timestamp,
    seq: u64,
) -> Vec<bronze::NormalizedEvent> {
    let local = message.local_timestamp();
    let event = |index: usize, payload: Payload| bronze::NormalizedEvent {
        source: session.source.clone(),
        exchange: message.exchange().to_owned(),
        symbol: message.symbol().to_owned(),
        local_ts: time(local),
        ingest_ts: time(ingest),
        origin: session.origin as i32,
        event_seq: seq + index as u64,
        local_ts_millis_only: local != Timestamp::INVALID && local.precision() == Precision::Millis,
        meta: meta(session, message),
        payload: Some(payload),
    };
    payloads(session, message)
        .into_iter()
        .enumerate()
        .map(|(index, payload)| event(index, payload))
        .collect()
}

fn meta(session: &Session, message: &Message<'_>) -> BTreeMap<String, String> {
    let mut meta = session.meta.clone();
    let mut put = |key: &str, value: String| meta.insert(key.to_owned(), value);
    put("data_type", message.type_name().to_owned());
    match message {
        Message::BookChange(change) => {
            put("is_snapshot", change.is_snapshot.to_string());
        }
        Message::BookSnapshot(snapshot) => {
            put("data_name", snapshot.name.to_string());
        }
        Message::TradeBar(bar) => {
            put("data_name", bar.name.to_string());
        }
        Message::Disconnect(disconnect) => {
            if let Some(symbols) = &disconnect.symbols {
                put("symbols", symbols.join(","));
            }
        }
        _ => {}
    }
    meta
}

#[allow(clippy::too_many_lines)] // one arm per type of message
fn payloads(session: &Session, message: &Message<'_>) -> Vec<Payload> {
    vec![match message {
        Message::Trade(trade) => Payload::Trade(bronze::Trade {
            trade_id: trade.id.as_deref().unwrap_or_default().to_owned(),
            price_str: decimal(trade.price),
            qty_str: decimal(trade.amount),
            side: side(trade.side),
            sequence: 0,
            event_ts: time(trade.timestamp),
            event_ts_has_micros: has_micros(trade.timestamp),
            trade_id_is_empty: trade.id.as_deref() == Some(""),
        }),
        Message::Liquidation(liquidation) => Payload::Liquidation(bronze::Liquidation {
            side: side(liquidation.side),
            price_str: decimal(liquidation.price),
            qty_str: decimal(liquidation.amount),
            order_id: liquidation.id.as_deref().unwrap_or_default().to_owned(),
            event_ts: time(liquidation.timestamp),
            event_ts_has_micros: has_micros(liquidation.timestamp),
            order_id_is_empty: liquidation.id.as_deref() == Some(""),
        }),
        Message::BookChange(change) => {
            let common = bronze::BookChange {
                event_ts: time(change.timestamp),
                event_ts_has_micros: has_micros(change.timestamp),
                is_snapshot: change.is_snapshot,
                ..Default::default()
            };
            let parts = change.bids.len() + change.asks.len();
            if session.per_level && parts > 0 {
                let bids = change.bids.iter().enumerate().map(|at| (bronze::Side::Buy, at));
                let asks = change.asks.iter().enumerate().map(|at| (bronze::Side::Sell, at));
                return bids
                    .chain(asks)
                    .enumerate()
                    .map(|(part, (side, (position, level)))| {
                        let action = match level.amount {
                            0.0 => bronze::Action::Delete,
                            _ => bronze::Action::Upsert,
                        };
                        Payload::BookChange(bronze::BookChange {
                            side: side as i32,
                            action: action as i32,
                            price_str: decimal(level.price),
                            qty_str: decimal(level.amount),
                            level: i32::try_from(position).unwrap(),
                            part: u32::try_from(part).unwrap(),
                            parts: u32::try_from(parts).unwrap(),
                            ..common.clone()
                        })
                    })
                    .collect();
            }
            let levels = |levels: &[BookLevel]| {
                levels
                    .iter()
                    .map(|level| bronze::book_change::Level {
                        price_str: decimal(level.price),
                        qty_str: decimal(level.amount),
                    })
                    .collect()
            };
            Payload::BookChange(bronze::BookChange {
                bids: levels(&change.bids),
                asks: levels(&change.asks),
                ..common
            })
        }
        Message::BookSnapshot(snapshot) => snapshot_payload(snapshot),
        Message::DerivativeTicker(ticker) => {
            let funding = ticker.funding_timestamp;
            Payload::DerivativeTicker(bronze::DerivativeTicker {
                mark_price_str: optional(ticker.mark_price),
                index_price_str: optional(ticker.index_price),
                funding_rate_str: optional(ticker.funding_rate),
                event_ts: time(ticker.timestamp),
                event_ts_has_micros: has_micros(ticker.timestamp),
                last_price_str: optional(ticker.last_price),
                open_interest_str: optional(ticker.open_interest),
                predicted_funding_rate_str: optional(ticker.predicted_funding_rate),
                funding_ts: funding.and_then(time),
                funding_ts_has_micros: funding.is_some_and(has_micros),
                funding_ts_is_invalid: funding == Some(Timestamp::INVALID),
            })
        }
        Message::OptionSummary(summary) => {
            let expiration = summary.expiration_date;
            Payload::OptionSummary(bronze::OptionSummary {
                iv_str: optional(summary.mark_iv),
                delta_str: optional(summary.delta),
                gamma_str: optional(summary.gamma),
                theta_str: optional(summary.theta),
                vega_str: optional(summary.vega),
                oi_str: optional(summary.open_interest),
                event_ts: time(summary.timestamp),
                event_ts_has_micros: has_micros(summary.timestamp),
                option_type: match summary.option_type {
                    None => bronze::OptionType::Unspecified as i32,
                    Some(OptionType::Call) => bronze::OptionType::Call as i32,
                    Some(OptionType::Put) => bronze::OptionType::Put as i32,
                },
                strike_price_str: optional(summary.strike_price),
                expiration_ts: expiration.and_then(time),
                expiration_ts_has_micros: expiration.is_some_and(has_micros),
                expiration_ts_is_invalid: expiration == Some(Timestamp::INVALID),
                best_bid_price_str: optional(summary.best_bid_price),
                best_bid_qty_str: optional(summary.best_bid_amount),
                best_bid_iv_str: optional(summary.best_bid_iv),
                best_ask_price_str: optional(summary.best_ask_price),
                best_ask_qty_str: optional(summary.best_ask_amount),
                best_ask_iv_str: optional(summary.best_ask_iv),
                last_price_str: optional(summary.last_price),
                mark_price_str: optional(summary.mark_price),
                rho_str: optional(summary.rho),
                underlying_price_str: optional(summary.underlying_price),
                underlying_index: summary.underlying_index.as_deref().map(str::to_owned),
            })
        }
        Message::BookTicker(ticker) => Payload::BookTicker(bronze::BookTicker {
            best_bid_price_str: optional(ticker.bid_price),
            best_bid_qty_str: optional(ticker.bid_amount),
            best_ask_price_str: optional(ticker.ask_price),
            best_ask_qty_str: optional(ticker.ask_amount),
            event_ts: time(ticker.timestamp),
            event_ts_has_micros: has_micros(ticker.timestamp),
            field_order: if ticker.order == BookTickerOrder::DEFAULT {
                String::new()
            } else {
                let letter = |field| match field {
                    BookTickerField::AskAmount => 'a',
                    BookTickerField::AskPrice => 'A',
                    BookTickerField::BidPrice => 'B',
                    BookTickerField::BidAmount => 'b',
                };
                ticker.order.fields().map(letter).iter().collect()
            },
        }),
        Message::TradeBar(bar) => {
            let start = match (bar.kind, bar.timestamp.micros()) {
                (BarKind::Time, None) => None,
                (BarKind::Time, Some(end)) => i64::try_from(bar.interval)
                    .ok()
                    .and_then(|interval| end.checked_sub(interval.checked_mul(1_000)?))
                    .map(Timestamp::from_micros),
                _ => Some(bar.open_timestamp),
            };
            let is_time = bar.kind == BarKind::Time;
            Payload::TradeBar(bronze::TradeBar {
                kind: match bar.kind {
                    BarKind::Time => bronze::BarKind::Time as i32,
                    BarKind::Tick => bronze::BarKind::Tick as i32,
                    BarKind::Volume => bronze::BarKind::Volume as i32,
                },
                interval: bar.interval,
                interval_ms: if is_time { saturated(bar.interval) } else { 0 },
                open_str: decimal(bar.open),
                high_str: decimal(bar.high),
                low_str: decimal(bar.low),
                close_str: decimal(bar.close),
                volume_str: decimal(bar.volume),
                trade_count: bar.trades,
                event_ts: start.and_then(time),
                end_ts: time(bar.timestamp),
                name: bar.name.to_string(),
                buy_volume_str: decimal(bar.buy_volume),
                sell_volume_str: decimal(bar.sell_volume),
                vwap_str: decimal(bar.vwap),
                open_ts: time(bar.open_timestamp),
                close_ts: time(bar.close_timestamp),
                end_ts_has_micros: has_micros(bar.timestamp),
                open_ts_has_micros: has_micros(bar.open_timestamp),
                close_ts_has_micros: has_micros(bar.close_timestamp),
            })
        }
        Message::Error(error) => Payload::Error(bronze::ControlError {
            details: error.details.to_string(),
            subsequent_errors: error.subsequent_errors,
            code: match error.code {
                ErrorCode::Unspecified => bronze::ErrorCode::Unspecified as i32,
                ErrorCode::Connect => bronze::ErrorCode::WsConnect as i32,
                ErrorCode::Send => bronze::ErrorCode::WsSend as i32,
                ErrorCode::Auth => bronze::ErrorCode::SourceAuth as i32,
                ErrorCode::RateLimit => bronze::ErrorCode::SourceRateLimit as i32,
            },
        }),
        Message::Disconnect(disconnect) => Payload::Disconnect(bronze::ControlDisconnect {
            reason: disconnect.reason.to_string(),
            close_code: disconnect.close_code,
            symbols: disconnect.symbols.as_ref().map(|symbols| {
                bronze::control_disconnect::SymbolList {
                    values: symbols.iter().map(ToString::to_string).collect(),
                }
            }),
        }),
    }]
}

fn saturated(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn snapshot_payload(snapshot: &BookSnapshot<'_>) -> Payload {
    let is_quote_name = snapshot.name == "quote" || snapshot.name.starts_with("quote_");
    if let (None, 1, [bid], [ask], true) =
        (snapshot.grouping, snapshot.depth, &*snapshot.bids, &*snapshot.asks, is_quote_name)
    {
        return Payload::Quote(bronze::Quote {
            bid_price_str: optional(bid.map(|level| level.price)),
            bid_qty_str: optional(bid.map(|level| level.amount)),
            ask_price_str: optional(ask.map(|level| level.price)),
            ask_qty_str: optional(ask.map(|level| level.amount)),
            event_ts: time(snapshot.timestamp),
            event_ts_has_micros: has_micros(snapshot.timestamp),
            name: snapshot.name.to_string(),
            interval: snapshot.interval,
        });
    }
    /// Plain and grouped snapshots have the same fields.
    macro_rules! fields {
        ($message:ident, $level:ident) => {{
            let levels = |levels: &[Option<BookLevel>]| {
                levels
                    .iter()
                    .map(|level| bronze::$level::Level {
                        price_str: optional(level.map(|level| level.price)),
                        qty_str: optional(level.map(|level| level.amount)),
                    })
                    .collect()
            };
            Payload::$message(bronze::$message {
                depth: snapshot.depth,
                bids: levels(&snapshot.bids),
                asks: levels(&snapshot.asks),
                event_ts: time(snapshot.timestamp),
                grouping: decimal(snapshot.grouping.unwrap_or_default()).parse().unwrap_or(0),
                interval_ms: saturated(snapshot.interval),
                remove_crossed_levels: false,
                sequence: 0,
                event_ts_has_micros: has_micros(snapshot.timestamp),
                name: snapshot.name.to_string(),
                grouping_str: optional(snapshot.grouping),
                interval: snapshot.interval,
            })
        }};
    }
    if snapshot.grouping.is_some() {
        fields!(GroupedBookSnapshot, grouped_book_snapshot)
    } else {
        fields!(BookSnapshot, book_snapshot)
    }
}
