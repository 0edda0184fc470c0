//! How far a session is, over all of its streams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use market_data::Timestamp;
use serde_json::json;

use crate::progress::Progress;

/// Counters of a session. They can be read at any time, from any thread.
#[derive(Debug, Default)]
pub struct SessionProgress {
    messages: AtomicU64,
    /// Those that have ended too.
    streams: Mutex<Vec<Arc<Progress>>>,
}

impl SessionProgress {
    pub(super) fn add(&self, stream: &Arc<Progress>) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(stream));
    }

    pub(super) fn sent(&self, messages: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// All figures as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |of: fn(&Progress) -> u64| streams.iter().map(|stream| of(stream)).sum::<u64>();
        let reached = streams
            .iter()
            .filter_map(|stream| stream.market_time())
            .max_by_key(|time| time.micros());
        json!({
            "slices": sum(Progress::slices_done),
            "slices_total": sum(Progress::slices_total),
            "minutes": sum(Progress::minutes_done),
            "minutes_total": sum(Progress::minutes_total),
            "downloaded_bytes": sum(Progress::bytes_downloaded),
            "compressed_bytes": sum(Progress::compressed_bytes),
            "bytes": sum(Progress::decompressed_bytes),
            "messages": self.messages.load(Ordering::Relaxed),
            "market_time_us": reached.and_then(Timestamp::micros),
        })
        .to_string()
    }
}
