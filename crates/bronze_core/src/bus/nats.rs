//! NATS: events as messages to a `JetStream` stream, with an acknowledgement for each.
//!
//! All messages of a request are written before the first answer is waited for. The crate would
//! reconnect by itself, and let messages that wait behind lost ones pass them; so its list of servers
//! is replaced, once connected, by an address that leads nowhere: a lost connection is the end of the
//! client, all that was in flight fails, and `connect` makes a new one.
//!
//! `Nats-Msg-Id` is a hash of the event, so an event that is sent again is taken once, within the
//! stream's window for duplicates.

mod acks;
mod message;
mod options;
mod stream;
mod subject;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event, ServerAddr, ServerError, Subject, Subscriber,
    jetstream,
};
use futures_util::StreamExt;

use super::{Address, Answer, BusClient, ConnectError, Connected, Request, RequestLimits};
use crate::config_error::ConfigError;
use crate::delivery::DeliveryOptions;
use crate::event_view::EventView;
use crate::notice::{Level, Notices};
use crate::payload_filter::PayloadFilter;
use crate::retry::Outcome;
use crate::template::Template;
use acks::{Acks, Failure, Failures};
use options::{Login, Settings};
pub use options::{NatsOptions, Servers};

// Limits.

/// Events in a request, unless the operator says otherwise.
const EVENTS: usize = 500;
/// The most that the operator may ask for: all their answers must fit into the subscription.
const MOST_EVENTS: usize = 10_000;
/// Bytes in a request, so that what is in flight stays small beside the queue.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// How long an event waits for others, unless the operator says otherwise.
const LINGER: Duration = Duration::from_millis(5);
/// Requests in flight: while the server writes one to disk, the next is on its way.
const LANES: usize = 4;
/// Messages between a request and the connection.
const CLIENT_CAPACITY: usize = 1024;

/// How the crate begins the subjects of answers.
const INBOX: &str = "_INBOX.";

/// How long connecting may take, with all servers and streams.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long one server may take.
const SERVER_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may take to answer for a request.
const ACK_TIMEOUT: Duration = Duration::from_secs(10);
/// After how long of silence the server is asked; it is lost when two asks went unanswered.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Publishes to NATS.
#[derive(Debug)]
pub struct Nats {
    settings: Settings,
    key: Template,
    notices: Notices,
    was_told_of_core: AtomicBool,
    /// The largest message, as the server said at the last connect.
    max_payload: AtomicUsize,
    connection: Mutex<Option<Arc<Connection>>>,
}

#[derive(Debug)]
struct Connection {
    client: Client,
    /// Subjects of answers begin so.
    inbox: String,
    acks: Arc<Acks>,
}

impl BusClient for Nats {
    const NAME: &'static str = "nats";
    type Options = NatsOptions;

    fn validate(
        options: NatsOptions,
        _: &DeliveryOptions,
        notices: &Notices,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            settings: options.check()?,
            key: Template::default_key(),
            notices: notices.clone(),
            was_told_of_core: AtomicBool::new(false),
            max_payload: AtomicUsize::new(usize::MAX),
            connection: Mutex::new(None),
        })
    }

    fn filter(&self) -> PayloadFilter {
        self.settings.filter
    }

    fn limits(&self) -> RequestLimits {
        RequestLimits {
            events: self.settings.events,
            bytes: REQUEST_BYTES,
            linger: self.settings.linger,
            lanes: LANES,
            pipelined: 1,
            one_event_per_key: false,
        }
    }

    // Every message names its subject, so a request may hold events of all of them: one destination.
    fn address(
        &self,
        event: &EventView<'_>,
        bytes: &[u8],
        wants_key: bool,
        address: &mut Address,
    ) -> Result<(), String> {
        address.size = self.size(event, bytes)?;
        if wants_key {
            self.key.render(event, &mut address.key);
        }
        Ok(())
    }

    // Connect.

    async fn connect(&self) -> Result<Connected, ConnectError> {
        self.hold(None);
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, self.open());
        let (connection, warnings) = connecting.await.map_err(|_| {
            let (peer, patience) = (self.peer(), CONNECT_TIMEOUT.as_secs());
            ConnectError::transient(format!("{peer} did not answer within {patience} s"))
        })??;
        self.max_payload.store(connection.client.max_payload(), Ordering::Relaxed);
        if !self.settings.uses_jetstream && !self.was_told_of_core.swap(true, Ordering::Relaxed) {
            let message = "core mode is best effort: the server does not say whether anybody got an \
                           event; give --nats-mode jetstream to be sure";
            self.notices.tell(Level::Warning, Self::NAME, "best_effort", message, Vec::new());
        }
        self.hold(Some(Arc::new(connection)));
        Ok(Connected { peer: self.peer(), warnings })
    }

    // Send.

    async fn send(self: Arc<Self>, request: Request) -> Answer {
        let Some(connection) = self.connection() else {
            return Answer::Disconnected("not connected".to_owned());
        };
        let sending = async {
            if self.settings.uses_jetstream {
                self.send_acknowledged(&connection, &request).await
            } else {
                self.send_unacknowledged(&connection, &request).await
            }
        };
        let sent = tokio::time::timeout(ACK_TIMEOUT, sending).await;
        sent.unwrap_or_else(|_| {
            let (peer, patience) = (self.peer(), ACK_TIMEOUT.as_secs());
            Answer::Disconnected(format!("{peer} did not answer within {patience} s"))
        })
    }

    async fn close(&self) {
        let Some(connection) = self.take() else { return };
        connection.acks.end("closed");
    }
}

impl Nats {
    fn connection(&self) -> Option<Arc<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn take(&self) -> Option<Arc<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn hold(&self, connection: Option<Arc<Connection>>) {
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    fn peer(&self) -> String {
        let address = |server: &ServerAddr| format!("{}:{}", server.host(), server.port());
        self.settings.servers.iter().map(address).collect::<Vec<_>>().join(",")
    }

    async fn open(&self) -> Result<(Connection, Vec<String>), ConnectError> {
        let acks = Arc::new(Acks::default());
        let options = self.connect_options(&acks).await?;
        let client = options.connect(&self.settings.servers).await.map_err(|error| {
            let is_permanent = matches!(
                error.kind(),
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication
            );
            ConnectError { is_permanent, reason: format!("{}: {error}", self.peer()) }
        })?;
        let lost = |error: &dyn std::fmt::Display| {
            ConnectError::transient(format!("{}: {error}", self.peer()))
        };
        // Port 0 can never be listened on.
        client.set_server_pool("nats://127.0.0.1:0").await.map_err(|error| lost(&error))?;
        let inbox = client.new_inbox();
        let answers = client.subscribe(format!("{inbox}.>")).await.map_err(|error| lost(&error))?;
        tokio::spawn(read(answers, Arc::clone(&acks)));
        let connection = Connection { client, inbox, acks };
        let warnings = if self.settings.uses_jetstream {
            self.prepare_streams(&connection).await?
        } else {
            connection.round_trip().await.map_err(|error| lost(&error))?;
            Vec::new()
        };
        Ok((connection, warnings))
    }

    async fn prepare_streams(&self, connection: &Connection) -> Result<Vec<String>, ConnectError> {
        let context = jetstream::new(connection.client.clone());
        let stream = self.settings.stream.as_deref();
        let prepared = stream::prepare(&context, stream, &self.settings.subjects).await;
        prepared.or_else(|error| {
            // What the server refused explains a time-out better than the time-out.
            if let Some(reason) = connection.acks.ended() {
                return Err(ConnectError { is_permanent: is_denial(&reason), reason });
            }
            // Who may not look for streams may all the same publish to them.
            let denial = connection.acks.api_denial().ok_or(error)?;
            Ok(vec![format!("whether a stream takes the events cannot be checked: {denial}")])
        })
    }

    async fn connect_options(&self, acks: &Arc<Acks>) -> Result<ConnectOptions, ConnectError> {
        let acks = Arc::clone(acks);
        let options = ConnectOptions::new()
            .name("tardis-fast")
            .connection_timeout(SERVER_TIMEOUT)
            .request_timeout(Some(SERVER_TIMEOUT))
            .ping_interval(PING_INTERVAL)
            .client_capacity(CLIENT_CAPACITY)
            .subscription_capacity(2 * LANES * MOST_EVENTS)
            .ignore_discovered_servers()
            .max_reconnects(self.settings.servers.len())
            .reconnect_delay_callback(|_| Duration::ZERO)
            .require_tls(self.settings.tls)
            .skip_subject_validation(true)
            .event_callback(move |event| {
                take_event(&acks, &event);
                std::future::ready(())
            });
        match &self.settings.login {
            Login::Nobody => Ok(options),
            Login::User(user, pass) => {
                Ok(options.user_and_password(user.clone(), pass.expose().to_owned()))
            }
            Login::Token(token) => Ok(options.token(token.expose().to_owned())),
            Login::Credentials(path) => options.credentials_file(path).await.map_err(|error| {
                let path = path.display();
                ConnectError::permanent(format!("--nats-creds: `{path}` cannot be used: {error}"))
            }),
        }
    }

    /// Bytes of an event's message, unless the server takes no such message.
    fn size(&self, event: &EventView<'_>, bytes: &[u8]) -> Result<usize, String> {
        let size = self.settings.messages.size(event.case(), bytes, event.data_type());
        let most = self.max_payload.load(Ordering::Relaxed);
        if size > most {
            return Err(format!(
                "the message has {size} bytes with its headers; the server takes at most {most} \
                 (max_payload)"
            ));
        }
        Ok(size)
    }

    /// An event that can be sent. Its size is asked again: it may have been taken in before the server
    /// said what it takes.
    fn view<'a>(&self, event: &'a [u8]) -> Result<EventView<'a>, String> {
        let view = EventView::reread(event).map_err(|error| error.to_string())?;
        self.size(&view, event)?;
        Ok(view)
    }

    async fn send_acknowledged(&self, connection: &Connection, request: &Request) -> Answer {
        let mut messages = Vec::with_capacity(request.events.len());
        let mut subjects = Vec::with_capacity(request.events.len());
        let mut unreadable = Vec::new();
        for (place, (case, event)) in request.events.iter().enumerate() {
            match self.view(event) {
                Ok(view) => {
                    subjects.push(self.settings.subjects.of(case, &view));
                    messages.push((place, view.data_type()));
                }
                Err(reason) => unreadable.push((place, Outcome::Permanent(reason))),
            }
        }
        if messages.is_empty() {
            return answer(request.events.len(), unreadable);
        }
        let mut ticket = match connection.acks.wait_for(subjects.clone()) {
            Ok(ticket) => ticket,
            Err(reason) => return Answer::Disconnected(reason),
        };
        for (number, ((place, data_type), subject)) in messages.iter().zip(&subjects).enumerate() {
            let (case, event) = request.events.shared(*place);
            let headers = self.settings.messages.headers(case, data_type, &event);
            let reply = Subject::from(format!("{}.{}.{number}", connection.inbox, ticket.number));
            let publishing = connection.client.publish_with_reply_and_headers(
                subject.clone(),
                reply,
                headers,
                event,
            );
            if let Err(error) = publishing.await {
                return self.lost(connection, &error);
            }
        }
        let Ok(failures) = (&mut ticket.done).await else {
            return self.lost(connection, &"the connection was lost");
        };
        drop(ticket);
        match self.outcomes(connection, &subjects, failures).await {
            Ok(failures) => {
                let placed = failures.into_iter().map(|(at, outcome)| (messages[at].0, outcome));
                answer(request.events.len(), placed.chain(unreadable).collect())
            }
            Err(reason) => Answer::Disconnected(reason),
        }
    }

    /// Finds out about messages that nobody answered for; an error asks for a new connection.
    async fn outcomes(
        &self,
        connection: &Connection,
        subjects: &[Subject],
        failures: Failures,
    ) -> Result<Vec<(usize, Outcome)>, String> {
        let mut outcomes = Vec::with_capacity(failures.len());
        let mut explained: Vec<(&Subject, Outcome)> = Vec::new();
        for (place, failure) in failures {
            let subject = &subjects[place];
            let known = explained.iter().find(|(other, _)| *other == subject);
            let outcome = match (failure, known) {
                (Failure::Outcome(outcome), _) => outcome,
                (Failure::NoStream, Some((_, outcome))) => outcome.clone(),
                (Failure::NoStream, None) => {
                    let stream = self.settings.stream.as_deref();
                    match stream::explain(&connection.client, stream, subject).await {
                        Failure::Outcome(outcome) => {
                            explained.push((subject, outcome.clone()));
                            outcome
                        }
                        Failure::NoStream => return Err("the stream is gone".to_owned()),
                    }
                }
            };
            outcomes.push((place, outcome));
        }
        Ok(outcomes)
    }

    /// Best effort: the server has read the messages, whoever else gets them.
    async fn send_unacknowledged(&self, connection: &Connection, request: &Request) -> Answer {
        let mut failures = Vec::new();
        for (place, (case, event)) in request.events.iter().enumerate() {
            let view = match self.view(event) {
                Ok(view) => view,
                Err(reason) => {
                    failures.push((place, Outcome::Permanent(reason)));
                    continue;
                }
            };
            let subject = self.settings.subjects.of(case, &view);
            let headers = self.settings.messages.headers(case, view.data_type(), event);
            let (_, event) = request.events.shared(place);
            let publishing = connection.client.publish_with_headers(subject, headers, event);
            if let Err(error) = publishing.await {
                return self.lost(connection, &error);
            }
        }
        match connection.round_trip().await {
            Ok(()) => answer(request.events.len(), failures),
            Err(error) => self.lost(connection, &error),
        }
    }

    fn lost(&self, connection: &Connection, error: &dyn std::fmt::Display) -> Answer {
        let reason = connection.acks.ended().unwrap_or_else(|| error.to_string());
        Answer::Disconnected(format!("{}: {reason}", self.peer()))
    }
}

impl Connection {
    /// Sends a message to itself: once it is back the server has read all that went before. That a
    /// user may not do so is an answer as well.
    async fn round_trip(&self) -> Result<(), String> {
        let mut ticket = self.acks.wait_for(vec![Subject::from_static("round trip")])?;
        let subject = Subject::from(format!("{}.{}.0", self.inbox, ticket.number));
        let publishing = self.client.publish(subject, acks::TAKEN.into());
        publishing.await.map_err(|error| error.to_string())?;
        let back = (&mut ticket.done).await;
        back.map(drop).map_err(|_| "the connection was lost".to_owned())
    }
}

/// Acknowledged, but for the failures.
fn answer(events: usize, failures: Vec<(usize, Outcome)>) -> Answer {
    if failures.is_empty() {
        return Answer::All(Outcome::Acknowledged);
    }
    let mut outcomes = vec![Outcome::Acknowledged; events];
    for (place, outcome) in failures {
        outcomes[place] = outcome;
    }
    Answer::Each(outcomes)
}

/// Takes in answers until the connection ends.
async fn read(mut answers: Subscriber, acks: Arc<Acks>) {
    while let Some(message) = answers.next().await {
        acks.take(&message);
    }
    acks.end("the connection was lost");
}

// Which errors are transient: see `acks` and `stream`; these come beside the answers.

fn take_event(acks: &Acks, event: &Event) {
    match event {
        Event::ServerError(ServerError::Other(text)) => match denied_subject(text) {
            Some(subject) if subject.starts_with("$JS.API") => acks.deny_api(text),
            Some(subject) if subject.starts_with(INBOX) => acks.deny_answer(subject),
            Some(subject) => acks.deny(subject, text),
            // Without answers nothing can be acknowledged.
            None if is_denial(text) => acks.end(text),
            None => {}
        },
        Event::Disconnected | Event::Closed => acks.end("the connection was lost"),
        _ => {}
    }
}

/// The subject in `Permissions Violation for Publish to "x"`.
fn denied_subject(text: &str) -> Option<&str> {
    let (_, quoted) = text.split_once('"').filter(|(before, _)| {
        before.to_ascii_lowercase().contains("permissions violation for publish")
    })?;
    quoted.split_once('"').map(|(subject, _)| subject)
}

fn is_denial(text: &str) -> bool {
    text.to_ascii_lowercase().contains("permissions violation for subscription")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let options = NatsOptions {
            subject: Some("s".to_owned()),
            user: Some("u".to_owned()),
            pass: Some("hunter2".into()),
            ..NatsOptions::default()
        };
        assert!(!format!("{options:?}").contains("hunter2"));
        let client =
            Nats::validate(options, &DeliveryOptions::default(), &Notices::default()).unwrap();
        assert!(!format!("{client:?}").contains("hunter2"));
        assert_eq!(client.peer(), "127.0.0.1:4222");
    }

    #[test]
    fn denials_are_read() {
        let denial = "Permissions Violation for Publish to \"a.b\"";
        assert_eq!(denied_subject(denial), Some("a.b"));
        assert_eq!(denied_subject("Permissions Violation for Subscription to \"a\""), None);
        assert!(is_denial("Permissions Violation for Subscription to \"_INBOX.x\""));
    }

    #[test]
    fn failures_are_put_in_their_places() {
        assert_eq!(answer(2, Vec::new()), Answer::All(Outcome::Acknowledged));
        let refused = || Outcome::Permanent("no".to_owned());
        let expected = vec![Outcome::Acknowledged, refused()];
        assert_eq!(answer(2, vec![(1, refused())]), Answer::Each(expected));
    }
}
