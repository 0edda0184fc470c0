//! `RowReader`: rows of record batches into events, and which of them do not fit; `EventBatches`: such
//! events.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use bronze_core::{Dataset, EventBatch, RowEvents, RowForm, RowsError, columns};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::payload_case;
use crate::encoder::{BronzeEncoder, ingest_time};
use crate::errors::{bad_events, bad_option};

/// Makes events from rows of one form.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct RowReader {
    reader: Mutex<bronze_core::RowReader>,
    encoder: Py<BronzeEncoder>,
}

/// Encoded events in batches, as a publisher takes them.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct EventBatches {
    pub(crate) batches: Vec<EventBatch>,
}

#[pymethods]
impl EventBatches {
    fn __len__(&self) -> usize {
        self.batches.iter().map(EventBatch::len).sum()
    }

    /// The events as one array.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let events = py.detach(|| columns::event_batches_to_events(&self.batches));
        events.map_err(bad_events)?.to_data().to_pyarrow(py)
    }
}

type EventsAndRejected<'py> = (EventBatches, Bound<'py, PyAny>);

#[pymethods]
impl RowReader {
    #[new]
    #[pyo3(signature = (form, kind=None, *, encoder, max_event_bytes=1_048_576))]
    fn new(
        form: &str,
        kind: Option<&str>,
        encoder: Py<BronzeEncoder>,
        max_event_bytes: usize,
    ) -> PyResult<Self> {
        let form = match (form, kind) {
            ("bronze", None) => RowForm::Bronze,
            ("json", None) => RowForm::Json,
            ("columns", kind) => RowForm::Columns(kind.map(payload_case).transpose()?),
            ("csv", Some(dataset)) => RowForm::Dataset(dataset.parse().map_err(bad_option)?),
            _ => {
                return Err(bad_option(format!(
                    "`{form}` is no form of rows; use bronze, json, columns or csv, the last with \
                     the name of its dataset"
                )));
            }
        };
        let reader = bronze_core::RowReader::new(form, max_event_bytes);
        Ok(Self { reader: Mutex::new(reader), encoder })
    }

    /// Makes the events of the next rows; returns them, and the rows that do not fit.
    #[pyo3(signature = (batch, *, ingest_micros=None))]
    #[allow(clippy::needless_pass_by_value)] // an argument is converted into a value of its own
    fn read<'py>(
        &self,
        py: Python<'py>,
        batch: PyArrowType<RecordBatch>,
        ingest_micros: Option<i64>,
    ) -> PyResult<EventsAndRejected<'py>> {
        let encoder = self.encoder.get();
        let made = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.read(&batch.0, &mut encoder.lock(), ingest_time(ingest_micros))
        });
        events_and_rejected(py, made)
    }

    /// Makes the events of what waited for more rows.
    #[pyo3(signature = (*, ingest_micros=None))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        ingest_micros: Option<i64>,
    ) -> PyResult<EventsAndRejected<'py>> {
        let encoder = self.encoder.get();
        let made = py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader.finish(&mut encoder.lock(), ingest_time(ingest_micros))
        });
        events_and_rejected(py, made)
    }
}

fn events_and_rejected(
    py: Python<'_>,
    made: Result<RowEvents, RowsError>,
) -> PyResult<EventsAndRejected<'_>> {
    let RowEvents { events, rejected } = made.map_err(bad_events)?;
    let rows: Int64Array =
        rejected.iter().map(|rejected| i64::try_from(rejected.row).ok()).collect();
    let reasons: StringArray = rejected.into_iter().map(|rejected| Some(rejected.reason)).collect();
    let columns: [(&str, ArrayRef); 2] = [("row", Arc::new(rows)), ("reason", Arc::new(reasons))];
    let rejected = RecordBatch::try_from_iter(columns).map_err(bad_events)?;
    Ok((EventBatches { batches: events }, rejected.to_pyarrow(py)?))
}

/// The record batch of `events`, row by row, and why a row is empty.
#[pyfunction]
#[pyo3(signature = (events, *, case=None))]
pub(crate) fn events_to_checked_batch<'py>(
    py: Python<'py>,
    events: PyArrowType<ArrayData>,
    case: Option<&str>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let case = case.map(payload_case).transpose()?;
    let (batch, reasons) =
        py.detach(|| columns::events_to_checked(&make_array(events.0), case).map_err(bad_events))?;
    Ok((batch.to_pyarrow(py)?, reasons.to_data().to_pyarrow(py)?))
}

/// Exchange, symbol and payload case of each event.
#[pyfunction]
pub(crate) fn event_keys(
    py: Python<'_>,
    events: PyArrowType<ArrayData>,
) -> PyResult<Bound<'_, PyAny>> {
    let keys = py.detach(|| columns::event_keys(&make_array(events.0)).map_err(bad_events))?;
    keys.to_pyarrow(py)
}

/// The columns of each downloadable dataset, by its name.
#[pyfunction]
pub(crate) fn dataset_columns(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let columns = PyDict::new(py);
    for dataset in Dataset::ALL {
        columns.set_item(dataset.name(), dataset.columns())?;
    }
    Ok(columns)
}
