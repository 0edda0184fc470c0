//! The dispatcher of a bus: one task that takes batches from the intake, keeps the connection, sends
//! what the outbox says, and settles what the broker answers.
//!
//! Invariants
//! - It holds no more than its window of bytes, plus one batch.
//! - Requests are sent only while the bus is connected. When the connection is lost, all requests in
//!   flight are answered before it is made anew, so nothing of the old one overtakes.
//! - The ledger moves with every step: memory to flight when a request is made, then to its end, or
//!   back to memory. What cannot even be written to the dead-letter file stays in memory and is tried
//!   again; it counts against the window.
//! - It ends after `stop`, at its deadline at the latest (and the bounded time a client takes to close):
//!   what is left is on disk then, or in the dead-letter file where there is no spill.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};

use crate::backlog::BacklogPosition;
use crate::bus::{Answer, BusClient, ConnectError, Connected};
use crate::event_batch::EventBatch;
use crate::intake::{Intake, amount};
use crate::ledger::{Amount, End, Place};
use crate::notice::Level;
use crate::outbox::{GivenUp, Outbox, RequestId};
use crate::retry::{Outcome, RetryPolicy};
use crate::spill::SpillError;

/// How often what is done is written to disk at most, while there is more to do.
const COMMIT_EVERY: Duration = Duration::from_millis(50);
/// After how long a disk that failed is tried again.
const DISK_AGAIN: Duration = Duration::from_secs(1);
/// Bytes that are taken in before what is there is sent.
const TURN_BYTES: usize = 1024 * 1024;
/// How long a client may take to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// The longest sleep; a broken clock must not stop the dispatcher.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);

/// What a bus left when it was stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Events that were not delivered.
    pub events: u64,
    /// Where they are kept.
    pub kept_in: Option<String>,
}

enum Link {
    /// Tried again at a time.
    Down(Instant),
    Connecting(JoinHandle<Result<Connected, ConnectError>>),
    Up,
}

/// See the module.
pub(crate) struct Dispatcher<B: BusClient> {
    client: Arc<B>,
    intake: Arc<Intake>,
    outbox: Outbox,
    policy: RetryPolicy,
    window: u64,
    stop: watch::Receiver<Option<Instant>>,
    link: Link,
    /// Connections that failed or were lost since something was acknowledged.
    failed_connects: u32,
    /// Why connecting is of no use, while it is so.
    refused: Option<String>,
    was_connected: bool,
    /// Since when nothing was acknowledged because of failures.
    failing_since: Option<Instant>,
    sends: JoinSet<Answer>,
    requests: HashMap<Id, RequestId>,
    /// Given up, and not yet in the dead-letter file.
    unburied: VecDeque<GivenUp>,
    unburied_bytes: u64,
    /// What is to be marked as done on disk, the latest of each spill.
    to_commit: Vec<BacklogPosition>,
    committed_at: Instant,
    /// When the disk is tried again.
    disk_again: Option<Instant>,
}

impl<B: BusClient> Dispatcher<B> {
    pub(crate) fn new(
        client: Arc<B>,
        intake: Arc<Intake>,
        policy: RetryPolicy,
        window: u64,
        stop: watch::Receiver<Option<Instant>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            outbox: Outbox::new(client.limits(), policy),
            client,
            intake,
            policy,
            window,
            stop,
            link: Link::Down(now),
            failed_connects: 0,
            refused: None,
            was_connected: false,
            failing_since: None,
            sends: JoinSet::new(),
            requests: HashMap::new(),
            unburied: VecDeque::new(),
            unburied_bytes: 0,
            to_commit: Vec::new(),
            committed_at: now,
            disk_again: None,
        }
    }

    pub(crate) async fn run(mut self) -> Left {
        loop {
            let now = Instant::now();
            let stop_at = *self.stop.borrow_and_update();
            let has_more = self.fill(now);
            self.dispatch(now, self.is_hurried(stop_at));
            self.bury_again(now);
            self.commit(now);
            if self.is_idle() {
                self.intake.tell_idle();
            }
            let is_over =
                |deadline| deadline <= now || (self.is_idle() && self.intake.is_drained());
            if stop_at.is_some_and(is_over) {
                return self.finish().await;
            }
            let wake_at = self.wake_at(now, stop_at);
            let has_room = self.has_room(now);
            tokio::select! {
                Some(answered) = self.sends.join_next_with_id() => self.take_answers(answered),
                connected = connection(&mut self.link) => self.take_connection(connected),
                () = self.intake.queue.arrival(), if has_room => {}
                () = std::future::ready(()), if has_more => {}
                () = tokio::time::sleep_until(wake_at.into()) => {}
                _ = self.stop.changed() => {}
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.outbox.is_empty() && self.unburied.is_empty()
    }

    /// Whether events should not wait for company: somebody waits, or there is no room for company.
    fn is_hurried(&self, stop_at: Option<Instant>) -> bool {
        stop_at.is_some() || self.intake.is_flushing() || self.outbox.held_bytes() >= self.window
    }

    fn has_room(&self, now: Instant) -> bool {
        let held = self.outbox.held_bytes() + self.unburied_bytes;
        held < self.window && self.disk_again.is_none() && self.enough_until(now).is_none()
    }

    /// Until when nothing need be taken in. While the bus is away there is never enough: memory is there
    /// to be filled before the disk.
    fn enough_until(&self, now: Instant) -> Option<Instant> {
        matches!(self.link, Link::Up).then(|| self.outbox.enough_until(now)).flatten()
    }

    /// Takes batches in while there is room, up to a turn's worth; says whether there may be more.
    fn fill(&mut self, now: Instant) -> bool {
        if self.disk_again.is_some_and(|at| at <= now) {
            self.disk_again = None;
        }
        let mut bytes = 0;
        while self.has_room(now) && bytes < TURN_BYTES {
            match self.intake.next() {
                Ok(Some((batch, position))) => {
                    bytes += batch.byte_len();
                    let refused = self.outbox.admit(&*self.client, batch, position, now);
                    self.bury(refused, Place::Memory);
                }
                Ok(None) => break,
                Err(error) => self.take_disk_error(&error, now),
            }
        }
        if let Some(reason) = &self.refused {
            let given_up = self.outbox.give_up_waiting(reason);
            self.bury(given_up, Place::Memory);
        }
        bytes >= TURN_BYTES
    }

    fn take_disk_error(&mut self, error: &SpillError, now: Instant) {
        if let SpillError::SetAside(aside) = error {
            let lost = Amount { events: aside.events, bytes: aside.bytes };
            self.intake.ledger.settle(Place::Spill, End::Dropped, lost);
        } else {
            self.disk_again = Some(now + DISK_AGAIN);
        }
        self.tell_failure(Level::Error, "spill_failed", error.to_string());
    }

    /// Sends what may be sent now, and connects if that is due.
    fn dispatch(&mut self, now: Instant, hurry: bool) {
        match &self.link {
            Link::Down(at) if *at <= now && self.outbox.in_flight() == 0 => {
                let client = Arc::clone(&self.client);
                self.link = Link::Connecting(tokio::spawn(async move { client.connect().await }));
            }
            Link::Up => {
                while let Some(outgoing) = self.outbox.next(now, hurry) {
                    self.intake.ledger.shift(Place::Memory, Place::Flight, outgoing.amount);
                    let task = self.sends.spawn(Arc::clone(&self.client).send(outgoing.request));
                    self.requests.insert(task.id(), outgoing.id);
                }
            }
            Link::Down(_) | Link::Connecting(_) => {}
        }
    }

    /// Takes an answer, and all others that are there.
    fn take_answers(&mut self, first: Result<(Id, Answer), JoinError>) {
        let mut next = Some(first);
        while let Some(answered) = next {
            let (task, answer) = match answered {
                Ok((task, answer)) => (task, answer),
                Err(error) => {
                    let reason = format!("sending ended without an answer: {error}");
                    (error.id(), Answer::All(Outcome::Transient(reason)))
                }
            };
            if let Some(id) = self.requests.remove(&task) {
                self.take_answer(id, answer);
            }
            next = self.sends.try_join_next_with_id();
        }
    }

    fn take_answer(&mut self, id: RequestId, answer: Answer) {
        let now = Instant::now();
        if let Answer::Disconnected(reason) = &answer {
            self.disconnect(now, reason.clone());
        }
        let settled = self.outbox.answer(id, answer, now, fastrand::f64());
        let ledger = &self.intake.ledger;
        if settled.acknowledged.events > 0 {
            ledger.acknowledge(settled.acknowledged, settled.latency);
            self.failed_connects = 0;
        }
        if settled.again.events > 0 {
            ledger.shift(Place::Flight, Place::Memory, settled.again);
        }
        match settled.failure {
            Some(reason) => self.note_failing(now, reason),
            None if settled.acknowledged.events > 0 => self.note_working(now),
            None => {}
        }
        self.bury(settled.given_up, Place::Flight);
    }

    fn disconnect(&mut self, now: Instant, reason: String) {
        if matches!(self.link, Link::Up) {
            // A broker that takes connections and drops them again must not be flooded either.
            self.link = Link::Down(now + self.backoff(self.policy.backoff(self.failed_connects)));
            self.intake.is_connected.store(false, SeqCst);
            self.note_failing(now, reason);
        }
    }

    fn take_connection(&mut self, connected: Result<Result<Connected, ConnectError>, JoinError>) {
        let now = Instant::now();
        match connected.unwrap_or_else(|error| Err(ConnectError::transient(error.to_string()))) {
            Ok(connected) => {
                self.link = Link::Up;
                self.refused = None;
                self.intake.is_connected.store(true, SeqCst);
                self.tell_connected(connected);
            }
            Err(error) => {
                let longest = if error.is_permanent {
                    self.policy.max_backoff
                } else {
                    self.policy.backoff(self.failed_connects)
                };
                self.link = Link::Down(now + self.backoff(longest));
                self.refused = error.is_permanent.then(|| error.reason.clone());
                self.note_failing(now, error.reason);
            }
        }
    }

    /// A wait of at most `longest` before the next attempt to connect.
    fn backoff(&mut self, longest: Duration) -> Duration {
        self.failed_connects = self.failed_connects.saturating_add(1);
        longest.mul_f64(fastrand::f64())
    }

    fn tell_connected(&mut self, connected: Connected) {
        let kind = if self.was_connected { "reconnected" } else { "connected" };
        self.was_connected = true;
        let Intake { notices, name, .. } = &*self.intake;
        let message = format!("{kind} to {}", connected.peer);
        notices.tell(Level::Info, name, kind, message, vec![("peer", connected.peer)]);
        for warning in connected.warnings {
            notices.tell(Level::Warning, name, "warning", warning, Vec::new());
        }
    }

    fn note_failing(&mut self, now: Instant, reason: String) {
        if self.failing_since.is_none() {
            self.failing_since = Some(now);
            let waiting = self.intake.ledger.waiting();
            let message = format!("failing, {waiting} events wait: {reason}");
            let fields = vec![("reason", reason.clone()), ("waiting", waiting.to_string())];
            self.intake.notices.tell(Level::Warning, self.intake.name, "failing", message, fields);
        }
        self.intake.ledger.note_error(reason);
    }

    fn note_working(&mut self, now: Instant) {
        let Some(since) = self.failing_since.take() else { return };
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let waiting = self.intake.ledger.waiting();
        let message = format!("recovered after {seconds:.1} s, {waiting} events wait");
        let fields = vec![("seconds", format!("{seconds:.3}")), ("waiting", waiting.to_string())];
        self.intake.notices.tell(Level::Info, self.intake.name, "recovered", message, fields);
    }

    fn tell_failure(&self, level: Level, kind: &'static str, reason: String) {
        self.intake.ledger.note_error(reason.as_str());
        self.intake.notices.tell(level, self.intake.name, kind, reason, Vec::new());
    }

    /// Writes given-up events to the dead-letter file, or holds them until that works.
    fn bury(&mut self, given_up: Vec<GivenUp>, from: Place) {
        for given_up in given_up {
            let batch = batch_of(&given_up);
            if !self.unburied.is_empty() || !self.intake.bury(&given_up.reason, &batch, from) {
                if from == Place::Flight {
                    self.intake.ledger.shift(Place::Flight, Place::Memory, given_up.amount());
                }
                self.unburied_bytes += given_up.amount().bytes;
                self.unburied.push_back(given_up);
                self.disk_again.get_or_insert(Instant::now() + DISK_AGAIN);
            }
        }
    }

    fn bury_again(&mut self, now: Instant) {
        if self.disk_again.is_some_and(|at| now < at) {
            return;
        }
        while let Some(given_up) = self.unburied.pop_front() {
            if !self.intake.bury(&given_up.reason, &batch_of(&given_up), Place::Memory) {
                self.unburied.push_front(given_up);
                self.disk_again = Some(now + DISK_AGAIN);
                return;
            }
            self.unburied_bytes -= given_up.amount().bytes;
        }
    }

    /// Marks on disk what is done.
    fn commit(&mut self, now: Instant) {
        while let Some(position) = self.outbox.take_done() {
            match self.to_commit.iter_mut().find(|other| other.is_same_spill(position)) {
                Some(other) => *other = position,
                None => self.to_commit.push(position),
            }
        }
        let is_due = self.outbox.is_empty() || now >= self.committed_at + COMMIT_EVERY;
        if self.to_commit.is_empty() || !is_due {
            return;
        }
        self.committed_at = now;
        for position in std::mem::take(&mut self.to_commit) {
            if let Err(error) = self.intake.commit(position) {
                // They are done for this process; at worst they come again after a restart.
                self.tell_failure(Level::Warning, "spill_failed", error.to_string());
            }
        }
    }

    /// When to look again, if nothing happens before.
    fn wake_at(&self, now: Instant, stop_at: Option<Instant>) -> Instant {
        let hurry = self.is_hurried(stop_at);
        let send_at = match self.link {
            Link::Up => self.outbox.next_deadline(hurry),
            Link::Down(at) => (self.outbox.in_flight() == 0).then_some(at),
            Link::Connecting(_) => None,
        };
        let commit_at = (!self.to_commit.is_empty()).then(|| self.committed_at + COMMIT_EVERY);
        [send_at, stop_at, commit_at, self.disk_again, self.enough_until(now)]
            .into_iter()
            .flatten()
            .fold(now + LONGEST_SLEEP, Instant::min)
    }

    /// Ends: keeps what is left.
    async fn finish(mut self) -> Left {
        self.sends.abort_all();
        if let Link::Connecting(connecting) = &self.link {
            connecting.abort();
        }
        let closed = tokio::time::timeout(CLOSE_WITHIN, self.client.close()).await;
        if closed.is_err() {
            let reason = "the client did not close in time".to_owned();
            self.tell_failure(Level::Warning, "close", reason);
        }
        let in_flight = self.outbox.in_flight_amount();
        self.intake.ledger.shift(Place::Flight, Place::Memory, in_flight);
        let mut left = self.outbox.take_back();
        left.extend(self.unburied.drain(..).map(|given_up| (batch_of(&given_up), None)));
        while let Some(batch) = self.intake.queue.try_pop() {
            left.push((batch, None));
        }
        let left = self.keep(&left);
        self.intake.tell_idle();
        self.tell_drained(&left);
        left
    }

    fn keep(&self, batches: &[(EventBatch, Option<BacklogPosition>)]) -> Left {
        let ledger = &self.intake.ledger;
        let kept = self.intake.keep(batches);
        if let Some((Ok(()), directory, events)) = &kept {
            for (batch, _) in batches {
                ledger.shift(Place::Memory, Place::Spill, amount(batch));
            }
            let kept_in = (*events > 0).then(|| directory.display().to_string());
            return Left { events: *events, kept_in };
        }
        let mut left = Left::default();
        if let Some((Err(error), directory, events)) = kept {
            self.tell_failure(Level::Error, "spill_failed", error.to_string());
            left = Left { events, kept_in: Some(directory.display().to_string()) };
        }
        for (batch, _) in batches {
            let reason = "not delivered before the publisher was closed";
            if !self.intake.bury(reason, batch, Place::Memory) {
                ledger.settle(Place::Memory, End::Dropped, amount(batch));
            }
            left.events += batch.len() as u64;
        }
        left.kept_in = left.kept_in.or_else(|| {
            let file = self.intake.dead_letter_file().filter(|_| left.events > 0);
            file.map(|file| file.display().to_string())
        });
        left
    }

    fn tell_drained(&self, left: &Left) {
        let acknowledged = self.intake.stats().acknowledged.events;
        let (level, message) = match &left.kept_in {
            None => (Level::Info, format!("closed: {acknowledged} events delivered, none left")),
            Some(place) => (
                Level::Warning,
                format!(
                    "closed: {} events were not delivered and are kept in {place}",
                    left.events
                ),
            ),
        };
        let fields =
            vec![("acknowledged", acknowledged.to_string()), ("left", left.events.to_string())];
        self.intake.notices.tell(level, self.intake.name, "closed", message, fields);
    }
}

/// Ends when the connection that is being made is made, or failed; never if none is.
async fn connection(link: &mut Link) -> Result<Result<Connected, ConnectError>, JoinError> {
    match link {
        Link::Connecting(connecting) => connecting.await,
        Link::Down(_) | Link::Up => std::future::pending().await,
    }
}

fn batch_of(given_up: &GivenUp) -> EventBatch {
    given_up.events.iter().map(|(case, bytes)| (*case, bytes.as_ref())).collect()
}

#[cfg(test)]
mod tests;
