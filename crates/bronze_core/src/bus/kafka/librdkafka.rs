//! Publishing by librdkafka: for everything that the direct client does not do, such as encryption,
//! log-ins, and librdkafka's own properties.
//!
//! One producer lives from the first connect to the end: librdkafka reconnects by itself, keeps the
//! order of what it was given and tries again until the delivery time-out. Only a producer that
//! librdkafka has declared dead is made anew.

mod connection;
mod delivery;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{BaseRecord, Producer, PurgeConfig};

use self::connection::{Connection, Login};
use self::delivery::{Failures, Handover};
use super::failure::{is_authorization, outcome_of, too_large};
use super::options::Settings;
use super::turns::Turn;
use crate::bus::{Answer, ConnectError, Connected, Request, RequestLimits};
use crate::event_view::EventView;
use crate::notice::Notices;
use crate::retry::Outcome;

pub(super) use self::delivery::Callbacks;

// Limits. A batch of librdkafka is up to 1 MB for one partition, and five batches are in flight to a
// broker: these are enough events to fill them, and a few megabytes.

/// Events in a request.
const REQUEST_EVENTS: usize = 2_000;
/// Bytes in a request.
const REQUEST_BYTES: usize = 1_000_000;
/// Requests of a topic in flight.
const PIPELINED: usize = 16;
/// How long closing may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a full queue is tried again.
const FULL_QUEUE_WAIT: Duration = Duration::from_millis(5);

/// See the module.
#[derive(Debug)]
pub(super) struct Librdkafka {
    topics: Vec<String>,
    notices: Notices,
    connection: Mutex<Option<Arc<Connection>>>,
    is_closed: Arc<AtomicBool>,
}

impl Librdkafka {
    fn connection(&self) -> MutexGuard<'_, Option<Arc<Connection>>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn send(
        &self,
        settings: &Settings,
        mut turn: Turn,
        request: Request,
    ) -> Answer {
        // Also where the one before was given up: librdkafka has what it took of it.
        turn.come().await;
        let Some(connection) = self.connection().clone() else {
            return Answer::Disconnected("there is no connection to Kafka".to_owned());
        };
        let events = request.events.len();
        if events == 0 {
            return Answer::All(Outcome::Acknowledged);
        }
        let (mut handover, done) = connection.deliveries().begin(events);
        let handed = self.hand_over(settings, &connection, &request, &mut handover).await;
        drop((handover, request));
        turn.pass(handed.is_ok());
        if let Err(reason) = handed {
            return Answer::Disconnected(reason);
        }
        match done.await {
            Ok(failures) if failures.is_empty() => Answer::All(Outcome::Acknowledged),
            Ok(failures) => match connection.fatal() {
                Some((_, reason)) if failures.iter().any(|(_, outcome)| is_transient(outcome)) => {
                    Answer::Disconnected(reason)
                }
                _ => Answer::Each(each(events, failures)),
            },
            Err(_) => Answer::Disconnected("the connection to Kafka is closed".to_owned()),
        }
    }

    /// Gives librdkafka the events of a request; an error says why it takes no more at all.
    async fn hand_over(
        &self,
        settings: &Settings,
        connection: &Connection,
        request: &Request,
        handover: &mut Handover<'_>,
    ) -> Result<(), String> {
        let topic = settings.route.destinations().get(request.destination);
        let topic = topic.ok_or("there is no such topic among the routes")?;
        let mut key = String::new();
        for (_, bytes) in request.events.iter() {
            let event = match EventView::reread(bytes) {
                Ok(event) => event,
                Err(error) => {
                    handover.failed(Outcome::Permanent(error.to_string()));
                    continue;
                }
            };
            key.clear();
            settings.form.key.render(&event, &mut key);
            let mut record = BaseRecord::with_opaque_to(topic, handover.next_number())
                .payload(bytes)
                .headers(settings.form.headers(&event));
            if !key.is_empty() {
                record = record.key(key.as_str());
            }
            let mut deadline = None;
            loop {
                let Err((error, refused)) = connection.producer.send(record) else {
                    handover.handed_over();
                    break;
                };
                match error.rdkafka_error_code() {
                    Some(RDKafkaErrorCode::QueueFull) => {
                        let wait_until = || Instant::now() + settings.delivery_timeout;
                        let deadline = *deadline.get_or_insert_with(wait_until);
                        if self.is_closed.load(Ordering::Acquire) || Instant::now() >= deadline {
                            let reason = "Kafka's queue of waiting events is full";
                            handover.failed(Outcome::Transient(reason.to_owned()));
                            break;
                        }
                        record = refused;
                        tokio::time::sleep(FULL_QUEUE_WAIT).await;
                    }
                    Some(RDKafkaErrorCode::Fatal) => {
                        let fatal = connection.fatal().map(|(_, text)| text);
                        return Err(fatal.unwrap_or_else(|| error.to_string()));
                    }
                    Some(RDKafkaErrorCode::MessageSizeTooLarge) => {
                        let size = bytes.len() + settings.form.size(&event);
                        let reason = too_large(size, settings.largest);
                        handover.failed(Outcome::Permanent(reason));
                        break;
                    }
                    _ => {
                        handover.failed(outcome_of(&error, topic, bytes.len()));
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn new(topics: Vec<String>, notices: Notices) -> Self {
        Self { topics, notices, connection: Mutex::default(), is_closed: Arc::default() }
    }

    pub(super) fn limits() -> RequestLimits {
        RequestLimits {
            events: REQUEST_EVENTS,
            bytes: REQUEST_BYTES,
            linger: Duration::ZERO,
            lanes: 1,
            pipelined: PIPELINED,
            one_event_per_key: false,
        }
    }

    pub(super) async fn connect(&self, settings: &Settings) -> Result<Connected, ConnectError> {
        let known = self.connection().clone();
        let known = match known.as_ref().and_then(|known| known.fatal()) {
            None => known,
            Some((code, reason)) => {
                *self.connection() = None;
                // A new producer may do no more than the old one: somebody must grant it first.
                if is_authorization(code) {
                    let reason = format!("Kafka does not let this user publish: {reason}");
                    return Err(ConnectError::permanent(reason));
                }
                None
            }
        };
        let (settings, notices) = (settings.clone(), self.notices.clone());
        let (topics, is_closed) = (self.topics.clone(), Arc::clone(&self.is_closed));
        let surveyed = tokio::task::spawn_blocking(move || {
            let connection = match known {
                Some(known) => known,
                None => Arc::new(Connection::open(&settings, notices)?),
            };
            let survey = connection.survey(&topics, &Login::of(&settings), &is_closed);
            Ok((connection, survey))
        });
        let (connection, survey) = surveyed
            .await
            .map_err(|error| ConnectError::transient(format!("connecting ended: {error}")))??;
        // What is refused would be tried for ever by a producer that is kept.
        let is_refused = survey.as_ref().is_err_and(|error| error.is_permanent);
        *self.connection() = (!is_refused).then_some(connection);
        survey
    }

    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let Some(connection) = self.connection().take() else { return };
        // Every event that waits is called back, so that every sending ends.
        let purged = tokio::task::spawn_blocking(move || {
            connection.producer.purge(PurgeConfig::default().queue().inflight());
            connection.producer.flush(CLOSE_TIMEOUT)
        });
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, purged).await;
    }
}

fn is_transient(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Transient(_))
}

fn each(events: usize, failures: Failures) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Acknowledged; events];
    for (index, outcome) in failures {
        outcomes[index] = outcome;
    }
    outcomes
}
