//! One question to the API: its URL, and what its answer means.

use std::fmt::Write as _;
use std::time::Duration;

use market_data::Timestamp;
use reqwest::Response;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue, RETRY_AFTER};
use tokio::time::timeout;

use crate::error::FeedError;
use crate::filters::OptimisedFilters;
use crate::minute::Minute;
use crate::options::{ApiKey, Compression, RetryPolicy};
use crate::part::Part;

/// How much of an error's text is read, and how much is shown.
const ERROR_BYTES: usize = 16 << 10;
const ERROR_CHARACTERS: usize = 1_000;

/// Why an attempt gave no slice.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It would fail again.
    Final(FeedError),
    /// It may work the next time.
    Again(Fault),
}

/// What may be better the next time.
#[derive(Debug)]
pub(crate) enum Fault {
    Status { status: u16, text: String, retry_after: Option<Duration> },
    Network(String),
    Body(String),
}

impl Fault {
    /// How long to wait after attempt number `attempt`; `None` if it was the last.
    pub(crate) fn delay(&self, attempt: u32, policy: &RetryPolicy) -> Option<Duration> {
        if attempt >= policy.attempts {
            return None;
        }
        Some(match self {
            Self::Status { retry_after: Some(asked), .. } => (*asked).min(policy.max_retry_after),
            Self::Status { status: 429, .. } => policy.max_delay,
            _ => policy.delay(attempt),
        })
    }

    pub(crate) fn into_error(self, url: String, attempts: u32) -> FeedError {
        match self {
            Self::Status { status, text, .. } => FeedError::Api { status, text, url, attempts },
            Self::Network(reason) => {
                FeedError::Unreachable { url, attempts, reason, all_cached: false }
            }
            Self::Body(reason) => FeedError::BadBody { url, attempts, reason },
        }
    }
}

/// What is asked of the API, all but the part.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) endpoint: String,
    pub(crate) exchange: String,
    pub(crate) from: Minute,
    pub(crate) filters: OptimisedFilters,
    pub(crate) compression: Compression,
}

impl Question {
    pub(crate) fn url(&self, part: Part) -> String {
        let Self { endpoint, exchange, from, filters, compression } = self;
        let compression = match compression {
            Compression::Zstd => "zstd-multiframe",
            Compression::Gzip => "gzip",
        };
        let Part { offset, minutes } = part;
        let mut url = format!(
            "{endpoint}/data-feeds/{exchange}?from={from}&offset={offset}&compression={compression}"
        );
        if minutes > 1 {
            let _ = write!(url, "&sliceSize={minutes}");
        }
        if !filters.is_empty() {
            url.push_str("&filters=");
            url.push_str(&filters.url_encoded());
        }
        url
    }

    /// Asks, and gives the answer if it holds a slice.
    pub(crate) async fn ask(
        &self,
        client: &reqwest::Client,
        part: Part,
        patience: Duration,
        key: Option<&ApiKey>,
        now: Timestamp,
    ) -> Result<Answer, Failure> {
        let accepted = match self.compression {
            Compression::Zstd => "zstd, gzip",
            Compression::Gzip => "gzip",
        };
        let url = self.url(part);
        let request = client.get(&url).header(ACCEPT_ENCODING, accepted).send();
        let response = match timeout(patience, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Failure::Again(Fault::Network(describe(error)))),
            Err(_) => return Err(Failure::Again(Fault::Network(silence(patience)))),
        };
        let status = response.status().as_u16();
        if status != 200 {
            let retry_after = retry_after(response.headers(), now);
            let text = error_text(response, patience, key).await;
            return Err(if status == 429 || status >= 500 {
                Failure::Again(Fault::Status { status, text, retry_after })
            } else {
                Failure::Final(FeedError::Api { status, text, url, attempts: 1 })
            });
        }
        Answer::new(response, part)
            .map_err(|reason| Failure::Final(FeedError::Answer { url, reason }))
    }
}

/// An answer that holds a slice, of which the body is still to come.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) compression: Compression,
    /// How many minutes it covers.
    pub(crate) minutes: u32,
    /// How many minutes the API wants to be asked for.
    pub(crate) suggested_minutes: u32,
}

impl Answer {
    fn new(response: Response, part: Part) -> Result<Self, String> {
        let headers = response.headers();
        let compression = match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            Some(b"zstd") => Compression::Zstd,
            None | Some(b"gzip") => Compression::Gzip,
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                return Err(format!("its content encoding is `{other}`, not zstd or gzip"));
            }
        };
        let minutes = count(headers, "x-slice-size")?.unwrap_or(part.minutes);
        if minutes > part.minutes {
            return Err(format!(
                "it covers {minutes} minutes where {} were asked for",
                part.minutes
            ));
        }
        let suggested_minutes = count(headers, "x-suggested-slice-size")?.unwrap_or(1);
        Ok(Self { response, compression, minutes, suggested_minutes })
    }
}

fn count(headers: &HeaderMap, name: &str) -> Result<Option<u32>, String> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let count = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    match count.filter(|count| *count > 0) {
        Some(count) => Ok(Some(count)),
        None => Err(format!("its header {name} is {value:?}, not a number of minutes")),
    }
}

/// How long the API asks to wait: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    // Such as `Sun, 06 Nov 1994 08:49:37 GMT`.
    let [_, day, month, year, time, "GMT"] = text.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(month).filter(|at| month.len() == 3 && at % 3 == 0)? / 3 + 1;
    let until = Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z")).ok()?;
    let micros = until.micros()?.saturating_sub(now.micros()?);
    Some(Duration::from_micros(u64::try_from(micros).unwrap_or(0)))
}

/// What the API says about an error, as far as it fits into a message.
async fn error_text(mut response: Response, patience: Duration, key: Option<&ApiKey>) -> String {
    let mut bytes = Vec::new();
    while let Ok(Ok(Some(chunk))) = timeout(patience, response.chunk()).await {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ERROR_BYTES {
            break;
        }
    }
    let mut text = String::from_utf8_lossy(&bytes).trim().to_owned();
    if let Some(key) = key {
        text = text.replace(key.secret(), "***");
    }
    if let Some((end, _)) = text.char_indices().nth(ERROR_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

pub(crate) fn silence(patience: Duration) -> String {
    format!("nothing came for {} seconds", patience.as_secs_f64())
}

/// All that a client's error says, down to its cause.
pub(crate) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use market_data::Filter;

    fn question(filters: &[Filter], compression: Compression) -> Question {
        Question {
            endpoint: "https://a/v1".to_owned(),
            exchange: "bitmex".to_owned(),
            from: Minute::of(Timestamp::of_minute(2020, 2, 1, 3, 4)).unwrap(),
            filters: OptimisedFilters::new(filters),
            compression,
        }
    }

    #[test]
    fn the_url_says_what_is_asked() {
        let part = Part { offset: 7, minutes: 1 };
        assert_eq!(
            question(&[], Compression::Gzip).url(part),
            "https://a/v1/data-feeds/bitmex?from=2020-02-01T03:04:00.000Z&offset=7&compression=gzip"
        );
        let filter = Filter { channel: "trade".to_owned(), symbols: None };
        assert_eq!(
            question(&[filter], Compression::Zstd).url(Part { offset: 0, minutes: 10 }),
            "https://a/v1/data-feeds/bitmex?from=2020-02-01T03:04:00.000Z&offset=0\
             &compression=zstd-multiframe&sliceSize=10\
             &filters=%5B%7B%22channel%22%3A%22trade%22%7D%5D"
        );
    }

    #[test]
    fn the_api_says_how_long_to_wait() {
        let now = Timestamp::parse("1994-11-06T08:49:07.500Z").unwrap();
        let asked = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, now)
        };
        assert_eq!(asked("17"), Some(Duration::from_secs(17)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_millis(29_500)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        for nonsense in ["soon", "-1", "Sun, 06 anF 1994 08:49:37 GMT", "a b c d e f"] {
            assert_eq!(asked(nonsense), None, "{nonsense}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn waits_follow_the_api_then_the_policy() {
        let policy = RetryPolicy {
            attempts: 3,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_mins(1),
            max_retry_after: Duration::from_secs(100),
        };
        let status = |status, seconds: Option<u64>| Fault::Status {
            status,
            text: String::new(),
            retry_after: seconds.map(Duration::from_secs),
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(status(429, Some(7)).delay(1, &policy), seconds(7));
        assert_eq!(status(503, Some(1_000)).delay(1, &policy), seconds(100));
        assert_eq!(status(429, None).delay(2, &policy), seconds(60));
        assert!(status(500, None).delay(2, &policy) <= seconds(2));
        assert_eq!(status(429, Some(7)).delay(3, &policy), None);
    }
}
