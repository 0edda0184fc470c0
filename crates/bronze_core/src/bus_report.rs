//! What a publisher says of its buses: at a moment, when asked to connect, at the end.

use std::path::PathBuf;

use market_data::Timestamp;
use serde_json::{Value, json};

use crate::bus::{ConnectError, Connected};
use crate::dispatcher::Left;
use crate::ledger::{LATENCY_BOUNDS, LedgerSnapshot};

/// A bus at one moment.
#[derive(Clone, Debug)]
pub struct BusStats {
    /// The bus.
    pub name: &'static str,
    /// Where its events are.
    pub ledger: LedgerSnapshot,
    /// Bytes of events that may be in memory.
    pub memory_limit_bytes: u64,
    /// Bytes that may wait on disk; none if nothing spills.
    pub spill_limit_bytes: u64,
    /// Whether it is connected.
    pub is_connected: bool,
    /// Its dead-letter file, if something was written to it.
    pub dead_letter_file: Option<PathBuf>,
}

impl BusStats {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let ledger = &self.ledger;
        json!({
            "accepted": ledger.accepted.events,
            "accepted_bytes": ledger.accepted.bytes,
            "acknowledged": ledger.acknowledged.events,
            "retried": ledger.retried_total,
            "dead_lettered": ledger.dead_lettered.events,
            "spilled": ledger.spilled.events,
            "spilled_bytes": ledger.spilled.bytes,
            "spilled_total": ledger.spilled_total,
            "dropped": ledger.dropped.events,
            "in_memory": ledger.in_memory.events,
            "in_memory_bytes": ledger.in_memory.bytes,
            "in_flight": ledger.in_flight.events,
            "in_flight_bytes": ledger.in_flight.bytes,
            "waiting": ledger.waiting(),
            "latency": {
                "bounds": LATENCY_BOUNDS,
                "buckets": ledger.latency.buckets,
                "sum_seconds": ledger.latency.sum_seconds,
            },
            "memory_limit_bytes": self.memory_limit_bytes,
            "spill_limit_bytes": self.spill_limit_bytes,
            "last_error": ledger.last_error,
            "last_error_us": ledger.last_error_at.and_then(Timestamp::micros),
            "connected": self.is_connected,
            "dead_letter_file": self.dead_letter_file,
        })
    }
}

/// What became of the attempt to connect to a bus.
#[derive(Clone, Debug)]
pub struct BusCheck {
    /// The bus.
    pub name: &'static str,
    /// The connection, or why there is none.
    pub outcome: Result<Connected, ConnectError>,
}

impl BusCheck {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (peer, warnings, error) = match &self.outcome {
            Ok(connected) => (Some(&connected.peer), connected.warnings.as_slice(), None),
            Err(error) => (None, [].as_slice(), Some(&error.reason)),
        };
        let is_ok = error.is_none();
        json!({
            "bus": self.name, "ok": is_ok, "peer": peer, "warnings": warnings, "error": error,
        })
    }
}

/// What became of a bus when the publisher was closed.
#[derive(Clone, Debug)]
pub struct BusLeft {
    /// The bus.
    pub name: &'static str,
    /// What it left.
    pub left: Left,
}

impl BusLeft {
    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({"left": self.left.events, "kept_in": self.left.kept_in})
    }
}
