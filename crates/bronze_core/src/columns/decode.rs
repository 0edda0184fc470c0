//! Events to columns: each event's bytes are walked once, straight into the columns.
//!
//! Invariants: a batch's bytes and rows are bounded before the first row, so that no column can
//! outgrow its 32-bit offsets; in the wide shape a payload's columns are touched only by rows that
//! carry it, and catch up on the rows between in one step.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray, new_null_array};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::{DataType, Fields};

use super::builders::MessageBuilder;
use super::error::{ColumnsError, Fault};
use super::fields::{self, ENVELOPE, LONGEST_ENUM_TEXT};
use super::schema::{narrow_schema, wide_schema};
use super::slots::{EventSlots, MessageSlots};
use crate::payload_case::PayloadCase;

/// Events as one table: the envelope's columns and a struct for each payload case.
///
/// `events` is a column of Binary, `LargeBinary` or `BinaryView` without nulls.
pub fn events_to_wide(events: &dyn Array) -> Result<RecordBatch, ColumnsError> {
    let events = event_bytes(events)?;
    let mut slots = EventSlots::new();
    let mut table = WideTable::new(events.len());
    for (row, event) in events.into_iter().enumerate() {
        let case = slots.read(event).map_err(|fault| fault.at(row))?;
        table.append(row, case, &mut slots).map_err(|fault| fault.at(row))?;
    }
    table.finish()
}

/// Events of one case as a table: the envelope's columns and the payload's.
pub fn events_to_narrow(
    events: &dyn Array,
    case: PayloadCase,
) -> Result<RecordBatch, ColumnsError> {
    let events = event_bytes(events)?;
    let mut slots = EventSlots::new();
    let mut table = NarrowTable::new(case, events.len());
    for (row, event) in events.into_iter().enumerate() {
        let found = slots.read(event).map_err(|fault| fault.at(row))?;
        if found != Some(case) {
            return Err(ColumnsError::OtherCase { row, found, expected: case });
        }
        table.append(&mut slots).map_err(|fault| fault.at(row))?;
    }
    table.finish()
}

/// Events as one table for each case that occurs, in the order of the cases' field numbers. Within
/// a table events keep their order.
pub fn events_by_case(events: &dyn Array) -> Result<Vec<(PayloadCase, RecordBatch)>, ColumnsError> {
    let mut slots = EventSlots::new();
    let mut tables = PayloadCase::ALL.map(|_| None);
    for (row, event) in event_bytes(events)?.into_iter().enumerate() {
        let case = slots
            .read(event)
            .map_err(|fault| fault.at(row))?
            .ok_or(ColumnsError::NoPayload { row })?;
        tables[case as usize]
            .get_or_insert_with(|| NarrowTable::new(case, 0))
            .append(&mut slots)
            .map_err(|fault| fault.at(row))?;
    }
    tables.into_iter().flatten().map(|table| Ok((table.case, table.finish()?))).collect()
}

/// The bytes of each event, checked to be present and to fit columns with 32-bit offsets.
///
/// `events` is a column of Binary, `LargeBinary` or `BinaryView` without nulls.
pub fn event_bytes(events: &dyn Array) -> Result<Vec<&[u8]>, ColumnsError> {
    if let Some(row) = (0..events.len()).find(|&row| events.is_null(row)) {
        return Err(ColumnsError::NullEvent { row });
    }
    Ok(nullable_event_bytes(events)?.into_iter().flatten().collect())
}

/// As [`event_bytes`], but rows may be null.
pub(crate) fn nullable_event_bytes(events: &dyn Array) -> Result<Vec<Option<&[u8]>>, ColumnsError> {
    let rows: Vec<Option<&[u8]>> = match events.data_type() {
        DataType::Binary => events.as_binary::<i32>().iter().collect(),
        DataType::LargeBinary => events.as_binary::<i64>().iter().collect(),
        DataType::BinaryView => events.as_binary_view().iter().collect(),
        found => return Err(ColumnsError::EventsType { found: found.clone() }),
    };
    // A column holds no more text than the events have bytes, except for enums, whose names are
    // longer than their numbers.
    let bytes = rows.iter().flatten().map(|event| event.len()).sum::<usize>();
    let widest = bytes.max(rows.len().saturating_mul(LONGEST_ENUM_TEXT));
    if i32::try_from(widest).is_err() {
        return Err(ColumnsError::TooLarge { rows: rows.len() });
    }
    Ok(rows)
}

/// The table of all cases.
pub(super) struct WideTable {
    rows: usize,
    envelope: MessageBuilder,
    payloads: [Option<PayloadStruct>; PayloadCase::ALL.len()],
}

impl WideTable {
    pub(super) fn new(rows: usize) -> Self {
        Self {
            rows,
            envelope: MessageBuilder::new(&ENVELOPE, rows),
            payloads: PayloadCase::ALL.map(|_| None),
        }
    }

    #[inline]
    pub(super) fn append(
        &mut self,
        row: usize,
        case: Option<PayloadCase>,
        slots: &mut EventSlots<'_>,
    ) -> Result<(), Fault> {
        self.envelope.append(&mut slots.envelope)?;
        let Some(case) = case else { return Ok(()) };
        self.payloads[case as usize]
            .get_or_insert_with(|| PayloadStruct::new(case, self.rows))
            .append(row, slots.payload(case))
    }

    /// Adds a row that has nothing.
    pub(super) fn append_null(&mut self) {
        self.envelope.append_nulls(1);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ColumnsError> {
        let schema = wide_schema();
        let mut columns = self.envelope.finish()?;
        for (payload, field) in self.payloads.into_iter().zip(&schema.fields()[columns.len()..]) {
            columns.push(match (payload, field.data_type()) {
                (Some(payload), DataType::Struct(fields)) => payload.finish(self.rows, fields)?,
                (_, data_type) => new_null_array(data_type, self.rows),
            });
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}

/// A payload's columns in the wide shape, as long as the last row that carries it.
struct PayloadStruct {
    columns: MessageBuilder,
    validity: NullBufferBuilder,
}

impl PayloadStruct {
    fn new(case: PayloadCase, rows: usize) -> Self {
        Self {
            columns: MessageBuilder::new(fields::payload(case), rows),
            validity: NullBufferBuilder::new(rows),
        }
    }

    #[inline]
    fn append(&mut self, row: usize, slots: &mut MessageSlots<'_>) -> Result<(), Fault> {
        self.catch_up(row);
        self.validity.append_non_null();
        self.columns.append(slots)
    }

    /// Adds the rows before `row` that do not carry the payload.
    #[inline]
    fn catch_up(&mut self, row: usize) {
        let missing = row - self.validity.len();
        if missing > 0 {
            self.validity.append_n_nulls(missing);
            self.columns.append_nulls(missing);
        }
    }

    fn finish(mut self, rows: usize, fields: &Fields) -> Result<ArrayRef, ColumnsError> {
        self.catch_up(rows);
        let columns = self.columns.finish()?;
        Ok(Arc::new(StructArray::try_new(fields.clone(), columns, self.validity.finish())?))
    }
}

/// The table of one case.
pub(super) struct NarrowTable {
    case: PayloadCase,
    envelope: MessageBuilder,
    payload: MessageBuilder,
}

impl NarrowTable {
    pub(super) fn new(case: PayloadCase, rows: usize) -> Self {
        Self {
            case,
            envelope: MessageBuilder::new(&ENVELOPE, rows),
            payload: MessageBuilder::new(fields::payload(case), rows),
        }
    }

    #[inline]
    pub(super) fn append(&mut self, slots: &mut EventSlots<'_>) -> Result<(), Fault> {
        self.envelope.append(&mut slots.envelope)?;
        self.payload.append(slots.payload(self.case))
    }

    /// Adds a row that has nothing.
    pub(super) fn append_null(&mut self) {
        self.envelope.append_nulls(1);
        self.payload.append_nulls(1);
    }

    pub(super) fn finish(self) -> Result<RecordBatch, ColumnsError> {
        let mut columns = self.envelope.finish()?;
        columns.extend(self.payload.finish()?);
        Ok(RecordBatch::try_new(narrow_schema(self.case), columns)?)
    }
}
