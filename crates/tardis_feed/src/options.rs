//! What a feed from the archive can be told.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use market_data::Filter;

use crate::minute::Minute;

/// Where the archive is and how it is read.
#[derive(Clone, Debug)]
pub struct FeedOptions {
    /// The address of the Tardis API.
    pub endpoint: String,
    /// The key; the first day of each month needs none.
    pub api_key: Option<ApiKey>,
    /// Where slices are kept.
    pub cache_dir: PathBuf,
    /// What is asked of the API; slices in the cache are read whatever they are.
    pub compression: Compression,
    /// How this program introduces itself to the API.
    pub user_agent: String,
    /// How many bytes of decompressed lines may wait for their reader, for each stream. A block more
    /// may be on its way.
    pub prefetch_bytes: usize,
    /// How many downloads of a stream run at once.
    pub download_concurrency: usize,
    /// How many slices may be fetched before they are read.
    pub slices_ahead: usize,
    /// How failed downloads are tried again.
    pub retry: RetryPolicy,
    /// How long the API may send nothing before an attempt counts as failed.
    pub attempt_timeout: Duration,
    /// Remove each slice from the cache once it is read.
    pub auto_cleanup: bool,
    /// Read the cache alone and never ask the API.
    pub offline: bool,
    /// The longest line that is still one, in bytes.
    pub max_line_bytes: usize,
}

impl Default for FeedOptions {
    fn default() -> Self {
        Self {
            endpoint: "https://api.tardis.dev/v1".to_owned(),
            api_key: None,
            cache_dir: std::env::temp_dir().join(".tardis-cache"),
            compression: Compression::Zstd,
            user_agent: concat!("tardis-fast/", env!("CARGO_PKG_VERSION")).to_owned(),
            prefetch_bytes: 4 << 20,
            download_concurrency: 60,
            slices_ahead: 120,
            retry: RetryPolicy::default(),
            attempt_timeout: Duration::from_secs(135),
            auto_cleanup: false,
            offline: false,
            max_line_bytes: 64 << 20,
        }
    }
}

/// A key of the Tardis API. It prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key; an empty text is none.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Option<Self> {
        Some(key.into()).filter(|key| !key.is_empty()).map(Self)
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// How slices are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Zstandard, in one frame or several.
    Zstd,
    /// Gzip, in one member or several.
    Gzip,
}

impl Compression {
    /// How the name of such a slice ends.
    pub(crate) const fn extension(self) -> &'static str {
        match self {
            Self::Zstd => "zst",
            Self::Gzip => "gz",
        }
    }
}

/// How failed downloads are tried again: after a wait that doubles, up to a bound, and is shortened
/// by chance so that many do not come back at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a slice is asked for, the first time included.
    pub attempts: u32,
    /// The longest wait before the second attempt.
    pub base_delay: Duration,
    /// The longest wait before any attempt, and the wait after "too many requests" if the API does
    /// not say how long.
    pub max_delay: Duration,
    /// The longest wait the API may ask for.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 12,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_mins(1),
            max_retry_after: Duration::from_hours(1),
        }
    }
}

impl RetryPolicy {
    /// The wait after attempt number `attempt`, from 1.
    pub(crate) fn delay(&self, attempt: u32) -> Duration {
        let doubled = 2u32.saturating_pow(attempt.saturating_sub(1));
        let longest = self.base_delay.saturating_mul(doubled).min(self.max_delay);
        longest.mul_f64(0.5 + 0.5 * fastrand::f64())
    }
}

/// What is replayed: the messages of an exchange from one minute up to, but not with, another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceRange {
    /// The exchange's id.
    pub exchange: String,
    /// The first minute.
    pub from: Minute,
    /// The first minute after the range.
    pub to: Minute,
    /// The channels and symbols; none = all.
    pub filters: Vec<Filter>,
    /// Wait for minutes that are not there yet: how many minutes after the fact (at least 6) they are
    /// taken to be. `None` = do not wait.
    pub wait_when_data_not_yet_available: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_print() {
        let options = FeedOptions { api_key: ApiKey::new("TD.secret"), ..FeedOptions::default() };
        let text = format!("{options:?}");
        assert!(text.contains("***") && !text.contains("secret"), "{text}");
        assert_eq!(ApiKey::new(""), None);
    }

    #[test]
    fn waits_double_up_to_their_bound() {
        let policy = RetryPolicy {
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(9),
            ..RetryPolicy::default()
        };
        for (attempt, longest) in [(1, 2), (2, 4), (3, 8), (4, 9), (40, 9)] {
            let (delay, longest) = (policy.delay(attempt), Duration::from_secs(longest));
            assert!(delay <= longest && delay >= longest / 2, "{attempt}: {delay:?}");
        }
    }
}
