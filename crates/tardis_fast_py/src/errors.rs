//! The exception hierarchy, and the one place where Rust's errors become exceptions.

use std::fmt::Display;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    tardis_fast,
    TardisFastError,
    PyValueError,
    "Base of all errors raised by tardis_fast."
);
create_exception!(
    tardis_fast,
    InvalidMessageError,
    TardisFastError,
    "A text is not a normalized message."
);
create_exception!(
    tardis_fast,
    InvalidEventError,
    TardisFastError,
    "Bytes are no Bronze event, or a batch has other columns than Bronze."
);

/// Adds the exceptions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TardisFastError", py.get_type::<TardisFastError>())?;
    module.add("InvalidMessageError", py.get_type::<InvalidMessageError>())?;
    module.add("InvalidEventError", py.get_type::<InvalidEventError>())
}

/// An option that cannot be used.
pub(crate) fn bad_option(error: impl Display) -> PyErr {
    TardisFastError::new_err(error.to_string())
}

/// A text that is no message; the error says where.
pub(crate) fn bad_message(error: impl Display) -> PyErr {
    InvalidMessageError::new_err(error.to_string())
}

/// Events or columns that do not fit the schema; the error says where.
pub(crate) fn bad_events(error: impl Display) -> PyErr {
    InvalidEventError::new_err(error.to_string())
}
