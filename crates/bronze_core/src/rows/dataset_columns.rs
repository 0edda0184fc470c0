//! Cells of a dataset: text as the files have it, read as what its column means.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, StringArray};
use market_data::{BookLevel, Precision, Timestamp};
use thiserror::Error;

use super::RowsError;
use super::dataset::Dataset;

/// What is wrong with a cell.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum CellProblem {
    /// It is empty and must not be.
    #[error("{0} is missing")]
    Missing(String),
    /// It is something else than its column holds.
    #[error("{column} is `{text}`; expected {expected}")]
    Text { column: String, text: String, expected: &'static str },
}

/// A column by its name.
#[derive(Debug)]
pub(super) struct Column<'a> {
    name: String,
    cells: &'a StringArray,
}

impl<'a> Column<'a> {
    pub(super) fn new(
        dataset: Dataset,
        name: String,
        batch: &'a RecordBatch,
    ) -> Result<Self, RowsError> {
        let found = batch.column_by_name(&name);
        match found.and_then(|column| column.as_string_opt::<i32>()) {
            Some(cells) => Ok(Self { name, cells }),
            None => Err(RowsError::DatasetColumn {
                column: name,
                dataset,
                found: found.map_or_else(
                    || "not there".to_owned(),
                    |column| column.data_type().to_string(),
                ),
            }),
        }
    }

    /// The text; none if the cell is empty.
    pub(super) fn text(&self, row: usize) -> Option<&'a str> {
        let text = self.cells.is_valid(row).then(|| self.cells.value(row))?;
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn needed_text(&self, row: usize) -> Result<Cow<'a, str>, CellProblem> {
        self.text(row).map(Cow::Borrowed).ok_or_else(|| CellProblem::Missing(self.name.clone()))
    }

    pub(super) fn number(&self, row: usize) -> Result<Option<f64>, CellProblem> {
        let Some(text) = self.text(row) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.other(text, "a number")),
        }
    }

    pub(super) fn needed_number(&self, row: usize) -> Result<f64, CellProblem> {
        self.number(row)?.ok_or_else(|| CellProblem::Missing(self.name.clone()))
    }

    /// A time, in microseconds. The files do not tell digits that are zero from digits that were not
    /// there, so whole milliseconds count as such.
    pub(super) fn time(&self, row: usize) -> Result<Option<Timestamp>, CellProblem> {
        let Some(text) = self.text(row) else { return Ok(None) };
        let micros: i64 = text.parse().map_err(|_| self.other(text, "microseconds since 1970"))?;
        let precision = if micros % 1_000 == 0 { Precision::Millis } else { Precision::Micros };
        let time = Timestamp::new(micros, precision);
        if time.micros().is_none() {
            return Err(self.other(text, "microseconds since 1970"));
        }
        Ok(Some(time))
    }

    pub(super) fn needed_time(&self, row: usize) -> Result<Timestamp, CellProblem> {
        self.time(row)?.ok_or_else(|| CellProblem::Missing(self.name.clone()))
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(
        &self,
        row: usize,
        words: &[(&str, T)],
        expected: &'static str,
    ) -> Result<Option<T>, CellProblem> {
        let Some(text) = self.text(row) else { return Ok(None) };
        let known = words.iter().find(|(word, _)| *word == text);
        known.map(|(_, value)| Some(*value)).ok_or_else(|| self.other(text, expected))
    }

    #[cold]
    fn other(&self, text: &str, expected: &'static str) -> CellProblem {
        let (column, text) = (self.name.clone(), text.to_owned());
        CellProblem::Text { column, text, expected }
    }
}

/// The columns of a level: its price and its amount.
#[derive(Debug)]
pub(super) struct LevelColumns<'a> {
    pub(super) price: Column<'a>,
    pub(super) amount: Column<'a>,
}

impl LevelColumns<'_> {
    /// The level; none where the book is not that deep.
    pub(super) fn level(&self, row: usize) -> Result<Option<BookLevel>, CellProblem> {
        whole_level(&self.price, &self.amount, row)
    }
}

/// A level of two columns; none if both are empty.
pub(super) fn whole_level(
    price: &Column<'_>,
    amount: &Column<'_>,
    row: usize,
) -> Result<Option<BookLevel>, CellProblem> {
    match (price.number(row)?, amount.number(row)?) {
        (None, None) => Ok(None),
        (Some(price), Some(amount)) => Ok(Some(BookLevel { price, amount })),
        (None, Some(_)) => Err(CellProblem::Missing(price.name.clone())),
        (Some(_), None) => Err(CellProblem::Missing(amount.name.clone())),
    }
}
