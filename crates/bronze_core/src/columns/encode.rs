//! Columns to events: every row's event is appended to one buffer, which becomes the result.
//!
//! Invariants: columns go by name, in any order; a column that is not there is the field's default
//! in every row; a column that no field has is an error, since dropping it would lose data.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StructArray};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::DataType;

use super::cells::MessageCells;
use super::error::{ColumnsError, Fault};
use super::fields::{self, ENVELOPE};
use super::names::check_names;
use crate::event_batch::{EventBatch, EventBuffer};
use crate::payload_case::PayloadCase;
use crate::wire::put_nested;

/// A guess at an event's bytes, to begin with a buffer of about the right size.
const EVENT_BYTES: usize = 192;

/// The largest buffer to begin with.
const FIRST_BYTES: usize = 1 << 28;

/// Rows of the wide shape as events; a row without payload is an event without payload.
pub fn wide_to_events(batch: &RecordBatch) -> Result<BinaryArray, ColumnsError> {
    write_events(batch.num_rows(), wide_writer(batch)?)
}

/// Writes a row's event, or says what is wrong with it.
trait RowWriter: Fn(usize, &mut Vec<u8>) -> Result<(), ColumnsError> {}
impl<W: Fn(usize, &mut Vec<u8>) -> Result<(), ColumnsError>> RowWriter for W {}

fn wide_writer(batch: &RecordBatch) -> Result<impl RowWriter, ColumnsError> {
    check_names(
        &names(batch),
        |name| ENVELOPE.field(name).is_some() || case_of(name).is_some(),
        || format!("{}, {}", ENVELOPE.names(), case_columns()),
        str::to_owned,
    )?;
    let envelope = MessageCells::new(&ENVELOPE, |name| batch.column_by_name(name))?;
    let mut payloads = Vec::new();
    for case in PayloadCase::ALL {
        if let Some(column) = batch.column_by_name(case.field_name()) {
            payloads.extend(PayloadCells::new(case, column)?);
        }
    }
    Ok(move |row, out: &mut Vec<u8>| {
        envelope.write(row, out).map_err(|fault| fault.at(row))?;
        let mut present = payloads.iter().filter(|payload| payload.rows.is_valid(row));
        let Some(payload) = present.next() else { return Ok(()) };
        if let Some(other) = present.next() {
            let (first, second) = (payload.case, other.case);
            return Err(ColumnsError::TwoPayloads { row, first, second });
        }
        write_payload(payload.case, &payload.cells, row, out).map_err(|fault| fault.at(row))
    })
}

/// Rows of one case's narrow shape as events.
pub fn narrow_to_events(
    batch: &RecordBatch,
    case: PayloadCase,
) -> Result<BinaryArray, ColumnsError> {
    write_events(batch.num_rows(), narrow_writer(batch, case)?)
}

fn narrow_writer(batch: &RecordBatch, case: PayloadCase) -> Result<impl RowWriter, ColumnsError> {
    let message = fields::payload(case);
    check_names(
        &names(batch),
        |name| ENVELOPE.field(name).is_some() || message.field(name).is_some(),
        || format!("{}, {}", ENVELOPE.names(), message.names()),
        str::to_owned,
    )?;
    let envelope = MessageCells::new(&ENVELOPE, |name| batch.column_by_name(name))?;
    let payload = MessageCells::new(message, |name| batch.column_by_name(name))?;
    Ok(move |row, out: &mut Vec<u8>| {
        envelope
            .write(row, out)
            .and_then(|()| write_payload(case, &payload, row, out))
            .map_err(|fault| fault.at(row))
    })
}

/// Rows of one case's narrow shape as events, in buffers that are full with so many bytes.
pub(crate) fn narrow_to_buffers(
    batch: &RecordBatch,
    case: PayloadCase,
    full: usize,
) -> Result<Vec<EventBuffer>, ColumnsError> {
    let write = narrow_writer(batch, case)?;
    let new_buffer = || EventBuffer::with_capacity(full + full / 8);
    let mut buffers = Vec::new();
    let mut buffer = new_buffer();
    for row in 0..batch.num_rows() {
        write(row, &mut buffer.bytes)?;
        buffer.finish_event(case);
        if buffer.byte_len() >= full {
            buffers.push(std::mem::replace(&mut buffer, new_buffer()));
        }
    }
    buffers.push(buffer);
    Ok(buffers)
}

/// Rows of whichever shape the columns' names tell.
///
/// The two snapshot cases have the same columns, so their narrow shape cannot be told and needs
/// [`narrow_to_events`].
pub fn batch_to_events(batch: &RecordBatch) -> Result<BinaryArray, ColumnsError> {
    match narrow_case(batch)? {
        None => wide_to_events(batch),
        Some(case) => narrow_to_events(batch, case),
    }
}

/// The case whose narrow shape a batch has by the names of its columns; none if it is wide.
pub(crate) fn narrow_case(batch: &RecordBatch) -> Result<Option<PayloadCase>, ColumnsError> {
    let names = names(batch);
    let mut payload_names = names.clone();
    payload_names.retain(|name| ENVELOPE.field(name).is_none());
    if payload_names.iter().any(|name| case_of(name).is_some()) {
        return Ok(None);
    }
    let has = |case: PayloadCase, name: &str| fields::payload(case).field(name).is_some();
    check_names(
        &names,
        |name| {
            ENVELOPE.field(name).is_some() || PayloadCase::ALL.iter().any(|&case| has(case, name))
        },
        || format!("{}, then {} or the fields of one of them", ENVELOPE.names(), case_columns()),
        str::to_owned,
    )?;
    let mut fitting = PayloadCase::ALL.to_vec();
    fitting.retain(|&case| payload_names.iter().all(|name| has(case, name)));
    match fitting.as_slice() {
        &[case] => Ok(Some(case)),
        cases => Err(ColumnsError::UnclearCase {
            fits: match cases {
                [] => "no payload case".to_owned(),
                cases => cases.iter().map(|case| case.name()).collect::<Vec<_>>().join(" and "),
            },
            found: names.join(", "),
        }),
    }
}

/// Takes a row's event, or what is wrong with the row.
pub type TakeRow<'a> = dyn FnMut(usize, Result<&[u8], ColumnsError>) + 'a;

/// Rows of the wide shape, or of a case's narrow one, each as an event of its own: `take` gets every
/// row's event, or what is wrong with the row.
pub fn rows_to_events(
    batch: &RecordBatch,
    case: Option<PayloadCase>,
    take: &mut TakeRow<'_>,
) -> Result<(), ColumnsError> {
    let rows = batch.num_rows();
    match case {
        None => write_each(rows, wide_writer(batch)?, take),
        Some(case) => write_each(rows, narrow_writer(batch, case)?, take),
    }
    Ok(())
}

fn write_each(rows: usize, write: impl RowWriter, take: &mut TakeRow<'_>) {
    let mut event = Vec::with_capacity(EVENT_BYTES);
    for row in 0..rows {
        event.clear();
        take(row, write(row, &mut event).map(|()| event.as_slice()));
    }
}

/// Encoded events as a column; their bytes are not copied.
pub fn buffer_to_events(buffer: EventBuffer) -> Result<BinaryArray, ColumnsError> {
    let (bytes, ends) = buffer.into_parts();
    event_column(Buffer::from_vec(bytes), ends)
}

/// The events of a batch as a column; their bytes are not copied.
pub fn event_batch_to_events(batch: &EventBatch) -> Result<BinaryArray, ColumnsError> {
    event_column(Buffer::from(batch.bytes().clone()), batch.ends())
}

fn event_column(
    bytes: Buffer,
    ends: impl IntoIterator<Item = usize, IntoIter: ExactSizeIterator>,
) -> Result<BinaryArray, ColumnsError> {
    let ends = ends.into_iter();
    let rows = ends.len();
    let offsets = std::iter::once(0)
        .chain(ends)
        .map(i32::try_from)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| ColumnsError::TooLarge { rows })?;
    binary_column(bytes, offsets)
}

/// A payload's columns in the wide shape.
struct PayloadCells {
    case: PayloadCase,
    rows: StructArray,
    cells: MessageCells,
}

impl PayloadCells {
    /// None if no row carries the payload.
    fn new(case: PayloadCase, column: &ArrayRef) -> Result<Option<Self>, ColumnsError> {
        if *column.data_type() == DataType::Null {
            return Ok(None);
        }
        let rows = column.as_struct_opt().ok_or_else(|| ColumnsError::ColumnType {
            column: case.field_name().to_owned(),
            expected: "Struct",
            found: column.data_type().clone(),
        })?;
        let message = fields::payload(case);
        check_names(
            &rows.column_names(),
            |name| message.field(name).is_some(),
            || message.names(),
            |name| message.path(name),
        )?;
        let cells = MessageCells::new(message, |name| rows.column_by_name(name))?;
        let occurs = rows.null_count() < rows.len();
        Ok(occurs.then(|| Self { case, rows: rows.clone(), cells }))
    }
}

#[inline]
fn write_payload(
    case: PayloadCase,
    cells: &MessageCells,
    row: usize,
    out: &mut Vec<u8>,
) -> Result<(), Fault> {
    let mut written = Ok(());
    put_nested(out, case.field_number(), |out| written = cells.write(row, out));
    written
}

/// Runs `write` for every row; what it appends is the row's event.
fn write_events(rows: usize, write: impl RowWriter) -> Result<BinaryArray, ColumnsError> {
    // A batch without columns may claim any number of rows.
    if i32::try_from(rows).is_err() {
        return Err(ColumnsError::TooLarge { rows });
    }
    let mut bytes = Vec::with_capacity(rows.saturating_mul(EVENT_BYTES).min(FIRST_BYTES));
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    for row in 0..rows {
        write(row, &mut bytes)?;
        offsets.push(i32::try_from(bytes.len()).map_err(|_| ColumnsError::TooLarge { rows })?);
    }
    binary_column(Buffer::from_vec(bytes), offsets)
}

fn binary_column(bytes: Buffer, offsets: Vec<i32>) -> Result<BinaryArray, ColumnsError> {
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(BinaryArray::try_new(offsets, bytes, None)?)
}

fn names(batch: &RecordBatch) -> Vec<&str> {
    batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect()
}

/// The case whose struct has a column's name.
fn case_of(column: &str) -> Option<PayloadCase> {
    PayloadCase::ALL.into_iter().find(|case| case.field_name() == column)
}

fn case_columns() -> String {
    PayloadCase::ALL.map(PayloadCase::field_name).join(", ")
}
