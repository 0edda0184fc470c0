//! The options of a feed as programs are given them: few, and as JSON.

use std::path::PathBuf;

use serde::Deserialize;

use crate::error::FeedError;
use crate::options::{ApiKey, Compression, FeedOptions};

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    endpoint: Option<String>,
    api_key: Option<String>,
    cache_dir: Option<PathBuf>,
    compression: Option<String>,
    offline: Option<bool>,
    prefetch_mb: Option<usize>,
}

impl FeedOptions {
    /// Reads options from a JSON object; what is not there has its default.
    pub fn from_json(text: &str) -> Result<Self, FeedError> {
        let settings: Settings = serde_json::from_str(text).map_err(|error| FeedError::Option {
            option: "archive",
            // Only the place: the text around it may be a key.
            reason: format!("its options are not understood at column {}", error.column()),
        })?;
        let mut options = Self::default();
        if let Some(endpoint) = settings.endpoint {
            options.endpoint = endpoint;
        }
        if let Some(cache_dir) = settings.cache_dir {
            options.cache_dir = cache_dir;
        }
        if let Some(compression) = settings.compression {
            options.compression = compression.parse()?;
        }
        if let Some(prefetch_mb) = settings.prefetch_mb {
            options.prefetch_bytes = prefetch_mb.saturating_mul(1 << 20);
        }
        options.api_key = settings.api_key.and_then(ApiKey::new);
        options.offline = settings.offline.unwrap_or(false);
        Ok(options)
    }
}

impl std::str::FromStr for Compression {
    type Err = FeedError;

    fn from_str(name: &str) -> Result<Self, FeedError> {
        match name {
            "zstd" => Ok(Self::Zstd),
            "gzip" => Ok(Self::Gzip),
            _ => Err(FeedError::Option {
                option: "--compression",
                reason: format!("`{name}` is not known; use zstd or gzip"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_counts_and_the_rest_has_its_default() {
        let options = FeedOptions::from_json(
            r#"{"endpoint":"http://localhost/v1","compression":"gzip","api_key":"TD.x","prefetch_mb":2}"#,
        )
        .unwrap();
        assert_eq!(options.endpoint, "http://localhost/v1");
        assert_eq!(options.compression, Compression::Gzip);
        assert_eq!(options.api_key, ApiKey::new("TD.x"));
        assert_eq!(options.prefetch_bytes, 2 << 20);
        assert_eq!(options.cache_dir, FeedOptions::default().cache_dir);
        assert!(!options.offline);
    }

    #[test]
    fn bad_options_are_named_without_showing_secrets() {
        let error = FeedOptions::from_json(r#"{"api_key":["TD.secret"]}"#).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
        let error = FeedOptions::from_json(r#"{"compression":"rar"}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--compression cannot be used: `rar` is not known; use zstd or gzip"
        );
    }
}
