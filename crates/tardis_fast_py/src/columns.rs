//! Bronze events as Arrow record batches, and back.

use arrow_array::{Array, RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use arrow_schema::Schema;
use bronze_core::{PayloadCase, columns};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{bad_events, bad_option};

pub(crate) fn payload_case(name: &str) -> PyResult<PayloadCase> {
    name.parse().map_err(bad_option)
}

/// The record batch of `events`: wide, or narrow if a payload case is given.
#[pyfunction]
#[pyo3(signature = (events, *, case=None))]
pub(crate) fn events_to_batch<'py>(
    py: Python<'py>,
    events: PyArrowType<ArrayData>,
    case: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let case = case.map(payload_case).transpose()?;
    let batch = py.detach(|| {
        let events = make_array(events.0);
        match case {
            None => columns::events_to_wide(&events),
            Some(case) => columns::events_to_narrow(&events, case),
        }
        .map_err(bad_events)
    })?;
    batch.to_pyarrow(py)
}

/// The narrow record batches of `events`, by the name of their payload case.
#[pyfunction]
pub(crate) fn events_by_case(
    py: Python<'_>,
    events: PyArrowType<ArrayData>,
) -> PyResult<Bound<'_, PyDict>> {
    let batches =
        py.detach(|| columns::events_by_case(&make_array(events.0)).map_err(bad_events))?;
    let by_case = PyDict::new(py);
    for (case, batch) in batches {
        by_case.set_item(case.name(), batch.to_pyarrow(py)?)?;
    }
    Ok(by_case)
}

/// The events of a wide or narrow record batch, as a `pyarrow.BinaryArray`. A narrow batch is
/// recognised by its columns unless its payload case is given.
#[pyfunction]
#[pyo3(signature = (batch, *, case=None))]
#[allow(clippy::needless_pass_by_value)] // an argument is converted into a value of its own
pub(crate) fn batch_to_events<'py>(
    py: Python<'py>,
    batch: PyArrowType<RecordBatch>,
    case: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let case = case.map(payload_case).transpose()?;
    let events = py.detach(|| {
        match case {
            None => columns::batch_to_events(&batch.0),
            Some(case) => columns::narrow_to_events(&batch.0, case),
        }
        .map_err(bad_events)
    })?;
    events.to_data().to_pyarrow(py)
}

/// The schema of wide batches, or of the narrow ones of a payload case.
#[pyfunction]
#[pyo3(signature = (case=None))]
pub(crate) fn bronze_schema(case: Option<&str>) -> PyResult<PyArrowType<Schema>> {
    let schema = match case {
        None => columns::wide_schema(),
        Some(case) => columns::narrow_schema(payload_case(case)?),
    };
    Ok(PyArrowType(schema.as_ref().clone()))
}
