//! One retry policy for all buses: bounded exponential backoff with full jitter, and a time after
//! which an event is given up.
//!
//! A bus says of each event what became of it, in three words: done, again, never. Whether and when
//! to try again is decided here alone.

use std::time::{Duration, Instant};

/// What became of one event of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The broker has it.
    Acknowledged,
    /// It did not arrive, or nobody knows; the same event may do so later.
    Transient(String),
    /// It will never be taken: too large, not authorised, no such destination.
    Permanent(String),
}

/// How failed events are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The longest wait before the first retry.
    pub initial_backoff: Duration,
    /// The longest wait before any retry.
    pub max_backoff: Duration,
    /// How long after its first sending an event is given up.
    pub delivery_timeout: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            initial_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(10),
            delivery_timeout: Duration::from_hours(1),
        }
    }
}

impl RetryPolicy {
    /// The longest wait before retry number `retry`, from 0.
    #[must_use]
    pub fn backoff(&self, retry: u32) -> Duration {
        let factor = 2u32.checked_pow(retry).unwrap_or(u32::MAX);
        self.initial_backoff.saturating_mul(factor).min(self.max_backoff)
    }
}

/// The attempts to deliver one batch.
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    policy: RetryPolicy,
    first: Instant,
    retries: u32,
}

impl Attempts {
    /// A batch that is sent for the first time at `now`.
    #[must_use]
    pub fn begin(policy: RetryPolicy, now: Instant) -> Self {
        Self { policy, first: now, retries: 0 }
    }

    /// How often it was tried again.
    #[must_use]
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// How long to wait before the next try; `None` if the batch is to be given up.
    ///
    /// `random` lies in 0..1: the wait is anything up to the backoff, so that many producers do not
    /// come back at once. A wait never passes the delivery time-out: the last try is at its end.
    pub fn next_wait(&mut self, now: Instant, random: f64) -> Option<Duration> {
        let left = self.policy.delivery_timeout.checked_sub(now - self.first)?;
        if left.is_zero() {
            return None;
        }
        let wait = self.policy.backoff(self.retries).mul_f64(random.clamp(0.0, 1.0));
        self.retries = self.retries.saturating_add(1);
        Some(wait.min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policy(initial: u64, max: u64, timeout: u64) -> RetryPolicy {
        RetryPolicy {
            initial_backoff: Duration::from_millis(initial),
            max_backoff: Duration::from_millis(max),
            delivery_timeout: Duration::from_millis(timeout),
        }
    }

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        let policy = policy(50, 1_000, 10_000);
        let waits: Vec<u128> = (0..7).map(|retry| policy.backoff(retry).as_millis()).collect();
        assert_eq!(waits, [50, 100, 200, 400, 800, 1_000, 1_000]);
        assert_eq!(policy.backoff(u32::MAX), policy.max_backoff);
    }

    proptest! {
        /// However long each try takes, waits stay within the backoff, the last try is not after
        /// the time-out, and there is an end.
        #[test]
        fn every_batch_is_given_up_in_time(
            initial in 1u64..100, growth in 0u64..1_000, timeout in 0u64..5_000,
            steps in proptest::collection::vec((0u64..500, 0.0f64..=1.0), 1..200),
        ) {
            let policy = policy(initial, initial + growth, timeout);
            let start = Instant::now();
            let mut now = start;
            let mut attempts = Attempts::begin(policy, start);
            for (takes, random) in steps {
                now += Duration::from_millis(takes);
                let retry = attempts.retries();
                let Some(wait) = attempts.next_wait(now, random) else {
                    prop_assert!(now - start >= policy.delivery_timeout);
                    break;
                };
                prop_assert!(wait <= policy.backoff(retry));
                now += wait;
                prop_assert!(now - start <= policy.delivery_timeout);
            }
        }
    }
}
