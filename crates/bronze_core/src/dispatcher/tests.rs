//! The dispatcher with a scripted bus in place of a broker: every kind of answer in every order.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use bytes::Bytes;
use market_data::Timestamp;

use super::*;
use crate::bus::{Address, Request, RequestLimits};
use crate::config_error::ConfigError;
use crate::delivery::{DeliveryOptions, Overflow};
use crate::encode::{BronzeEncoder, EncoderOptions};
use crate::event_batch::EventBuffer;
use crate::event_view::EventView;
use crate::intake::NotAccepted;
use crate::notice::Notices;
use crate::payload_filter::PayloadFilter;
use crate::publisher::{Prepared, PreparedBus, Publisher};
use crate::{DeadLetter, read_dead_letters};

const SYMBOLS: u64 = 7;

/// A broker that lives in memory, and fails as it is told.
#[derive(Debug)]
struct Broker {
    is_up: AtomicBool,
    is_refusing: AtomicBool,
    /// Whether it does not answer for its second destination.
    is_hanging: AtomicBool,
    /// Whether it takes nothing for its second destination.
    is_busy: AtomicBool,
    /// How many of a thousand requests fail.
    failures: AtomicUsize,
    taken: Mutex<Vec<(String, u64)>>,
    largest_request: AtomicUsize,
}

impl Broker {
    fn new(failures: usize) -> Arc<Self> {
        Arc::new(Self {
            is_up: AtomicBool::new(true),
            is_refusing: AtomicBool::new(false),
            is_hanging: AtomicBool::new(false),
            is_busy: AtomicBool::new(false),
            failures: AtomicUsize::new(failures),
            taken: Mutex::new(Vec::new()),
            largest_request: AtomicUsize::new(0),
        })
    }

    fn take(&self, events: &[(crate::PayloadCase, Bytes)]) {
        let mut taken = self.taken.lock().unwrap();
        for (_, bytes) in events {
            let view = EventView::read(bytes).unwrap();
            taken.push((view.symbol().to_owned(), view.event_seq()));
        }
    }

    /// The numbers that arrived; asserts that those of a symbol came in order when they first came.
    fn numbers_in_order(&self) -> HashSet<u64> {
        let mut last: HashMap<String, u64> = HashMap::new();
        let mut seen = HashSet::new();
        for (symbol, number) in self.taken.lock().unwrap().iter() {
            if seen.insert(*number) {
                let before = last.insert(symbol.clone(), *number).unwrap_or(0);
                assert!(before < *number, "{number} of {symbol} came after {before}");
            }
        }
        seen
    }
}

#[derive(Debug)]
struct ScriptedBus {
    broker: Arc<Broker>,
    limits: RequestLimits,
}

impl BusClient for ScriptedBus {
    const NAME: &'static str = "scripted";
    type Options = ();

    fn validate((): (), _: &DeliveryOptions, _: &Notices) -> Result<Self, ConfigError> {
        unreachable!("made by hand")
    }

    fn filter(&self) -> PayloadFilter {
        PayloadFilter::ALL
    }

    fn limits(&self) -> RequestLimits {
        self.limits
    }

    fn address(
        &self,
        event: &EventView<'_>,
        _: &[u8],
        _: bool,
        address: &mut Address,
    ) -> Result<(), String> {
        if event.event_seq().is_multiple_of(1_009) {
            return Err("refused at once".to_owned());
        }
        address.key.push_str(event.symbol());
        address.destination = usize::from(event.symbol() == "S3");
        Ok(())
    }

    async fn connect(&self) -> Result<Connected, ConnectError> {
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..500))).await;
        if self.broker.is_refusing.load(SeqCst) {
            return Err(ConnectError::permanent("wrong password"));
        }
        if !self.broker.is_up.load(SeqCst) {
            return Err(ConnectError::transient("nobody there"));
        }
        Ok(Connected { peer: "memory".to_owned(), warnings: Vec::new() })
    }

    async fn send(self: Arc<Self>, request: Request) -> Answer {
        let shared = |place| request.events.shared(place);
        let events: Vec<_> = (0..request.events.len()).map(shared).collect();
        self.broker.largest_request.fetch_max(events.len(), SeqCst);
        tokio::time::sleep(Duration::from_micros(fastrand::u64(..800))).await;
        if !self.broker.is_up.load(SeqCst) {
            return Answer::Disconnected("went away".to_owned());
        }
        if request.destination == 1 {
            while self.broker.is_hanging.load(SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if self.broker.is_busy.load(SeqCst) {
                return Answer::All(Outcome::Transient("busy".to_owned()));
            }
        }
        if fastrand::usize(..1_000) >= self.broker.failures.load(SeqCst) {
            self.broker.take(&events);
            return Answer::All(Outcome::Acknowledged);
        }
        let part = fastrand::usize(..=events.len());
        match fastrand::u8(..4) {
            // Some arrived, and nobody was told.
            0 => {
                self.broker.take(&events[..part]);
                Answer::Disconnected("reset".to_owned())
            }
            1 => Answer::All(Outcome::Transient("busy".to_owned())),
            2 if self.limits.one_event_per_key => {
                let outcome = |event: &(crate::PayloadCase, Bytes)| {
                    if fastrand::bool() {
                        return Outcome::Transient("throttled".to_owned());
                    }
                    self.broker.take(std::slice::from_ref(event));
                    Outcome::Acknowledged
                };
                Answer::Each(events.iter().map(outcome).collect())
            }
            _ => {
                self.broker.take(&events[..part]);
                let mut outcomes = vec![Outcome::Acknowledged; part];
                outcomes.resize(events.len(), Outcome::Transient("behind a failure".to_owned()));
                Answer::Each(outcomes)
            }
        }
    }

    async fn close(&self) {}
}

fn limits() -> RequestLimits {
    RequestLimits {
        events: 20,
        bytes: 1 << 20,
        linger: Duration::ZERO,
        lanes: 3,
        pipelined: 1,
        one_event_per_key: false,
    }
}

fn delivery(directory: &std::path::Path) -> DeliveryOptions {
    DeliveryOptions {
        max_block_ms: 5,
        max_memory_mb: 1,
        spill_dir: Some(directory.join("spill")),
        dead_letter_dir: directory.to_owned(),
        retry_backoff_ms: 1,
        retry_backoff_max_ms: 4,
        ..DeliveryOptions::default()
    }
}

fn start(broker: &Arc<Broker>, limits: RequestLimits, delivery: &DeliveryOptions) -> Publisher {
    let client = ScriptedBus { broker: Arc::clone(broker), limits };
    let notices = Notices::default();
    let bus = Box::new(Prepared { client, notices: notices.clone() }).start(delivery).unwrap();
    Publisher::of_buses(vec![bus], notices)
}

/// `events` trades from number `first` on, of symbols in turn, each of about `size` bytes.
fn trades(first: u64, events: u64, size: usize) -> EventBatch {
    let options = EncoderOptions { first_seq: first, ..EncoderOptions::default() };
    let mut encoder = BronzeEncoder::new(options).unwrap();
    let mut buffer = EventBuffer::default();
    let id = "i".repeat(size.saturating_sub(170));
    let lines: String = (first..first + events)
        .map(|number| {
            let symbol = format!("S{}", number % SYMBOLS);
            format!(
                r#"{{"type":"trade","symbol":"{symbol}","exchange":"bitmex","id":"{id}","price":1.5,"amount":2,"side":"buy","timestamp":"2024-01-01T00:00:00.000Z","localTimestamp":"2024-01-01T00:00:00.000Z"}}"#
            ) + "\n"
        })
        .collect();
    encoder.encode_json_lines(lines.as_bytes(), Timestamp::from_micros(0), &mut buffer).unwrap();
    buffer.take_batch()
}

fn publish(publisher: &Publisher, numbers: std::ops::Range<u64>, size: usize) {
    for first in numbers.clone().step_by(50) {
        let events = 50.min(numbers.end - first);
        let accepted = publisher.publish(&trades(first, events, size), || true).unwrap();
        assert_eq!(accepted, events);
        assert!(publisher.stats()[0].ledger.is_balanced());
    }
}

fn dead_numbers(file: &std::path::Path) -> HashSet<u64> {
    let number = |letter: DeadLetter| EventView::read(&letter.event).unwrap().event_seq();
    read_dead_letters(file).unwrap().map(|letter| number(letter.unwrap())).collect()
}

fn refused(numbers: std::ops::Range<u64>) -> HashSet<u64> {
    numbers.filter(|number| number.is_multiple_of(1_009)).collect()
}

fn all_but(numbers: std::ops::Range<u64>, others: &HashSet<u64>) -> HashSet<u64> {
    numbers.filter(|number| !others.contains(number)).collect()
}

#[test]
fn every_event_arrives_in_order_whatever_fails() {
    for one_event_per_key in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let broker = Broker::new(300);
        let limits = RequestLimits { one_event_per_key, ..limits() };
        let publisher = start(&broker, limits, &delivery(directory.path()));
        publish(&publisher, 1..6_000, 300);
        assert!(publisher.flush(Duration::from_mins(2), || true));
        let stats = publisher.stats().remove(0);
        assert!(stats.ledger.is_balanced());
        assert_eq!(stats.ledger.accepted.events, 5_999);
        assert_eq!(stats.ledger.dead_lettered.events, 5);
        assert!(stats.ledger.retried_total > 0);
        assert_eq!(dead_numbers(&stats.dead_letter_file.unwrap()), refused(1..6_000));
        assert_eq!(broker.numbers_in_order(), all_but(1..6_000, &refused(1..6_000)));
        let largest = broker.largest_request.load(SeqCst);
        assert!(largest <= if one_event_per_key { 7 } else { 20 }, "{largest}");
        let left = publisher.close(Duration::from_secs(10)).remove(0).left;
        assert_eq!(left, Left::default());
    }
}

#[test]
fn a_destination_that_does_not_answer_or_fails_holds_up_no_other() {
    for is_hanging in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let broker = Broker::new(0);
        broker.is_hanging.store(is_hanging, SeqCst);
        broker.is_busy.store(!is_hanging, SeqCst);
        let limits = RequestLimits { lanes: 1, ..limits() };
        let publisher = start(&broker, limits, &delivery(directory.path()));
        // The second destination is that of S3, whose events are among all others.
        publish(&publisher, 1..1_200, 300);
        let is_of_other = |number: &u64| number % SYMBOLS != 3;
        let others: HashSet<u64> =
            all_but(1..1_200, &refused(1..1_200)).into_iter().filter(is_of_other).collect();
        let patience = Instant::now() + Duration::from_mins(2);
        while broker.numbers_in_order() != others {
            assert!(Instant::now() < patience, "others wait for it");
            std::thread::sleep(Duration::from_millis(1));
        }
        broker.is_hanging.store(false, SeqCst);
        broker.is_busy.store(false, SeqCst);
        assert!(publisher.flush(Duration::from_mins(2), || true));
        assert_eq!(broker.numbers_in_order(), all_but(1..1_200, &refused(1..1_200)));
    }
}

#[test]
fn an_outage_fills_the_spill_and_not_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(0);
    let publisher = start(&broker, limits(), &delivery(directory.path()));
    publish(&publisher, 1..500, 2_000);
    broker.is_up.store(false, SeqCst);
    publish(&publisher, 500..4_000, 2_000);
    let outage = publisher.stats().remove(0).ledger;
    assert!(outage.is_balanced());
    assert!(outage.spilled.events > 0, "{outage:?}");
    let in_memory = outage.in_memory.bytes + outage.in_flight.bytes;
    assert!(in_memory <= (1 << 20) + 200_000, "{in_memory}");
    broker.is_up.store(true, SeqCst);
    publish(&publisher, 4_000..4_500, 2_000);
    assert!(publisher.flush(Duration::from_mins(2), || true));
    let stats = publisher.stats().remove(0);
    assert_eq!((stats.ledger.spilled.events, stats.ledger.waiting()), (0, 0));
    assert_eq!(broker.numbers_in_order(), all_but(1..4_500, &refused(1..4_500)));
}

#[test]
fn what_a_shutdown_finds_is_sent_first_by_the_next_process() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(0);
    broker.is_up.store(false, SeqCst);
    let publisher = start(&broker, limits(), &delivery(directory.path()));
    publish(&publisher, 1..2_000, 2_000);
    let spilled = publisher.stats()[0].ledger.spilled.events;
    assert!(spilled > 0);
    let left = publisher.close(Duration::ZERO).remove(0).left;
    let dead = publisher.stats()[0].ledger.dead_lettered.events;
    assert_eq!((left.events + dead, left.kept_in.is_some()), (1_999, true));
    assert!(publisher.stats()[0].ledger.is_balanced());
    assert_eq!(publisher.publish(&trades(1, 1, 200), || true), Err(NotAccepted::Closed));

    // Killed or closed again before anything was sent, it stays the same.
    let publisher = start(&broker, limits(), &delivery(directory.path()));
    publish(&publisher, 2_000..2_100, 2_000);
    assert!(publisher.close(Duration::ZERO)[0].left.events > 0);
    broker.is_up.store(true, SeqCst);
    let publisher = start(&broker, limits(), &delivery(directory.path()));
    publish(&publisher, 2_100..2_200, 2_000);
    assert!(publisher.flush(Duration::from_mins(2), || true));
    assert_eq!(broker.numbers_in_order(), all_but(1..2_200, &refused(1..2_200)));
    assert_eq!(publisher.close(Duration::from_secs(10)).remove(0).left, Left::default());
}

#[test]
fn without_a_spill_the_rest_of_a_shutdown_is_dead_letters() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(0);
    broker.is_up.store(false, SeqCst);
    let delivery = DeliveryOptions { spill_dir: None, ..delivery(directory.path()) };
    let publisher = start(&broker, limits(), &delivery);
    publish(&publisher, 1..100, 200);
    let left = publisher.close(Duration::ZERO).remove(0).left;
    assert_eq!(left.events, 99);
    assert_eq!(dead_numbers(std::path::Path::new(&left.kept_in.unwrap())), (1..100).collect());
    assert!(publisher.stats()[0].ledger.is_balanced());
}

#[test]
fn a_wrong_password_makes_dead_letters_until_it_is_right() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(0);
    broker.is_refusing.store(true, SeqCst);
    let publisher = start(&broker, limits(), &delivery(directory.path()));
    publish(&publisher, 1..100, 200);
    assert!(publisher.flush(Duration::from_mins(1), || true));
    let stats = publisher.stats().remove(0);
    assert_eq!((stats.ledger.dead_lettered.events, stats.is_connected), (99, false));
    assert_eq!(stats.ledger.last_error.as_deref(), Some("wrong password"));
    broker.is_refusing.store(false, SeqCst);
    while !publisher.stats()[0].is_connected {
        std::thread::yield_now();
    }
    publish(&publisher, 100..200, 200);
    assert!(publisher.flush(Duration::from_mins(1), || true));
    assert_eq!(broker.numbers_in_order(), (100..200).collect());
}

#[test]
fn a_second_process_keeps_its_dead_letters_beside_those_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(0);
    broker.is_refusing.store(true, SeqCst);
    let publishers = [1, 100].map(|first| {
        let publisher = start(&broker, limits(), &delivery(directory.path()));
        publish(&publisher, first..first + 10, 200);
        assert!(publisher.flush(Duration::from_mins(1), || true));
        publisher
    });
    let files = publishers.each_ref().map(|publisher| publisher.stats().remove(0).dead_letter_file);
    let [Some(first), Some(second)] = files else { panic!("{files:?}") };
    assert_eq!(second.file_name().unwrap(), "scripted-2.dead");
    assert_eq!(dead_numbers(&first), (1..11).collect());
    assert_eq!(dead_numbers(&second), (100..110).collect());
}

#[test]
fn a_full_spill_drops_or_blocks_as_the_policy_says() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(0);
    broker.is_up.store(false, SeqCst);
    let options =
        DeliveryOptions { overflow: Overflow::Drop, spill_max_mb: 1, ..delivery(directory.path()) };
    let publisher = start(&broker, limits(), &options);
    publish(&publisher, 1..2_000, 2_000);
    let ledger = publisher.stats().remove(0).ledger;
    assert!(ledger.dropped.events > 0 && ledger.is_balanced(), "{ledger:?}");
    assert!(publisher.close(Duration::ZERO)[0].left.events > 0);
    drop(publisher);

    let options = DeliveryOptions { overflow: Overflow::Block, ..options };
    let publisher = start(&broker, limits(), &options);
    let mut asked = 0;
    let refused = loop {
        let mut keep_waiting = || {
            asked += 1;
            asked < 3
        };
        match publisher.publish(&trades(2_000, 50, 2_000), &mut keep_waiting) {
            Ok(_) => {}
            Err(refused) => break refused,
        }
    };
    assert_eq!((refused, asked), (NotAccepted::Interrupted, 3));
    assert!(publisher.stats()[0].ledger.is_balanced());
    // Room comes with the broker, for a producer that waits.
    let producer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| publisher.publish(&trades(2_000, 50, 2_000), || true));
        broker.is_up.store(true, SeqCst);
        waiting.join().unwrap()
    });
    assert_eq!(producer, Ok(50));
}

#[test]
fn an_event_that_always_fails_is_given_up_and_the_rest_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Broker::new(1_000);
    let options = DeliveryOptions { delivery_timeout_ms: 20, ..delivery(directory.path()) };
    let publisher = start(&broker, limits(), &options);
    publish(&publisher, 1..200, 200);
    assert!(publisher.flush(Duration::from_mins(1), || true));
    broker.failures.store(0, SeqCst);
    publish(&publisher, 200..300, 200);
    assert!(publisher.flush(Duration::from_mins(1), || true));
    let stats = publisher.stats().remove(0);
    let arrived = broker.numbers_in_order();
    let dead = stats.dead_letter_file.map(|file| dead_numbers(&file)).unwrap_or_default();
    assert!((200..300).all(|number| arrived.contains(&number)));
    assert!((1..200).all(|number| arrived.contains(&number) || dead.contains(&number)));
    assert!(stats.ledger.is_balanced());
}
