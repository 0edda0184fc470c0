//! What Kinesis and SQS share: keys and region, the HTTP client and its time-outs, what errors mean,
//! and how a key is made to fit.

mod connection;
mod failure;
mod fitted_key;

use std::error::Error;
use std::time::Duration;

use aws_config::imds::client::error::TokenError;
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_http_client::Builder as HttpClientBuilder;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;

use crate::bus::{Answer, ConnectError, Secret};
use crate::config_error::{ConfigError, ConfigFault};

pub(super) use connection::Connection;
use failure::full_text;
pub(super) use failure::{Failure, FailureKind, outcome_of_entry};
pub(super) use fitted_key::FittedKey;
#[cfg(feature = "sqs")]
pub(super) use fitted_key::sha256;

// Limits

/// How long making a TCP and TLS connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long AWS may take to answer a request, the connection included.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the default chain may look for a region or for keys. Where nobody answers at the address
/// of the EC2 metadata service it gives up by itself after a few seconds.
const CHAIN_TIMEOUT: Duration = Duration::from_secs(15);
/// How long connecting may take in all.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_mins(1);

// Options

/// What is true of one service of AWS, for error texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    /// What its flags begin with: `--kinesis`.
    pub(super) prefix: &'static str,
    /// The flags that name destinations.
    pub(super) destination_flags: &'static str,
    /// What the keys must be allowed to do.
    pub(super) action: &'static str,
}

/// The operator's options that both services have.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessOptions {
    pub(super) region: Option<String>,
    pub(super) access_key_id: Option<Secret>,
    pub(super) secret_access_key: Option<Secret>,
    pub(super) session_token: Option<Secret>,
    pub(super) endpoint_url: Option<String>,
}

/// How a service is reached.
#[derive(Clone, Debug)]
pub(super) struct Access {
    service: Service,
    pub(super) options: AccessOptions,
}

impl Access {
    /// Checks the options, without I/O.
    pub(super) fn validate(
        service: Service,
        mut options: AccessOptions,
    ) -> Result<Self, ConfigError> {
        let flag = |name: &str| format!("{}-{name}", service.prefix);
        for (name, secret) in [
            ("access-key-id", &options.access_key_id),
            ("secret-access-key", &options.secret_access_key),
            ("session-token", &options.session_token),
        ] {
            if secret.as_ref().is_some_and(|secret| secret.expose().trim().is_empty()) {
                let fault = ConfigFault::missing("give it a value, or leave the option out");
                return Err(fault.of(&flag(name)));
            }
        }
        let (id, key) = (flag("access-key-id"), flag("secret-access-key"));
        let both = "give both, or neither to use the default chain of AWS";
        match (&options.access_key_id, &options.secret_access_key, &options.session_token) {
            (Some(_), None, _) => {
                let remedy = format!("{id} is given without it; {both}");
                return Err(ConfigFault::missing(remedy).of(&key));
            }
            (None, Some(_), _) => {
                let remedy = format!("{key} is given without it; {both}");
                return Err(ConfigFault::missing(remedy).of(&id));
            }
            (None, None, Some(_)) => {
                let token = flag("session-token");
                let remedy = format!("{token} belongs to keys; give {id} and {key} too");
                return Err(ConfigFault::missing(remedy).of(&id));
            }
            _ => {}
        }
        options.region = trimmed(options.region);
        if let Some(region) = &options.region {
            check_region(region).map_err(|fault| fault.of(&flag("region")))?;
        }
        options.endpoint_url = trimmed(options.endpoint_url);
        if let Some(url) = &options.endpoint_url {
            check_url(url).map_err(|fault| fault.of(&flag("endpoint-url")))?;
        }
        Ok(Self { service, options })
    }
}

fn trimmed(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned())
}

fn check_region(region: &str) -> Result<(), ConfigFault> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if region.is_empty() || !region.chars().all(is_name) {
        return Err(ConfigFault::unusable(region, "is no region", "give one like `eu-west-1`"));
    }
    Ok(())
}

/// Refuses what is no URL with a host. One with a user name is refused without being shown, because
/// a password stands beside it.
pub(super) fn check_url(url: &str) -> Result<(), ConfigFault> {
    let remedy = "give one like `https://host:port`";
    let after = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = after.map(|after| after.split(['/', '?', '#']).next().unwrap_or_default());
    if url.contains('@') {
        return Err(ConfigFault::unusable("***", "has a user name in it", remedy));
    }
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '?' || c == '#';
    if host.is_none_or(str::is_empty) || url.contains(is_odd) {
        return Err(ConfigFault::unusable(url, "is no http or https URL", remedy));
    }
    Ok(())
}

// Connect

impl Access {
    /// Finds region and keys, so that what is missing is said at start and not event by event.
    ///
    /// Called again it reads the environment and the files of AWS again.
    pub(super) async fn load(&self) -> Result<SdkConfig, ConnectError> {
        let chain = async {
            let config = self.loader().load().await;
            self.check_region(&config)?;
            self.check_keys(&config).await?;
            Ok(config)
        };
        tokio::time::timeout(CHAIN_TIMEOUT, chain).await.unwrap_or_else(|_| {
            Err(ConnectError::transient(format!(
                "looking for a region and keys took longer than {CHAIN_TIMEOUT:?}"
            )))
        })
    }

    fn loader(&self) -> aws_config::ConfigLoader {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(ANSWER_TIMEOUT)
            .operation_attempt_timeout(ANSWER_TIMEOUT)
            .operation_timeout(ANSWER_TIMEOUT)
            .build();
        let http_client =
            HttpClientBuilder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        // The dispatcher tries again, and knows what may not be overtaken.
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .http_client(http_client)
            .timeout_config(timeouts)
            .retry_config(RetryConfig::disabled());
        let AccessOptions { region, access_key_id, secret_access_key, session_token, endpoint_url } =
            &self.options;
        if let Some(region) = region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(url) = endpoint_url {
            loader = loader.endpoint_url(url);
        }
        if let (Some(id), Some(key)) = (access_key_id, secret_access_key) {
            let token = session_token.as_ref().map(|token| token.expose().trim().to_owned());
            let (id, key) = (id.expose().trim(), key.expose().trim());
            loader = loader.credentials_provider(Credentials::new(id, key, token, None, "options"));
        }
        loader
    }

    fn check_region(&self, config: &SdkConfig) -> Result<(), ConnectError> {
        if config.region().is_some() {
            return Ok(());
        }
        let prefix = self.service.prefix;
        Err(ConnectError::permanent(format!(
            "no region: give {prefix}-region, set AWS_REGION, or name one in the profile"
        )))
    }

    async fn check_keys(&self, config: &SdkConfig) -> Result<(), ConnectError> {
        let prefix = self.service.prefix;
        let remedy = format!(
            "give {prefix}-access-key-id and {prefix}-secret-access-key, or let the default chain of \
             AWS find keys: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, a web identity, \
             or the role of the container or instance"
        );
        let Some(provider) = config.credentials_provider() else {
            return Err(ConnectError::permanent(format!("no keys: {remedy}")));
        };
        match provider.provide_credentials().await {
            Ok(_) => Ok(()),
            Err(CredentialsError::CredentialsNotLoaded(_)) => {
                Err(ConnectError::permanent(format!("no keys: {remedy}")))
            }
            Err(error) if metadata_service_refuses(&error) => Err(ConnectError::permanent(
                format!("no keys: the metadata service gives none to this machine; {remedy}"),
            )),
            Err(error @ CredentialsError::InvalidConfiguration(_)) => Err(ConnectError::permanent(
                format!("no keys: {}; correct it, or {remedy}", full_text(&error)),
            )),
            Err(error) => Err(ConnectError::transient(format!("no keys: {}", full_text(&error)))),
        }
    }

    /// What a failed request means for its events.
    ///
    /// Keys of the default chain that have expired may have been renewed: connecting again reads them
    /// again. Keys of the options never change.
    pub(super) fn answer_of(&self, failure: Failure) -> Answer {
        if failure.kind == FailureKind::KeysExpired && self.options.access_key_id.is_none() {
            return Answer::Disconnected(failure.reason);
        }
        Answer::All(failure.into_outcome())
    }
}

/// Whether the last of the default chain answered, and with a refusal: trying again is of no use.
fn metadata_service_refuses(error: &CredentialsError) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<SdkError<TokenError, HttpResponse>>() {
            let status = error.raw_response().map(HttpResponse::status);
            return status.is_some_and(|status| (400..500).contains(&status.as_u16()));
        }
        cause = error.source();
    }
    false
}

/// What a failed look at a destination means: a warning for a person, or no connection.
pub(super) fn warning_of(destination: &str, failure: Failure) -> Result<String, ConnectError> {
    match failure.kind {
        FailureKind::Transient => Err(ConnectError::transient(failure.reason)),
        FailureKind::KeysRefused | FailureKind::KeysExpired => {
            Err(ConnectError::permanent(failure.reason))
        }
        FailureKind::NotFound | FailureKind::Denied | FailureKind::Refused => {
            Ok(format!("`{destination}`: {}", failure.reason))
        }
    }
}

/// With whom a client of `config` speaks, for people.
pub(super) fn peer(config: &SdkConfig) -> String {
    let region = config.region().map_or("", Region::as_ref);
    match config.endpoint_url() {
        Some(url) => format!("{url} ({region})"),
        None => region.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retry::Outcome;

    const SERVICE: Service = Service {
        prefix: "--sqs",
        destination_flags: "--sqs-queue-url and --sqs-queue-routing",
        action: "sqs:SendMessage",
    };

    fn refusal(options: AccessOptions) -> String {
        Access::validate(SERVICE, options).unwrap_err().to_string()
    }

    #[test]
    fn half_a_pair_of_keys_is_refused_by_both_flags() {
        let both = "give both, or neither to use the default chain of AWS";
        let options =
            AccessOptions { access_key_id: Some("AKIA".into()), ..AccessOptions::default() };
        assert_eq!(
            refusal(options),
            format!(
                "--sqs-secret-access-key: it is missing; --sqs-access-key-id is given without it; \
                 {both}"
            )
        );
        let options =
            AccessOptions { secret_access_key: Some("s".into()), ..AccessOptions::default() };
        assert_eq!(
            refusal(options),
            format!(
                "--sqs-access-key-id: it is missing; --sqs-secret-access-key is given without it; \
                 {both}"
            )
        );
        let options =
            AccessOptions { session_token: Some("hush".into()), ..AccessOptions::default() };
        assert_eq!(
            refusal(options),
            "--sqs-access-key-id: it is missing; --sqs-session-token belongs to keys; give \
             --sqs-access-key-id and --sqs-secret-access-key too"
        );
        let options = AccessOptions { session_token: Some(" ".into()), ..AccessOptions::default() };
        assert_eq!(
            refusal(options),
            "--sqs-session-token: it is missing; give it a value, or leave the option out"
        );
    }

    #[test]
    fn a_region_and_an_endpoint_have_a_form() {
        let region = |text: &str| AccessOptions {
            region: Some(text.to_owned()),
            ..AccessOptions::default()
        };
        for text in ["", "Europe", "eu_west"] {
            assert_eq!(
                refusal(region(text)),
                format!("--sqs-region: `{text}` is no region; give one like `eu-west-1`")
            );
        }
        assert_eq!(
            Access::validate(SERVICE, region(" eu-west-1 ")).unwrap().options.region.as_deref(),
            Some("eu-west-1")
        );
        let endpoint = |text: &str| AccessOptions {
            endpoint_url: Some(text.to_owned()),
            ..AccessOptions::default()
        };
        for text in ["", "localhost:4566", "http://", "ftp://h", "http://h/?q=1", "http://a b"] {
            assert_eq!(
                refusal(endpoint(text)),
                format!(
                    "--sqs-endpoint-url: `{text}` is no http or https URL; give one like \
                     `https://host:port`"
                )
            );
        }
        assert_eq!(
            refusal(endpoint("http://me:hush@host")),
            "--sqs-endpoint-url: `***` has a user name in it; give one like `https://host:port`"
        );
        assert!(Access::validate(SERVICE, endpoint("http://127.0.0.1:4566/")).is_ok());
    }

    #[test]
    fn keys_of_the_options_are_not_read_again_nor_shown() {
        let options = AccessOptions {
            access_key_id: Some("hush-id".into()),
            secret_access_key: Some("hush-key".into()),
            session_token: Some("hush-token".into()),
            ..AccessOptions::default()
        };
        let access = Access::validate(SERVICE, options).unwrap();
        let expired = || Failure { kind: FailureKind::KeysExpired, reason: "expired".to_owned() };
        assert!(matches!(access.answer_of(expired()), Answer::All(Outcome::Permanent(_))));
        let chain = Access::validate(SERVICE, AccessOptions::default()).unwrap();
        assert_eq!(chain.answer_of(expired()), Answer::Disconnected("expired".to_owned()));
        assert!(!format!("{access:?}").contains("hush"));
        assert!(!format!("{:?}", access.loader()).contains("hush-key"));
    }
}
