//! Sends the batches of one request to the leaders of their partitions, and takes their answers.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use kafka_protocol::ResponseError;
use kafka_protocol::error::ParseResponseErrorCode as _;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{ProduceRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::Direct;
use super::batch::Batch;
use super::broker::REQUEST_TIMEOUT;
use super::cluster::Cluster;
use super::outcome::{Fate, fate_of};
use super::progress::Progress;
use super::record_batch::Producer;
use super::sequences::Sequences;
use crate::retry::Outcome;

/// Who has a topic's turn.
pub(super) struct Sender<'a> {
    pub(super) direct: &'a Direct,
    pub(super) cluster: &'a Cluster,
    pub(super) topic: &'a str,
    pub(super) sequences: Sequences,
}

/// What a broker said of each partition: its number, and the error if there was one.
type Said = Vec<(usize, Option<ResponseError>)>;

impl Sender<'_> {
    /// Sends a batch to each of some partitions; returns those that are too large for the topic.
    pub(super) async fn send(
        &mut self,
        leaders: &[Option<i32>],
        round: Vec<Batch>,
        progress: &mut Progress,
    ) -> Vec<Batch> {
        let producer = match self.producer(&round).await {
            Ok(producer) => producer,
            Err(outcome) => {
                for batch in &round {
                    progress.fail(batch, &outcome);
                }
                return Vec::new();
            }
        };
        let mut by_leader: HashMap<i32, (Vec<Batch>, Vec<PartitionProduceData>)> = HashMap::new();
        for mut batch in round {
            match self.stamped(leaders, producer, &mut batch) {
                Ok((leader, data)) => {
                    let (batches, all) = by_leader.entry(leader).or_default();
                    batches.push(batch);
                    all.push(data);
                }
                Err(outcome) => progress.fail(&batch, &outcome),
            }
        }
        let this = &*self;
        let calls = by_leader.into_iter().map(|(leader, (batches, data))| {
            let request = this.request(data);
            async move { (batches, this.call(leader, &request).await) }
        });
        let answers = join_all(calls).await;
        let mut too_large = Vec::new();
        for (batches, answer) in answers {
            for batch in batches {
                let outcome = match &answer {
                    Ok(said) => self.settle(&batch, said),
                    Err(reason) => Some(Outcome::Transient(reason.clone())),
                };
                match outcome {
                    Some(Outcome::Acknowledged) => {}
                    Some(outcome) => progress.fail(&batch, &outcome),
                    None => too_large.push(batch),
                }
            }
        }
        too_large
    }

    /// Who the brokers are told that these batches are from.
    async fn producer(&mut self, round: &[Batch]) -> Result<Producer, Outcome> {
        if !self.direct.settings.idempotent {
            return Ok(Producer::NOBODY);
        }
        let may_send =
            |batch: &Batch| self.sequences.may_send(batch.partition, batch.packed.fingerprint());
        if !round.iter().all(may_send) {
            self.sequences.start_afresh();
        }
        if let Some(producer) = self.sequences.producer {
            return Ok(producer);
        }
        self.sequences.start_afresh();
        match self.cluster.new_producer().await {
            Ok(Ok(producer)) => Ok(*self.sequences.producer.insert(producer)),
            Ok(Err(error)) => Err(fate_of(error).outcome(error, self.topic, 0)),
            Err(reason) => {
                self.cluster.doubt();
                Err(Outcome::Transient(reason))
            }
        }
    }

    /// A batch in the form in which its leader gets it.
    fn stamped(
        &mut self,
        leaders: &[Option<i32>],
        producer: Producer,
        batch: &mut Batch,
    ) -> Result<(i32, PartitionProduceData), Outcome> {
        let partition = batch.partition;
        let topic = self.topic;
        let Some(leader) = leaders.get(partition).copied().flatten() else {
            self.cluster.doubt();
            let reason = format!("Kafka topic `{topic}`: partition {partition} has no leader");
            return Err(Outcome::Transient(reason));
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        let sequence = self.sequences.begin(partition, batch.packed.fingerprint());
        let stamped = batch.packed.stamp(producer, sequence, now);
        let index = i32::try_from(partition).map_err(std::io::Error::other);
        match stamped.and_then(|stamped| Ok((stamped, index?))) {
            Ok((stamped, index)) => {
                let data = PartitionProduceData::default();
                Ok((leader, data.with_index(index).with_records(Some(stamped))))
            }
            Err(error) => {
                self.sequences.refused(partition);
                let reason = format!("Kafka topic `{topic}`: a batch cannot be sent: {error}");
                Err(Outcome::Permanent(reason))
            }
        }
    }

    fn request(&self, data: Vec<PartitionProduceData>) -> ProduceRequest {
        let topic = TopicProduceData::default()
            .with_name(TopicName(StrBytes::from_string(self.topic.to_owned())))
            .with_partition_data(data);
        ProduceRequest::default()
            .with_acks(self.direct.settings.acks)
            .with_timeout_ms(i32::try_from(REQUEST_TIMEOUT.as_millis()).unwrap_or(i32::MAX))
            .with_topic_data(vec![topic])
    }

    /// Asks a broker to take batches. An error says why nobody knows what it did.
    async fn call(&self, leader: i32, request: &ProduceRequest) -> Result<Said, String> {
        let asked = async {
            let broker = self.cluster.broker(leader).await?;
            let version = broker.version::<ProduceRequest>(3, 9)?;
            broker.call(request, version).await
        };
        let answer = asked.await.inspect_err(|_| self.cluster.doubt())?;
        let partitions = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
        let said = partitions.filter_map(|partition| {
            Some((usize::try_from(partition.index).ok()?, partition.error_code.err()))
        });
        Ok(said.collect())
    }

    /// Takes what a broker said of a batch; nothing comes of one that is to be sent in parts.
    fn settle(&mut self, batch: &Batch, said: &Said) -> Option<Outcome> {
        let (partition, topic) = (batch.partition, self.topic);
        let count = batch.packed.fingerprint().count;
        let Some((_, error)) = said.iter().find(|(told, _)| *told == partition) else {
            let reason = format!("Kafka topic `{topic}`: no word about partition {partition}");
            return Some(Outcome::Transient(reason));
        };
        let Some(error) = *error else {
            self.sequences.acknowledged(partition, count);
            return Some(Outcome::Acknowledged);
        };
        let fate = fate_of(error);
        match fate {
            Fate::IsThere => self.sequences.acknowledged(partition, count),
            Fate::TooLarge => self.sequences.refused(partition),
            Fate::Unknown => self.cluster.doubt(),
            // Refused or not, no other batch may be taken for this one.
            Fate::Refused | Fate::ForgottenProducer => self.sequences.start_afresh(),
        }
        let is_divisible = fate == Fate::TooLarge && batch.events.len() > 1;
        (!is_divisible).then(|| fate.outcome(error, topic, batch.bytes))
    }
}
