//! The formats before v5. Inverse contracts, linear ones and those settled in USDC each have their
//! own spelling: `mark_price_e4` as a number or as a text, `mark_price`, `markPriceE4`, `markPrice`.

use std::borrow::Cow;

use serde::Deserialize;
use smallvec::SmallVec;

use super::list_or_object::ListOrObject;
use super::{NAME, closing_side, taker_side};
use crate::mapper::{MapError, Sink};
use crate::message::{BookChange, BookLevel, Message, Trade};
use crate::pending_tickers::PendingTickers;
use crate::raw::{self, Moment, Numeric, Rows, Text, date_of_millis, date_of_whole_micros};
use crate::time::Timestamp;

#[derive(Deserialize)]
struct Trades<'a> {
    #[serde(borrow)]
    data: Rows<RawTrade<'a>>,
}

#[derive(Deserialize)]
struct RawTrade<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    trade_id: Option<Text<'a>>,
    #[serde(rename = "tradeId")]
    usdc_trade_id: Option<Text<'a>>,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    size: Numeric,
    #[serde(default)]
    trade_time_ms: Numeric,
    #[serde(default, rename = "tradeTimeMs")]
    usdc_trade_time_ms: Numeric,
    #[serde(default)]
    timestamp: Moment,
}

#[derive(Deserialize)]
struct Envelope<'a, T> {
    #[serde(borrow, default, rename = "type")]
    action: Text<'a>,
    #[serde(default)]
    timestamp_e6: Numeric,
    #[serde(default, rename = "timestampE6")]
    usdc_timestamp_e6: Numeric,
    data: T,
}

impl<T> Envelope<'_, T> {
    fn timestamp_e6(&self) -> Numeric {
        first(self.timestamp_e6, self.usdc_timestamp_e6)
    }
}

/// A snapshot has one list, by itself or under a name, an update has three.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Lists<'a> {
    #[serde(borrow, alias = "orderBook")]
    order_book: Rows<RawLevel<'a>>,
    delete: Rows<RawLevel<'a>>,
    update: Rows<RawLevel<'a>>,
    insert: Rows<RawLevel<'a>>,
}

#[derive(Deserialize)]
struct RawLevel<'a> {
    #[serde(borrow, default)]
    side: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    size: Numeric,
}

/// An instrument, or, without a symbol, an update of one.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RawInstrument<'a> {
    #[serde(borrow)]
    symbol: Option<Text<'a>>,
    update: Vec<RawInstrument<'a>>,
    funding_rate_e6: Numeric,
    predicted_funding_rate_e6: Numeric,
    next_funding_time: Option<Moment>,
    index_price: Numeric,
    index_price_e4: Numeric,
    mark_price: Numeric,
    mark_price_e4: Numeric,
    last_price: Numeric,
    last_price_e4: Numeric,
    open_interest: Numeric,
    open_interest_e8: Numeric,
    updated_at: Moment,
    #[serde(rename = "fundingRateE6")]
    usdc_funding_rate_e6: Numeric,
    #[serde(rename = "predictedFundingRateE6")]
    usdc_predicted_funding_rate_e6: Numeric,
    #[serde(rename = "nextFundingTime")]
    usdc_next_funding_time: Option<Moment>,
    #[serde(rename = "indexPrice")]
    usdc_index_price: Numeric,
    #[serde(rename = "indexPriceE4")]
    usdc_index_price_e4: Numeric,
    #[serde(rename = "markPrice")]
    usdc_mark_price: Numeric,
    #[serde(rename = "markPriceE4")]
    usdc_mark_price_e4: Numeric,
    #[serde(rename = "lastPrice")]
    usdc_last_price: Numeric,
    #[serde(rename = "lastPriceE4")]
    usdc_last_price_e4: Numeric,
    #[serde(rename = "openInterestE8")]
    usdc_open_interest_e8: Numeric,
}

#[derive(Deserialize)]
struct Liquidations<'a> {
    #[serde(borrow)]
    data: ListOrObject<Rows<RawLiquidation<'a>>, RawLiquidation<'a>>,
}

#[derive(Deserialize)]
struct RawLiquidation<'a> {
    #[serde(borrow)]
    symbol: Text<'a>,
    id: Option<Text<'a>>,
    #[serde(default)]
    side: Text<'a>,
    #[serde(default)]
    price: Numeric,
    #[serde(default)]
    qty: Numeric,
    #[serde(default)]
    time: Moment,
}

pub(super) fn map_trades(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Trades<'_> = raw::read(NAME, message)?;
    for row in &message.data {
        // Without milliseconds in a field of their own the text has whole seconds.
        let millis = first(row.trade_time_ms, row.usdc_trade_time_ms);
        out.take(&Message::Trade(Trade {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            id: row.trade_id.as_ref().or(row.usdc_trade_id.as_ref()).map(Text::lend),
            price: row.price.number(),
            amount: row.size.number(),
            side: taker_side(&row.side),
            timestamp: if millis.is_there() { date_of_millis(millis) } else { row.timestamp.0 },
            local_timestamp,
        }));
    }
    Ok(())
}

pub(super) fn map_book(
    message: &[u8],
    symbol: &str,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, ListOrObject<Rows<RawLevel<'_>>, Lists<'_>>> =
        raw::read(NAME, message)?;
    let mut bids = SmallVec::<[BookLevel; 8]>::new();
    let mut asks = SmallVec::<[BookLevel; 8]>::new();
    let lists: [&[RawLevel<'_>]; 4] = match &message.data {
        ListOrObject::List(levels) => [levels, &[], &[], &[]],
        ListOrObject::Object(lists) => {
            [&lists.order_book, &lists.delete, &lists.update, &lists.insert]
        }
    };
    for row in lists.into_iter().flatten() {
        let side = match &*row.side {
            "Buy" => &mut bids,
            "Sell" => &mut asks,
            _ => continue,
        };
        // A level that is deleted has no size.
        let amount = row.size.number_if_there().unwrap_or(0.0);
        side.push(BookLevel { price: row.price.number(), amount });
    }
    out.take(&Message::BookChange(BookChange {
        symbol: Cow::Borrowed(symbol),
        exchange: Cow::Borrowed(NAME),
        is_snapshot: &*message.action == "snapshot",
        bids: Cow::Borrowed(&bids),
        asks: Cow::Borrowed(&asks),
        timestamp: date_of_whole_micros(message.timestamp_e6()),
        local_timestamp,
    }));
    Ok(())
}

/// Updates have only what changed.
pub(super) fn map_instrument(
    message: &[u8],
    tickers: &mut PendingTickers,
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Envelope<'_, RawInstrument<'_>> = raw::read(NAME, message)?;
    let data = &message.data;
    let Some(row) = (if data.symbol.is_some() { Some(data) } else { data.update.first() }) else {
        return Ok(());
    };
    let Some(symbol) = &row.symbol else { return Ok(()) };
    let ticker = tickers.of(symbol);
    ticker.update_funding_rate(scaled(first(row.funding_rate_e6, row.usdc_funding_rate_e6), 1e6));
    ticker.update_predicted_funding_rate(scaled(
        first(row.predicted_funding_rate_e6, row.usdc_predicted_funding_rate_e6),
        1e6,
    ));
    // 1970 stands for a time that is not told.
    let funding_time = row.next_funding_time.or(row.usdc_next_funding_time);
    ticker.update_funding_timestamp(
        funding_time.map(|time| time.0).filter(|time| time.micros() > Some(0)),
    );
    ticker.update_index_price(price(
        first(row.index_price, row.usdc_index_price),
        first(row.index_price_e4, row.usdc_index_price_e4),
    ));
    ticker.update_mark_price(price(
        first(row.mark_price, row.usdc_mark_price),
        first(row.mark_price_e4, row.usdc_mark_price_e4),
    ));
    ticker.update_open_interest(if row.open_interest.is_there() {
        row.open_interest.number_if_given()
    } else {
        scaled(first(row.usdc_open_interest_e8, row.open_interest_e8), 1e8)
    });
    ticker.update_last_price(price(
        first(row.last_price, row.usdc_last_price),
        first(row.last_price_e4, row.usdc_last_price_e4),
    ));
    let micros = message.timestamp_e6();
    let has_micros = micros.is_there();
    ticker.update_timestamp(if has_micros {
        date_of_whole_micros(micros)
    } else {
        row.updated_at.0
    });
    ticker.send_if_changed(local_timestamp, out);
    Ok(())
}

/// Older recordings have lists with ids, newer ones a message for each.
pub(super) fn map_liquidations(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let message: Liquidations<'_> = raw::read(NAME, message)?;
    let rows = match &message.data {
        ListOrObject::List(rows) => &**rows,
        ListOrObject::Object(row) => std::slice::from_ref(row),
    };
    for row in rows {
        out.take(&Message::Liquidation(Trade {
            symbol: row.symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            id: row.id.as_ref().map(Text::lend),
            price: row.price.number(),
            amount: row.qty.number(),
            side: closing_side(&row.side),
            timestamp: row.time.0,
            local_timestamp,
        }));
    }
    Ok(())
}

/// The first that is there.
fn first(one: Numeric, other: Numeric) -> Numeric {
    if one.is_there() { one } else { other }
}

/// A number that comes multiplied by `scale`.
fn scaled(value: Numeric, scale: f64) -> Option<f64> {
    value.number_if_there().map(|number| number / scale)
}

fn price(plain: Numeric, e4: Numeric) -> Option<f64> {
    plain.number_if_there().or_else(|| scaled(e4, 1e4))
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    const AT: &str = "2022-01-01T00:00:00.000Z";

    fn instrument(data: &str, time: &str) -> String {
        format!(r#"{{"topic":"instrument_info.100ms.BTCUSDT","type":"delta","data":{data}{time}}}"#)
    }

    #[test]
    fn deleted_levels_come_first_and_sides_are_told_apart() {
        let message = r#"{"topic":"orderBookL2_25.XRPUSD","type":"delta","data":{"insert":[{"price":"0.3038","symbol":"XRPUSD","id":3038,"side":"Sell","size":41761}],"delete":[{"price":"0.3013","symbol":"XRPUSD","id":3013,"side":"Sell"}],"update":[{"price":"0.3010","symbol":"XRPUSD","id":3010,"side":"None","size":1}]},"cross_seq":1,"timestamp_e6":"12345"}"#;
        assert_eq!(
            map_all("bybit", AT, &[message])[0],
            [
                r#"{"type":"book_change","symbol":"XRPUSD","exchange":"bybit","isSnapshot":false,"bids":[],"asks":[{"price":0.3013,"amount":0},{"price":0.3038,"amount":41761}],"timestamp":"1970-01-01T00:00:00.012345Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
            ]
        );
    }

    #[test]
    fn plain_prices_count_more_than_scaled_ones() {
        let time = r#","timestamp_e6":1615467900200258"#;
        let messages = [
            instrument(
                r#"{"update":[{"symbol":"BTCUSDT","last_price_e4":"12345","last_price":"1.5","mark_price_e4":608243538,"open_interest_e8":447123000000}]}"#,
                time,
            ),
            instrument(
                r#"{"update":[{"symbol":"BTCUSDT","markPriceE4":"212094600","indexPriceE4":"212247200","openInterestE8":"18317600000","nextFundingTime":"1970-01-01T00:00:00Z"}]}"#,
                time,
            ),
            instrument(r#"{"update":[]}"#, time),
            instrument(r#"{"delete":[],"insert":[]}"#, time),
        ];
        let found = map_all("bybit", AT, &messages.each_ref().map(|message| &**message));
        assert_eq!(
            found[..2].concat(),
            [
                r#"{"type":"derivative_ticker","symbol":"BTCUSDT","exchange":"bybit","lastPrice":1.5,"openInterest":4471.23,"markPrice":60824.3538,"timestamp":"2021-03-11T13:05:00.200258Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#,
                r#"{"type":"derivative_ticker","symbol":"BTCUSDT","exchange":"bybit","lastPrice":1.5,"openInterest":183.176,"indexPrice":21224.72,"markPrice":21209.46,"timestamp":"2021-03-11T13:05:00.200258Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#,
            ]
        );
        assert!(found[2..].concat().is_empty());
    }

    #[test]
    fn times_are_compared_by_milliseconds() {
        let last = |price: &str, time: &str| {
            let data = format!(
                r#"{{"symbol":"BTCUSDT","last_price":"{price}","updated_at":"2021-03-11T13:05:01Z"}}"#
            );
            instrument(&data, time)
        };
        let messages = [
            last("1", r#","timestamp_e6":1615467900200258"#),
            last("2", r#","timestamp_e6":1615467900200100"#),
            last("3", r#","timestamp_e6":1615467900199999"#),
            last("4", ""),
        ];
        let found = map_all("bybit", AT, &messages.each_ref().map(|message| &**message));
        let times = ["00.200258Z", "00.200100Z", "00.200100Z", "01.000Z"];
        for (found, time) in found.iter().zip(times) {
            let expected = format!(r#""timestamp":"2021-03-11T13:05:{time}""#);
            assert!(found[0].contains(&expected), "{found:?} {time}");
        }
    }
}
