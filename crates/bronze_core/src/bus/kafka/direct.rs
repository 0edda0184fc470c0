//! Publishing over Kafka's protocol without a client between: an event's bytes are copied once, into
//! the batch that the broker stores.
//!
//! librdkafka takes events one by one, with memory of its own for each, for each of its headers and
//! for its report; at hundreds of thousands of events a second that is most of what publishing costs.
//! Here a request of the dispatcher becomes a batch per partition at once. Queues, batching, order,
//! retries and time-outs are the dispatcher's already, so what is left is little: see `sequences` for
//! how retries make no duplicates, `cluster` for leaders, `broker` for connections.
//!
//! A topic has one request on its way to the brokers, while the next ones are made ready. Its batches
//! for different partitions go out together, those for one partition one after the other. So a
//! partition has its events in the order in which they were published, whatever their keys.

mod batch;
mod broker;
mod cluster;
mod lz4_frame;
mod outcome;
mod partitioner;
mod progress;
mod record_batch;
mod sender;
mod sequences;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use self::batch::{BatchForm, SpareRoom};
use self::cluster::{Cluster, Topic};
use self::outcome::{fate_of, reason_of};
use self::progress::Progress;
use self::sender::Sender;
use self::sequences::Sequences;
use super::failure;
use super::options::Settings;
use super::turns::Turn;
use crate::bus::{Answer, ConnectError, Connected, Request, RequestLimits};
use crate::retry::Outcome;

pub(super) use self::broker::BrokerAddress;
pub(super) use self::record_batch::Codec;

// Limits.

/// Events in a request.
const REQUEST_EVENTS: usize = 10_000;
/// Bytes in a request, as long as there is no more than one batch for a partition in it.
const REQUEST_BYTES: usize = 2_000_000;
/// Requests of a topic that are on their way or made ready.
const PIPELINED: usize = 3;
/// The least that a broker's refusals of large batches make of them.
const LEAST_BATCH_BYTES: usize = 1_000;

/// What the options come to for this client.
#[derive(Clone, Debug)]
pub(super) struct DirectSettings {
    pub(super) bootstrap: Vec<BrokerAddress>,
    pub(super) client_id: String,
    pub(super) codec: Codec,
    /// -1 or 1.
    pub(super) acks: i16,
    pub(super) idempotent: bool,
    pub(super) linger: Duration,
    /// Events in a batch.
    pub(super) batch_events: usize,
    /// Bytes of a batch.
    pub(super) batch_bytes: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Direct {
    settings: DirectSettings,
    topics: Vec<String>,
    cluster: Mutex<Option<Arc<Cluster>>>,
    /// By destination; whoever has the turn takes them out.
    sequences: Mutex<HashMap<usize, Sequences>>,
    /// Bytes of a batch that each destination takes, as far as it has said.
    batch_bytes: Vec<AtomicUsize>,
    spare: SpareRoom,
}

impl Direct {
    pub(super) fn new(settings: DirectSettings, topics: Vec<String>, destinations: usize) -> Self {
        let bytes = settings.batch_bytes;
        Self {
            settings,
            topics,
            cluster: Mutex::default(),
            sequences: Mutex::default(),
            batch_bytes: (0..destinations).map(|_| AtomicUsize::new(bytes)).collect(),
            spare: SpareRoom::default(),
        }
    }

    fn cluster(&self) -> MutexGuard<'_, Option<Arc<Cluster>>> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sequences(&self) -> MutexGuard<'_, HashMap<usize, Sequences>> {
        self.sequences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn limits(&self) -> RequestLimits {
        RequestLimits {
            events: REQUEST_EVENTS,
            bytes: REQUEST_BYTES,
            linger: self.settings.linger,
            lanes: 1,
            pipelined: PIPELINED,
            one_event_per_key: false,
        }
    }

    // Connect.

    pub(super) async fn connect(&self) -> Result<Connected, ConnectError> {
        let DirectSettings { bootstrap, client_id, .. } = &self.settings;
        let cluster = Cluster::new(bootstrap.clone(), client_id.clone(), self.topics.clone());
        let peer = cluster.first_ask().await.map_err(|why| self.unreachable(&why))?;
        let brokers = cluster.size();
        let plural = if brokers == 1 { "" } else { "s" };
        let warnings = cluster.topics().into_iter().filter_map(|(name, topic)| match topic {
            Topic::Led(_) => None,
            Topic::Missing { .. } => Some(failure::missing_topic(&name)),
            Topic::Refused(error) => Some(reason_of(error, &name, 0)),
        });
        let peer = format!("{brokers} broker{plural}, Kafka at {peer}");
        let connected = Connected { peer, warnings: warnings.collect() };
        *self.cluster() = Some(Arc::new(cluster));
        Ok(connected)
    }

    fn unreachable(&self, why: &str) -> ConnectError {
        let brokers: Vec<_> = self.settings.bootstrap.iter().map(ToString::to_string).collect();
        // So brokers answer those who speak another protocol than the listener.
        let hint = if why.contains("closed by peer") || why.contains("none of Kafka's") {
            "; does this listener want --kafka-ssl or --kafka-sasl-mechanism?"
        } else {
            ""
        };
        let brokers = brokers.join(",");
        ConnectError::transient(format!("no connection to Kafka at {brokers}: {why}{hint}"))
    }

    pub(super) fn close(&self) {
        // Connections end with their last user.
        *self.cluster() = None;
    }

    // Send.

    pub(super) async fn send(
        &self,
        settings: &Settings,
        mut turn: Turn,
        request: Request,
    ) -> Answer {
        let answer = self.send_in_turn(&mut turn, settings, &request).await;
        // Those behind must not overtake what is on its way still, nor what will be sent again.
        let is_well = turn.come().await && !goes_again(&answer);
        turn.pass(is_well);
        answer
    }

    async fn send_in_turn(
        &self,
        turn: &mut Turn,
        settings: &Settings,
        request: &Request,
    ) -> Answer {
        let Some(cluster) = self.cluster().clone() else {
            return Answer::Disconnected("there is no connection to Kafka".to_owned());
        };
        if request.events.is_empty() {
            return Answer::All(Outcome::Acknowledged);
        }
        let Some(name) = settings.route.destinations().get(request.destination) else {
            let reason = "there is no such topic among the routes".to_owned();
            return Answer::All(Outcome::Permanent(reason));
        };
        let partitions = match self.leaders(&cluster, name).await {
            Ok(leaders) => leaders.len(),
            Err(answer) => return answer,
        };
        let form = self.form(settings, request);
        let mut batches = form.batches(request, partitions);
        if !turn.come().await {
            let reason = format!("Kafka topic `{name}`: what was sent before goes again first");
            return Answer::All(Outcome::Transient(reason));
        }
        let leaders = match self.leaders(&cluster, name).await {
            Ok(leaders) => leaders,
            Err(answer) => return answer,
        };
        if leaders.len() != partitions {
            batches = form.batches(request, leaders.len());
        }
        let mut progress = match batches {
            Ok(batches) => Progress::new(request.events.len(), batches),
            Err(error) => {
                let reason = format!("Kafka topic `{name}`: a batch cannot be made: {error}");
                return Answer::All(Outcome::Permanent(reason));
            }
        };
        // A sending that is given up takes the sequences with it: the next one is a new producer.
        let sequences = self.sequences().remove(&request.destination).unwrap_or_default();
        let mut sender = Sender { direct: self, cluster: &cluster, topic: name, sequences };
        loop {
            let round = progress.next_round();
            if round.is_empty() {
                break;
            }
            for batch in sender.send(&leaders, round, &mut progress).await {
                self.batch_bytes[request.destination]
                    .fetch_min((batch.bytes / 2).max(LEAST_BATCH_BYTES), Ordering::Relaxed);
                match form.halves(request, &batch) {
                    Ok(halves) => progress.put_first(halves),
                    Err(error) => {
                        let reason = format!("Kafka topic `{name}`: {error}");
                        progress.fail(&batch, &Outcome::Permanent(reason));
                    }
                }
            }
        }
        self.sequences().insert(request.destination, sender.sequences);
        progress.answer()
    }

    fn form<'a>(&'a self, settings: &'a Settings, request: &Request) -> BatchForm<'a> {
        BatchForm {
            record: &settings.form,
            codec: self.settings.codec,
            most_bytes: self.batch_bytes[request.destination].load(Ordering::Relaxed),
            most_events: self.settings.batch_events,
            spare: &self.spare,
        }
    }

    /// Who leads the partitions of a topic, or what becomes of its events.
    async fn leaders(&self, cluster: &Cluster, name: &str) -> Result<Arc<[Option<i32>]>, Answer> {
        match cluster.topic_with_patience(name).await {
            Ok(Topic::Led(leaders)) => Ok(leaders),
            Ok(Topic::Missing { .. }) => {
                Err(Answer::All(Outcome::Permanent(failure::missing_topic(name))))
            }
            Ok(Topic::Refused(error)) => Err(Answer::All(fate_of(error).outcome(error, name, 0))),
            Err(reason) => Err(Answer::Disconnected(reason)),
        }
    }
}

/// Whether events of a request will be sent again.
fn goes_again(answer: &Answer) -> bool {
    let is_transient = |outcome: &Outcome| matches!(outcome, Outcome::Transient(_));
    match answer {
        Answer::All(outcome) => is_transient(outcome),
        Answer::Each(outcomes) => outcomes.iter().any(is_transient),
        Answer::Disconnected(_) => true,
    }
}

#[cfg(test)]
mod tests;
