//! The rows of Bronze columns, each of which can be written as an event.
//!
//! Invariants: columns go by name, in any order; a column that is not there is the field's default
//! in every row; a column that no field has is an error, since dropping it would lose data.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::DataType;

use super::cells::MessageCells;
use super::error::ColumnsError;
use super::fields::{self, ENVELOPE};
use super::names::check_names;
use crate::payload_case::PayloadCase;
use crate::wire::put_nested;

/// Rows of the wide shape, or of the narrow one of a case.
#[derive(Debug)]
pub(crate) struct BronzeRows {
    pub(super) envelope: MessageCells,
    /// Those that occur; in the narrow shape one, which every row has.
    pub(super) payloads: Vec<PayloadCells>,
}

/// A payload's columns.
#[derive(Debug)]
pub(super) struct PayloadCells {
    pub(super) case: PayloadCase,
    pub(super) cells: MessageCells,
    /// The struct that holds them in the wide shape, null where a row has another payload.
    rows: Option<StructArray>,
}

impl BronzeRows {
    /// Rows of the narrow shape of a case; without a case, of the wide one.
    pub(crate) fn new(
        batch: &RecordBatch,
        case: Option<PayloadCase>,
    ) -> Result<Self, ColumnsError> {
        case.map_or_else(|| Self::wide(batch), |case| Self::narrow(batch, case))
    }

    pub(super) fn wide(batch: &RecordBatch) -> Result<Self, ColumnsError> {
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
                payloads.extend(PayloadCells::of_struct(case, column)?);
            }
        }
        Ok(Self { envelope, payloads })
    }

    pub(super) fn narrow(batch: &RecordBatch, case: PayloadCase) -> Result<Self, ColumnsError> {
        let message = fields::payload(case);
        check_names(
            &names(batch),
            |name| ENVELOPE.field(name).is_some() || message.field(name).is_some(),
            || format!("{}, {}", ENVELOPE.names(), message.names()),
            str::to_owned,
        )?;
        let envelope = MessageCells::new(&ENVELOPE, |name| batch.column_by_name(name))?;
        let cells = MessageCells::new(message, |name| batch.column_by_name(name))?;
        Ok(Self { envelope, payloads: vec![PayloadCells { case, cells, rows: None }] })
    }

    /// Appends a row's event; returns where in `payloads` its payload is, if it has one. After an
    /// error, a part of the event may have been appended.
    #[inline]
    pub(crate) fn write(
        &self,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>, ColumnsError> {
        self.envelope.write(row, out).map_err(|fault| fault.at(row))?;
        let mut present =
            self.payloads.iter().enumerate().filter(|(_, payload)| payload.is_of(row));
        let Some((place, payload)) = present.next() else { return Ok(None) };
        if let Some((_, other)) = present.next() {
            let (first, second) = (payload.case, other.case);
            return Err(ColumnsError::TwoPayloads { row, first, second });
        }
        let mut written = Ok(());
        put_nested(out, payload.case.field_number(), |out| {
            written = payload.cells.write(row, out);
        });
        written.map_err(|fault| fault.at(row))?;
        Ok(Some(place))
    }

    /// The case of the payload at a place.
    pub(crate) fn case(&self, place: usize) -> PayloadCase {
        self.payloads[place].case
    }
}

impl PayloadCells {
    /// None if no row carries the payload.
    fn of_struct(case: PayloadCase, column: &ArrayRef) -> Result<Option<Self>, ColumnsError> {
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
        Ok(occurs.then(|| Self { case, cells, rows: Some(rows.clone()) }))
    }

    #[inline]
    fn is_of(&self, row: usize) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.is_valid(row))
    }
}

/// The names of a batch's columns.
pub(super) fn names(batch: &RecordBatch) -> Vec<&str> {
    batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect()
}

/// The case whose struct has a column's name.
pub(super) fn case_of(column: &str) -> Option<PayloadCase> {
    PayloadCase::ALL.into_iter().find(|case| case.field_name() == column)
}

/// The columns of all cases in the wide shape.
pub(super) fn case_columns() -> String {
    PayloadCase::ALL.map(PayloadCase::field_name).join(", ")
}
