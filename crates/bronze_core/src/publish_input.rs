//! What can be published: chunks of JSON lines, rows of encoded events, and Bronze columns. All are cut
//! into batches of a size that suits queue, spill and buses.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use market_data::Timestamp;
use thiserror::Error;

use crate::columns::{self, ColumnsError};
use crate::encode::BronzeEncoder;
use crate::event_batch::{BATCH_BYTES, EventBatch, EventBuffer};
use crate::event_view::{EventView, EventViewError};
use crate::intake::NotAccepted;
use crate::json_lines::{JsonLineError, read_json_lines};
use crate::payload_case::PayloadCase;
use crate::publisher::Publisher;

/// Why input was not published.
#[derive(Debug, Error)]
pub enum PublishError {
    /// A line is no message; nothing was published.
    #[error(transparent)]
    Line(#[from] JsonLineError),
    /// A row is no event; nothing was published.
    #[error("row {row}: {error}")]
    Row {
        /// The row, from 0.
        row: usize,
        /// What is wrong with it.
        error: EventViewError,
    },
    /// Columns are none of Bronze, or a row is no event; nothing was published.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// The publisher did not take all of it.
    #[error("{reason}; {accepted} events had been accepted before")]
    NotAccepted {
        /// Events that were accepted before.
        accepted: u64,
        /// Why the others were not.
        reason: NotAccepted,
    },
}

impl Publisher {
    /// Publishes normalized messages, one JSON object a line, and returns how many events they gave.
    /// What no bus publishes is not encoded and takes no number.
    pub fn publish_json_lines(
        &self,
        encoder: &mut BronzeEncoder,
        lines: &[u8],
        ingest: Timestamp,
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<u64, PublishError> {
        let filter = self.filter();
        let mut batches = Batches { publisher: self, keep_waiting, accepted: 0 };
        let mut buffer = EventBuffer::for_batches(lines.len());
        for message in read_json_lines(lines)? {
            if filter.allows(PayloadCase::of(&message)) {
                encoder.encode(&message, ingest, &mut buffer);
                if buffer.byte_len() >= BATCH_BYTES {
                    batches.publish(&buffer.take_full_batch())?;
                }
            }
        }
        buffer.into_last_batch().map_or(Ok(()), |batch| batches.publish(&batch))?;
        Ok(batches.accepted)
    }

    /// Publishes the rows of Bronze columns and returns how many were accepted. Without a case, the
    /// names of the columns tell which shape they have.
    pub fn publish_columns(
        &self,
        batch: &RecordBatch,
        case: Option<PayloadCase>,
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<u64, PublishError> {
        let case = match case {
            None => columns::narrow_case(batch)?,
            case => case,
        };
        let Some(case) = case else {
            // Which case a row is of, and that it is of any, is seen by its event.
            let events: ArrayRef = Arc::new(columns::wide_to_events(batch)?);
            return self.publish_rows(&columns::event_bytes(&events)?, keep_waiting);
        };
        self.publish_batches(&columns::narrow_to_batches(batch, case)?, keep_waiting)
    }

    /// Publishes batches, each as it is, and returns how many of their events were accepted.
    pub fn publish_batches(
        &self,
        batches: &[EventBatch],
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<u64, PublishError> {
        let mut published = Batches { publisher: self, keep_waiting, accepted: 0 };
        batches.iter().try_for_each(|batch| published.publish(batch))?;
        Ok(published.accepted)
    }

    /// Publishes encoded events and returns how many were accepted.
    pub fn publish_rows(
        &self,
        rows: &[&[u8]],
        keep_waiting: impl FnMut() -> bool,
    ) -> Result<u64, PublishError> {
        let case_of = |(row, event): (usize, &&[u8])| {
            EventView::read(event)
                .map(|view| view.case())
                .map_err(|error| PublishError::Row { row, error })
        };
        let cases = rows.iter().enumerate().map(case_of).collect::<Result<Vec<_>, _>>()?;
        let mut batches = Batches { publisher: self, keep_waiting, accepted: 0 };
        let (mut rows, mut cases) = (rows, cases.as_slice());
        while !rows.is_empty() {
            let (events, bytes) = first_batch(rows);
            let mut buffer = EventBuffer::for_batches(bytes);
            for (case, event) in cases.iter().zip(&rows[..events]) {
                buffer.push(*case, event);
            }
            buffer.into_last_batch().map_or(Ok(()), |batch| batches.publish(&batch))?;
            (rows, cases) = (&rows[events..], &cases[events..]);
        }
        Ok(batches.accepted)
    }
}

/// How many of the rows make a batch, and their bytes.
fn first_batch(rows: &[&[u8]]) -> (usize, usize) {
    let mut bytes = 0;
    for (row, event) in rows.iter().enumerate() {
        bytes += event.len();
        if bytes >= BATCH_BYTES {
            return (row + 1, bytes);
        }
    }
    (rows.len(), bytes)
}

/// Batches on their way into a publisher.
struct Batches<'a, W> {
    publisher: &'a Publisher,
    keep_waiting: W,
    accepted: u64,
}

impl<W: FnMut() -> bool> Batches<'_, W> {
    fn publish(&mut self, batch: &EventBatch) -> Result<(), PublishError> {
        let published = self.publisher.publish(batch, &mut self.keep_waiting);
        let accepted = self.accepted;
        self.accepted +=
            published.map_err(|reason| PublishError::NotAccepted { accepted, reason })?;
        Ok(())
    }
}
