//! Rows of every form become events, and those that do not fit are named with the reason.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StringArray};
use bronze_core::{
    BronzeEncoder, Dataset, EncoderOptions, PayloadCase, RowEvents, RowForm, RowReader, columns,
    decode_json_lines,
};
use market_data::Timestamp;

const TIME: &str = "1709251201200000";
const MOST: usize = 1 << 20;

fn encoder() -> BronzeEncoder {
    BronzeEncoder::new(EncoderOptions::default()).unwrap()
}

fn ingest() -> Timestamp {
    Timestamp::from_micros(1_709_251_202_000_000)
}

fn texts(name: &str, rows: &[Option<&str>]) -> RecordBatch {
    let column: ArrayRef = Arc::new(StringArray::from(rows.to_vec()));
    RecordBatch::try_from_iter([(name, column)]).unwrap()
}

/// A dataset's batch from lines of CSV without quotes; an empty cell is null.
fn csv(dataset: Dataset, lines: &[&str]) -> RecordBatch {
    let columns = dataset.columns().into_iter().enumerate().map(|(place, name)| {
        let cells =
            lines.iter().map(|line| line.split(',').nth(place).filter(|cell| !cell.is_empty()));
        (name, Arc::new(cells.collect::<StringArray>()) as ArrayRef)
    });
    RecordBatch::try_from_iter(columns).unwrap()
}

fn read(form: RowForm, batch: &RecordBatch) -> RowEvents {
    RowReader::new(form, MOST).read(batch, &mut encoder(), ingest()).unwrap()
}

/// The events in one column.
fn events(made: &RowEvents) -> BinaryArray {
    columns::event_batches_to_events(&made.events).unwrap()
}

fn json(made: &RowEvents) -> Vec<String> {
    let lines = decode_json_lines(events(made).iter().flatten(), false).unwrap();
    String::from_utf8(lines).unwrap().lines().map(str::to_owned).collect()
}

fn reasons(made: &RowEvents) -> Vec<(usize, &str)> {
    made.rejected.iter().map(|rejected| (rejected.row, rejected.reason.as_str())).collect()
}

fn dataset(dataset: Dataset, lines: &[&str]) -> Vec<String> {
    let mut reader = RowReader::new(RowForm::Dataset(dataset), MOST);
    let mut encoder = encoder();
    let made = reader.read(&csv(dataset, lines), &mut encoder, ingest()).unwrap();
    assert_eq!(reasons(&made), []);
    let rest = reader.finish(&mut encoder, ingest()).unwrap();
    [json(&made), json(&rest)].concat()
}

const TRADE: &str = r#"{"type":"trade","symbol":"XBTUSD","exchange":"bitmex","id":"1","price":7996,"amount":50,"side":"sell","timestamp":"2024-03-01T00:00:01.200Z","localTimestamp":"2024-03-01T00:00:01.200000Z"}"#;

#[test]
fn messages_come_back_and_bad_texts_use_no_number() {
    let no_exchange = TRADE.replace("bitmex", "");
    let too_old = TRADE.replace("2024-03-01T00:00:01.200000Z", "1970-01-20T00:00:01.200000Z");
    let rows = [
        Some(TRADE),
        None,
        Some("{\"type\":\"trade\"}"),
        Some(&no_exchange),
        Some(&too_old),
        Some(TRADE),
    ];
    let mut encoder = encoder();
    let mut reader = RowReader::new(RowForm::Json, MOST);
    let made = reader.read(&texts("value", &rows), &mut encoder, ingest()).unwrap();
    assert_eq!(json(&made), [TRADE, TRADE]);
    assert_eq!(encoder.next_seq(), 3);
    let reasons = reasons(&made);
    assert_eq!(reasons.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(reasons[0].1, "the message is null");
    assert!(reasons[1].1.contains("symbol"), "{}", reasons[1].1);
    assert_eq!(reasons[2].1, "exchange is missing");
    assert!(reasons[3].1.starts_with("localTimestamp is 1641601200000 µs"), "{}", reasons[3].1);
}

#[test]
fn messages_may_come_as_bytes_and_those_that_are_no_text_are_named() {
    let broken = [&TRADE.as_bytes()[..30], b"\xff", &TRADE.as_bytes()[30..]].concat();
    let rows = vec![Some(TRADE.as_bytes()), Some(&broken), None, Some(TRADE.as_bytes())];
    let column: ArrayRef = Arc::new(BinaryArray::from(rows));
    let made = read(RowForm::Json, &RecordBatch::try_from_iter([("value", column)]).unwrap());
    assert_eq!(json(&made), [TRADE, TRADE]);
    let reasons = reasons(&made);
    assert_eq!(reasons.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 2]);
    assert!(reasons[0].1.contains("UTF-8"), "{}", reasons[0].1);
    assert_eq!(reasons[1].1, "the message is null");
}

#[test]
fn an_event_that_is_too_large_is_left_out_by_every_form() {
    let long = TRADE.replace("\"1\"", &format!("\"{}\"", "9".repeat(3_000)));
    let mut reader = RowReader::new(RowForm::Json, 1_000);
    let mut encoder = encoder();
    let rows = texts("value", &[Some(&long), Some(TRADE)]);
    let made = reader.read(&rows, &mut encoder, ingest()).unwrap();
    assert_eq!(json(&made), [TRADE]);
    assert_eq!(encoder.next_seq(), 2);
    assert!(reasons(&made)[0].1.ends_with("at most 1000 are allowed"));

    let large = events(&read(RowForm::Json, &texts("value", &[Some(&long), Some(TRADE)])));
    let batch = columns::events_to_wide(&large).unwrap();
    let column: ArrayRef = Arc::new(large);
    let bronze = RecordBatch::try_from_iter([("event", column)]).unwrap();
    for (form, rows) in [(RowForm::Bronze, &bronze), (RowForm::Columns(None), &batch)] {
        let made = RowReader::new(form, 1_000).read(rows, &mut encoder, ingest()).unwrap();
        assert_eq!((events(&made).len(), made.rejected[0].row), (1, 0));
    }
}

#[test]
fn events_pass_as_they_are_and_bad_ones_are_named() {
    let good = events(&read(RowForm::Json, &texts("value", &[Some(TRADE)])));
    let mut cut = good.value(0).to_vec();
    cut.pop();
    let column =
        BinaryArray::from(vec![Some(good.value(0)), None, Some(&cut), Some(b"".as_slice())]);
    let column: ArrayRef = Arc::new(column);
    let made = read(RowForm::Bronze, &RecordBatch::try_from_iter([("event", column)]).unwrap());
    assert_eq!(events(&made), good);
    let reasons = reasons(&made);
    assert_eq!(reasons[0], (1, "the event is null"));
    assert_eq!(reasons[1].0, 2);
    assert!(reasons[1].1.contains("end in the middle"), "{}", reasons[1].1);
    assert_eq!(reasons[2], (3, "it carries no payload"));
}

#[test]
fn columns_need_what_makes_an_event() {
    let good = events(&read(RowForm::Json, &texts("value", &[Some(TRADE); 5])));
    let batch = columns::events_to_narrow(&good, PayloadCase::Trade).unwrap();
    let replace = |batch: &RecordBatch, name: &str, cells: Vec<Option<&str>>| {
        let place = batch.schema().index_of(name).unwrap();
        let mut columns = batch.columns().to_vec();
        columns[place] = Arc::new(StringArray::from(cells));
        RecordBatch::try_new(batch.schema(), columns).unwrap()
    };
    let x = Some("x");
    let batch = replace(&batch, "exchange", vec![x, None, x, x, x]);
    let batch = replace(&batch, "price_str", vec![Some("1.5"), x, None, Some("1e5"), Some("NaN")]);
    let side = Some("SIDE_BUY");
    let batch = replace(&batch, "side", vec![side, side, side, side, Some("SIDE_UP")]);
    let made = read(RowForm::Columns(Some(PayloadCase::Trade)), &batch);
    assert_eq!(events(&made).len(), 1);
    assert_eq!(
        reasons(&made)[..3],
        [
            (1, "exchange is missing"),
            (2, "trade.price_str is missing"),
            (3, "trade.price_str is `1e5`, which is no decimal"),
        ]
    );
    assert!(reasons(&made)[3].1.contains("`SIDE_UP` is unknown"));
}

#[test]
fn many_rows_are_cut_into_batches_in_their_order() {
    let lines = (0..2_000).map(|id| TRADE.replace("\"1\"", &format!("\"{id}\"")));
    let lines = lines.collect::<Vec<_>>();
    let rows = lines.iter().map(|line| Some(line.as_str())).collect::<Vec<_>>();
    let made = read(RowForm::Json, &texts("value", &rows));
    assert!(made.events.len() > 1);
    assert!(made.events.iter().all(|batch| !batch.is_empty() && batch.byte_len() < 150_000));
    assert_eq!(json(&made), lines);
}

#[test]
fn every_dataset_gives_its_messages() {
    let head = format!("deribit,BTC-PERPETUAL,{TIME},1709251201300123");
    let times =
        r#""timestamp":"2024-03-01T00:00:01.200Z","localTimestamp":"2024-03-01T00:00:01.300123Z"}"#;
    let of = |kind: &str, fields: &str| {
        let named = r#""symbol":"BTC-PERPETUAL","exchange":"deribit""#;
        format!(r#"{{"type":"{kind}",{named},{fields},{times}"#)
    };
    let trade = r#""id":"7","price":100.5,"amount":2,"side":"buy""#;
    assert_eq!(dataset(Dataset::Trades, &[&format!("{head},7,buy,100.5,2")]), [of("trade", trade)]);
    assert_eq!(
        dataset(Dataset::Liquidations, &[&format!("{head},7,buy,100.5,2")]),
        [of("liquidation", trade)]
    );
    assert_eq!(
        dataset(Dataset::Quotes, &[&format!("{head},1,101,100,2"), &format!("{head},,,100,2")]),
        [
            of(
                "book_snapshot",
                r#""name":"quote","depth":1,"interval":0,"bids":[{"price":100,"amount":2}],"asks":[{"price":101,"amount":1}]"#
            ),
            of(
                "book_snapshot",
                r#""name":"quote","depth":1,"interval":0,"bids":[{"price":100,"amount":2}],"asks":[{}]"#
            ),
        ]
    );
    assert_eq!(
        dataset(Dataset::BookTicker, &[&format!("{head},1,101,100,2")]),
        [of("book_ticker", r#""askAmount":1,"askPrice":101,"bidPrice":100,"bidAmount":2"#)]
    );
    assert_eq!(
        dataset(
            Dataset::DerivativeTicker,
            &[&format!("{head},1709280000000000,0.0001,,1000,100,100.5,100.25")]
        ),
        [of(
            "derivative_ticker",
            r#""lastPrice":100,"openInterest":1000,"fundingRate":0.0001,"fundingTimestamp":"2024-03-01T08:00:00.000Z","indexPrice":100.5,"markPrice":100.25"#
        )]
    );
    let levels = (0..5).map(|level| format!("{},1,{},2", 101 + level, 100 - level));
    let snapshot = dataset(
        Dataset::BookSnapshot5,
        &[&format!("{head},{}", levels.collect::<Vec<_>>().join(","))],
    );
    assert!(snapshot[0].contains(r#""name":"book_snapshot_5_0ms","depth":5,"interval":0"#));
    assert!(snapshot[0].contains(r#""bids":[{"price":100,"amount":2},{"price":99,"amount":2}"#));
    let option = dataset(
        Dataset::OptionsChain,
        &[&format!(
            "{head},call,50000,1711699200000000,10,0.1,0.09,1,55,0.11,2,57,0.1,56,BTC-29MAR24,61000,0.5,0.00001,30,-20,15"
        )],
    );
    for field in
        [r#""optionType":"call""#, r#""strikePrice":50000"#, r#""rho":15"#, r#""markIV":56"#]
    {
        assert!(option[0].contains(field), "{field} is not in {}", option[0]);
    }
}

#[test]
fn levels_of_a_change_are_put_together_across_batches() {
    let row = |local: u64, snapshot: bool, side: &str, price: u64| {
        format!("bitmex,XBTUSD,{TIME},{local},{snapshot},{side},{price},5")
    };
    let first =
        [row(1_709_251_201_300_000, true, "bid", 1), row(1_709_251_201_300_000, true, "ask", 3)];
    let second = [
        row(1_709_251_201_300_000, true, "bid", 2),
        row(1_709_251_201_300_000, false, "ask", 4),
        row(1_709_251_201_400_000, false, "sideways", 4),
    ];
    let form = RowForm::Dataset(Dataset::IncrementalBookL2);
    let (mut reader, mut encoder) = (RowReader::new(form, MOST), encoder());
    let mut read = |lines: &[String]| {
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let batch = csv(Dataset::IncrementalBookL2, &lines);
        reader.read(&batch, &mut encoder, ingest()).unwrap()
    };
    assert_eq!(events(&read(&first)).len(), 0);
    let made = read(&second);
    let change = &json(&made)[0];
    assert!(change.contains(r#""isSnapshot":true,"bids":[{"price":1,"amount":5},{"price":2,"amount":5}],"asks":[{"price":3,"amount":5}]"#), "{change}");
    assert_eq!(reasons(&made), [(2, "side is `sideways`; expected bid or ask")]);
    let rest = reader.finish(&mut encoder, ingest()).unwrap();
    assert!(json(&rest)[0].contains(r#""isSnapshot":false,"bids":[],"asks":[{"price":4"#));
}

#[test]
fn bad_cells_are_named_by_column() {
    let rows = [
        ",XBTUSD,1,1709251201300000,1,buy,1,1",
        "bitmex,XBTUSD,yesterday,1709251201300000,1,buy,1,1",
        "bitmex,XBTUSD,1709251201300,1709251201300000,1,buy,1,1",
        "bitmex,XBTUSD,1709251201300000,1709251201300000,1,buy,,1",
        "bitmex,XBTUSD,1709251201300000,1709251201300000,1,up,1,1",
        "bitmex,XBTUSD,1709251201300000,1709251201300000,1,buy,one,1",
    ];
    let made = read(RowForm::Dataset(Dataset::Trades), &csv(Dataset::Trades, &rows));
    assert_eq!(events(&made).len(), 0);
    assert_eq!(
        reasons(&made),
        [
            (0, "exchange is missing"),
            (1, "timestamp is `yesterday`; expected microseconds since 1970"),
            (2, "timestamp is 1709251201300 µs since 1970; expected a time from 2000 to 2099"),
            (3, "price is missing"),
            (4, "side is `up`; expected buy, sell or unknown"),
            (5, "price is `one`; expected a number"),
        ]
    );
}

#[test]
fn decoding_leaves_bad_rows_empty_and_in_their_place() {
    let good = events(&read(RowForm::Json, &texts("value", &[Some(TRADE)])));
    let events = BinaryArray::from(vec![
        Some(good.value(0)),
        None,
        Some(b"\xff".as_slice()),
        Some(good.value(0)),
    ]);
    for case in [None, Some(PayloadCase::Trade)] {
        let (batch, reasons) = columns::events_to_checked(&events, case).unwrap();
        assert_eq!(batch.num_rows(), 4);
        let found: Vec<bool> =
            (0..4).map(|row| batch.column_by_name("exchange").unwrap().is_valid(row)).collect();
        assert_eq!(found, [true, false, false, true]);
        assert_eq!((0..4).map(|row| reasons.is_null(row)).collect::<Vec<_>>(), found);
    }
    let (batch, reasons) = columns::events_to_checked(&events, Some(PayloadCase::Quote)).unwrap();
    assert_eq!((batch.num_rows(), reasons.null_count()), (4, 0));
    let keys = columns::event_keys(&good).unwrap();
    assert_eq!(keys.num_rows(), 1);
}
