//! The cluster as its brokers describe it: which broker leads which partition, and a connection to
//! each that is needed.
//!
//! What was said of the cluster counts until something contradicts it (a leader that is none, a
//! broker that is gone) or it has become old; then any broker that answers is asked again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kafka_protocol::error::{ParseResponseErrorCode as _, ResponseError};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::MetadataResponseTopic;
use kafka_protocol::messages::{
    InitProducerIdRequest, MetadataRequest, MetadataResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::broker::{Broker, BrokerAddress};
use super::record_batch::Producer;

/// After how long the cluster is asked again though nothing seems wrong: topics get new partitions.
const BECOMES_OLD: Duration = Duration::from_mins(5);
/// For how long a topic that is not there may be one that is being made.
const TOPIC_PATIENCE: Duration = Duration::from_secs(5);
/// How often a missing topic is asked for.
const ASK_FOR_TOPIC_EVERY: Duration = Duration::from_millis(200);

/// What is known of a topic.
#[derive(Clone, Debug)]
pub(super) enum Topic {
    /// Who leads each partition; nothing where nobody does at the moment.
    Led(Arc<[Option<i32>]>),
    /// It is not there, since a while or for the first time.
    Missing { since: Instant },
    /// The brokers refuse to speak of it.
    Refused(ResponseError),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Cluster {
    bootstrap: Vec<BrokerAddress>,
    client_id: String,
    topics: Vec<String>,
    known: Mutex<Known>,
    /// Held while the brokers are asked, so that one asks for all.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Known {
    brokers: HashMap<i32, BrokerAddress>,
    links: HashMap<i32, Arc<Link>>,
    topics: HashMap<String, Topic>,
    told_by: Option<BrokerAddress>,
    asked_at: Option<Instant>,
    /// Grows with every answer.
    generation: u64,
    is_doubtful: bool,
}

/// A broker's connection, while there is one; whoever wants it and finds none makes it.
#[derive(Debug, Default)]
struct Link {
    broker: tokio::sync::Mutex<Option<Arc<Broker>>>,
}

impl Cluster {
    pub(super) fn new(
        bootstrap: Vec<BrokerAddress>,
        client_id: String,
        topics: Vec<String>,
    ) -> Self {
        Self {
            bootstrap,
            client_id,
            topics,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many brokers there are.
    pub(super) fn size(&self) -> usize {
        self.known().brokers.len()
    }

    /// What was said of a topic contradicts what was seen: it is asked for before it is used again.
    pub(super) fn doubt(&self) {
        self.known().is_doubtful = true;
    }

    /// A topic as it is now. An error says why no broker can be asked.
    pub(super) async fn topic(&self, name: &str) -> Result<Topic, String> {
        let (topic, generation) = {
            let known = self.known();
            let is_old = known.asked_at.is_none_or(|at| at.elapsed() >= BECOMES_OLD);
            let topic = known.topics.get(name).cloned();
            let topic = topic.filter(|_| !is_old && !known.is_doubtful);
            (topic, known.generation)
        };
        if let Some(topic @ Topic::Led(_)) = topic {
            return Ok(topic);
        }
        // What is missing or refused may be there meanwhile.
        self.ask(generation).await?;
        let topic = self.known().topics.get(name).cloned();
        Ok(topic.unwrap_or_else(|| Topic::Missing { since: Instant::now() }))
    }

    /// A topic, after it had time to appear.
    pub(super) async fn topic_with_patience(&self, name: &str) -> Result<Topic, String> {
        loop {
            match self.topic(name).await? {
                Topic::Missing { since } if since.elapsed() < TOPIC_PATIENCE => {
                    tokio::time::sleep(ASK_FOR_TOPIC_EVERY).await;
                }
                topic => return Ok(topic),
            }
        }
    }

    /// Asks the brokers for the first time; returns who answered.
    pub(super) async fn first_ask(&self) -> Result<BrokerAddress, String> {
        self.ask(0).await?;
        let first = self.bootstrap.first().cloned();
        let told_by = self.known().told_by.clone().or(first);
        told_by.ok_or_else(|| "no broker is named".to_owned())
    }

    /// Asks the brokers, unless somebody did since `generation`.
    async fn ask(&self, generation: u64) -> Result<(), String> {
        let _guard = self.asking.lock().await;
        if self.known().generation != generation {
            return Ok(());
        }
        let broker = self.any_broker().await?;
        let version = broker.version::<MetadataRequest>(4, 9)?;
        let topics = self.topics.iter().map(|name| {
            let name = TopicName(StrBytes::from_string(name.clone()));
            MetadataRequestTopic::default().with_name(Some(name))
        });
        let request = MetadataRequest::default()
            .with_topics(Some(topics.collect()))
            .with_allow_auto_topic_creation(true);
        let answer = broker.call(&request, version).await?;
        self.learn(&answer, &broker.address);
        Ok(())
    }

    fn learn(&self, answer: &MetadataResponse, told_by: &BrokerAddress) {
        let mut known = self.known();
        known.told_by = Some(told_by.clone());
        known.brokers = answer
            .brokers
            .iter()
            .filter_map(|broker| {
                let port = u16::try_from(broker.port).ok()?;
                Some((broker.node_id.0, BrokerAddress { host: broker.host.to_string(), port }))
            })
            .collect();
        let Known { brokers, links, .. } = &mut *known;
        links.retain(|id, _| brokers.contains_key(id));
        for topic in &answer.topics {
            let Some(name) = &topic.name else { continue };
            let before = known.topics.get(name.0.as_str());
            let since = match before {
                Some(Topic::Missing { since }) => *since,
                _ => Instant::now(),
            };
            known.topics.insert(name.0.to_string(), read_topic(topic, since));
        }
        known.asked_at = Some(Instant::now());
        known.generation += 1;
        known.is_doubtful = false;
    }

    /// A broker that answers: one that is connected, else any that is known of.
    async fn any_broker(&self) -> Result<Arc<Broker>, String> {
        let (links, known): (Vec<_>, Vec<_>) = {
            let known = self.known();
            (known.links.values().cloned().collect(), known.brokers.keys().copied().collect())
        };
        for link in links {
            // One that is being connected says nothing yet.
            let broker = link.broker.try_lock().ok().and_then(|broker| broker.clone());
            if let Some(broker) = broker.filter(|broker| !broker.is_lost()) {
                return Ok(broker);
            }
        }
        let mut reasons = Vec::new();
        for id in known {
            match self.broker(id).await {
                Ok(broker) => return Ok(broker),
                Err(reason) => reasons.push(reason),
            }
        }
        for address in &self.bootstrap {
            match Broker::connect(address.clone(), &self.client_id).await {
                Ok(broker) => return Ok(Arc::new(broker)),
                Err(reason) => reasons.push(reason),
            }
        }
        reasons.dedup();
        Err(reasons.join("; "))
    }

    /// The connection to a broker, made if there is none.
    pub(super) async fn broker(&self, id: i32) -> Result<Arc<Broker>, String> {
        let (link, address) = {
            let mut known = self.known();
            let address = known.brokers.get(&id).cloned();
            let address = address.ok_or_else(|| format!("broker {id} is gone"))?;
            (Arc::clone(known.links.entry(id).or_default()), address)
        };
        let mut broker = link.broker.lock().await;
        if let Some(broker) = broker.as_ref().filter(|broker| !broker.is_lost()) {
            return Ok(Arc::clone(broker));
        }
        *broker = None;
        let connected = Arc::new(Broker::connect(address, &self.client_id).await?);
        Ok(Arc::clone(broker.insert(connected)))
    }

    /// Has a broker make up a producer. The outer error says why none can be asked.
    pub(super) async fn new_producer(&self) -> Result<Result<Producer, ResponseError>, String> {
        let broker = self.any_broker().await?;
        let version = broker.version::<InitProducerIdRequest>(0, 4)?;
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(i32::MAX)
            .with_producer_id((-1).into())
            .with_producer_epoch(-1);
        let answer = broker.call(&request, version).await?;
        Ok(match answer.error_code.err() {
            Some(error) => Err(error),
            None => Ok(Producer { id: answer.producer_id.0, epoch: answer.producer_epoch }),
        })
    }

    /// What was said last of the topics.
    pub(super) fn topics(&self) -> Vec<(String, Topic)> {
        let known = self.known();
        let found = self.topics.iter().filter_map(|name| known.topics.get_key_value(name));
        found.map(|(name, topic)| (name.clone(), topic.clone())).collect()
    }
}

fn read_topic(topic: &MetadataResponseTopic, missing_since: Instant) -> Topic {
    match topic.error_code.err() {
        None => {}
        // A leader is being elected.
        Some(ResponseError::LeaderNotAvailable) if !topic.partitions.is_empty() => {}
        Some(ResponseError::UnknownTopicOrPartition | ResponseError::LeaderNotAvailable) => {
            return Topic::Missing { since: missing_since };
        }
        Some(error) => return Topic::Refused(error),
    }
    let count = topic.partitions.iter().map(|partition| partition.partition_index + 1).max();
    let mut leaders = vec![None; count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0)];
    for partition in &topic.partitions {
        let place = usize::try_from(partition.partition_index).ok();
        if let Some(leader) = place.and_then(|place| leaders.get_mut(place)) {
            *leader = (partition.leader_id.0 >= 0).then_some(partition.leader_id.0);
        }
    }
    if leaders.is_empty() {
        return Topic::Missing { since: missing_since };
    }
    Topic::Led(leaders.into())
}
