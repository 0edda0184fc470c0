//! The time of day, and waiting for it: which minutes the archive has already.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use market_data::Timestamp;

use crate::minute::Minute;

/// The archive is never quicker than this.
const MIN_WAIT_MINUTES: u32 = 6;
/// How long after a minute became available it is asked for.
const GRACE: Duration = Duration::from_millis(100);

/// The time of day.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    System,
    /// A clock that stands still unless somebody waits for it.
    #[cfg(test)]
    Manual(std::sync::Arc<std::sync::Mutex<Timestamp>>),
}

impl Clock {
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
            }
            #[cfg(test)]
            Self::Manual(now) => *now.lock().unwrap(),
        }
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        match self {
            Self::System => tokio::time::sleep(duration).await,
            #[cfg(test)]
            Self::Manual(now) => {
                let mut now = now.lock().unwrap();
                let waited = i64::try_from(duration.as_micros()).unwrap();
                *now = Timestamp::from_micros(micros(*now) + waited);
            }
        }
    }
}

/// When the minutes of a range become available.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Availability {
    /// How long after the fact a minute is there; `None` = all are taken to be there.
    delay: Option<Duration>,
}

impl Availability {
    pub(crate) fn new(wait_minutes: Option<u32>) -> Self {
        let minutes = wait_minutes.map(|minutes| minutes.max(MIN_WAIT_MINUTES));
        Self { delay: minutes.map(|minutes| Duration::from_secs(u64::from(minutes) * 60)) }
    }

    /// How long to wait until a minute can be asked for.
    pub(crate) fn wait(self, minute: Minute, now: Timestamp) -> Option<Duration> {
        let delay = i64::try_from(self.delay?.as_micros()).ok()?;
        let missing = micros(minute.start()).saturating_add(delay).saturating_sub(micros(now));
        let missing = u64::try_from(missing).ok().filter(|missing| *missing > 0)?;
        Some(Duration::from_micros(missing) + GRACE)
    }

    /// How many minutes of a range are there.
    pub(crate) fn available(self, from: Minute, minutes: u32, now: Timestamp) -> u32 {
        let Some(delay) = self.delay else { return minutes };
        let newest =
            micros(now).saturating_sub(i64::try_from(delay.as_micros()).unwrap_or(i64::MAX));
        // A minute is complete when the next one begins.
        let complete = Minute::of(Timestamp::from_micros(newest));
        complete.map_or(0, |next| next.since(from)).min(minutes)
    }
}

fn micros(time: Timestamp) -> i64 {
    time.micros().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn minutes_are_there_some_time_after_the_fact() {
        let from = Minute::of(time("2020-02-01T10:00:00Z")).unwrap();
        let half_hour = Availability::new(Some(30));
        for (now, available) in [
            ("2020-02-01T09:00:00Z", 0),
            ("2020-02-01T10:30:59Z", 0),
            ("2020-02-01T10:31:00Z", 1),
            ("2020-02-01T10:35:30Z", 5),
            ("2020-02-01T12:00:00Z", 20),
        ] {
            assert_eq!(half_hour.available(from, 20, time(now)), available, "{now}");
        }
        assert_eq!(Availability::new(None).available(from, 20, time("2019-01-01T00:00:00Z")), 20);
    }

    #[test]
    fn waits_last_until_a_minute_is_there() {
        let minute = Minute::of(time("2020-02-01T10:00:00Z")).unwrap();
        let wait = |minutes, now| Availability::new(minutes).wait(minute, time(now));
        let seconds = |seconds| Some(Duration::from_secs(seconds) + GRACE);
        assert_eq!(wait(Some(30), "2020-02-01T10:29:00Z"), seconds(60));
        assert_eq!(wait(Some(30), "2020-02-01T10:30:00Z"), None);
        // Never less than six minutes.
        assert_eq!(wait(Some(1), "2020-02-01T10:05:00Z"), seconds(60));
        assert_eq!(wait(None, "2020-02-01T09:00:00Z"), None);
    }
}
