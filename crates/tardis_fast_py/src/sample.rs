//! `SampleMarket`: a made-up market that answers as the Tardis API does.

use std::sync::{Mutex, PoisonError};

use market_data::Timestamp;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sample_market::SampleOptions;
use tardis_feed::{Compression, SampleConnection, SampleQuestion, sample_slice, sample_state};

use crate::errors::bad_option;

/// A made-up market, the same each time for the same options.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct SampleMarket {
    market: sample_market::SampleMarket,
}

#[pymethods]
impl SampleMarket {
    #[new]
    #[pyo3(signature = (*, seed=None, messages_per_second=None, book_levels=None))]
    fn new(seed: Option<u64>, messages_per_second: Option<u32>, book_levels: Option<u32>) -> Self {
        let default = SampleOptions::default();
        let options = SampleOptions {
            seed: seed.unwrap_or(default.seed),
            messages_per_second: messages_per_second.unwrap_or(default.messages_per_second),
            book_levels: book_levels.unwrap_or(default.book_levels),
            ..default
        };
        Self { market: sample_market::SampleMarket::new(options) }
    }

    /// The exchanges that it has.
    #[staticmethod]
    fn exchanges() -> Vec<&'static str> {
        sample_market::SampleMarket::exchanges().collect()
    }

    /// The compressed lines of `minutes` minutes, beginning `offset` minutes after `from_`.
    #[allow(clippy::too_many_arguments)] // the parameters of the API
    #[pyo3(signature = (exchange, from_, offset, minutes, filters, compression))]
    fn slice<'py>(
        &self,
        py: Python<'py>,
        exchange: &str,
        from_: &str,
        offset: i64,
        minutes: i64,
        filters: &str,
        compression: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let compression: Compression = compression.parse().map_err(bad_option)?;
        let question =
            SampleQuestion { exchange, from: from_, offset, minutes, filters, compression };
        let body = py.detach(|| sample_slice(&self.market, &question)).map_err(bad_option)?;
        Ok(PyBytes::new(py, &body))
    }

    /// A live connection to an exchange, made at `now`, in microseconds since 1970.
    fn connect(&self, exchange: &str, now: i64) -> PyResult<SampleStream> {
        let connection = SampleConnection::new(&self.market, exchange, Timestamp::from_micros(now));
        Ok(SampleStream { connection: Mutex::new(connection.map_err(bad_option)?) })
    }

    /// What an exchange answers over HTTP at `now`, to the first of `filters`, as JSON.
    fn state<'py>(
        &self,
        py: Python<'py>,
        exchange: &str,
        now: i64,
        filters: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let now = Timestamp::from_micros(now);
        let answer = py.detach(|| sample_state(&self.market, exchange, now, filters));
        Ok(PyBytes::new(py, &answer.map_err(bad_option)?))
    }
}

/// A live connection to an exchange of the sample market.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct SampleStream {
    connection: Mutex<SampleConnection>,
}

#[pymethods]
impl SampleStream {
    /// Subscribes to `filters`, and returns the snapshots that follow as WebSocket frames.
    fn subscribe<'py>(&self, py: Python<'py>, filters: &str) -> PyResult<Bound<'py, PyBytes>> {
        let frames = py.detach(|| {
            self.connection.lock().unwrap_or_else(PoisonError::into_inner).subscribe(filters)
        });
        Ok(PyBytes::new(py, &frames.map_err(bad_option)?))
    }

    /// All messages since the last time, up to `now` in microseconds since 1970, as WebSocket frames.
    fn frames<'py>(&self, py: Python<'py>, now: i64) -> PyResult<Bound<'py, PyBytes>> {
        let now = Timestamp::from_micros(now);
        let frames = py
            .detach(|| self.connection.lock().unwrap_or_else(PoisonError::into_inner).frames(now));
        Ok(PyBytes::new(py, &frames.map_err(bad_option)?))
    }
}
