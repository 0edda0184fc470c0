//! librdkafka's properties: the operator's own, those that flags stand for, and ours.
//!
//! The operator's (`--kafka-config`) beat our defaults. Where one says something else than a flag that
//! was given, nobody can know which is meant, so it is refused and both are named. Names are kept as
//! librdkafka's own, not its aliases, so that one property is never there twice.

use std::collections::BTreeMap;
use std::fmt;

use rdkafka::config::{ClientConfig, NativeClientConfig};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;
use serde::Deserialize;

use crate::config_error::{ConfigError, ConfigFault};

/// The flag that takes any property.
pub(super) const CONFIG: &str = "--kafka-config";

/// Names that mean another property.
const ALIASES: [(&str, &str); 10] = [
    ("bootstrap.servers", "metadata.broker.list"),
    ("max.in.flight", "max.in.flight.requests.per.connection"),
    ("sasl.mechanism", "sasl.mechanisms"),
    ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
    ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"),
    ("linger.ms", "queue.buffering.max.ms"),
    ("retries", "message.send.max.retries"),
    ("compression.type", "compression.codec"),
    ("acks", "request.required.acks"),
    ("delivery.timeout.ms", "message.timeout.ms"),
];

/// Properties with these words in their names may hold secrets.
const SECRET_WORDS: [&str; 8] = [
    "password",
    "passphrase",
    "secret",
    "key.pem",
    "private.key",
    "jaas",
    "token",
    "oauthbearer.config",
];

/// Properties that would break a promise, with the reason and what to do instead.
const REFUSED: [(&str, &str, &str); 3] = [
    (
        "message.timeout.ms",
        "is how long an event is tried, which is said for all buses at once",
        "set --delivery-timeout-ms",
    ),
    (
        "transactional.id",
        "would make every event part of a transaction that nobody commits",
        "leave it out; --kafka-idempotent keeps retries from making duplicates",
    ),
    (
        "delivery.report.only.error",
        "would keep acknowledgements from being counted",
        "leave it out",
    ),
];

/// Properties that the direct client knows what to do with; with any other librdkafka publishes.
const OF_DIRECT: [&str; 9] = [
    "batch.num.messages",
    "batch.size",
    "client.id",
    "compression.codec",
    "enable.idempotence",
    "message.max.bytes",
    "queue.buffering.max.ms",
    "request.required.acks",
    "security.protocol",
];

/// What an option may be written as where people write it bare: `1`, `true`, `lz4`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Word {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
}

impl fmt::Display for Word {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(formatter),
            Self::Integer(value) => value.fmt(formatter),
            Self::Float(value) => value.fmt(formatter),
            Self::Text(value) => value.fmt(formatter),
        }
    }
}

/// Properties of librdkafka as the operator writes them. Debug output shows none of the values.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Properties {
    /// `name=value,name=value`; what has no `=` belongs to the value before it.
    Text(String),
    /// `name=value` each.
    List(Vec<String>),
    /// Pairs of name and value.
    Pairs(Vec<(String, Word)>),
    /// Values by name.
    Map(BTreeMap<String, Word>),
}

impl Default for Properties {
    fn default() -> Self {
        Self::Map(BTreeMap::new())
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

impl Properties {
    /// The properties by librdkafka's own names.
    fn read(&self) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut read = BTreeMap::new();
        for (name, value) in self.pairs()? {
            let name = own_name(name.trim()).to_owned();
            if read.insert(name.clone(), value).is_some() {
                return Err(ConfigFault::TwiceTheKey { key: name }.of(CONFIG));
            }
        }
        Ok(read)
    }

    fn pairs(&self) -> Result<Vec<(String, String)>, ConfigError> {
        match self {
            Self::Text(text) => {
                let mut pairs: Vec<(String, String)> = Vec::new();
                for entry in text.split(',').filter(|_| !text.trim().is_empty()) {
                    match (entry.contains('='), pairs.last_mut()) {
                        (false, Some((_, value))) => {
                            value.push(',');
                            value.push_str(entry.trim());
                        }
                        _ => pairs.push(split(entry)?),
                    }
                }
                Ok(pairs)
            }
            Self::List(entries) => entries.iter().map(|entry| split(entry)).collect(),
            Self::Pairs(pairs) => {
                Ok(pairs.iter().map(|(name, value)| (name.clone(), value.to_string())).collect())
            }
            Self::Map(map) => {
                Ok(map.iter().map(|(name, value)| (name.clone(), value.to_string())).collect())
            }
        }
    }
}

/// Splits `name=value`.
fn split(entry: &str) -> Result<(String, String), ConfigError> {
    if let Some((name, value)) = entry.split_once('=') {
        return Ok((name.trim().to_owned(), value.trim().to_owned()));
    }
    // What follows the name may be a secret behind a wrong sign.
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_');
    let name = entry.trim().split(ends).next().unwrap_or_default();
    Err(ConfigFault::unusable(name, "is no name=value", "write name=value,name=value").of(CONFIG))
}

/// librdkafka's own name of a property.
fn own_name(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
}

/// Whether a property's value may be a secret.
fn is_secret(name: &str) -> bool {
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// All properties of a producer, and who set each.
#[derive(Clone, Default)]
pub(super) struct ProducerConfig {
    values: BTreeMap<String, (String, Source)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Operator,
    Flag(&'static str),
    Default,
}

impl fmt::Debug for ProducerConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.values.keys()).finish()
    }
}

impl ProducerConfig {
    /// The operator's properties, each checked.
    pub(super) fn of(properties: &Properties) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        for (name, value) in properties.read()? {
            if let Some((_, problem, remedy)) =
                REFUSED.iter().find(|(refused, ..)| *refused == name)
            {
                return Err(ConfigFault::unusable(name, *problem, *remedy).of(CONFIG));
            }
            check(CONFIG, &name, &value)?;
            config.values.insert(name, (value, Source::Operator));
        }
        Ok(config)
    }

    /// Sets what a flag stands for; refused where the operator's property says something else.
    pub(super) fn set_flag(
        &mut self,
        flag: &'static str,
        name: &str,
        value: &str,
    ) -> Result<(), ConfigError> {
        let name = own_name(name);
        if let Some((other, Source::Operator)) = self.values.get(name)
            && other != value
        {
            let problem = if is_secret(name) {
                "they say different things".to_owned()
            } else {
                format!("one says `{value}`, the other `{other}`")
            };
            let other = format!("`{name}` of {CONFIG}");
            return Err(ConfigFault::contradiction(other, problem, "keep one of them").of(flag));
        }
        check(flag, name, value)?;
        self.values.insert(name.to_owned(), (value.to_owned(), Source::Flag(flag)));
        Ok(())
    }

    /// Sets what holds if nobody says otherwise.
    pub(super) fn set_default(&mut self, name: &str, value: impl Into<String>) {
        let name = own_name(name).to_owned();
        self.values.entry(name).or_insert_with(|| (value.into(), Source::Default));
    }

    /// The value of a property, if somebody set it.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(own_name(name)).map(|(value, _)| value.as_str())
    }

    /// How the operator wrote a property, for error texts.
    pub(super) fn source(&self, name: &str) -> String {
        match self.values.get(own_name(name)) {
            Some((_, Source::Flag(flag))) => (*flag).to_owned(),
            Some((_, Source::Operator)) => format!("`{name}` of {CONFIG}"),
            Some((_, Source::Default)) | None => format!("`{name}`"),
        }
    }

    /// How the operator wrote the first property that is librdkafka's alone, if any.
    pub(super) fn beyond_direct(&self) -> Option<String> {
        let names = self.values.iter().filter(|(_, (_, source))| *source == Source::Operator);
        let mut names = names.map(|(name, _)| name.as_str());
        names.find(|name| !OF_DIRECT.contains(name)).map(|name| self.source(name))
    }

    /// The values that no text may show, the longest first.
    pub(super) fn secrets(&self) -> Vec<String> {
        let secrets = self.values.iter().filter(|(name, _)| is_secret(name));
        let mut secrets: Vec<_> = secrets.map(|(_, (value, _))| value.clone()).collect();
        secrets.retain(|secret| !secret.is_empty());
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets
    }

    /// The configuration of rdkafka's client.
    pub(super) fn client_config(&self) -> ClientConfig {
        let pairs = self.values.iter().map(|(name, (value, _))| (name.clone(), value.clone()));
        pairs.collect()
    }

    /// The same without what makes a client touch network and files.
    pub(super) fn offline(&self) -> ClientConfig {
        const ONLINE: [&str; 6] =
            ["metadata.broker.list", "plugin.", "sasl.", "security.protocol", "ssl.", "test.mock."];
        let mut config = self.client_config();
        for name in
            self.values.keys().filter(|name| ONLINE.iter().any(|online| name.starts_with(online)))
        {
            config.remove(name);
        }
        config
    }

    /// librdkafka's view of all properties.
    pub(super) fn native(&self) -> Result<NativeClientConfig, ConfigError> {
        let native = self.client_config().create_native_config();
        native.map_err(|error| explain(CONFIG, &error))
    }
}

/// Has librdkafka check one property.
fn check(flag: &str, name: &str, value: &str) -> Result<(), ConfigError> {
    let mut config = ClientConfig::new();
    config.set(name, value);
    config.create_native_config().map(drop).map_err(|error| explain(flag, &error))
}

fn explain(flag: &str, error: &KafkaError) -> ConfigError {
    match error {
        KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, _, name, _) => {
            ConfigFault::unusable(name, "is no property of librdkafka", "see its CONFIGURATION.md")
                .of(flag)
        }
        KafkaError::ClientConfig(_, _, name, _) if is_secret(name) => {
            let problem = "has a value that librdkafka refuses";
            ConfigFault::unusable(name, problem, "see its CONFIGURATION.md").of(flag)
        }
        KafkaError::ClientConfig(_, reason, name, value) => ConfigFault::unusable(
            format!("{name}={value}"),
            format!("is refused by librdkafka: {reason}"),
            "see its CONFIGURATION.md",
        )
        .of(flag),
        KafkaError::Nul(_) => {
            ConfigFault::unusable("\\0", "is in a value, which ends it there", "remove it").of(flag)
        }
        other => {
            ConfigFault::unusable("", other.to_string(), "see librdkafka's documents").of(flag)
        }
    }
}
