//! What goes wrong with a live connection.

use std::time::Duration;

use market_data::{ErrorCode, Timestamp};
use reqwest::header::HeaderMap;
use tokio_tungstenite::tungstenite;

use crate::api::retry_after;

/// As much of a text as an error shows.
const SHOWN_CHARACTERS: usize = 1_000;

/// Why a connection failed.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) code: ErrorCode,
    pub(super) details: String,
    /// How long the exchange asks to stay away.
    pub(super) retry_after: Option<Duration>,
}

impl Fault {
    pub(super) fn new(code: ErrorCode, details: impl Into<String>) -> Self {
        let mut details = details.into();
        if let Some((end, _)) = details.char_indices().nth(SHOWN_CHARACTERS) {
            details.truncate(end);
            details.push('…');
        }
        Self { code, details, retry_after: None }
    }

    pub(super) fn connect(details: impl Into<String>) -> Self {
        Self::new(ErrorCode::Connect, details)
    }

    /// An exchange's own error message.
    pub(super) fn refused(message: &[u8]) -> Self {
        let message = String::from_utf8_lossy(message);
        let lower = message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let code = if says(&["too many", "rate limit", "ratelimit", "429"]) {
            ErrorCode::RateLimit
        } else if says(&["unauthorized", "not authorized", "authentication", "api key", "login"]) {
            ErrorCode::Auth
        } else {
            ErrorCode::Connect
        };
        Self::new(code, format!("Received error message: {message}"))
    }

    /// An answer over HTTP that is no good, to what was asked at `place`.
    pub(super) fn status(status: u16, headers: &HeaderMap, place: &str) -> Self {
        /// What "you were told to slow down" costs where it does not say how long.
        const TEAPOT_WAIT: Duration = Duration::from_mins(2);
        let code = match status {
            418 | 429 => ErrorCode::RateLimit,
            401 | 403 => ErrorCode::Auth,
            _ => ErrorCode::Connect,
        };
        let asked = retry_after(headers, Timestamp::now());
        let retry_after = match status {
            418 => asked.or(Some(TEAPOT_WAIT)),
            429 | 503 => asked,
            _ => None,
        };
        Self { retry_after, ..Self::new(code, format!("{place} answered {status}")) }
    }

    /// What the WebSocket at `place` came to.
    pub(super) fn socket(error: tungstenite::Error, place: &str) -> Self {
        match error {
            tungstenite::Error::Http(response) => {
                Self::status(response.status().as_u16(), response.headers(), place)
            }
            other => Self::connect(format!("{place}: {other}")),
        }
    }

    pub(super) fn is_rate_limit(&self) -> bool {
        self.code == ErrorCode::RateLimit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_say_what_kind_they_are() {
        for (message, code) in [
            (r#"{"error":"Rate limit exceeded"}"#, ErrorCode::RateLimit),
            (r#"{"code":-1003,"msg":"Too many requests"}"#, ErrorCode::RateLimit),
            (r#"{"error":{"message":"unauthorized"}}"#, ErrorCode::Auth),
            (r#"{"error":"Unknown or expired symbol."}"#, ErrorCode::Connect),
        ] {
            let fault = Fault::refused(message.as_bytes());
            assert_eq!(fault.code, code, "{message}");
            assert_eq!(fault.details, format!("Received error message: {message}"));
        }
        let long = Fault::refused("é".repeat(5_000).as_bytes());
        assert_eq!(long.details.chars().count(), SHOWN_CHARACTERS + 1);
    }

    #[test]
    fn exchanges_say_how_long_to_stay_away() {
        let headers =
            HeaderMap::from_iter([("retry-after".parse().unwrap(), "7".parse().unwrap())]);
        let none = HeaderMap::new();
        let wait = |status, headers| Fault::status(status, headers, "it").retry_after;
        assert_eq!(wait(429, &headers), Some(Duration::from_secs(7)));
        assert_eq!(wait(429, &none), None);
        assert_eq!(wait(418, &none), Some(Duration::from_mins(2)));
        assert_eq!(wait(404, &headers), None);
        assert_eq!(Fault::status(403, &none, "it").code, ErrorCode::Auth);
        assert_eq!(Fault::status(500, &none, "it").details, "it answered 500");
    }
}
