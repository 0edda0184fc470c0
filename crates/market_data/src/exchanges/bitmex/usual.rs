//! Levels and trades as `BitMEX` writes them: the same fields in the same order in every message.
//!
//! They are nearly all of what a replay reads, and to see that what is expected is there is much
//! less work than to find out what is. A message that differs in anything is left to the reader
//! that takes all; what is read here is read as there.

use std::borrow::Cow;

use super::{RawLevel, RawTrade};
use crate::raw::{Cursor, Numeric, Rows, Text, Unusual};

/// Reads a message of levels into `rows` and returns its action. If it is not as usual, `rows` are
/// of no use.
#[inline]
pub(super) fn read_levels<'a>(
    message: &'a [u8],
    rows: &mut Rows<RawLevel<'a>>,
) -> Result<&'a str, Unusual> {
    read_rows(message, br#"{"table":"orderBookL2","action":""#, rows, read_level)
}

/// As [`read_levels`], with trades.
#[inline]
pub(super) fn read_trades<'a>(
    message: &'a [u8],
    rows: &mut Rows<RawTrade<'a>>,
) -> Result<&'a str, Unusual> {
    read_rows(message, br#"{"table":"trade","action":""#, rows, read_trade)
}

#[inline]
fn read_rows<'a, T>(
    message: &'a [u8],
    opening: &[u8],
    rows: &mut Rows<T>,
    read_row: impl Fn(&mut Cursor<'a>) -> Result<T, Unusual>,
) -> Result<&'a str, Unusual> {
    // Most messages that end here do so before all of their text is looked at.
    if !message.starts_with(opening) {
        return Err(Unusual);
    }
    let mut cursor = Cursor::new(message)?;
    cursor.pass(opening)?;
    let action = cursor.rest_of_string()?;
    cursor.pass(br#","data":["#)?;
    loop {
        rows.push(read_row(&mut cursor)?);
        if !cursor.passes(b',') {
            break;
        }
    }
    cursor.pass(b"]}")?;
    cursor.end()?;
    Ok(action)
}

#[inline]
fn read_level<'a>(cursor: &mut Cursor<'a>) -> Result<RawLevel<'a>, Unusual> {
    cursor.pass(br#"{"symbol":""#)?;
    let symbol = read_text(cursor)?;
    cursor.pass(br#","id":"#)?;
    let id = cursor.whole_number()?;
    cursor.pass(br#","side":""#)?;
    let side = read_text(cursor)?;
    let size = read_number_of(br#","size":"#, cursor)?;
    let price = read_number_of(br#","price":"#, cursor)?;
    let has_time = cursor.passes_all(br#","timestamp":""#);
    let timestamp = if has_time { Some(read_text(cursor)?) } else { None };
    if cursor.passes_all(br#","transactTime":""#) {
        cursor.rest_of_string()?;
    }
    cursor.pass(b"}")?;
    Ok(RawLevel { symbol, id, side, size, price, timestamp })
}

#[inline]
fn read_trade<'a>(cursor: &mut Cursor<'a>) -> Result<RawTrade<'a>, Unusual> {
    cursor.pass(br#"{"timestamp":""#)?;
    let timestamp = read_text(cursor)?;
    cursor.pass(br#","symbol":""#)?;
    let symbol = read_text(cursor)?;
    cursor.pass(br#","side":""#)?;
    let side = Some(read_text(cursor)?);
    let size = read_number_of(br#","size":"#, cursor)?;
    let price = read_number_of(br#","price":"#, cursor)?;
    if cursor.passes_all(br#","tickDirection":""#) {
        cursor.rest_of_string()?;
    }
    cursor.pass(br#","trdMatchID":""#)?;
    let id = Some(read_text(cursor)?);
    skip_number_of(br#","grossValue":"#, cursor)?;
    skip_number_of(br#","homeNotional":"#, cursor)?;
    skip_number_of(br#","foreignNotional":"#, cursor)?;
    if cursor.passes_all(br#","trdType":""#) {
        cursor.rest_of_string()?;
    }
    cursor.pass(b"}")?;
    Ok(RawTrade { timestamp, symbol, side, size, price, id })
}

#[inline]
fn read_text<'a>(cursor: &mut Cursor<'a>) -> Result<Text<'a>, Unusual> {
    cursor.rest_of_string().map(|text| Text(Cow::Borrowed(text)))
}

/// The number behind `name`, if that is next.
#[inline]
fn read_number_of(name: &[u8], cursor: &mut Cursor<'_>) -> Result<Numeric, Unusual> {
    if cursor.passes_all(name) { cursor.number().map(Numeric::Value) } else { Ok(Numeric::Absent) }
}

#[inline]
fn skip_number_of(name: &[u8], cursor: &mut Cursor<'_>) -> Result<(), Unusual> {
    if cursor.passes_all(name) { cursor.skip_number() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::{NAME, Rowed};
    use super::*;
    use crate::raw;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};
    use serde::Deserialize;
    use std::fmt::Debug;

    /// Where a message is read here, the other reader must read the same.
    fn is_read_alike<'a, T: Debug + Deserialize<'a>>(
        message: &'a [u8],
        read: impl Fn(&'a [u8], &mut Rows<T>) -> Result<&'a str, Unusual>,
    ) -> bool {
        let mut rows = Rows::new();
        let Ok(action) = read(message, &mut rows) else { return false };
        let other: Rowed<'a, T> = raw::read(NAME, message).expect("the other reader reads it");
        assert_eq!((action, other.filter.is_none()), (&*other.action, true));
        assert_eq!(format!("{rows:?}"), format!("{:?}", other.data));
        true
    }

    fn either_is_read_alike(message: &[u8]) -> bool {
        is_read_alike(message, read_levels) || is_read_alike(message, read_trades)
    }

    fn number() -> impl Strategy<Value = String> {
        "0|-?[1-9][0-9]{0,10}|-?[0-9]\\.[0-9]{1,9}|[1-9][0-9]{0,5}\\.[0-9]{1,3}|[0-9]{17,22}|1e5"
    }

    /// `name` with a value, now and then missing.
    fn field(
        name: &'static str,
        value: impl Strategy<Value = String>,
    ) -> impl Strategy<Value = String> {
        (value, 0..12).prop_map(move |(value, left_out)| match left_out {
            0 => String::new(),
            _ => format!(",\"{name}\":{value}"),
        })
    }

    fn text(of: &'static str) -> impl Strategy<Value = String> {
        of.prop_map(|text| format!("\"{text}\""))
    }

    fn row() -> impl Strategy<Value = String> {
        let time = || text("2020-02-01T00:00:00\\.[0-9]{3}Z");
        let level = (
            field("symbol", text("XBT[A-Z]{0,4}|é")),
            field("id", number()),
            field("side", text("Buy|Sell|")),
            field("size", number()),
            field("price", number()),
            field("timestamp", time()),
            field("transactTime", time()),
        )
            .prop_map(|(symbol, id, side, size, price, timestamp, transact)| {
                [symbol, id, side, size, price, timestamp, transact].concat()
            });
        let trade = (
            field("timestamp", time()),
            field("symbol", text("XBT[A-Z]{0,4}|\\\\n")),
            field("side", text("Buy|Sell")),
            (field("size", number()), field("price", number())),
            field("tickDirection", text("ZeroPlusTick")),
            field("trdMatchID", text("[0-9a-f]{4}")),
            (field("grossValue", number()), field("homeNotional", number())),
            field("foreignNotional", number()),
            field("trdType", text("Regular")),
        )
            .prop_map(
                |(
                    timestamp,
                    symbol,
                    side,
                    (size, price),
                    tick,
                    id,
                    (gross, home),
                    foreign,
                    kind,
                )| {
                    [timestamp, symbol, side, size, price, tick, id, gross, home, foreign, kind]
                        .concat()
                },
            );
        prop_oneof![level, trade]
            .prop_map(|fields| format!("{{{}}}", fields.trim_start_matches(',')))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3_000), ..ProptestConfig::default() })]

        #[test]
        fn both_readers_agree(
            table in select(&["orderBookL2", "trade"][..]),
            action in select(&["insert", "update", "delete", "partial"][..]),
            rows in prop::collection::vec(row(), 0..6),
            change in prop::option::of((any::<Index>(), any::<Index>())),
        ) {
            let rows = rows.join(",");
            let mut message =
                format!(r#"{{"table":"{table}","action":"{action}","data":[{rows}]}}"#).into_bytes();
            either_is_read_alike(&message);
            if let Some((at, byte)) = change {
                const BYTES: &[u8] = b"{}[],:\"\\0 9.-eEtnu\x01\xc3";
                let at = at.index(message.len());
                message[at] = BYTES[byte.index(BYTES.len())];
                either_is_read_alike(&message);
            }
        }
    }

    #[test]
    fn messages_of_every_year_are_usual() {
        for message in [
            r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"XBTUSD","id":8799935904,"side":"Sell","size":12300},{"symbol":"XBTUSD","id":8799935895,"side":"Buy","size":29100}]}"#,
            r#"{"table":"orderBookL2","action":"insert","data":[{"symbol":"XBTUSD","id":8799935911,"side":"Buy","size":3300,"price":32044.5}]}"#,
            r#"{"table":"orderBookL2","action":"delete","data":[{"symbol":"XRPUSD","id":9399993932,"side":"Buy"}]}"#,
            r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"XBTUSD","id":1,"side":"Buy","size":1,"price":2.5,"timestamp":"2022-02-01T00:00:00.878Z","transactTime":"2022-02-01T00:00:00.878Z"}]}"#,
            r#"{"table":"trade","action":"insert","data":[{"timestamp":"2020-02-01T00:00:00.878Z","symbol":"ETHUSD","side":"Sell","size":590,"price":1718.9,"tickDirection":"ZeroMinusTick","trdMatchID":"a667c29d","grossValue":34324277,"homeNotional":0.34324277,"foreignNotional":590}]}"#,
            r#"{"table":"trade","action":"insert","data":[{"timestamp":"2022-02-01T00:00:00.878Z","symbol":"ETHUSD","side":"Buy","size":1,"price":1,"trdMatchID":"a","grossValue":1,"homeNotional":1,"foreignNotional":1,"trdType":"Regular"}]}"#,
        ] {
            assert!(either_is_read_alike(message.as_bytes()), "{message}");
        }
    }
}
