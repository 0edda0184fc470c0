//! Events become Arrow columns and come back byte for byte as `prost` writes them; whatever else
//! comes is read as `prost` reads it, or refused with its row and field.
#![allow(clippy::unwrap_used)] // in what the tests share, too

#[path = "arrow_roundtrip/checked_rows.rs"]
mod checked_rows;
#[path = "arrow_roundtrip/refusals.rs"]
mod refusals;
#[path = "arrow_roundtrip/values.rs"]
mod values;

use std::sync::Arc;

use arrow_array::builder::{MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, LargeBinaryArray, LargeListArray,
    LargeStringArray, NullArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Schema};
use bronze_core::PayloadCase;
use bronze_core::columns::{
    ColumnsError, FieldProblem, WireError, batch_to_events, events_by_case, events_to_narrow,
    events_to_wide, narrow_schema, narrow_to_events, wide_schema, wide_to_events,
};
use bronze_core::generated::bronze::normalized_event::Payload;
use bronze_core::generated::bronze::{
    Action, BarKind, ControlDisconnect, ErrorCode, NormalizedEvent, OptionSummary, OptionType,
    Origin, Side, Trade,
};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use prost_types::Timestamp;
use values::{Values, any_events};

fn column(events: &[Vec<u8>]) -> BinaryArray {
    BinaryArray::from_iter_values(events)
}

fn encoded(events: &[NormalizedEvent]) -> BinaryArray {
    column(&events.iter().map(Message::encode_to_vec).collect::<Vec<_>>())
}

fn wide(event: &NormalizedEvent) -> RecordBatch {
    events_to_wide(&encoded(std::slice::from_ref(event))).unwrap()
}

fn trade(trade: Trade) -> NormalizedEvent {
    NormalizedEvent { payload: Some(Payload::Trade(trade)), ..NormalizedEvent::default() }
}

fn case_of(event: &NormalizedEvent) -> Option<PayloadCase> {
    event.payload.as_ref().map(|payload| match payload {
        Payload::Trade(_) => PayloadCase::Trade,
        Payload::BookChange(_) => PayloadCase::BookChange,
        Payload::BookSnapshot(_) => PayloadCase::BookSnapshot,
        Payload::Quote(_) => PayloadCase::Quote,
        Payload::DerivativeTicker(_) => PayloadCase::DerivativeTicker,
        Payload::Liquidation(_) => PayloadCase::Liquidation,
        Payload::OptionSummary(_) => PayloadCase::OptionSummary,
        Payload::BookTicker(_) => PayloadCase::BookTicker,
        Payload::GroupedBookSnapshot(_) => PayloadCase::GroupedBookSnapshot,
        Payload::TradeBar(_) => PayloadCase::TradeBar,
        Payload::Error(_) => PayloadCase::Error,
        Payload::Disconnect(_) => PayloadCase::Disconnect,
    })
}

/// Events of one case, in their order.
fn only(events: &[NormalizedEvent], case: PayloadCase) -> BinaryArray {
    let mut events = events.to_vec();
    events.retain(|event| case_of(event) == Some(case));
    encoded(&events)
}

/// A batch with one of its columns replaced, added or, without a column, taken away.
fn with_column(batch: &RecordBatch, name: &str, column: Option<ArrayRef>) -> RecordBatch {
    let schema = batch.schema();
    let kept = schema.fields().iter().zip(batch.columns());
    let kept = kept.map(|(field, column)| (field.name().as_str(), Arc::clone(column)));
    let mut columns = kept.filter(|(kept, _)| *kept != name).collect::<Vec<_>>();
    columns.extend(column.map(|column| (name, column)));
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

fn refusal<T: std::fmt::Debug>(result: Result<T, ColumnsError>) -> String {
    result.unwrap_err().to_string()
}

proptest! {
    #[test]
    fn events_come_back_from_the_wide_shape(events in any_events(0..20)) {
        let events = encoded(&events);
        let batch = events_to_wide(&events).unwrap();
        prop_assert_eq!(&wide_to_events(&batch).unwrap(), &events);
        prop_assert_eq!(&batch_to_events(&batch).unwrap(), &events);
        let middle = events.len() / 3..events.len() / 2;
        let part = batch.slice(middle.start, middle.len());
        prop_assert_eq!(wide_to_events(&part).unwrap(), events.slice(middle.start, middle.len()));
    }

    #[test]
    fn events_come_back_from_the_narrow_shapes(events in any_events(0..20)) {
        let all = events.iter().filter(|event| event.payload.is_some()).cloned().collect::<Vec<_>>();
        for (case, batch) in events_by_case(&encoded(&all)).unwrap() {
            let events = only(&all, case);
            prop_assert_eq!(&events_to_narrow(&events, case).unwrap(), &batch);
            prop_assert_eq!(&narrow_to_events(&batch, case).unwrap(), &events);
            let (from, rows) = (events.len() / 2, events.len() - events.len() / 2);
            let part = batch.slice(from, rows);
            prop_assert_eq!(narrow_to_events(&part, case).unwrap(), events.slice(from, rows));
        }
    }

    #[test]
    fn garbage_is_read_as_prost_reads_it(bytes in vec(any::<u8>(), 0..64)) {
        reads_as_prost(&bytes)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))] // each tries thousands of cuts

    #[test]
    fn a_cut_or_changed_event_is_read_as_prost_reads_it(
        events in any_events(2..3),
        change in any::<(prop::sample::Index, u8)>(),
    ) {
        let bytes = events[0].encode_to_vec();
        for end in 0..bytes.len() {
            reads_as_prost(&bytes[..end])?;
        }
        let merged = [bytes, events[1].encode_to_vec()].concat();
        reads_as_prost(&merged)?;
        if !merged.is_empty() {
            let mut changed = merged.clone();
            changed[change.0.index(merged.len())] = change.1;
            reads_as_prost(&changed)?;
        }
    }
}

/// Both refuse the bytes, or we find in them what we find in what `prost` makes of them.
fn reads_as_prost(bytes: &[u8]) -> Result<(), TestCaseError> {
    let ours = events_to_wide(&column(&[bytes.to_vec()]));
    let Ok(event) = NormalizedEvent::decode(bytes) else {
        let refused = matches!(ours, Err(ColumnsError::Field { row: 0, .. }));
        prop_assert!(refused);
        return Ok(());
    };
    // `prost` does not look at the wire type of a map; we do.
    if let Err(ColumnsError::Field { field, problem, .. }) = &ours
        && field == "meta"
        && matches!(problem, FieldProblem::Wire(WireError::WireType { .. }))
    {
        return Ok(());
    }
    let tidied = events_to_wide(&encoded(&[event]));
    if let Err(ColumnsError::Field { problem, .. }) = &tidied {
        let fits = !matches!(problem, FieldProblem::Unsigned(_) | FieldProblem::Time { .. });
        prop_assert!(!fits, "{}", problem);
    }
    prop_assert_eq!(ours.map_err(|e| e.to_string()), tidied.map_err(|e| e.to_string()));
    Ok(())
}

#[test]
fn every_field_of_every_case_comes_back() {
    for case in PayloadCase::ALL {
        let events = encoded(&[Values::all_set().event(Some(case))]);
        let batch = events_to_narrow(&events, case).unwrap();
        assert_eq!(batch.schema(), narrow_schema(case));
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            assert_eq!(column.null_count(), 0, "{case} {field}");
        }
        assert_eq!(narrow_to_events(&batch, case).unwrap(), events);
        let batch = events_to_wide(&events).unwrap();
        assert_eq!(batch.schema(), wide_schema());
        assert_eq!(wide_to_events(&batch).unwrap(), events);
    }
}

#[test]
fn defaults_are_nulls_only_where_they_mean_absence() {
    let events = encoded(&[trade(Trade::default())]);
    let batch = events_to_narrow(&events, PayloadCase::Trade).unwrap();
    let nulls = batch.schema_ref().fields().iter().zip(batch.columns());
    let nulls = nulls.filter(|(_, column)| column.is_null(0));
    assert_eq!(
        nulls.map(|(field, _)| field.name().clone()).collect::<Vec<_>>(),
        [
            "source",
            "exchange",
            "symbol",
            "local_ts",
            "ingest_ts",
            "trade_id",
            "price_str",
            "qty_str",
            "event_ts"
        ]
    );
    assert_eq!(batch["side"].as_string::<i32>().value(0), "SIDE_UNSPECIFIED");
    assert_eq!(batch["meta"].as_map().value_length(0), 0);
    assert_eq!(narrow_to_events(&batch, PayloadCase::Trade).unwrap(), events);

    let index = |text: Option<&str>| {
        let summary =
            OptionSummary { underlying_index: text.map(str::to_owned), ..OptionSummary::default() };
        let payload = Some(Payload::OptionSummary(summary));
        let batch = wide(&NormalizedEvent { payload, ..NormalizedEvent::default() });
        let structs = batch["option_summary"].as_struct();
        let texts = structs["underlying_index"].as_string::<i32>().clone();
        texts.is_valid(0).then(|| texts.value(0).to_owned())
    };
    assert_eq!(index(None), None);
    assert_eq!(index(Some("")), Some(String::new()));
}

#[test]
fn the_wide_shape_fills_one_struct_a_row_or_none() {
    let disconnect = NormalizedEvent {
        payload: Some(Payload::Disconnect(ControlDisconnect::default())),
        ..NormalizedEvent::default()
    };
    let events =
        [disconnect, NormalizedEvent::default(), trade(Trade::default()), trade(Trade::default())];
    let batch = events_to_wide(&encoded(&events)).unwrap();
    let filled = |row: usize| {
        let structs = PayloadCase::ALL.into_iter();
        structs.filter(|case| batch[case.field_name()].is_valid(row)).collect::<Vec<_>>()
    };
    assert_eq!(filled(0), [PayloadCase::Disconnect]);
    assert_eq!(filled(1), []);
    assert_eq!(filled(2), [PayloadCase::Trade]);
    assert_eq!(filled(3), [PayloadCase::Trade]);
    assert_eq!(wide_to_events(&batch).unwrap(), encoded(&events));
}

#[test]
fn enums_carry_the_names_of_the_schema() {
    let name = |event: &NormalizedEvent, case: &str, field: &str| {
        let batch = wide(event);
        let names = match case {
            "" => Arc::clone(&batch[field]),
            case => Arc::clone(&batch[case].as_struct()[field]),
        };
        names.as_string::<i32>().value(0).to_owned()
    };
    let event = |number| {
        let values = Values::all_set().with_number(number);
        move |case| values.clone().event(Some(case))
    };
    for number in 0..8_u8 {
        let event = event(u64::from(number));
        let number = i32::from(number);
        let known = |known: Option<&str>| known.map_or(number.to_string(), str::to_owned);
        for (case, field, expected) in [
            ("", "origin", Origin::try_from(number).ok().map(|value| value.as_str_name())),
            ("trade", "side", Side::try_from(number).ok().map(|value| value.as_str_name())),
            ("book_change", "action", Action::try_from(number).ok().map(|v| v.as_str_name())),
            ("trade_bar", "kind", BarKind::try_from(number).ok().map(|v| v.as_str_name())),
            ("error", "code", ErrorCode::try_from(number).ok().map(|v| v.as_str_name())),
            (
                "option_summary",
                "option_type",
                OptionType::try_from(number).ok().map(|value| value.as_str_name()),
            ),
        ] {
            let event = event(case.parse().unwrap_or(PayloadCase::Trade));
            assert_eq!(name(&event, case, field), known(expected));
        }
    }
}

#[test]
fn times_are_cut_to_microseconds_towards_the_past() {
    for (seconds, nanos, micros) in [(0, 1_999, 1), (-1, 999_999_999, -1), (0, -1, -1)] {
        let event_ts = Some(Timestamp { seconds, nanos });
        let batch = wide(&trade(Trade { event_ts, ..Trade::default() }));
        let times = &batch["trade"].as_struct()["event_ts"];
        assert_eq!(times.as_primitive::<TimestampMicrosecondType>().value(0), micros);
    }
}

#[test]
fn every_kind_of_binary_column_is_read() {
    let events = encoded(&PayloadCase::ALL.map(|case| Values::all_set().event(Some(case))));
    let batch = events_to_wide(&events).unwrap();
    let large: LargeBinaryArray = events.iter().collect();
    let view: BinaryViewArray = events.iter().collect();
    assert_eq!(events_to_wide(&large).unwrap(), batch);
    assert_eq!(events_to_wide(&view).unwrap(), batch);
    assert_eq!(
        refusal(events_to_wide(&StringArray::from(vec!["x"]))),
        "events are a column of Binary, LargeBinary or BinaryView; found Utf8"
    );
}

/// The same values in another type that is taken for the field; texts become `text`.
fn column_of_like_type(column: &ArrayRef, text: &DataType) -> ArrayRef {
    match (column.data_type(), text) {
        (DataType::Utf8, DataType::LargeUtf8) => {
            Arc::new(column.as_string::<i32>().iter().collect::<LargeStringArray>())
        }
        (DataType::Utf8, DataType::Utf8View) => {
            Arc::new(column.as_string::<i32>().iter().collect::<StringViewArray>())
        }
        (DataType::Int32, _) => {
            Arc::new(column.as_primitive::<Int32Type>().unary::<_, Int64Type>(i64::from))
        }
        (DataType::Timestamp(..), _) => {
            let times = column.as_primitive::<TimestampMicrosecondType>().clone();
            Arc::new(times.with_timezone_opt(None::<&str>))
        }
        (DataType::List(item), _) => {
            let list = column.as_list::<i32>();
            let offsets = list.value_offsets().iter().map(|offset| i64::from(*offset)).collect();
            Arc::new(LargeListArray::new(
                Arc::clone(item),
                OffsetBuffer::new(offsets),
                Arc::clone(list.values()),
                list.nulls().cloned(),
            ))
        }
        _ => Arc::clone(column),
    }
}

#[test]
fn columns_of_like_types_in_any_order_are_read() {
    for case in PayloadCase::ALL {
        let events = encoded(&[Values::all_set().event(Some(case))]);
        let batch = events_to_narrow(&events, case).unwrap();
        let columns = batch.columns().iter().zip(batch.schema_ref().fields()).rev();
        let like = |text: &DataType| {
            let columns = columns
                .clone()
                .map(|(column, field)| (field.name(), column_of_like_type(column, text)));
            RecordBatch::try_from_iter(columns).unwrap()
        };
        for text in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View] {
            assert_eq!(narrow_to_events(&like(&text), case).unwrap(), events);
        }
    }
}

#[test]
fn missing_and_untyped_columns_are_defaults() {
    let event = trade(Trade { price_str: "1".to_owned(), ..Trade::default() });
    let batch = wide(&NormalizedEvent { exchange: "x".to_owned(), ..event.clone() });
    let batch = with_column(&batch, "exchange", None);
    let batch = with_column(&batch, "quote", Some(Arc::new(NullArray::new(1))));
    let batch = with_column(&batch, "meta", Some(Arc::new(NullArray::new(1))));
    assert_eq!(wide_to_events(&batch).unwrap(), encoded(&[event]));
    let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
    assert_eq!(wide_to_events(&nothing).unwrap().len(), 0);
}

#[test]
fn enums_are_read_by_name_or_number() {
    let events = encoded(&[trade(Trade { side: 2, ..Trade::default() })]);
    let batch = events_to_narrow(&events, PayloadCase::Trade).unwrap();
    let with_side = |side: &str| {
        let column: ArrayRef = Arc::new(StringArray::from(vec![side]));
        narrow_to_events(&with_column(&batch, "side", Some(column)), PayloadCase::Trade)
    };
    assert_eq!(with_side("SIDE_SELL").unwrap(), events);
    assert_eq!(with_side("2").unwrap(), events);
    assert_eq!(
        refusal(with_side("sell")),
        "row 0, field trade.side: `sell` is unknown; expected SIDE_UNSPECIFIED, SIDE_BUY, \
         SIDE_SELL or a number"
    );
}

#[test]
fn of_several_payloads_only_the_last_case_stays() {
    let full = Values::all_set().event(Some(PayloadCase::Trade)).encode_to_vec();
    let quote = Values::all_set().event(Some(PayloadCase::Quote)).encode_to_vec();
    let empty = trade(Trade::default()).encode_to_vec();
    let odd = [
        [full.as_slice(), &quote].concat(),
        [full.as_slice(), &quote, &empty].concat(),
        [full.as_slice(), &empty].concat(),
    ];
    // The empty one last shows whether a trade that was overruled is left over.
    let events = [&odd[..], &[empty]].concat();
    let expected = events.iter().map(|event| NormalizedEvent::decode(&event[..]).unwrap());
    let batch = events_to_wide(&column(&events)).unwrap();
    assert_eq!(wide_to_events(&batch).unwrap(), encoded(&expected.collect::<Vec<_>>()));
}

#[test]
fn maps_are_sorted_and_of_equal_keys_the_last_stays() {
    let pairs: [&[u8]; 3] =
        [b"\x52\x06\x0a\x01b\x12\x011", b"\x52\x03\x0a\x01a", b"\x52\x03\x0a\x01b"];
    let expected = [pairs[1], pairs[2]].concat();
    let batch = events_to_wide(&column(&[pairs.concat()])).unwrap();
    assert_eq!(batch["meta"].as_map().value_length(0), 2);
    assert_eq!(wide_to_events(&batch).unwrap().value(0), expected);

    let mut unsorted = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for (key, value) in [("b", "1"), ("a", ""), ("b", "")] {
        unsorted.keys().append_value(key);
        unsorted.values().append_value(value);
    }
    unsorted.append(true).unwrap();
    let batch = with_column(&batch, "meta", Some(Arc::new(unsorted.finish())));
    assert_eq!(wide_to_events(&batch).unwrap().value(0), expected);
}

#[test]
fn each_row_has_its_own_meta() {
    let metas: [&[(&str, &str)]; 11] = [
        &[],
        &[("a", "1")],
        &[("a", "1")],
        &[("a", "2")],
        &[("b", "2")],
        &[],
        &[("ab", "")],
        &[("a", "b")],
        &[("a", ""), ("b", "c")],
        &[("a", "c"), ("b", "")],
        &[("a", "c"), ("b", "")],
    ];
    let event = |meta: &&[(&str, &str)]| NormalizedEvent {
        meta: meta.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        ..trade(Trade::default())
    };
    let events = encoded(&metas.iter().map(event).collect::<Vec<_>>());
    assert_eq!(wide_to_events(&events_to_wide(&events).unwrap()).unwrap(), events);
}
