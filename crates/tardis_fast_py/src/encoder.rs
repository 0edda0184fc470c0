//! `BronzeEncoder` and its inverse: JSON lines to events and back, whole chunks at a time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::{Array, BinaryArray, make_array};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_pyarrow::{PyArrowType, ToPyArrow};
use bronze_core::{
    BookChanges, EncoderOptions, EventBuffer, MessageAssembler, Origin, columns, decode_event,
};
use market_data::{Timestamp, read_message, write_message};
use pyo3::prelude::*;

use crate::errors::{bad_events, bad_line, bad_option, bad_row};

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
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner).next_seq()
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
            let messages = json_lines(lines)
                .map(|(number, line)| read_message(line).map_err(|error| bad_line(number, error)))
                .collect::<PyResult<Vec<_>>>()?;
            let ingest = Timestamp::from_micros(ingest_micros.unwrap_or_else(now_micros));
            let mut events = EventBuffer::with_capacity(lines.len());
            let mut encoder = self.encoder.lock().unwrap_or_else(PoisonError::into_inner);
            for message in &messages {
                encoder.encode(message, ingest, &mut events);
            }
            binary_array(events)
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
        let mut lines = Vec::new();
        let mut assembler = MessageAssembler::default();
        for (row, bytes) in columns::event_bytes(&events).map_err(bad_events)?.iter().enumerate() {
            let event = decode_event(bytes).map_err(|error| bad_row(row, error))?;
            let message = if per_event {
                Some(event.message)
            } else {
                assembler.push(event).map_err(|error| bad_row(row, error))?
            };
            if let Some(message) = message {
                write_message(&mut lines, &message);
                lines.push(b'\n');
            }
        }
        assembler.finish().map_err(bad_events)?;
        Ok(lines)
    })
}

/// The lines that are not empty, with their numbers from 1.
fn json_lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    text.split(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
}

fn binary_array(events: EventBuffer) -> PyResult<BinaryArray> {
    let (bytes, ends) = events.into_parts();
    let too_large = || bad_option("the events of one call take more than 2 GiB; give fewer lines");
    let offsets = std::iter::once(0)
        .chain(ends)
        .map(i32::try_from)
        .collect::<Result<Vec<i32>, _>>()
        .map_err(|_| too_large())?;
    let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
    BinaryArray::try_new(offsets, Buffer::from_vec(bytes), None).map_err(bad_events)
}

fn now_micros() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}
