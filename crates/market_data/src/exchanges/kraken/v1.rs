//! The arrays of the first API: the channel's id, one or two parts of data, the channel, the
//! symbol. Numbers are texts, times are seconds.

mod elements;

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::NAME;
use crate::mapper::{MapError, Sink};
use crate::message::{BookChange, BookTicker, BookTickerOrder, Message, Side, Trade};
use crate::raw::{self, Rows, Text, date_of_seconds};
use crate::time::Timestamp;
use elements::{Element, RawBook, RawSpread, RawTrade, later};

/// The channel of `message`: the text before the last one; empty if there is none.
pub(super) fn channel(message: &[u8]) -> Result<Cow<'_, str>, MapError> {
    if let Some(channel) = last_but_one_text(message) {
        return Ok(Cow::Borrowed(channel));
    }
    let elements: Rows<Element<'_, IgnoredAny>> = raw::read(NAME, message)?;
    Ok(match elements.into_iter().rev().nth(1) {
        Some(Element::Text(channel)) => channel.0,
        _ => Cow::Borrowed(""),
    })
}

/// A look at the end of a message in its usual form: `…,"trade","XBT/USD"]`.
fn last_but_one_text(message: &[u8]) -> Option<&str> {
    let before_end = message.strip_suffix(b"\"]")?;
    let symbol = memchr::memrchr(b'"', before_end)?;
    let before_symbol = before_end[..symbol].strip_suffix(b"\",")?;
    let channel = &before_symbol[memchr::memrchr(b'"', before_symbol)? + 1..];
    std::str::from_utf8(channel).ok().filter(|channel| !channel.contains('\\'))
}

pub(super) fn map_trades(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let (_, trades, _, symbol): (IgnoredAny, Rows<RawTrade>, IgnoredAny, Text<'_>) =
        raw::read(NAME, message)?;
    for RawTrade { numbers: [price, amount, time], is_buy } in trades {
        out.take(&Message::Trade(Trade {
            symbol: symbol.lend(),
            exchange: Cow::Borrowed(NAME),
            id: None,
            price: price.number(),
            amount: amount.number(),
            side: if is_buy { Side::Buy } else { Side::Sell },
            timestamp: date_of_seconds(time.number()),
            local_timestamp,
        }));
    }
    Ok(())
}

pub(super) fn map_book(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let RawBook { part, second_bids, symbol } = raw::read(NAME, message)?;
    let is_snapshot = part.is_snapshot();
    let (bids, asks) = if is_snapshot {
        (part.snapshot_bids, part.snapshot_asks)
    } else {
        (part.bids.or(second_bids), part.asks)
    };
    let (bids, asks) = (bids.unwrap_or_default(), asks.unwrap_or_default());
    out.take(&Message::BookChange(BookChange {
        symbol: symbol.lend(),
        exchange: Cow::Borrowed(NAME),
        is_snapshot,
        bids: Cow::Borrowed(&bids.levels),
        asks: Cow::Borrowed(&asks.levels),
        timestamp: date_of_seconds(later(bids.latest, asks.latest).unwrap_or(f64::NAN)),
        local_timestamp,
    }));
    Ok(())
}

pub(super) fn map_spread(
    message: &[u8],
    local_timestamp: Timestamp,
    out: &mut dyn Sink,
) -> Result<(), MapError> {
    let (_, RawSpread([bid, ask, time, bid_amount, ask_amount]), _, symbol): (
        IgnoredAny,
        RawSpread,
        IgnoredAny,
        Text<'_>,
    ) = raw::read(NAME, message)?;
    let seconds = time.number();
    // A market without quotes yet.
    if seconds == 0.0 {
        return Ok(());
    }
    out.take(&Message::BookTicker(BookTicker {
        symbol: symbol.lend(),
        exchange: Cow::Borrowed(NAME),
        ask_amount: ask_amount.non_zero(),
        ask_price: ask.non_zero(),
        bid_price: bid.non_zero(),
        bid_amount: bid_amount.non_zero(),
        order: BookTickerOrder::DEFAULT,
        timestamp: date_of_seconds(seconds),
        local_timestamp,
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::exchanges::map_all;

    const AT: &str = "2021-01-01T00:00:00.000Z";

    fn found(message: &str) -> String {
        map_all("kraken", AT, &[message]).concat().join("\n")
    }

    #[test]
    fn books_have_the_latest_time_of_their_levels() {
        let head = r#"{"type":"book_change","symbol":"XBT/USD","exchange":"kraken","isSnapshot":"#;
        let local = r#""localTimestamp":"2024-01-01T00:00:00.000001Z"}"#;
        assert_eq!(
            found(
                r#"[0,{"a":[["5541.30000","2.50700000","1534614248.456738","r"]],"c":"974942666"},{"b":[["5541.20000","0.00000000","1534614248.765567"],["5541.1","1","1534614244.65"]],"c":"974942666"},"book-10","XBT/USD"]"#
            ),
            format!(
                r#"{head}false,"bids":[{{"price":5541.2,"amount":0}},{{"price":5541.1,"amount":1}}],"asks":[{{"price":5541.3,"amount":2.507}}],"timestamp":"2018-08-18T17:44:08.765567Z",{local}"#
            )
        );
        assert_eq!(
            found(r#"[0,{"as":[],"bs":[["5541.2","1","1534614248.5"]]},"book-100","XBT/USD"]"#),
            format!(
                r#"{head}true,"bids":[{{"price":5541.2,"amount":1}}],"asks":[],"timestamp":"2018-08-18T17:44:08.500000Z",{local}"#
            )
        );
        assert_eq!(
            found(r#"[0,{"as":[],"bs":[]},"book-100","XBT/USD"]"#),
            format!(r#"{head}true,"bids":[],"asks":[],"timestamp":null,{local}"#)
        );
    }

    #[test]
    fn spreads_without_amounts_and_with_zeros_lack_those_values() {
        assert_eq!(
            found(r#"[0,["5698.40000","0.00000","1542057299.545897"],"spread","XBT/USD"]"#),
            r#"{"type":"book_ticker","symbol":"XBT/USD","exchange":"kraken","bidPrice":5698.4,"timestamp":"2018-11-12T21:14:59.545897Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#
        );
    }

    #[test]
    fn the_form_of_the_json_does_not_matter() {
        let trade = r#"{"type":"trade","symbol":"LTC/XBT","exchange":"kraken","price":0.011365,"amount":2.5,"side":"buy","timestamp":"2019-07-01T00:00:01.587070Z","localTimestamp":"2024-01-01T00:00:00.000001Z"}"#;
        for message in [
            r#"[170,[["0.01136500","2.5","1561939201.587070","b","l",""]],"trade","LTC/XBT"]"#,
            r#"[170,[["0.01136500","2.5","1561939201.587070","b","l",""]],"trade","LTC\/XBT"]"#,
            r#" [ 170, [["0.01136500", "2.5", 1561939201.587070, "b"]], "trade", "LTC/XBT" ]"#,
        ] {
            assert_eq!(found(message), trade, "{message}");
        }
    }

    #[test]
    fn other_channels_are_passed_over() {
        for message in [
            r#"[340,{"a":["5525.40000",1,"1.000"],"b":["5525.10000",1,"1.000"]},"ticker","XBT/USD"]"#,
            r#"[340, {"a":["5525.40000",1,"1.000"]}, "ticker", "XBT/USD"]"#,
            r#"[42,["1542057314.748456"],"ohlc-5","XBT/USD"]"#,
        ] {
            assert_eq!(found(message), "", "{message}");
        }
    }
}
