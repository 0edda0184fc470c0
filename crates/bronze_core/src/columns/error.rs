//! What can be wrong with events or columns, and where.

use arrow_schema::ArrowError;
use arrow_schema::DataType;
use thiserror::Error;

use super::fields::Message;
use crate::event_view::EventViewError;
use crate::payload_case::PayloadCase;
use crate::wire::WireError;

/// Why events do not become columns, or columns do not become events.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ColumnsError {
    /// The events are not a column of bytes.
    #[error("events are a column of Binary, LargeBinary or BinaryView; found {found}")]
    EventsType {
        /// The column's type.
        found: DataType,
    },
    /// A row of the events is null.
    #[error("row {row} is null where an event is expected")]
    NullEvent {
        /// The row.
        row: usize,
    },
    /// A field's value does not fit the schema, or its column.
    #[error("row {row}, field {field}: {problem}")]
    Field {
        /// The row.
        row: usize,
        /// The field, for example `trade.price_str`; the message where no field could be read.
        field: String,
        /// What is wrong with it.
        #[source]
        problem: FieldProblem,
    },
    /// An event carries another payload than asked for.
    #[error(
        "row {row} carries {}; expected {expected}",
        found.map_or("no payload", PayloadCase::name)
    )]
    OtherCase {
        /// The row.
        row: usize,
        /// The event's payload, if it has one.
        found: Option<PayloadCase>,
        /// The payload asked for.
        expected: PayloadCase,
    },
    /// An event carries no payload, so no narrow table takes it.
    #[error("row {row} carries no payload; only the wide shape has room for such an event")]
    NoPayload {
        /// The row.
        row: usize,
    },
    /// A row of a wide batch has two payloads.
    #[error("row {row} carries two payloads, {first} and {second}; an event has one")]
    TwoPayloads {
        /// The row.
        row: usize,
        /// One of them.
        first: PayloadCase,
        /// The other.
        second: PayloadCase,
    },
    /// A column that the schema does not know.
    #[error("unknown column `{column}`; expected {expected}; found {found}")]
    UnknownColumn {
        /// Its name.
        column: String,
        /// The names that are known there.
        expected: String,
        /// The names that came.
        found: String,
    },
    /// Two columns of one name.
    #[error("column `{column}` occurs twice; found {found}")]
    DuplicateColumn {
        /// Its name.
        column: String,
        /// The names that came.
        found: String,
    },
    /// Columns from which the payload case cannot be told.
    #[error(
        "the columns fit {fits}; expected the envelope with the columns of exactly one payload \
         case, or with one struct per case ({}); found {found}",
        PayloadCase::ALL.map(PayloadCase::field_name).join(", ")
    )]
    UnclearCase {
        /// The cases they fit.
        fits: String,
        /// The names that came.
        found: String,
    },
    /// A column of a type that cannot be read as the field.
    #[error("column `{column}` is {found}; expected {expected}")]
    ColumnType {
        /// Its name.
        column: String,
        /// The types that can be read.
        expected: &'static str,
        /// Its type.
        found: DataType,
    },
    /// An event whose envelope cannot be read.
    #[error("row {row}: {error}")]
    Unroutable {
        /// The row.
        row: usize,
        /// What is wrong with it.
        error: EventViewError,
    },
    /// The batch does not fit 32-bit offsets.
    #[error("{rows} rows take more than 2 GiB; pass fewer rows at a time")]
    TooLarge {
        /// The rows that are too many.
        rows: usize,
    },
    /// Arrow refused to build or to cast a column.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

/// What is wrong with a field's value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldProblem {
    /// Bytes that are no Protobuf.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// An unsigned number past the signed 64 bits that columns have.
    #[error("{0} does not fit Int64; the largest value is {max}", max = i64::MAX)]
    Unsigned(u64),
    /// A time past the range of microseconds in 64 bits.
    #[error("{seconds} seconds and {nanos} nanoseconds do not fit a time in microseconds")]
    Time {
        /// Seconds since 1970.
        seconds: i64,
        /// Nanoseconds on top.
        nanos: i32,
    },
    /// A number that the field cannot hold.
    #[error("{value} is out of range; expected {least} to {most}")]
    Range {
        /// The number.
        value: i64,
        /// The least number that fits.
        least: i64,
        /// The largest number that fits.
        most: i64,
    },
    /// A text that is no value of an enum.
    #[error("`{found}` is unknown; expected {} or a number", expected.join(", "))]
    EnumName {
        /// The text.
        found: String,
        /// The values' names.
        expected: &'static [&'static str],
    },
}

/// A problem with its field, whose row only the caller knows.
#[derive(Debug)]
pub(super) struct Fault {
    message: &'static Message,
    number: Option<u32>,
    problem: FieldProblem,
}

impl Fault {
    /// A problem with a field, or without a number with a message as such.
    #[cold]
    pub(super) fn new(
        message: &'static Message,
        number: impl Into<Option<u32>>,
        problem: impl Into<FieldProblem>,
    ) -> Self {
        Self { message, number: number.into(), problem: problem.into() }
    }

    #[cold]
    pub(super) fn at(self, row: usize) -> ColumnsError {
        ColumnsError::Field { row, field: self.message.place(self.number), problem: self.problem }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "field {}: {}", self.message.place(self.number), self.problem)
    }
}
