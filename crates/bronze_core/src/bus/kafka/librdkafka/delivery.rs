//! What becomes of events: which request waits for how many of them, and who is told.
//!
//! librdkafka calls back once for every event that it took, from the polling thread. An event carries
//! no allocation of its own, only a number: the place of its request in a table, and its own place in
//! the request. A place in the table is given away again only when all events of its request were
//! called back, so a late callback never meets a stranger; whether somebody still waits does not
//! matter.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use tokio::sync::oneshot;

use super::super::failure::outcome_of;
use crate::notice::{Level, Notices};
use crate::retry::Outcome;

/// How many bits of an event's number are its place in the request.
const INDEX_BITS: u32 = usize::BITS / 2;
const INDEX: usize = (1 << INDEX_BITS) - 1;

/// Events of a request that failed, by their places.
pub(super) type Failures = Vec<(usize, Outcome)>;

/// The requests whose events are not all answered for.
#[derive(Debug, Default)]
pub(in super::super) struct Deliveries {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    requests: Vec<Option<Waiting>>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Waiting {
    left: usize,
    failures: Failures,
    done: oneshot::Sender<Failures>,
}

/// A request that is being handed to librdkafka. Dropped in the middle, it takes back the events that
/// were not handed over, for which no callback will come.
#[derive(Debug)]
pub(super) struct Handover<'a> {
    deliveries: &'a Deliveries,
    place: usize,
    handed: usize,
    events: usize,
}

impl Deliveries {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a request of so many events; the receiver gets those that failed, once all are settled.
    pub(super) fn begin(&self, events: usize) -> (Handover<'_>, oneshot::Receiver<Failures>) {
        let (done, receiver) = oneshot::channel();
        let mut table = self.table();
        let place = table.free.pop().unwrap_or_else(|| {
            table.requests.push(None);
            table.requests.len() - 1
        });
        table.requests[place] = Some(Waiting { left: events, failures: Vec::new(), done });
        (Handover { deliveries: self, place, handed: 0, events }, receiver)
    }

    /// Takes what became of an event.
    fn settle(&self, number: usize, failure: Option<Outcome>) {
        let (place, index) = (number >> INDEX_BITS, number & INDEX);
        self.settle_some(place, 1, failure.map(|outcome| (index, outcome)));
    }

    fn settle_some(&self, place: usize, events: usize, failure: Option<(usize, Outcome)>) {
        let mut table = self.table();
        let Some(Some(waiting)) = table.requests.get_mut(place) else { return };
        waiting.failures.extend(failure);
        waiting.left = waiting.left.saturating_sub(events);
        if waiting.left > 0 {
            return;
        }
        let settled = table.requests[place].take();
        table.free.push(place);
        drop(table);
        if let Some(Waiting { failures, done, .. }) = settled {
            // Nobody waits any more where the sending was given up.
            let _ = done.send(failures);
        }
    }
}

impl Handover<'_> {
    /// The number that the next event carries.
    pub(super) fn next_number(&self) -> usize {
        self.place << INDEX_BITS | self.handed
    }

    /// The next event is librdkafka's now.
    pub(super) fn handed_over(&mut self) {
        self.handed += 1;
    }

    /// The next event failed before librdkafka took it.
    pub(super) fn failed(&mut self, outcome: Outcome) {
        let number = self.next_number();
        self.handed += 1;
        self.deliveries.settle(number, Some(outcome));
    }
}

impl Drop for Handover<'_> {
    fn drop(&mut self) {
        let left = self.events - self.handed;
        if left > 0 {
            self.deliveries.settle_some(self.place, left, None);
        }
    }
}

/// What librdkafka calls back.
#[derive(Debug)]
pub(in super::super) struct Callbacks {
    pub(super) deliveries: Arc<Deliveries>,
    notices: Notices,
    secrets: Vec<String>,
    trouble: Mutex<Trouble>,
}

/// What went wrong with the connections to the brokers, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct Trouble {
    /// Of its own kind, and the one that says most: who we are, or who they are, is not believed.
    pub(super) refusal: Option<(RDKafkaErrorCode, String)>,
    /// Anything else.
    pub(super) other: Option<String>,
    /// What was told last.
    told: Option<String>,
}

impl Callbacks {
    pub(in super::super) fn new(
        deliveries: Arc<Deliveries>,
        notices: Notices,
        secrets: Vec<String>,
    ) -> Self {
        Self { deliveries, notices, secrets, trouble: Mutex::default() }
    }

    /// A text without the secrets that librdkafka may have put in.
    pub(super) fn scrub(&self, text: &str) -> String {
        scrub(&self.secrets, text)
    }

    /// What went wrong since the producer was made.
    pub(super) fn trouble_so_far(&self) -> Trouble {
        self.trouble().clone()
    }

    /// Tells what was not told just before: an error comes as a log line and as a callback, the latter
    /// twice.
    fn tell_news(&self, level: Level, text: String, field: (&'static str, String)) {
        let told = self.trouble().told.replace(text.clone());
        if told.as_ref() != Some(&text) {
            self.notices.tell(level, super::super::NAME, "librdkafka", text, vec![field]);
        }
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text without secrets.
pub(super) fn scrub(secrets: &[String], text: &str) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
}

impl ClientContext for Callbacks {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        let level = match level {
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error => Level::Error,
            RDKafkaLogLevel::Warning => Level::Warning,
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => Level::Info,
            RDKafkaLogLevel::Debug => Level::Debug,
        };
        // librdkafka says first which of its threads speaks.
        let message = match message.strip_prefix("[thrd:").and_then(|rest| rest.split_once("]: ")) {
            Some((_, message)) => self.scrub(message),
            None => self.scrub(message),
        };
        if facility == "FAIL" {
            self.trouble().other = Some(message.clone());
        }
        self.tell_news(level, message, ("facility", facility.to_owned()));
    }

    fn stats_raw(&self, _: &[u8]) {}

    fn error(&self, error: KafkaError, reason: &str) {
        let reason = self.scrub(reason);
        let code = error.rdkafka_error_code();
        let mut trouble = self.trouble();
        match code {
            Some(code @ (RDKafkaErrorCode::Authentication | RDKafkaErrorCode::SSL)) => {
                trouble.refusal = Some((code, reason.clone()));
            }
            // That all brokers are down says less than why the last one is.
            Some(RDKafkaErrorCode::AllBrokersDown) if trouble.other.is_some() => {}
            _ => trouble.other = Some(reason.clone()),
        }
        drop(trouble);
        let code = code.map_or_else(String::new, |code| format!("{code:?}"));
        self.tell_news(Level::Warning, reason, ("code", code));
    }
}

impl ProducerContext for Callbacks {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        let failure = result.as_ref().err().map(|(error, message)| {
            let size = message.payload().map_or(0, <[u8]>::len);
            outcome_of(error, message.topic(), size)
        });
        self.deliveries.settle(number, failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_when_its_last_event_does() {
        let deliveries = Deliveries::default();
        let (mut handover, mut done) = deliveries.begin(3);
        let first = handover.next_number();
        handover.handed_over();
        handover.failed(Outcome::Permanent("too large".to_owned()));
        let third = handover.next_number();
        handover.handed_over();
        drop(handover);
        deliveries.settle(third, Some(Outcome::Transient("purged".to_owned())));
        assert!(done.try_recv().is_err());
        deliveries.settle(first, None);
        let failures = done.try_recv().unwrap();
        assert_eq!(
            failures,
            [
                (1, Outcome::Permanent("too large".to_owned())),
                (2, Outcome::Transient("purged".to_owned()))
            ]
        );
    }

    #[test]
    fn a_place_is_given_away_only_after_the_last_callback() {
        let deliveries = Deliveries::default();
        let (mut handover, done) = deliveries.begin(5);
        let first = handover.next_number();
        handover.handed_over();
        // Sending was given up with four events not handed over and one on its way.
        drop((handover, done));
        let (mut next, mut next_done) = deliveries.begin(1);
        assert_ne!(next.next_number() >> INDEX_BITS, first >> INDEX_BITS);
        deliveries.settle(first, None);
        assert!(next_done.try_recv().is_err());
        let number = next.next_number();
        next.handed_over();
        deliveries.settle(number, None);
        assert_eq!(next_done.try_recv(), Ok(Vec::new()));
        let table = deliveries.table();
        assert_eq!((table.requests.len(), table.free.len()), (2, 2));
    }

    #[test]
    fn secrets_are_scrubbed_from_logs_and_errors() {
        let notices = Notices::default();
        let secrets = vec!["hunter2".to_owned()];
        let callbacks = Callbacks::new(Arc::default(), notices.clone(), secrets);
        let line = "[thrd:main]: user market/hunter2 refused";
        callbacks.log(RDKafkaLogLevel::Error, "FAIL", line);
        let error = || KafkaError::Global(RDKafkaErrorCode::Authentication);
        callbacks.error(error(), "hunter2 is wrong");
        callbacks.error(error(), "hunter2 is wrong");
        let told = notices.take(std::time::Duration::ZERO).unwrap();
        let told: Vec<_> = told.iter().map(|notice| notice.message.as_str()).collect();
        assert_eq!(told, ["user market/*** refused", "*** is wrong"]);
        let Trouble { refusal, other, .. } = callbacks.trouble_so_far();
        assert_eq!(other.as_deref(), Some("user market/*** refused"));
        assert_eq!(refusal, Some((RDKafkaErrorCode::Authentication, "*** is wrong".to_owned())));
    }
}
