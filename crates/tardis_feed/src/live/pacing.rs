//! How quickly things happen on live connections.

use std::time::Duration;

/// Waits and intervals of live connections. The defaults suit the exchanges; stand-ins for them may
/// be treated more briskly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePacing {
    /// The longest wait before the first new attempt after a connection that worked.
    pub first_retry: Duration,
    /// The wait before the second new attempt; it doubles with each one after it.
    pub retry: Duration,
    /// The longest wait before a new attempt.
    pub longest_retry: Duration,
    /// The wait after "too many requests" where the exchange does not say how long; it grows with
    /// each one in a row.
    pub rate_limit_wait: Duration,
    /// How long a connection must last until earlier failures are forgotten.
    pub healthy_after: Duration,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How often a connection is kept alive.
    pub ping_interval: Duration,
    /// How long to wait for the first messages before snapshots are fetched all the same.
    pub snapshot_patience: Duration,
    /// How long to wait between the first messages and the snapshots.
    pub snapshot_delay: Duration,
    /// How long an answer to a question over HTTP may take.
    pub rest_timeout: Duration,
    /// The wait before a question over HTTP is put again; it doubles with each one after it.
    pub rest_retry: Duration,
}

impl Default for LivePacing {
    fn default() -> Self {
        Self {
            first_retry: Duration::from_millis(250),
            retry: Duration::from_secs(1),
            longest_retry: Duration::from_secs(32),
            rate_limit_wait: Duration::from_secs(16),
            healthy_after: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            ping_interval: Duration::from_secs(5),
            snapshot_patience: Duration::from_secs(5),
            snapshot_delay: Duration::from_secs(1),
            rest_timeout: Duration::from_secs(10),
            rest_retry: Duration::from_millis(250),
        }
    }
}
