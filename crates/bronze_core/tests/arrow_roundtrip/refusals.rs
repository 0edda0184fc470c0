//! What is refused, and the words it is refused with.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray, StructArray};
use bronze_core::PayloadCase;
use bronze_core::columns::{
    batch_to_events, events_by_case, events_to_narrow, events_to_wide, wide_to_events,
};
use bronze_core::generated::bronze::{NormalizedEvent, Trade};
use prost::Message;
use prost_types::Timestamp;

use crate::values::Values;
use crate::{column, encoded, refusal, trade, wide, with_column};

#[test]
fn the_shape_is_told_by_the_columns() {
    for case in PayloadCase::ALL {
        let events = encoded(&[Values::all_set().event(Some(case))]);
        let narrow = events_to_narrow(&events, case).unwrap();
        if matches!(case, PayloadCase::BookSnapshot | PayloadCase::GroupedBookSnapshot) {
            let text = refusal(batch_to_events(&narrow));
            assert!(text.starts_with("the columns fit bookSnapshot and groupedBookSnapshot;"));
        } else {
            assert_eq!(batch_to_events(&narrow).unwrap(), events);
        }
    }
    let price: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let found = |columns: &[&str]| {
        let columns = columns.iter().map(|name| (*name, Arc::clone(&price)));
        refusal(batch_to_events(&RecordBatch::try_from_iter(columns).unwrap()))
    };
    let text = found(&["symbol", "price_str"]);
    assert!(text.starts_with("the columns fit trade and bookChange and liquidation;"), "{text}");
    assert!(text.ends_with("; found symbol, price_str"), "{text}");
    assert!(found(&["trade_id", "order_id"]).starts_with("the columns fit no payload case;"));
    assert!(found(&["symbol"]).starts_with("the columns fit trade and bookChange and "));
    assert!(found(&["trade_id", "price"]).starts_with("unknown column `price`; expected source, "));
    assert!(found(&["trade", "price_str"]).starts_with("unknown column `price_str`; expected "));
}

#[test]
fn columns_that_fit_no_field_are_refused() {
    let batch = wide(&trade(Trade::default()));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["1"]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![-1]));
    let nested = |name: &str, column: &ArrayRef| -> ArrayRef {
        let column = (name, Arc::clone(column));
        Arc::new(StructArray::try_from(vec![column]).unwrap())
    };
    let refused = |name: &str, column: &ArrayRef| {
        refusal(wide_to_events(&with_column(&batch, name, Some(Arc::clone(column)))))
    };
    assert_eq!(
        refused("price", &texts),
        "unknown column `price`; expected source, exchange, symbol, local_ts, ingest_ts, origin, \
         event_seq, local_ts_millis_only, meta, trade, book_change, book_snapshot, quote, \
         derivative_ticker, liquidation, option_summary, book_ticker, grouped_book_snapshot, \
         trade_bar, error, disconnect; found source, exchange, symbol, local_ts, ingest_ts, \
         origin, event_seq, local_ts_millis_only, meta, trade, book_change, book_snapshot, quote, \
         derivative_ticker, liquidation, option_summary, book_ticker, grouped_book_snapshot, \
         trade_bar, error, disconnect, price"
    );
    assert_eq!(
        refused("error", &nested("detail", &texts)),
        "unknown column `error.detail`; expected details, subsequent_errors, code; found detail"
    );
    assert_eq!(
        refused("symbol", &numbers),
        "column `symbol` is Int64; expected Utf8, LargeUtf8 or Utf8View"
    );
    assert_eq!(
        refused("trade", &nested("sequence", &texts)),
        "column `trade.sequence` is Utf8; expected Int32 or Int64"
    );
    assert_eq!(refused("quote", &texts), "column `quote` is Utf8; expected Struct");
    assert_eq!(
        refused("event_seq", &numbers),
        "row 0, field event_seq: -1 is out of range; expected 0 to 9223372036854775807"
    );
    assert_eq!(
        refused("quote", &nested("name", &texts)),
        "row 0 carries two payloads, trade and quote; an event has one"
    );
    let twice = [("symbol", Arc::clone(&texts)), ("symbol", texts)];
    assert_eq!(
        refusal(wide_to_events(&RecordBatch::try_from_iter(twice).unwrap())),
        "column `symbol` occurs twice; found symbol, symbol"
    );
}

#[test]
fn events_that_fit_no_column_are_refused() {
    let good = trade(Trade::default()).encode_to_vec();
    let second = |bytes: &[u8]| refusal(events_to_wide(&column(&[good.clone(), bytes.to_vec()])));
    let largest = NormalizedEvent { event_seq: u64::MAX, ..NormalizedEvent::default() };
    assert_eq!(
        second(&largest.encode_to_vec()),
        "row 1, field event_seq: 18446744073709551615 does not fit Int64; the largest value is \
         9223372036854775807"
    );
    let local_ts = Some(Timestamp { seconds: i64::MAX, nanos: 7 });
    let latest = NormalizedEvent { local_ts, ..NormalizedEvent::default() };
    assert_eq!(
        second(&latest.encode_to_vec()),
        "row 1, field local_ts: 9223372036854775807 seconds and 7 nanoseconds do not fit a time in \
         microseconds"
    );
    let truncated = "the bytes end in the middle of a field";
    assert_eq!(second(&[0x0a, 5, b'a']), format!("row 1, field source: {truncated}"));
    assert_eq!(second(&[0xa2, 6, 9]), format!("row 1, field trade: {truncated}"));
    assert_eq!(
        second(&[0xa2, 6, 2, 0x12, 1]),
        format!("row 1, field trade.price_str: {truncated}")
    );
    assert_eq!(second(&[0xa2, 6, 2, 0x92, 3]), format!("row 1, field trade.field 50: {truncated}"));
    assert_eq!(second(&[0xa2, 6, 2, 0x20, 0x80]), format!("row 1, field trade.side: {truncated}"));
    assert_eq!(second(&[0x80]), format!("row 1, field event: {truncated}"));
    assert_eq!(second(&[0x0a, 1, 0xff]), "row 1, field source: the text is not UTF-8");
    assert_eq!(second(&[0x08, 1]), "row 1, field source: wire type 0 where 2 is expected");
    assert_eq!(second(&[0x51, 0]), "row 1, field meta: wire type 1 where 2 is expected");

    let nulls = BinaryArray::from(vec![Some(good.as_slice()), None]);
    assert_eq!(refusal(events_to_wide(&nulls)), "row 1 is null where an event is expected");
    assert_eq!(
        refusal(events_to_narrow(&column(std::slice::from_ref(&good)), PayloadCase::BookChange)),
        "row 0 carries trade; expected bookChange"
    );
    assert_eq!(
        refusal(events_to_narrow(&column(&[Vec::new()]), PayloadCase::Trade)),
        "row 0 carries no payload; expected trade"
    );
    assert_eq!(
        refusal(events_by_case(&column(&[good, Vec::new()]))),
        "row 1 carries no payload; only the wide shape has room for such an event"
    );
}
