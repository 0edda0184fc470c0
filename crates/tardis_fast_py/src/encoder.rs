//! `BronzeEncoder` and its inverse: JSON lines to events and back, whole chunks at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::{Array, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use bronze_core::{BookChanges, EncoderOptions, EventBuffer, Origin, columns, decode_json_lines};
use market_data::Timestamp;
use pyo3::prelude::*;

use crate::errors::{bad_events, bad_message, bad_option};

/// Encodes the messages of one session into Bronze events.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct BronzeEncoder {
    encoder: Mutex<bronze_core::BronzeEncoder>,
}

#[pymethods]
impl BronzeEncoder {
    #[new]
    #[pyo3(signature = (*, source="tardis-fast", origin="unspecified", meta=None, book_changes="level", first_seq=1))]
    fn new(
        source: &str,
        origin: &str,
        meta: Option<BTreeMap<String, String>>,
        book_changes: &str,
        first_seq: u64,
    ) -> PyResult<Self> {
        let options = EncoderOptions {
            source: source.to_owned(),
            origin: match origin {
                "unspecified" => Origin::Unspecified,
                "realtime" => Origin::Realtime,
                "replay" => Origin::Replay,
                "archive" => Origin::Archive,
                _ => {
                    return Err(bad_option(format!(
                        "origin is `{origin}`; use unspecified, realtime, replay or archive"
                    )));
                }
            },
            meta: meta.unwrap_or_default(),
            book_changes: match book_changes {
                "level" => BookChanges::Level,
                "message" => BookChanges::Message,
                _ => {
                    return Err(bad_option(format!(
                        "book_changes is `{book_changes}`; use level or message"
                    )));
                }
            },
            first_seq,
        };
        let encoder = bronze_core::BronzeEncoder::new(options).map_err(bad_option)?;
        Ok(Self { encoder: Mutex::new(encoder) })
    }

    /// `event_seq` of the next event.
    #[getter]
    fn next_seq(&self) -> u64 {
        self.lock().next_seq()
    }

    /// Encodes normalized messages, one JSON object a line, into a `pyarrow.BinaryArray`.
    ///
    /// All or nothing: if a line is no message, none is encoded and no number is used up.
    #[pyo3(signature = (lines, *, ingest_micros=None))]
    fn encode_json<'py>(
        &self,
        py: Python<'py>,
        lines: &[u8],
        ingest_micros: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let events = py.detach(|| {
            let ingest = ingest_time(ingest_micros);
            let mut events = EventBuffer::with_capacity(lines.len());
            let mut encoder = self.lock();
            encoder.encode_json_lines(lines, ingest, &mut events).map_err(bad_message)?;
            columns::buffer_to_events(events).map_err(bad_events)
        })?;
        events.to_data().to_pyarrow(py)
    }
}

/// Decodes Bronze events into normalized messages, one JSON object a line.
///
/// Book changes that were published a level at a time are put together again; with `per_event` each
/// event is a line of its own.
#[pyfunction]
#[pyo3(signature = (events, *, per_event=false))]
pub(crate) fn decode_to_json(
    py: Python<'_>,
    events: PyArrowType<ArrayData>,
    per_event: bool,
) -> PyResult<Vec<u8>> {
    py.detach(|| {
        let events = make_array(events.0);
        let rows = columns::event_bytes(&events).map_err(bad_events)?;
        decode_json_lines(rows, per_event).map_err(bad_events)
    })
}

impl BronzeEncoder {
    /// The encoder, for one caller at a time.
    pub(crate) fn lock(&self) -> MutexGuard<'_, bronze_core::BronzeEncoder> {
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a chunk came in: as given, else now.
pub(crate) fn ingest_time(micros: Option<i64>) -> Timestamp {
    micros.map_or_else(Timestamp::now, Timestamp::from_micros)
}
