//! The HTTP client under all streams of a process.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Url, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::FeedError;
use crate::options::FeedOptions;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;

/// The endpoint, without a slash at its end.
pub(crate) fn endpoint(options: &FeedOptions) -> Result<Url, FeedError> {
    // The text is left out of the error: there may be a password in it.
    let unusable =
        |reason: &str| FeedError::Option { option: "endpoint", reason: reason.to_owned() };
    let url = Url::parse(options.endpoint.trim_end_matches('/'))
        .map_err(|error| unusable(&format!("it is no URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(unusable("it must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(unusable(
            "it must not hold a user or password; the key is an option of its own",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(unusable("it must not have a query or fragment"));
    }
    Ok(url)
}

pub(crate) fn http_client(options: &FeedOptions, endpoint: &Url) -> Result<Client, FeedError> {
    let mut headers = HeaderMap::new();
    if let Some(key) = &options.api_key {
        let header = HeaderValue::from_str(&format!("Bearer {}", key.secret()));
        let mut header = header.map_err(|_| FeedError::Option {
            option: "api_key",
            reason: "it has characters that no key has".to_owned(),
        })?;
        header.set_sensitive(true);
        headers.insert(AUTHORIZATION, header);
    }
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls(endpoint.scheme() == "https")?)
        .user_agent(&options.user_agent)
        .default_headers(headers)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::limited(MAX_REDIRECTS));
    if is_loopback(endpoint) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| FeedError::Option {
        option: "user_agent",
        reason: format!("the HTTP client does not take it ({error})"),
    })
}

pub(crate) fn is_loopback(endpoint: &Url) -> bool {
    let host = endpoint.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// TLS with `ring`, said here so that no default of the process matters.
pub(crate) fn tls(is_needed: bool) -> Result<ClientConfig, FeedError> {
    let unusable = |error: rustls::Error| FeedError::Option {
        option: "endpoint",
        reason: format!("TLS could not be set up ({error}); are CA certificates installed?"),
    };
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
    };
    match builder().and_then(BuilderVerifierExt::with_platform_verifier) {
        Ok(trusting_the_system) => Ok(trusting_the_system.with_no_client_auth()),
        // A machine without certificates can still speak to an API without TLS.
        Err(_) if !is_needed => {
            let trusting_none = builder().map_err(unusable)?;
            let none = RootCertStore::empty();
            Ok(trusting_none.with_root_certificates(none).with_no_client_auth())
        }
        Err(error) => Err(unusable(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ApiKey;

    #[test]
    fn bad_endpoints_and_keys_are_refused_without_showing_secrets() {
        for bad in ["", "ftp://a", "https://me:hunter2@a/v1", "https://a/v1?x=hunter2", "hunter2"] {
            let options = FeedOptions { endpoint: bad.to_owned(), ..FeedOptions::default() };
            let error = endpoint(&options).unwrap_err().to_string();
            assert!(error.starts_with("endpoint cannot be used"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let api_key = ApiKey::new("hunter2\n");
        let options = FeedOptions { api_key, ..FeedOptions::default() };
        let url = endpoint(&options).unwrap();
        let error = http_client(&options, &url).unwrap_err().to_string();
        assert_eq!(error, "api_key cannot be used: it has characters that no key has");
    }

    #[test]
    fn a_slash_at_the_end_makes_no_difference() {
        for text in ["http://[::1]:8/v1", "http://[::1]:8/v1/"] {
            let options = FeedOptions { endpoint: text.to_owned(), ..FeedOptions::default() };
            let url = endpoint(&options).unwrap();
            assert_eq!(url.as_str(), "http://[::1]:8/v1");
            assert!(is_loopback(&url));
        }
    }
}
