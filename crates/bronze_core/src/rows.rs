//! Rows of every form that can be published, into events. A row that does not fit is left out, with
//! the reason.
//!
//! Invariants: events come in the order of their rows; a row gives all of its events or none; a row
//! that is left out uses up no `event_seq`.

mod dataset;
mod dataset_columns;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use market_data::{BookChange, Message, Timestamp, read_message};
use thiserror::Error;

use dataset::DatasetRows;
pub use dataset::{Dataset, UnknownDataset};

use crate::columns::{self, BronzeRows, ColumnsError, EventCheck, EventProblem, SoundRows};
use crate::encode::BronzeEncoder;
use crate::event_batch::{BatchBuilder, EventBatch};
use crate::payload_case::PayloadCase;

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowForm {
    /// Encoded events, in the only column.
    Bronze,
    /// The wide shape of Bronze, or the narrow one of a case.
    Columns(Option<PayloadCase>),
    /// Normalized messages as JSON, text or its bytes, in the only column.
    Json,
    /// A downloadable dataset, all columns as text.
    Dataset(Dataset),
}

/// A row that gave no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The row, from 0.
    pub row: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// What became of rows.
#[derive(Clone, Debug)]
pub struct RowEvents {
    /// The events, in batches of a size that suits publishing.
    pub events: Vec<EventBatch>,
    /// The rows that gave none, in their order.
    pub rejected: Vec<Rejected>,
}

/// Why rows cannot be read at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RowsError {
    /// The columns are not those of the form.
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    /// There is not exactly one column.
    #[error("expected one column of {expected}; found {found}")]
    OneColumn {
        /// What it holds.
        expected: &'static str,
        /// The columns that came.
        found: String,
    },
    /// A column of a dataset is not there, or no text.
    #[error("column `{column}` of {dataset} is {found}; expected text")]
    DatasetColumn {
        /// Its name.
        column: String,
        /// The dataset.
        dataset: Dataset,
        /// What is there.
        found: String,
    },
    /// A book change that was put together from good rows gives a bad event.
    #[error(
        "the book change of {exchange} {symbol} of {levels} levels: {problem}; publish book \
         changes by level"
    )]
    BookChange {
        /// The exchange.
        exchange: String,
        /// The symbol.
        symbol: String,
        /// How many rows it has.
        levels: usize,
        /// What is wrong with it.
        problem: EventProblem,
    },
}

/// Reads rows of one form, of one source and in its order.
#[derive(Debug)]
pub struct RowReader {
    form: RowForm,
    check: EventCheck,
    /// The last book change of a dataset: the next rows may belong to it.
    pending: Option<BookChange<'static>>,
}

impl RowReader {
    /// Reads rows whose events may have so many bytes.
    #[must_use]
    pub fn new(form: RowForm, most_bytes: usize) -> Self {
        Self { form, check: EventCheck { most_bytes }, pending: None }
    }

    /// Makes the events of the next rows; `encoder` makes those of messages.
    pub fn read(
        &mut self,
        batch: &RecordBatch,
        encoder: &mut BronzeEncoder,
        ingest: Timestamp,
    ) -> Result<RowEvents, RowsError> {
        match self.form {
            RowForm::Bronze => self.read_events(batch),
            RowForm::Columns(case) => self.read_columns(batch, case),
            RowForm::Json => self.read_json(batch, encoder, ingest),
            RowForm::Dataset(dataset) => self.read_dataset(dataset, batch, encoder, ingest),
        }
    }

    /// Makes the events of what waited for more rows.
    pub fn finish(
        &mut self,
        encoder: &mut BronzeEncoder,
        ingest: Timestamp,
    ) -> Result<RowEvents, RowsError> {
        let mut made = Made::new(self.check, 0);
        self.finish_change(&mut made, encoder, ingest)?;
        Ok(made.into_events())
    }

    fn read_events(&self, batch: &RecordBatch) -> Result<RowEvents, RowsError> {
        let events = only_column(batch, "Bronze events")?;
        let rows = columns::nullable_event_bytes(events)?;
        let mut made = Made::new(self.check, rows.len());
        for (row, (event, checked)) in
            rows.iter().zip(self.check.check(rows.iter().copied())).enumerate()
        {
            match (event, checked) {
                (Some(event), Ok(case)) => made.push(case, event),
                (_, Err(problem)) => made.reject(row, &problem),
                (None, Ok(_)) => made.reject(row, &EventProblem::Null),
            }
        }
        Ok(made.into_events())
    }

    fn read_columns(
        &self,
        batch: &RecordBatch,
        case: Option<PayloadCase>,
    ) -> Result<RowEvents, RowsError> {
        let rows = BronzeRows::new(batch, case)?;
        let sound = SoundRows::of(&rows);
        let mut made = Made::new(self.check, batch.num_rows());
        for row in 0..batch.num_rows() {
            match rows.write(row, made.unfinished_event()) {
                Err(error) => made.reject(row, &error),
                Ok(Some(payload)) if sound.has(row, payload) => {
                    made.finish_sound(row, rows.case(payload));
                }
                Ok(_) => made.finish_event(row),
            }
        }
        Ok(made.into_events())
    }

    fn read_json(
        &self,
        batch: &RecordBatch,
        encoder: &mut BronzeEncoder,
        ingest: Timestamp,
    ) -> Result<RowEvents, RowsError> {
        let lines = texts(only_column(batch, "text")?)?;
        let mut made = Made::new(self.check, lines.len());
        for (row, line) in lines.into_iter().enumerate() {
            let Some(line) = line else {
                made.reject(row, &"the message is null");
                continue;
            };
            match read_message(line.trim_ascii()) {
                Ok(message) => made.encode(row, &message, encoder, ingest),
                Err(error) => made.reject(row, &error),
            }
        }
        Ok(made.into_events())
    }

    fn read_dataset(
        &mut self,
        dataset: Dataset,
        batch: &RecordBatch,
        encoder: &mut BronzeEncoder,
        ingest: Timestamp,
    ) -> Result<RowEvents, RowsError> {
        let rows = DatasetRows::new(dataset, batch)?;
        let mut made = Made::new(self.check, batch.num_rows());
        for row in 0..batch.num_rows() {
            match rows.message(row) {
                Err(problem) => made.reject(row, &problem),
                Ok(Message::BookChange(change)) => {
                    if let Err(problem) =
                        columns::check_message(&Message::BookChange(change.clone()))
                    {
                        made.reject(row, &problem);
                        continue;
                    }
                    if let Some(pending) = self.pending.as_mut().filter(|p| is_same(p, &change)) {
                        pending.bids.to_mut().extend_from_slice(&change.bids);
                        pending.asks.to_mut().extend_from_slice(&change.asks);
                        continue;
                    }
                    self.finish_change(&mut made, encoder, ingest)?;
                    self.pending = Some(owned(change));
                }
                Ok(message) => made.encode(row, &message, encoder, ingest),
            }
        }
        Ok(made.into_events())
    }

    fn finish_change(
        &mut self,
        made: &mut Made,
        encoder: &mut BronzeEncoder,
        ingest: Timestamp,
    ) -> Result<(), RowsError> {
        let Some(change) = self.pending.take() else { return Ok(()) };
        let (exchange, symbol) = (change.exchange.to_string(), change.symbol.to_string());
        let levels = change.bids.len() + change.asks.len();
        let encoded = made.try_encode(&Message::BookChange(change), encoder, ingest);
        encoded.map_err(|problem| RowsError::BookChange { exchange, symbol, levels, problem })
    }
}

/// Whether two changes are of one message: the dataset has a row for each level.
fn is_same(one: &BookChange<'_>, other: &BookChange<'_>) -> bool {
    one.local_timestamp == other.local_timestamp
        && one.timestamp == other.timestamp
        && one.is_snapshot == other.is_snapshot
        && one.symbol == other.symbol
        && one.exchange == other.exchange
}

fn owned(change: BookChange<'_>) -> BookChange<'static> {
    BookChange {
        symbol: change.symbol.into_owned().into(),
        exchange: change.exchange.into_owned().into(),
        bids: change.bids.into_owned().into(),
        asks: change.asks.into_owned().into(),
        is_snapshot: change.is_snapshot,
        timestamp: change.timestamp,
        local_timestamp: change.local_timestamp,
    }
}

/// Events made so far.
struct Made {
    check: EventCheck,
    batches: BatchBuilder,
    rejected: Vec<Rejected>,
}

impl Made {
    fn new(check: EventCheck, rows: usize) -> Self {
        Self { check, batches: BatchBuilder::with_room(rows), rejected: Vec::new() }
    }

    /// Where the next event is written, before it is finished or rejected.
    fn unfinished_event(&mut self) -> &mut Vec<u8> {
        &mut self.batches.buffer.bytes
    }

    /// Rejects a row, and what was written of its event.
    #[cold]
    fn reject(&mut self, row: usize, reason: &dyn std::fmt::Display) {
        self.batches.buffer.truncate(self.batches.buffer.len());
        self.rejected.push(Rejected { row, reason: reason.to_string() });
    }

    /// Takes what was written as an event if it is one.
    fn finish_event(&mut self, row: usize) {
        match self.check.check_event(self.batches.buffer.unfinished()) {
            Ok(case) => self.finish_checked(case),
            Err(problem) => self.reject(row, &problem),
        }
    }

    /// Takes what was written as an event, whose content is known to be good.
    #[inline]
    fn finish_sound(&mut self, row: usize, case: PayloadCase) {
        match self.check.check_size(self.batches.buffer.unfinished()) {
            Ok(()) => self.finish_checked(case),
            Err(problem) => self.reject(row, &problem),
        }
    }

    #[inline]
    fn finish_checked(&mut self, case: PayloadCase) {
        self.batches.buffer.finish_event(case);
        self.batches.cut();
    }

    fn push(&mut self, case: PayloadCase, event: &[u8]) {
        self.batches.buffer.push(case, event);
        self.batches.cut();
    }

    fn encode(
        &mut self,
        row: usize,
        message: &Message<'_>,
        encoder: &mut BronzeEncoder,
        ingest: Timestamp,
    ) {
        if let Err(problem) = self.try_encode(message, encoder, ingest) {
            self.reject(row, &problem);
        }
    }

    fn try_encode(
        &mut self,
        message: &Message<'_>,
        encoder: &mut BronzeEncoder,
        ingest: Timestamp,
    ) -> Result<(), EventProblem> {
        columns::check_message(message)?;
        let buffer = &mut self.batches.buffer;
        let (events, seq) = (buffer.len(), encoder.next_seq());
        encoder.encode(message, ingest, buffer);
        let checked = buffer.after(events).try_for_each(|event| self.check.check_size(event));
        if let Err(problem) = checked {
            buffer.truncate(events);
            encoder.rewind(seq);
            return Err(problem);
        }
        self.batches.cut();
        Ok(())
    }

    fn into_events(self) -> RowEvents {
        RowEvents { events: self.batches.finish(), rejected: self.rejected }
    }
}

fn only_column<'a>(
    batch: &'a RecordBatch,
    expected: &'static str,
) -> Result<&'a dyn Array, RowsError> {
    if let [column] = batch.columns() {
        return Ok(column);
    }
    let fields = batch.schema_ref().fields();
    let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
    Err(RowsError::OneColumn { expected, found: names.join(", ") })
}

/// The bytes of texts; those that come as bytes need not be UTF-8.
fn texts(column: &dyn Array) -> Result<Vec<Option<&[u8]>>, RowsError> {
    fn bytes(text: Option<&str>) -> Option<&[u8]> {
        text.map(str::as_bytes)
    }
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().iter().map(bytes).collect()),
        DataType::LargeUtf8 => Ok(column.as_string::<i64>().iter().map(bytes).collect()),
        DataType::Utf8View => Ok(column.as_string_view().iter().map(bytes).collect()),
        DataType::Binary => Ok(column.as_binary::<i32>().iter().collect()),
        DataType::LargeBinary => Ok(column.as_binary::<i64>().iter().collect()),
        DataType::BinaryView => Ok(column.as_binary_view().iter().collect()),
        found => Err(RowsError::OneColumn { expected: "text", found: found.to_string() }),
    }
}
