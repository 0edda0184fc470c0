//! `Archive`: where replays get their data.

use std::sync::Arc;

use pyo3::prelude::*;
use tardis_feed::{CachePart, FeedOptions};
use tokio::runtime::Handle;

use crate::errors::{bad_option, no_runtime};

/// The archive: where replays get their data. Replays of one archive share their connections.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Archive {
    pub(crate) archive: tardis_feed::Archive,
    pub(crate) runtime: Handle,
}

#[pymethods]
impl Archive {
    #[new]
    fn new(options: &str) -> PyResult<Self> {
        let options = Arc::new(FeedOptions::from_json(options).map_err(bad_option)?);
        let runtime = bronze_core::runtime().map_err(no_runtime)?;
        let archive = tardis_feed::Archive::new(options, &runtime).map_err(bad_option)?;
        Ok(Self { archive, runtime })
    }

    /// Removes a part of the cache, or all of it; filters are JSON, and each part needs those before
    /// it.
    #[pyo3(signature = (exchange=None, filters=None, year=None, month=None, day=None))]
    fn clear_cache(
        &self,
        py: Python<'_>,
        exchange: Option<&str>,
        filters: Option<&str>,
        year: Option<u16>,
        month: Option<u8>,
        day: Option<u8>,
    ) -> PyResult<()> {
        let filters = filters.map(tardis_feed::read_filters).transpose().map_err(bad_option)?;
        let part = CachePart { exchange, filters: filters.as_deref(), year, month, day };
        let cache_dir = self.archive.cache_dir();
        py.detach(|| tardis_feed::clear_cache(cache_dir, &part)).map_err(bad_option)
    }
}
