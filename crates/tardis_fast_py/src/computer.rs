//! `Computer`: bars, snapshots and quotes of messages that a program already has.

use std::sync::{Mutex, PoisonError};

use market_data::{ComputedLines, DataType};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{bad_message, bad_option};

/// Computes data types from normalized messages.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Computer {
    lines: Mutex<ComputedLines>,
}

#[pymethods]
impl Computer {
    #[new]
    #[allow(clippy::needless_pass_by_value)] // as Python gives it
    fn new(data_types: Vec<String>) -> PyResult<Self> {
        let data_types: Result<Vec<DataType>, _> =
            data_types.iter().map(|name| name.parse()).collect();
        Ok(Self { lines: Mutex::new(ComputedLines::new(data_types.map_err(bad_option)?)) })
    }

    /// Takes messages, one JSON object a line; returns them with what they complete, each where it
    /// belongs.
    fn feed<'py>(&self, py: Python<'py>, lines: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut out = Vec::with_capacity(lines.len());
        py.detach(|| {
            let mut computed = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            computed.take(lines, &mut out).map_err(bad_message)
        })?;
        Ok(PyBytes::new(py, &out))
    }
}
