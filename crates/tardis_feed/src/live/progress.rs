//! How a live session fares, over all of its connections.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use market_data::Timestamp;
use serde_json::json;

/// Counters of a live session. They can be read at any time, from any thread.
#[derive(Debug)]
pub struct LiveProgress {
    messages: AtomicU64,
    connections: AtomicU64,
    connected: AtomicU64,
    reconnects: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
    /// `i64::MIN` = none yet.
    last_message: AtomicI64,
}

impl Default for LiveProgress {
    fn default() -> Self {
        Self {
            messages: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            connected: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            last_error: Mutex::new(None),
            last_message: AtomicI64::new(i64::MIN),
        }
    }
}

impl LiveProgress {
    pub(super) fn planned(&self, connections: u64) {
        self.connections.fetch_add(connections, Ordering::Relaxed);
    }

    pub(super) fn sent(&self, messages: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
    }

    /// A connection is there until the answer is dropped; `again` if it was before.
    pub(super) fn connected(self: &Arc<Self>, again: bool) -> Connected {
        self.connected.fetch_add(1, Ordering::Relaxed);
        if again {
            self.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        Connected(Arc::clone(self))
    }

    pub(super) fn received(&self, at: Timestamp) {
        if let Some(micros) = at.micros() {
            self.last_message.fetch_max(micros, Ordering::Relaxed);
        }
    }

    pub(super) fn failed(&self, details: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let mut last = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(details.to_owned());
    }

    /// All figures as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let last = self.last_message.load(Ordering::Relaxed);
        json!({
            "messages": of(&self.messages),
            "connections": of(&self.connections),
            "connected": of(&self.connected),
            "reconnects": of(&self.reconnects),
            "errors": of(&self.errors),
            "last_error": *self.last_error.lock().unwrap_or_else(PoisonError::into_inner),
            "last_message_us": (last != i64::MIN).then_some(last),
        })
        .to_string()
    }
}

/// A connection that is there.
#[derive(Debug)]
pub(super) struct Connected(Arc<LiveProgress>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connected.fetch_sub(1, Ordering::Relaxed);
    }
}
