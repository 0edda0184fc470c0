//! Rows of columns pass or fail exactly as their events do.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use bronze_core::columns::{events_by_case, events_to_wide};
use bronze_core::generated::bronze::NormalizedEvent;
use bronze_core::{BronzeEncoder, EncoderOptions, EventBatch, RowForm, RowReader};
use market_data::Timestamp;
use proptest::prelude::*;

use super::values::{any_events, usual_events};
use super::{encoded, only};

type Passed = Vec<Vec<u8>>;
type Failed = Vec<(usize, String)>;

fn read(form: RowForm, batch: &RecordBatch, most_bytes: usize) -> (Passed, Failed) {
    let mut encoder = BronzeEncoder::new(EncoderOptions::default()).unwrap();
    let mut reader = RowReader::new(form, most_bytes);
    let made = reader.read(batch, &mut encoder, Timestamp::from_micros(0)).unwrap();
    let passed = made.events.iter().flat_map(EventBatch::iter);
    (
        passed.map(|(_, event)| event.to_vec()).collect(),
        made.rejected.into_iter().map(|rejected| (rejected.row, rejected.reason)).collect(),
    )
}

fn read_events(events: &BinaryArray, most_bytes: usize) -> (Passed, Failed) {
    let column: ArrayRef = Arc::new(events.clone());
    let batch = RecordBatch::try_from_iter([("event", column)]).unwrap();
    read(RowForm::Bronze, &batch, most_bytes)
}

fn columns_are_as_good_as_events(
    all: &[NormalizedEvent],
    most_bytes: usize,
) -> Result<(), TestCaseError> {
    let events = encoded(all);
    let wide = events_to_wide(&events).unwrap();
    let found = read(RowForm::Columns(None), &wide, most_bytes);
    prop_assert_eq!(found, read_events(&events, most_bytes));
    let with_payload = all.iter().filter(|event| event.payload.is_some()).cloned();
    let with_payload = encoded(&with_payload.collect::<Vec<_>>());
    for (case, batch) in events_by_case(&with_payload).unwrap() {
        let found = read(RowForm::Columns(Some(case)), &batch, most_bytes);
        prop_assert_eq!(found, read_events(&only(all, case), most_bytes));
    }
    Ok(())
}

proptest! {
    #[test]
    fn whatever_the_events_hold(events in any_events(0..20), most_bytes in 0..400_usize) {
        columns_are_as_good_as_events(&events, most_bytes)?;
        columns_are_as_good_as_events(&events, usize::MAX)?;
    }

    #[test]
    fn with_what_exchanges_send(events in usual_events(0..40)) {
        columns_are_as_good_as_events(&events, usize::MAX)?;
    }
}
