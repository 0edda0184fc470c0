//! Connecting: a producer, the thread that serves it, and what the brokers say when first asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::{Metadata, MetadataTopic};
use rdkafka::producer::{BaseProducer, Producer};

use super::super::failure::{is_authorization, outcome_of};
use super::super::options::{Settings, log_level};
use super::delivery::{Callbacks, Deliveries, scrub};
use crate::bus::{ConnectError, Connected};
use crate::notice::Notices;
use crate::retry::Outcome;

/// How long the brokers have to answer when connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// For how long a topic that is not there is asked for again: brokers may be making it.
const TOPIC_PATIENCE: Duration = Duration::from_secs(2);
/// How long the polling thread sleeps when nothing happens.
const POLL: Duration = Duration::from_millis(100);

/// A producer and the thread that serves its callbacks.
pub(super) struct Connection {
    pub(super) producer: Arc<BaseProducer<Callbacks>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Connection")
    }
}

impl Connection {
    pub(super) fn open(settings: &Settings, notices: Notices) -> Result<Self, ConnectError> {
        // librdkafka's own words do not name the file.
        if let Some(file) = settings.config.get("ssl.ca.location").filter(|file| *file != "probe")
            && let Err(error) = std::fs::metadata(file)
        {
            let source = settings.config.source("ssl.ca.location");
            return Err(ConnectError::permanent(format!("{source}: `{file}`: {error}")));
        }
        let mut config = settings.config.client_config();
        config.set_log_level(log_level(&settings.config));
        let secrets = settings.config.secrets();
        let callbacks = Callbacks::new(Arc::default(), notices, secrets.clone());
        let producer = BaseProducer::from_config_and_context(&config, callbacks)
            .map_err(|error| ConnectError::permanent(scrub(&secrets, &error.to_string())))?;
        let producer = Arc::new(producer);
        let polled = Arc::clone(&producer);
        // The last owner of a producer waits for librdkafka's threads to end, so it must be this
        // thread, never one that runs futures.
        let polling = move || {
            while Arc::strong_count(&polled) > 1 {
                polled.poll(POLL);
            }
        };
        std::thread::Builder::new()
            .name("kafka-poll".to_owned())
            .spawn(polling)
            .map_err(|error| ConnectError::transient(format!("no thread for Kafka: {error}")))?;
        Ok(Self { producer })
    }

    fn callbacks(&self) -> &Callbacks {
        self.producer.context()
    }

    pub(super) fn deliveries(&self) -> &Arc<Deliveries> {
        &self.callbacks().deliveries
    }

    /// Why librdkafka has given this producer up.
    pub(super) fn fatal(&self) -> Option<(RDKafkaErrorCode, String)> {
        let (code, text) = self.producer.client().fatal_error()?;
        Some((code, self.callbacks().scrub(&text)))
    }

    /// Asks for the topics.
    pub(super) fn survey(
        &self,
        topics: &[String],
        login: &Login,
        is_closed: &AtomicBool,
    ) -> Result<Connected, ConnectError> {
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let mut connected = Connected::default();
        let patience = Instant::now() + TOPIC_PATIENCE;
        for topic in topics {
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                let asked = self.producer.client().fetch_metadata(
                    Some(topic.as_str()),
                    left.min(Duration::from_secs(1)).max(Duration::from_millis(1)),
                );
                if is_closed.load(Ordering::Acquire) {
                    return Err(ConnectError::transient("the client is closed"));
                }
                let metadata = match asked {
                    Ok(metadata) => metadata,
                    Err(error) => {
                        let trouble = self.callbacks().trouble_so_far();
                        if let Some((code, text)) = trouble.refusal {
                            return Err(login.refused(code, &text));
                        }
                        if left.is_zero() {
                            let why = trouble.other.unwrap_or_else(|| error.to_string());
                            return Err(login.unreachable(&why));
                        }
                        continue;
                    }
                };
                if connected.peer.is_empty() {
                    connected.peer = peer_of(&metadata);
                }
                let found = metadata.topics().iter().find(|found| found.name() == topic);
                let error = found.and_then(MetadataTopic::error);
                let Some(error) = error.map(RDKafkaErrorCode::from) else { break };
                let may_appear = !is_authorization(error);
                if may_appear && Instant::now() < patience {
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                }
                let error = KafkaError::MessageProduction(error);
                if let Outcome::Permanent(reason) = outcome_of(&error, topic, 0) {
                    connected.warnings.push(reason);
                }
                break;
            }
        }
        Ok(connected)
    }
}

/// Who logs in where, for error texts.
pub(super) struct Login {
    brokers: String,
    mechanism: Option<String>,
    user: String,
}

impl Login {
    pub(super) fn of(settings: &Settings) -> Self {
        let get = |name| settings.config.get(name).map(str::to_owned);
        Self {
            brokers: get("bootstrap.servers").unwrap_or_default(),
            mechanism: get("sasl.mechanism"),
            user: get("sasl.username").unwrap_or_default(),
        }
    }

    fn refused(&self, code: RDKafkaErrorCode, text: &str) -> ConnectError {
        let Self { brokers, user, .. } = self;
        ConnectError::permanent(match &self.mechanism {
            Some(mechanism) if code == RDKafkaErrorCode::Authentication => {
                format!("Kafka at {brokers} refuses user `{user}` by {mechanism}: {text}")
            }
            _ => format!("no encrypted connection to Kafka at {brokers}: {text}"),
        })
    }

    fn unreachable(&self, why: &str) -> ConnectError {
        let seconds = CONNECT_TIMEOUT.as_secs();
        let brokers = &self.brokers;
        // So brokers answer those who speak another protocol than the listener.
        let is_hung_up = why.contains("closed by peer") || why.contains("Broken pipe");
        let hint = if is_hung_up && self.mechanism.is_none() {
            "; does this listener want --kafka-ssl or --kafka-sasl-mechanism?"
        } else {
            ""
        };
        let text = format!("no answer from Kafka at {brokers} in {seconds} s: {why}{hint}");
        ConnectError::transient(text)
    }
}

fn peer_of(metadata: &Metadata) -> String {
    let brokers = metadata.brokers();
    let plural = if brokers.len() == 1 { "" } else { "s" };
    // librdkafka adds protocol and number: `ssl://host:port/1`.
    let at = metadata.orig_broker_name();
    let at = at.split_once("://").map_or(at, |(_, address)| address);
    let at = at.split_once('/').map_or(at, |(address, _)| address);
    format!("{} broker{plural}, Kafka at {at}", brokers.len())
}
