//! The operator's options, and what they come to: everything wrong with them is refused here, without
//! touching network or files.

use std::time::Duration;

use rdkafka::config::{FromClientConfigAndContext, NativeClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::producer::BaseProducer;
use serde::Deserialize;

use super::direct::{BrokerAddress, Codec, DirectSettings};
use super::librdkafka::Callbacks;
use super::properties::{CONFIG, ProducerConfig, Properties, Word};
use super::record::RecordForm;
use crate::bus::{BatchOptions, Names, Pairs, Secret};
use crate::config_error::{ConfigError, ConfigFault};
use crate::config_list;
use crate::delivery::DeliveryOptions;
use crate::notice::Notices;
use crate::payload_case::PayloadCase;
use crate::payload_filter::PayloadFilter;
use crate::route::Route;
use crate::template::Template;

const ACKS: &str = "--kafka-acks";
const BROKERS: &str = "--kafka-brokers";
const CLIENT: &str = "--kafka-client";
const CLIENT_ID: &str = "--kafka-client-id";
const COMPRESSION: &str = "--kafka-compression";
const IDEMPOTENT: &str = "--kafka-idempotent";
const KEY_TEMPLATE: &str = "--kafka-key-template";
const MECHANISM: &str = "--kafka-sasl-mechanism";
const META_HEADERS_PREFIX: &str = "--kafka-meta-headers-prefix";
const PASSWORD: &str = "--kafka-sasl-password";
const SSL: &str = "--kafka-ssl";
const SSL_CA: &str = "--kafka-ssl-ca";
const STATIC_HEADERS: &str = "--kafka-static-headers";
const TOPIC: &str = "--kafka-topic";
const TOPIC_ROUTING: &str = "--kafka-topic-routing";
const USERNAME: &str = "--kafka-sasl-username";

/// Where brokers listen if nobody says otherwise.
const DEFAULT_PORT: u16 = 9092;
/// The longest time that librdkafka can count.
const LONGEST_MS: u64 = i32::MAX as u64;
/// The most records that librdkafka puts in a batch.
const MOST_RECORDS: usize = 1_000_000;

/// Options of the Kafka bus.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KafkaOptions {
    /// Brokers to ask for the cluster: `host:port,host:port`.
    pub brokers: Names,
    /// The topic of all events that have none of their own.
    pub topic: Option<String>,
    /// Topics by payload case: `trade:trades,quote:quotes`.
    pub topic_routing: Pairs,
    /// The payload cases that are published; all if empty.
    pub include_payloads: Names,
    /// How the brokers call this client in their logs and quotas; `tardis-fast` if absent.
    pub client_id: Option<String>,
    /// Which client publishes: `direct` or `librdkafka`; if absent `direct` where it can do what the
    /// other options ask for.
    pub client: Option<String>,
    /// Whether connections are encrypted.
    pub ssl: Option<bool>,
    /// Who vouches for the brokers: a PEM file, or the PEM text itself; the system's if absent.
    pub ssl_ca: Option<String>,
    /// `plain`, `scram-sha-256` or `scram-sha-512`.
    pub sasl_mechanism: Option<String>,
    /// The user.
    pub sasl_username: Option<String>,
    /// The user's password.
    pub sasl_password: Option<Secret>,
    /// The record's key; `{{exchange}}|{{symbol}}|{{payloadCase}}` if absent. Where it renders to
    /// nothing the record has no key and goes to any partition.
    pub key_template: Option<String>,
    /// Headers of every record: `name:value,name:value`.
    pub static_headers: Pairs,
    /// Makes each pair of `meta` a header whose name begins so; none if absent.
    pub meta_headers_prefix: Option<String>,
    /// `none`, `gzip`, `snappy`, `lz4` or `zstd`; `lz4` if absent: every broker since 0.10 takes it,
    /// and it makes batches of events several times smaller for little work.
    pub compression: Option<String>,
    /// Whose acknowledgement counts: `all` (or -1), the leader's (1), nobody's (0); `all` if absent.
    pub acks: Option<Word>,
    /// Whether retries make no duplicates; true if absent, unless `acks` is not `all`. Without it one
    /// request is in flight to a broker, or retries would change the order.
    pub idempotent: Option<bool>,
    /// Records in a batch.
    pub max_batch_size: Option<u64>,
    /// Milliseconds a record waits for others to fill its batch.
    pub max_batch_delay_ms: Option<u64>,
    /// Any property of librdkafka: `name=value,name=value`.
    pub config: Properties,
}

/// What the options come to.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) route: Route,
    pub(super) filter: PayloadFilter,
    pub(super) form: RecordForm,
    pub(super) config: ProducerConfig,
    /// For the direct client, if that is the one that publishes.
    pub(super) direct: Option<DirectSettings>,
    /// `message.max.bytes`.
    pub(super) largest: usize,
    pub(super) delivery_timeout: Duration,
}

impl KafkaOptions {
    /// Checks everything.
    pub(super) fn settings(&self, delivery: &DeliveryOptions) -> Result<Settings, ConfigError> {
        let timeout_ms = delivery.delivery_timeout_ms.clamp(1, LONGEST_MS);
        let config = self.producer_config(timeout_ms)?;
        let native = config.native()?;
        let largest = native.get("message.max.bytes").ok();
        let largest = largest.and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
        let direct = self.direct(&config, &native, largest)?;
        let delivery_timeout = Duration::from_millis(timeout_ms);
        Ok(Settings {
            route: self.route()?,
            filter: self.include_payloads.payload_filter("--kafka-include-payloads")?,
            form: self.form()?,
            config,
            direct,
            largest,
            delivery_timeout,
        })
    }

    /// What the direct client needs to know, if it is the one that publishes.
    fn direct(
        &self,
        config: &ProducerConfig,
        native: &NativeClientConfig,
        largest: usize,
    ) -> Result<Option<DirectSettings>, ConfigError> {
        let wanted = match &self.client {
            Some(client) => Some(one_of(CLIENT, client, &["direct", "librdkafka"])?),
            None => None,
        };
        if wanted.as_deref() == Some("librdkafka") {
            return Ok(None);
        }
        let number = |name, otherwise: f64| {
            let text = native.get(name).ok();
            text.and_then(|text| text.parse().ok()).unwrap_or(otherwise)
        };
        let codec = config.get("compression.codec").unwrap_or_default();
        let acks = config.get("acks").unwrap_or_default();
        let obstacle = config.beyond_direct().or_else(|| {
            let cannot = |name: &str| config.source(name);
            if config.get("security.protocol") != Some("plaintext") {
                return Some(cannot("security.protocol"));
            }
            if Codec::of(codec).is_none() {
                return Some(cannot("compression.codec"));
            }
            (!matches!(acks, "-1" | "all" | "1")).then(|| cannot("acks"))
        });
        let (None, Some(codec)) = (&obstacle, Codec::of(codec)) else {
            if wanted.is_some() {
                let problem = "the direct client cannot do that";
                let other = obstacle.unwrap_or_default();
                let remedy = "leave one of them out";
                return Err(ConfigFault::contradiction(other, problem, remedy).of(CLIENT));
            }
            return Ok(None);
        };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // librdkafka has checked it
        let whole = |name, otherwise| number(name, otherwise) as usize;
        let brokers = config.get("bootstrap.servers").unwrap_or_default();
        Ok(Some(DirectSettings {
            bootstrap: brokers.split(',').filter_map(broker_address).collect(),
            client_id: config.get("client.id").unwrap_or_default().to_owned(),
            codec,
            acks: if acks == "1" { 1 } else { -1 },
            idempotent: matches!(config.get("enable.idempotence"), Some("true" | "1" | "t")),
            linger: Duration::from_secs_f64(number("linger.ms", 5.0).max(0.0) / 1_000.0),
            batch_events: whole("batch.num.messages", 10_000.0).max(1),
            batch_bytes: whole("batch.size", 1_000_000.0).min(largest),
        }))
    }

    fn route(&self) -> Result<Route, ConfigError> {
        let Some(topic) = &self.topic else {
            return Err(ConfigFault::missing("name the topic of the events").of(TOPIC));
        };
        let base = Route::to(TOPIC, topic)?;
        check_topic(TOPIC, &base.destinations()[0])?;
        let route = self.topic_routing.add_to(base, TOPIC_ROUTING)?;
        for topic in route.destinations() {
            check_topic(TOPIC_ROUTING, topic)?;
        }
        Ok(route)
    }

    fn form(&self) -> Result<RecordForm, ConfigError> {
        let key = match self.key_template.as_deref().map(str::trim) {
            None => Template::default_key(),
            Some("") => {
                let remedy = "leave it out for `{{exchange}}|{{symbol}}|{{payloadCase}}`";
                return Err(ConfigFault::unusable("", "is empty", remedy).of(KEY_TEMPLATE));
            }
            Some(text) => Template::of_flag(KEY_TEMPLATE, text)?,
        };
        let static_headers = self.static_headers.static_pairs(STATIC_HEADERS)?;
        for own in RecordForm::OWN_HEADERS {
            if static_headers.get(own).is_some() {
                let problem = "is a header that every record has already";
                let fault = ConfigFault::unusable(own, problem, "give yours another name");
                return Err(fault.of(STATIC_HEADERS));
            }
        }
        if self.meta_headers_prefix.as_ref().is_some_and(|prefix| prefix.trim().is_empty()) {
            let remedy = "give one such as `meta-`, or leave it out for no headers of `meta`";
            return Err(ConfigFault::unusable("", "is empty", remedy).of(META_HEADERS_PREFIX));
        }
        Ok(RecordForm {
            key,
            static_headers,
            meta_headers_prefix: self.meta_headers_prefix.clone(),
        })
    }

    fn producer_config(&self, timeout_ms: u64) -> Result<ProducerConfig, ConfigError> {
        let mut config = ProducerConfig::of(&self.config)?;
        config.set_flag(BROKERS, "bootstrap.servers", &self.brokers()?)?;
        if let Some(id) = &self.client_id {
            if id.trim().is_empty() {
                let remedy = "leave it out for `tardis-fast`";
                return Err(ConfigFault::unusable(id, "is empty", remedy).of(CLIENT_ID));
            }
            config.set_flag(CLIENT_ID, "client.id", id.trim())?;
        }
        if let Some(codec) = &self.compression {
            let codecs = ["none", "gzip", "snappy", "lz4", "zstd"];
            let codec = one_of(COMPRESSION, codec, &codecs)?;
            config.set_flag(COMPRESSION, "compression.codec", &codec)?;
        }
        self.set_acks(&mut config)?;
        self.set_security(&mut config)?;
        self.set_batches(&mut config)?;
        for (name, value) in [
            ("client.id", "tardis-fast"),
            ("compression.codec", "lz4"),
            // Keys go where the Java client, and the Node.js one before us, put them.
            ("partitioner", "murmur2_random"),
            ("socket.keepalive.enable", "true"),
            // What waits in librdkafka is bounded by the requests in flight; this is their sum for a
            // topic per payload case.
            ("queue.buffering.max.messages", "500000"),
            ("queue.buffering.max.kbytes", "262144"),
            // For so long a topic that is not there may be one that was just made.
            ("topic.metadata.propagation.max.ms", "5000"),
        ] {
            config.set_default(name, value);
        }
        config.set_default("message.timeout.ms", timeout_ms.to_string());
        try_out(&config)?;
        Ok(config)
    }

    fn brokers(&self) -> Result<String, ConfigError> {
        let brokers: Vec<&str> = match &self.brokers {
            Names::Text(text) => config_list::entries(text)
                .collect::<Result<_, _>>()
                .map_err(|fault| fault.of(BROKERS))?,
            Names::List(list) => list.iter().map(|broker| broker.trim()).collect(),
        };
        if brokers.is_empty() {
            return Err(ConfigFault::missing("name at least one broker as host:port").of(BROKERS));
        }
        for broker in &brokers {
            if !is_host_and_port(broker) {
                let fault = ConfigFault::unusable(*broker, "is no broker", "write host:port");
                return Err(fault.of(BROKERS));
            }
        }
        Ok(brokers.join(","))
    }

    fn set_acks(&self, config: &mut ProducerConfig) -> Result<(), ConfigError> {
        if let Some(acks) = &self.acks {
            let acks = one_of(ACKS, &acks.to_string(), &["all", "-1", "1", "0"])?;
            let acks = if acks == "all" { "-1" } else { &acks };
            // The operator's own may be written in words as well.
            let same = acks == "-1" && config.get("acks") == Some("all");
            config.set_flag(ACKS, "acks", if same { "all" } else { acks })?;
        }
        config.set_default("acks", "-1");
        let all_acknowledge = matches!(config.get("acks"), Some("-1" | "all"));
        if let Some(idempotent) = self.idempotent {
            config.set_flag(IDEMPOTENT, "enable.idempotence", &idempotent.to_string())?;
        }
        config.set_default("enable.idempotence", all_acknowledge.to_string());
        let idempotent = matches!(config.get("enable.idempotence"), Some("true" | "1" | "t"));
        if idempotent && !all_acknowledge {
            let problem =
                "without the acknowledgement of all replicas a retry may make a duplicate";
            let other = config.source("acks");
            let remedy = "set acks to all, or idempotent to false";
            let flag = config.source("enable.idempotence");
            return Err(ConfigFault::contradiction(other, problem, remedy).of(&flag));
        }
        if !idempotent {
            config.set_default("max.in.flight", "1");
        }
        Ok(())
    }

    fn set_security(&self, config: &mut ProducerConfig) -> Result<(), ConfigError> {
        if let Some(mechanism) = &self.sasl_mechanism {
            let mechanisms = ["plain", "scram-sha-256", "scram-sha-512"];
            let mechanism = one_of(MECHANISM, mechanism, &mechanisms)?.to_uppercase();
            config.set_flag(MECHANISM, "sasl.mechanism", &mechanism)?;
        }
        if let Some(username) = self.sasl_username.as_deref().filter(|name| !name.is_empty()) {
            config.set_flag(USERNAME, "sasl.username", username)?;
        }
        let password = self.sasl_password.as_ref().map(Secret::expose);
        if let Some(password) = password.filter(|password| !password.is_empty()) {
            config.set_flag(PASSWORD, "sasl.password", password)?;
        }
        check_credentials(config)?;

        let uses_sasl = config.get("sasl.mechanism").is_some();
        let protocol = match (uses_sasl, self.ssl.unwrap_or(false)) {
            (false, false) => "plaintext",
            (false, true) => "ssl",
            (true, false) => "sasl_plaintext",
            (true, true) => "sasl_ssl",
        };
        let given = config.get("security.protocol").map(str::to_lowercase);
        if let (Some(given), Some(ssl)) = (&given, self.ssl)
            && given.ends_with("ssl") != ssl
        {
            let problem = format!("it says `{given}`");
            let other = format!("`security.protocol` of {CONFIG}");
            return Err(ConfigFault::contradiction(other, problem, "keep one of them").of(SSL));
        }
        if let Some(given) = &given
            && uses_sasl != given.starts_with("sasl")
        {
            let problem = format!("it says `{given}`");
            let other = format!("`security.protocol` of {CONFIG}");
            let flag = config.source("sasl.mechanism");
            return Err(ConfigFault::contradiction(other, problem, "keep one of them").of(&flag));
        }
        let is_encrypted = given.as_deref().unwrap_or(protocol).ends_with("ssl");
        config.set_default("security.protocol", protocol);
        if let Some(ca) = self.ssl_ca.as_deref().map(str::trim).filter(|ca| !ca.is_empty()) {
            if !is_encrypted {
                let problem = "a certificate is of use to encrypted connections only";
                let fault = ConfigFault::contradiction(SSL, problem, "set --kafka-ssl as well");
                return Err(fault.of(SSL_CA));
            }
            let is_text = ca.starts_with("-----BEGIN");
            config.set_flag(SSL_CA, if is_text { "ssl.ca.pem" } else { "ssl.ca.location" }, ca)?;
        } else if is_encrypted && config.get("ssl.ca.pem").is_none() {
            // OpenSSL is built in, so it does not know where this system keeps its certificates.
            config.set_default("ssl.ca.location", "probe");
        }
        Ok(())
    }

    fn set_batches(&self, config: &mut ProducerConfig) -> Result<(), ConfigError> {
        let Self { max_batch_size, max_batch_delay_ms, .. } = *self;
        let batch = BatchOptions { max_batch_size, max_batch_delay_ms };
        if max_batch_size.is_some() {
            let records = batch.events("--kafka", 0, MOST_RECORDS)?.to_string();
            config.set_flag("--kafka-max-batch-size", "batch.num.messages", &records)?;
        }
        if max_batch_delay_ms.is_some() {
            let linger = batch.linger("--kafka", Duration::ZERO)?.as_millis().to_string();
            config.set_flag("--kafka-max-batch-delay-ms", "linger.ms", &linger)?;
        }
        Ok(())
    }

    /// The payload cases that go to each topic, for those that are published.
    pub(super) fn used_topics(settings: &Settings) -> Vec<String> {
        let cases = PayloadCase::ALL.into_iter().filter(|case| settings.filter.allows(*case));
        let mut used: Vec<usize> = cases.map(|case| settings.route.index(case)).collect();
        used.sort_unstable();
        used.dedup();
        used.into_iter().map(|index| settings.route.destinations()[index].clone()).collect()
    }
}

/// A mechanism needs user and password, and they need a mechanism.
fn check_credentials(config: &ProducerConfig) -> Result<(), ConfigError> {
    let mechanism = config.get("sasl.mechanism");
    for (flag, name, what) in
        [(USERNAME, "sasl.username", "user"), (PASSWORD, "sasl.password", "password")]
    {
        let needs = mechanism
            .is_some_and(|mechanism| mechanism == "PLAIN" || mechanism.starts_with("SCRAM-"));
        match (needs, config.get(name)) {
            (true, None) => {
                let mechanism = mechanism.unwrap_or_default();
                let remedy = format!("credentials are incomplete: {mechanism} needs the {what}");
                return Err(ConfigFault::missing(remedy).of(flag));
            }
            (false, Some(_)) if mechanism.is_none() => {
                let remedy = format!("{} needs to know how to log in", config.source(name));
                return Err(ConfigFault::missing(remedy).of(MECHANISM));
            }
            _ => {}
        }
    }
    Ok(())
}

/// How much librdkafka logs: as `log_level` says, and all that `debug` asks for.
pub(super) fn log_level(config: &ProducerConfig) -> RDKafkaLogLevel {
    let asked = config.get("debug").is_some_and(|debug| !debug.is_empty());
    match config.get("log_level").and_then(|level| level.parse::<u8>().ok()) {
        None if asked => RDKafkaLogLevel::Debug,
        Some(0..=3) => RDKafkaLogLevel::Error,
        Some(4) => RDKafkaLogLevel::Warning,
        Some(5) => RDKafkaLogLevel::Notice,
        None | Some(6) => RDKafkaLogLevel::Info,
        Some(_) => RDKafkaLogLevel::Debug,
    }
}

/// Has librdkafka check what it only checks all together, with a client that has no brokers.
fn try_out(config: &ProducerConfig) -> Result<(), ConfigError> {
    let mut offline = config.offline();
    offline.set_log_level(RDKafkaLogLevel::Emerg);
    let callbacks = Callbacks::new(std::sync::Arc::default(), Notices::default(), Vec::new());
    let tried: Result<BaseProducer<_>, _> =
        BaseProducer::from_config_and_context(&offline, callbacks);
    tried.map(drop).map_err(|error| {
        let reason = match error {
            KafkaError::ClientCreation(reason) => reason,
            other => other.to_string(),
        };
        let problem = "librdkafka refuses these properties together";
        ConfigFault::unusable(reason, problem, "change one of them").of(CONFIG)
    })
}

fn one_of(flag: &str, value: &str, valid: &[&str]) -> Result<String, ConfigError> {
    let found = value.trim().to_lowercase();
    if valid.contains(&found.as_str()) {
        return Ok(found);
    }
    let remedy = format!("give one of {}", valid.join(", "));
    Err(ConfigFault::unusable(value, "is not known", remedy).of(flag))
}

fn check_topic(flag: &str, topic: &str) -> Result<(), ConfigError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if topic.len() <= 249 && topic.chars().all(allowed) && topic != "." && topic != ".." {
        return Ok(());
    }
    let remedy = "give 1 to 249 letters, digits, dots, underscores and hyphens";
    Err(ConfigFault::unusable(topic, "is no name of a Kafka topic", remedy).of(flag))
}

/// Whether a text is `host`, `host:port`, or the same with an IPv6 address in brackets.
fn is_host_and_port(text: &str) -> bool {
    broker_address(text).is_some()
}

/// What `host`, `host:port`, or the same with an IPv6 address in brackets names.
fn broker_address(text: &str) -> Option<BrokerAddress> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse::<u16>().ok().filter(|port| *port > 0)?,
        None if rest.is_empty() => DEFAULT_PORT,
        None => return None,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:%".contains(c);
    let is_host = !host.is_empty() && host.chars().all(is_plain);
    is_host.then(|| BrokerAddress { host: host.to_owned(), port })
}
