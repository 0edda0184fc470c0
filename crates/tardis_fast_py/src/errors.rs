//! The exception hierarchy, and the one place where Rust's errors become exceptions.

use std::fmt::Display;

use bronze_core::{NotAccepted, PublishError, RecordFileError, StartError};
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tardis_feed::{RequestError, SessionError};

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

create_exception!(
    tardis_fast,
    ReplayError,
    TardisFastError,
    "A replay ended early. `status` is the HTTP status of the Tardis API if it refused, else None."
);

create_exception!(tardis_fast, ConfigError, TardisFastError, "A setting cannot be used.");

/// Adds the exceptions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("TardisFastError", py.get_type::<TardisFastError>())?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("ReplayError", py.get_type::<ReplayError>())?;
    module.add("InvalidMessageError", py.get_type::<InvalidMessageError>())?;
    module.add("InvalidEventError", py.get_type::<InvalidEventError>())
}

/// An option that cannot be used.
pub(crate) fn bad_option(error: impl Display) -> PyErr {
    ConfigError::new_err(error.to_string())
}

/// A publisher that cannot be started.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(crate) fn not_started(error: StartError) -> PyErr {
    match error {
        StartError::Config(error) => bad_option(error),
        StartError::Spill(_) | StartError::Runtime(_) => {
            TardisFastError::new_err(error.to_string())
        }
    }
}

/// Input that was not published.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(crate) fn not_published(error: PublishError) -> PyErr {
    match error {
        PublishError::Line(error) => bad_message(error),
        PublishError::Columns(_) | PublishError::Row { .. } => bad_events(error),
        PublishError::NotAccepted { .. } => TardisFastError::new_err(error.to_string()),
    }
}

/// Events that the publisher did not take.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(crate) fn not_accepted(error: NotAccepted) -> PyErr {
    TardisFastError::new_err(error.to_string())
}

/// A file of records that cannot be read.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(crate) fn bad_record_file(error: RecordFileError) -> PyErr {
    bad_events(error)
}

/// A text that is no message; the error says where.
pub(crate) fn bad_message(error: impl Display) -> PyErr {
    InvalidMessageError::new_err(error.to_string())
}

/// Events or columns that do not fit the schema; the error says where.
pub(crate) fn bad_events(error: impl Display) -> PyErr {
    InvalidEventError::new_err(error.to_string())
}

/// A request that is refused.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(crate) fn bad_request(error: RequestError) -> PyErr {
    bad_option(error)
}

/// A replay that ended early.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(crate) fn not_replayed(py: Python<'_>, error: SessionError) -> PyErr {
    let status = match &error {
        SessionError::Feed(error) => error.api_status(),
        SessionError::Line { .. }
        | SessionError::Map { .. }
        | SessionError::TooManyErrors { .. } => None,
    };
    let raised = ReplayError::new_err(error.to_string());
    match raised.value(py).setattr("status", status) {
        Ok(()) => raised,
        Err(failure) => failure,
    }
}

/// The runtime's threads cannot be started.
#[allow(clippy::needless_pass_by_value)] // as `map_err` gives it
pub(crate) fn no_runtime(error: std::io::Error) -> PyErr {
    TardisFastError::new_err(format!("the threads of the core cannot be started: {error}"))
}
