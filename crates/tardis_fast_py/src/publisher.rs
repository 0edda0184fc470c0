//! `Publisher`: batches into the buses, and what became of them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_array::{RecordBatch, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use bronze_core::{Level, PublisherOptions, columns};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns::payload_case;
use crate::encoder::{BronzeEncoder, ingest_time};
use crate::errors::{bad_events, bad_option, bad_record_file, not_published, not_started};
use crate::rows::EventBatches;

/// Publishes events to buses.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Publisher {
    pub(crate) publisher: Arc<bronze_core::Publisher>,
}

type NoticeTuple<'py> = (u8, &'static str, &'static str, String, Bound<'py, PyDict>);

#[pymethods]
impl Publisher {
    #[new]
    fn new(py: Python<'_>, options: &str) -> PyResult<Self> {
        let options = PublisherOptions::from_json(options).map_err(bad_option)?;
        let publisher = py.detach(|| bronze_core::Publisher::start(options));
        Ok(Self { publisher: Arc::new(publisher.map_err(not_started)?) })
    }

    /// Encodes normalized messages, one JSON object a line, and hands them to every bus.
    #[pyo3(signature = (encoder, lines, *, ingest_micros=None))]
    fn publish_json(
        &self,
        py: Python<'_>,
        encoder: &BronzeEncoder,
        lines: &[u8],
        ingest_micros: Option<i64>,
    ) -> PyResult<u64> {
        interruptible(py, |keep_waiting| {
            let mut encoder = encoder.lock();
            let ingest = ingest_time(ingest_micros);
            self.publisher.publish_json_lines(&mut encoder, lines, ingest, keep_waiting)
        })?
        .map_err(not_published)
    }

    /// Hands encoded events to every bus.
    fn publish_events(&self, py: Python<'_>, events: PyArrowType<ArrayData>) -> PyResult<u64> {
        interruptible(py, |keep_waiting| {
            let events = make_array(events.0);
            let rows = columns::event_bytes(&events).map_err(bad_events)?;
            self.publisher.publish_rows(&rows, keep_waiting).map_err(not_published)
        })?
    }

    /// Hands events that a `RowReader` made to every bus.
    fn publish_batches(&self, py: Python<'_>, events: &EventBatches) -> PyResult<u64> {
        interruptible(py, |keep_waiting| {
            self.publisher.publish_batches(&events.batches, keep_waiting)
        })?
        .map_err(not_published)
    }

    /// Hands the rows of Bronze columns to every bus.
    #[pyo3(signature = (batch, *, case=None))]
    #[allow(clippy::needless_pass_by_value)] // an argument is converted into a value of its own
    fn publish_columns(
        &self,
        py: Python<'_>,
        batch: PyArrowType<RecordBatch>,
        case: Option<&str>,
    ) -> PyResult<u64> {
        let case = case.map(payload_case).transpose()?;
        interruptible(py, |keep_waiting| {
            self.publisher.publish_columns(&batch.0, case, keep_waiting)
        })?
        .map_err(not_published)
    }

    /// Waits until nothing waits any more; says whether that came true in time.
    #[pyo3(signature = (timeout=None))]
    fn flush(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let patience = timeout.map_or(Ok(Duration::MAX), seconds)?;
        interruptible(py, |keep_waiting| self.publisher.flush(patience, keep_waiting))
    }

    /// Each bus's ledger, as JSON.
    fn stats(&self, py: Python<'_>) -> String {
        py.detach(|| self.publisher.stats_json())
    }

    /// Drains at most so many seconds, keeps the rest; what each bus left, as JSON.
    fn close(&self, py: Python<'_>, timeout: f64) -> PyResult<String> {
        let patience = seconds(timeout)?;
        Ok(py.detach(|| self.publisher.close_json(patience)))
    }

    /// Takes away what operators should know, waiting for it; nothing once closed.
    fn take_notices<'py>(
        &self,
        py: Python<'py>,
        timeout: f64,
    ) -> PyResult<Option<Vec<NoticeTuple<'py>>>> {
        let patience = seconds(timeout)?;
        let Some(notices) = py.detach(|| self.publisher.notices().take(patience)) else {
            return Ok(None);
        };
        let tuple = |notice: bronze_core::Notice| {
            let fields = PyDict::new(py);
            for (name, value) in notice.fields {
                fields.set_item(name, value)?;
            }
            if notice.held_back > 0 {
                fields.set_item("held_back", notice.held_back.to_string())?;
            }
            Ok((level_number(notice.level), notice.bus, notice.kind, notice.message, fields))
        };
        notices.into_iter().map(tuple).collect::<PyResult<_>>().map(Some)
    }
}

/// Validates options, and does nothing else.
#[pyfunction]
pub(crate) fn check_options(options: &str) -> PyResult<()> {
    PublisherOptions::from_json(options).and_then(PublisherOptions::validate).map_err(bad_option)
}

/// Validates options and tries every connection; the outcomes as JSON.
#[pyfunction]
pub(crate) fn check_buses(py: Python<'_>, options: &str) -> PyResult<String> {
    let options = PublisherOptions::from_json(options).map_err(bad_option)?;
    py.detach(|| bronze_core::Publisher::check_json(options)).map_err(not_started)
}

/// The events of a dead-letter file or spill segment, as record batches of reason, payload case and
/// event.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct DeadLetterReader {
    batches: Mutex<bronze_core::DeadLetterBatches>,
}

#[pymethods]
impl DeadLetterReader {
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        let batches = bronze_core::DeadLetterBatches::open(path).map_err(bad_record_file)?;
        Ok(Self { batches: Mutex::new(batches) })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = py.detach(|| {
            self.batches.lock().unwrap_or_else(PoisonError::into_inner).next().transpose()
        });
        next.map_err(bad_record_file)?.map(|batch| batch.to_pyarrow(py)).transpose()
    }
}

/// Runs something long without Python's lock, which ends early when a signal handler raises.
fn interruptible<T: Send>(
    py: Python<'_>,
    run: impl FnOnce(&mut dyn FnMut() -> bool) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        #[allow(clippy::redundant_closure_for_method_calls)] // the method is not general enough
        run(&mut || match Python::attach(|py| py.check_signals()) {
            Ok(()) => true,
            Err(error) => {
                raised = Some(error);
                false
            }
        })
    });
    raised.map_or(Ok(done), Err)
}

fn seconds(timeout: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout)
        .map_err(|error| bad_option(format!("timeout is {timeout}: {error}")))
}

/// The levels of Python's logging.
fn level_number(level: Level) -> u8 {
    match level {
        Level::Debug => 10,
        Level::Info => 20,
        Level::Warning => 30,
        Level::Error => 40,
    }
}
