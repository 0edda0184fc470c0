//! Columns to events: every row's event is appended to one buffer, which becomes the result.

use arrow_array::{BinaryArray, RecordBatch};
use arrow_buffer::{Buffer, OffsetBuffer};

use super::bronze_rows::{BronzeRows, case_columns, case_of, names};
use super::error::ColumnsError;
use super::fields::{self, ENVELOPE};
use super::names::check_names;
use crate::event_batch::{BatchBuilder, EVENT_BYTES, EventBatch, EventBuffer};
use crate::payload_case::PayloadCase;

/// The largest buffer to begin with.
const FIRST_BYTES: usize = 1 << 28;

/// Rows of the wide shape as events; a row without payload is an event without payload.
pub fn wide_to_events(batch: &RecordBatch) -> Result<BinaryArray, ColumnsError> {
    write_events(batch.num_rows(), &BronzeRows::wide(batch)?)
}

/// Rows of one case's narrow shape as events.
pub fn narrow_to_events(
    batch: &RecordBatch,
    case: PayloadCase,
) -> Result<BinaryArray, ColumnsError> {
    write_events(batch.num_rows(), &BronzeRows::narrow(batch, case)?)
}

/// Rows of one case's narrow shape as events, in batches of the usual size.
pub(crate) fn narrow_to_batches(
    batch: &RecordBatch,
    case: PayloadCase,
) -> Result<Vec<EventBatch>, ColumnsError> {
    let rows = BronzeRows::narrow(batch, case)?;
    let mut batches = BatchBuilder::with_room(batch.num_rows());
    for row in 0..batch.num_rows() {
        rows.write(row, &mut batches.buffer.bytes)?;
        batches.buffer.finish_event(case);
        batches.cut();
    }
    Ok(batches.finish())
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

/// Encoded events as a column; their bytes are not copied.
pub fn buffer_to_events(buffer: EventBuffer) -> Result<BinaryArray, ColumnsError> {
    let (bytes, ends) = buffer.into_parts();
    event_column(Buffer::from_vec(bytes), ends)
}

/// The events of batches as one column; their bytes are copied once.
pub fn event_batches_to_events(batches: &[EventBatch]) -> Result<BinaryArray, ColumnsError> {
    let mut buffer = EventBuffer::with_room(
        batches.iter().map(EventBatch::len).sum(),
        batches.iter().map(EventBatch::byte_len).sum(),
    );
    for (case, event) in batches.iter().flat_map(EventBatch::iter) {
        buffer.push(case, event);
    }
    buffer_to_events(buffer)
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

fn write_events(rows: usize, writer: &BronzeRows) -> Result<BinaryArray, ColumnsError> {
    // A batch without columns may claim any number of rows.
    if i32::try_from(rows).is_err() {
        return Err(ColumnsError::TooLarge { rows });
    }
    let mut bytes = Vec::with_capacity(rows.saturating_mul(EVENT_BYTES).min(FIRST_BYTES));
    let mut offsets = Vec::with_capacity(rows + 1);
    offsets.push(0);
    for row in 0..rows {
        writer.write(row, &mut bytes)?;
        offsets.push(i32::try_from(bytes.len()).map_err(|_| ColumnsError::TooLarge { rows })?);
    }
    binary_column(Buffer::from_vec(bytes), offsets)
}

fn binary_column(bytes: Buffer, offsets: Vec<i32>) -> Result<BinaryArray, ColumnsError> {
    let offsets = OffsetBuffer::new(offsets.into());
    Ok(BinaryArray::try_new(offsets, bytes, None)?)
}
