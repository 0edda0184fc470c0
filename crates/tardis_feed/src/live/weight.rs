//! What may be asked of an exchange over HTTP in a minute.

use std::time::Duration;

use market_data::{ErrorCode, Timestamp};

use super::fault::Fault;

const MINUTE_MICROS: i64 = 60_000_000;
/// How long after the minute's end one goes on.
const GRACE: Duration = Duration::from_secs(1);

/// Weights of questions, against the limit of the exchange.
#[derive(Debug)]
pub(super) struct Weights {
    limit: u64,
    /// What is left to others.
    reserve: u64,
    used: u64,
}

impl Weights {
    pub(super) fn new(limit: u64, reserve: u64, used: u64) -> Self {
        Self { limit, reserve, used }
    }

    /// How long to wait until questions of this weight may be put; none at all if not.
    pub(super) fn wait(&self, weight: u64, now: Timestamp) -> Result<Option<Duration>, Fault> {
        let available = self.limit.saturating_sub(self.reserve);
        if weight > available {
            let details = format!(
                "a request of weight {weight} is over the limit of {available} a minute: name fewer \
                 symbols or raise the limit"
            );
            return Err(Fault::new(ErrorCode::RateLimit, details));
        }
        if self.left() >= weight {
            return Ok(None);
        }
        let into_minute = now.micros().unwrap_or(0).rem_euclid(MINUTE_MICROS);
        let left = u64::try_from(MINUTE_MICROS - into_minute).unwrap_or(0);
        Ok(Some(Duration::from_micros(left) + GRACE))
    }

    /// What may still be used in this minute.
    pub(super) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.reserve).saturating_sub(self.used)
    }

    /// A new minute has begun.
    pub(super) fn renew(&mut self) {
        self.used = 0;
    }

    /// Questions were put: the exchange says how much is used now, or it is added up.
    pub(super) fn used(&mut self, said: Option<u64>, weight: u64) {
        self.used = said.unwrap_or(self.used.saturating_add(weight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_wait_for_the_next_minute_when_the_limit_is_reached() {
        let now = Timestamp::parse("2024-01-01T00:00:45Z").unwrap();
        let mut weights = Weights::new(100, 20, 0);
        assert_eq!(weights.wait(80, now).unwrap(), None);
        weights.used(None, 30);
        assert_eq!((weights.left(), weights.wait(50, now).unwrap()), (50, None));
        weights.used(Some(70), 1);
        assert_eq!(weights.wait(11, now).unwrap(), Some(Duration::from_secs(16)));
        weights.renew();
        assert_eq!(weights.wait(80, now).unwrap(), None);
        assert!(weights.wait(81, now).unwrap_err().details.contains("name fewer symbols"));
    }
}
