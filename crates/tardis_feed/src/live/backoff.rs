//! How long to wait before a lost connection is made again.

use std::time::Duration;

use super::fault::Fault;
use super::pacing::LivePacing;

/// However long an exchange asks to stay away.
const LONGEST_ASKED: Duration = Duration::from_hours(1);

/// Counts failures in a row: the first new attempt is made nearly at once, later ones after a wait
/// that doubles. Waits are shortened by chance, so that many do not come back at the same moment.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    pacing: LivePacing,
}

impl Backoff {
    pub(super) fn new(pacing: LivePacing) -> Self {
        Self { failures: 0, pacing }
    }

    /// How long to wait after a connection that lasted for `lasted` and gave messages, or gave none.
    pub(super) fn wait(&mut self, lasted: Option<Duration>, fault: Option<&Fault>) -> Duration {
        let LivePacing {
            first_retry, retry, longest_retry, rate_limit_wait, healthy_after, ..
        } = self.pacing;
        if lasted.is_some_and(|lasted| lasted >= healthy_after) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        if let Some(fault) = fault.filter(|fault| fault.is_rate_limit()) {
            let wait = fault.retry_after.unwrap_or(rate_limit_wait.saturating_mul(self.failures));
            return wait.min(LONGEST_ASKED);
        }
        let longest = match self.failures {
            1 => first_retry,
            failures => {
                let doubled =
                    retry.saturating_mul(1_u32.checked_shl(failures - 2).unwrap_or(u32::MAX));
                doubled.min(longest_retry)
            }
        };
        longest.mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use market_data::ErrorCode;

    #[test]
    fn waits_double_up_to_a_bound_and_start_again_after_a_healthy_time() {
        let pacing = LivePacing::default();
        let mut backoff = Backoff::new(pacing);
        let seconds = [0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0];
        for longest in seconds {
            let wait = backoff.wait(Some(Duration::from_secs(9)), None).as_secs_f64();
            assert!((longest / 2.0..=longest).contains(&wait), "{wait} of {longest}");
        }
        for _ in 0..100 {
            assert!(backoff.wait(None, None) <= pacing.longest_retry);
        }
        assert!(backoff.wait(Some(pacing.healthy_after), None) <= pacing.first_retry);
        assert!(backoff.wait(None, None) > pacing.first_retry);
    }

    #[test]
    fn exchanges_that_ask_to_slow_down_are_obeyed() {
        let mut backoff = Backoff::new(LivePacing::default());
        let mut fault = Fault::new(ErrorCode::RateLimit, "429");
        assert_eq!(backoff.wait(None, Some(&fault)), Duration::from_secs(16));
        assert_eq!(backoff.wait(None, Some(&fault)), Duration::from_secs(32));
        fault.retry_after = Some(Duration::from_secs(70));
        assert_eq!(backoff.wait(None, Some(&fault)), Duration::from_secs(70));
        fault.retry_after = Some(Duration::from_hours(100));
        assert_eq!(backoff.wait(None, Some(&fault)), LONGEST_ASKED);
    }
}
