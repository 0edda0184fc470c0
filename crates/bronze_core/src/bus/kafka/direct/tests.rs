//! What a single real broker cannot show (`tests/bus/kafka` has one): leaders that move, brokers that
//! go and come, and errors that are hard to provoke, on librdkafka's mock cluster.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{Headers as _, Message as _};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use super::super::{Kafka, KafkaOptions};
use crate::bus::{Answer, BusClient as _, Names, Request};
use crate::delivery::DeliveryOptions;
use crate::generated::bronze::{NormalizedEvent, Trade, normalized_event::Payload};
use crate::notice::Notices;
use crate::payload_case::PayloadCase;
use crate::picked_events::PickedEvents;
use crate::retry::Outcome;

const TOPIC: &str = "events";
const PARTITIONS: i32 = 4;
const KEYS: usize = 20;

type Mock = MockCluster<'static, DefaultProducerContext>;

fn cluster(brokers: i32) -> Mock {
    let cluster = MockCluster::new(brokers).unwrap();
    cluster.create_topic(TOPIC, PARTITIONS, brokers.min(3)).unwrap();
    cluster
}

fn client(cluster: &Mock) -> Arc<Kafka> {
    let options = KafkaOptions {
        brokers: Names::Text(cluster.bootstrap_servers()),
        topic: Some(TOPIC.to_owned()),
        client: Some("direct".to_owned()),
        ..KafkaOptions::default()
    };
    let (delivery, notices) = (DeliveryOptions::default(), Notices::default());
    Arc::new(Kafka::validate(options, &delivery, &notices).unwrap())
}

fn event(number: usize) -> (PayloadCase, Bytes) {
    let trade = Trade { trade_id: number.to_string(), ..Trade::default() };
    let event = NormalizedEvent {
        exchange: "bitmex".to_owned(),
        symbol: format!("S{}", number % KEYS),
        payload: Some(Payload::Trade(trade)),
        ..NormalizedEvent::default()
    };
    (PayloadCase::Trade, Bytes::from(event.encode_to_vec()))
}

fn picked(events: &[(PayloadCase, Bytes)]) -> PickedEvents {
    events.iter().map(|(case, event)| (*case, &event[..])).collect()
}

/// Sends events as the dispatcher does: what failed goes again, alone, until all is there.
async fn deliver(client: &Arc<Kafka>, numbers: std::ops::Range<usize>) -> usize {
    let mut events: Vec<_> = numbers.map(event).collect();
    for retries in 0..100 {
        let request = Request { destination: 0, is_alone: true, events: picked(&events) };
        match Arc::clone(client).send(request).await {
            Answer::All(Outcome::Acknowledged) => return retries,
            Answer::All(Outcome::Permanent(reason)) => panic!("{reason}"),
            Answer::All(Outcome::Transient(_)) => {}
            Answer::Each(outcomes) => {
                let failed = events.into_iter().zip(&outcomes);
                let failed = failed.filter(|(_, outcome)| **outcome != Outcome::Acknowledged);
                events = failed.map(|(event, _)| event).collect();
            }
            Answer::Disconnected(_) => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let _ = client.connect().await;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never delivered")
}

/// The numbers that are in the cluster, by symbol, in the order of their partition.
fn arrived(cluster: &Mock, events: usize) -> HashMap<String, Vec<usize>> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("group.id", "test")
        .create()
        .unwrap();
    let mut places = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        places.add_partition_offset(TOPIC, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&places).unwrap();
    let mut found: HashMap<String, Vec<usize>> = HashMap::new();
    let mut count = 0;
    // A little longer than for all, so that none comes twice unseen.
    while let Some(message) =
        consumer.poll(Duration::from_millis(if count < events { 10_000 } else { 300 }))
    {
        let message = message.unwrap();
        let event = NormalizedEvent::decode(message.payload().unwrap()).unwrap();
        let key = format!("bitmex|{}|trade", event.symbol);
        assert_eq!(message.key(), Some(key.as_bytes()));
        assert_eq!(message.headers().unwrap().get(0).value, Some(&b"trade"[..]));
        let Some(Payload::Trade(trade)) = event.payload else { panic!("a trade") };
        found.entry(event.symbol).or_default().push(trade.trade_id.parse().unwrap());
        count += 1;
    }
    found
}

fn expected(events: usize) -> HashMap<String, Vec<usize>> {
    let of_key = |key| (key..events).step_by(KEYS).collect();
    (0..KEYS).map(|key| (format!("S{key}"), of_key(key))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaders_move_and_brokers_go_in_a_mock_cluster() {
    let cluster = cluster(3);
    let client = client(&cluster);
    let connected = client.connect().await.unwrap();
    assert!(connected.peer.starts_with("3 brokers, Kafka at "), "{}", connected.peer);
    deliver(&client, 0..1_000).await;
    for partition in 0..PARTITIONS {
        cluster.partition_leader(TOPIC, partition, Some(2)).unwrap();
    }
    deliver(&client, 1_000..2_000).await;
    cluster.broker_down(2).unwrap();
    for partition in 0..PARTITIONS {
        cluster.partition_leader(TOPIC, partition, Some(3)).unwrap();
    }
    assert!(deliver(&client, 2_000..3_000).await > 0);
    cluster.broker_up(2).unwrap();
    deliver(&client, 3_000..4_000).await;
    assert_eq!(arrived(&cluster, 4_000), expected(4_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_a_mock_cluster_make_neither_gaps_nor_doubles() {
    let cluster = cluster(1);
    let client = client(&cluster);
    client.connect().await.unwrap();
    let mut events = 0;
    for error in [
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
        RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT,
    ] {
        cluster.request_errors(RDKafkaApiKey::Produce, &[error, error]);
        assert!(deliver(&client, events..events + 100).await > 0, "{error:?}");
        events += 100;
    }
    assert_eq!(arrived(&cluster, events), expected(events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mock_cluster_refuses_is_given_up() {
    let cluster = cluster(1);
    let client = client(&cluster);
    client.connect().await.unwrap();
    let refused = RDKafkaRespErr::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    cluster.request_errors(RDKafkaApiKey::Produce, &[refused]);
    let request = || Request { destination: 0, is_alone: true, events: picked(&[event(0)]) };
    let Answer::Each(outcomes) = Arc::clone(&client).send(request()).await else {
        panic!("an outcome each")
    };
    let [Outcome::Permanent(reason)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!(reason.contains("is not allowed"), "{reason}");
    deliver(&client, 0..1).await;
    assert_eq!(arrived(&cluster, 1)["S0"], [0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_behind_one_that_goes_again_wait_for_it() {
    let cluster = cluster(1);
    let client = client(&cluster);
    client.connect().await.unwrap();
    let error = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS;
    cluster.request_errors(RDKafkaApiKey::Produce, &[error]);
    let request =
        |is_alone, number| Request { destination: 0, is_alone, events: picked(&[event(number)]) };
    let first = Arc::clone(&client).send(request(true, 0));
    let second = Arc::clone(&client).send(request(false, KEYS));
    let (second, first) = tokio::join!(second, first);
    assert!(matches!(first, Answer::Each(_)), "{first:?}");
    let Answer::All(Outcome::Transient(reason)) = second else { panic!("{second:?}") };
    assert_eq!(reason, "Kafka topic `events`: what was sent before goes again first");
    deliver(&client, 0..1).await;
    deliver(&client, KEYS..KEYS + 1).await;
    assert_eq!(arrived(&cluster, 2)["S0"], [0, KEYS]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_not_there_is_said_so() {
    let gone = client(&cluster(1));
    let error = gone.connect().await.unwrap_err();
    assert!(!error.is_permanent);
    assert!(error.reason.starts_with("no connection to Kafka at 127.0.0.1:"), "{}", error.reason);
}
