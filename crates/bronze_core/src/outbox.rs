//! The outbox of a bus: events that left the queue and are not settled, and the order in which they
//! may be sent. It does no I/O and reads no clock; the dispatcher does.
//!
//! Invariants
//! - An event is in one lane, chosen by its destination and key. In a lane it is waiting, in one
//!   request in flight, or in one request that will be sent again; then it is settled, once.
//! - A lane with something to send again sends nothing else: when all its requests in flight are
//!   answered, the failed ones go again, oldest first and one at a time. So a failed event is not
//!   overtaken by a later one of its key, save by those that were in flight beside it (`pipelined`,
//!   or in the same request), which is what a bus declares in its `RequestLimits`.
//! - A batch's memory is held while one of its events is not settled, and counts in whole.
//! - Batches end in the order they were admitted as far as spill positions are concerned: a position
//!   is given out only when all batches before it are settled too.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::backlog::BacklogPosition;
use crate::bus::{Address, Answer, BusClient, Request, RequestLimits};
use crate::event_batch::EventBatch;
use crate::event_view::EventView;
use crate::ledger::Amount;
use crate::payload_case::PayloadCase;
use crate::picked_events::PickedEvents;
use crate::retry::{Attempts, Outcome, RetryPolicy};

/// How many waiting events are looked at for one request, in multiples of those it may hold.
const LOOK_AHEAD: usize = 4;

/// How long after an answer the next one is counted on.
const ANSWERS_WITHIN: Duration = Duration::from_millis(100);

/// An event in the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    batch: u64,
    index: u32,
    /// Bytes in a request.
    size: u32,
    key: u32,
}

#[derive(Debug)]
struct OpenBatch {
    /// Empty once all its events are settled.
    batch: EventBatch,
    /// Where it is in the backlog, if it came from there.
    position: Option<BacklogPosition>,
    admitted: Instant,
    left: usize,
}

#[derive(Debug, Default)]
struct Lane {
    destination: usize,
    /// Whether it ever had an event.
    is_used: bool,
    waiting: VecDeque<Entry>,
    waiting_size: usize,
    in_flight: Vec<Flight>,
    /// By number.
    again: VecDeque<Again>,
}

/// A request that is sent.
#[derive(Debug)]
struct Flight {
    number: u64,
    entries: Vec<Entry>,
    amount: Amount,
    sent: Instant,
    attempts: Attempts,
}

/// A request that will be sent again.
#[derive(Debug)]
struct Again {
    number: u64,
    entries: Vec<Entry>,
    attempts: Attempts,
    at: Instant,
}

/// Names a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestId {
    lane: usize,
    number: u64,
}

/// A request to send now.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) amount: Amount,
}

/// Events that are given up, all for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) reason: String,
    pub(crate) events: Vec<(PayloadCase, Bytes)>,
}

impl GivenUp {
    pub(crate) fn amount(&self) -> Amount {
        amount_of(self.events.iter().map(|(_, bytes)| bytes.len()))
    }
}

/// What an answer settled.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    pub(crate) acknowledged: Amount,
    pub(crate) latency: Duration,
    /// What will be sent again, and why.
    pub(crate) again: Amount,
    pub(crate) failure: Option<String>,
    pub(crate) given_up: Vec<GivenUp>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Outbox {
    limits: RequestLimits,
    policy: RetryPolicy,
    batches: VecDeque<OpenBatch>,
    /// The number of `batches[0]`.
    first_batch: u64,
    held_bytes: u64,
    lanes: Vec<Lane>,
    next_request: u64,
    in_flight: usize,
    /// When the last answer came.
    answered: Option<Instant>,
    /// The place up to which the backlog is done, if that changed since it was asked for.
    done: VecDeque<BacklogPosition>,
    address: Address,
    keys: HashSet<u32>,
}

impl Outbox {
    pub(crate) fn new(limits: RequestLimits, policy: RetryPolicy) -> Self {
        Self {
            limits: RequestLimits {
                events: limits.events.max(1),
                lanes: limits.lanes.max(1),
                pipelined: limits.pipelined.max(1),
                ..limits
            },
            policy,
            batches: VecDeque::new(),
            first_batch: 0,
            held_bytes: 0,
            lanes: Vec::new(),
            next_request: 0,
            in_flight: 0,
            answered: None,
            done: VecDeque::new(),
            address: Address::default(),
            keys: HashSet::new(),
        }
    }

    /// Bytes of all batches that are held.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Whether everything is settled.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The events of all requests in flight.
    pub(crate) fn in_flight_amount(&self) -> Amount {
        let flights = self.lanes.iter().flat_map(|lane| &lane.in_flight);
        flights.fold(Amount::default(), |sum, flight| Amount {
            events: sum.events + flight.amount.events,
            bytes: sum.bytes + flight.amount.bytes,
        })
    }

    /// Until when nothing more need be taken in, if that is so: every lane in use is busy, and half of them
    /// have their next requests ready. More would be looked at now and again, from afar, when it is sent.
    ///
    /// Lanes that send something again have nothing ready, and where nobody answers there is no end to
    /// waiting: those that could go on must not wait for those that cannot.
    pub(crate) fn enough_until(&self, now: Instant) -> Option<Instant> {
        let RequestLimits { events, bytes, pipelined, one_event_per_key, .. } = self.limits;
        // Where a request has one event of a key, it is made up of many that wait.
        let events = if one_event_per_key { LOOK_AHEAD * events } else { events };
        let mut ready = 0;
        let mut used = 0;
        for lane in self.lanes.iter().filter(|lane| lane.is_used) {
            let full = (lane.waiting.len() / events).max(lane.waiting_size / bytes.max(1));
            if full == 0 && lane.in_flight.is_empty() && lane.again.is_empty() {
                return None;
            }
            used += 1;
            ready += if lane.again.is_empty() { full.min(pipelined) } else { 0 };
        }
        let until = self.answered? + ANSWERS_WITHIN;
        (ready > 0 && ready >= pipelined * used / 2 && until > now).then_some(until)
    }

    /// Takes a batch in and returns the events that the bus refuses.
    pub(crate) fn admit<B: BusClient>(
        &mut self,
        client: &B,
        batch: EventBatch,
        position: Option<BacklogPosition>,
        now: Instant,
    ) -> Vec<GivenUp> {
        let number = self.first_batch + self.batches.len() as u64;
        let wants_key = self.limits.lanes > 1 || self.limits.one_event_per_key;
        let mut refused: Vec<GivenUp> = Vec::new();
        let mut left = 0;
        for (index, (case, bytes)) in (0_u32..).zip(batch.iter()) {
            match self.lane_of(client, case, bytes, wants_key) {
                Ok((lane, size, key)) => {
                    left += 1;
                    let lane = &mut self.lanes[lane];
                    lane.is_used = true;
                    lane.waiting_size += size as usize;
                    lane.waiting.push_back(Entry { batch: number, index, size, key });
                }
                Err(reason) => {
                    let event = (case, Bytes::copy_from_slice(bytes));
                    match refused.last_mut().filter(|before| before.reason == reason) {
                        Some(before) => before.events.push(event),
                        None => refused.push(GivenUp { reason, events: vec![event] }),
                    }
                }
            }
        }
        self.held_bytes += batch.byte_len() as u64;
        self.batches.push_back(OpenBatch { batch, position, admitted: now, left });
        self.release(number);
        refused
    }

    fn lane_of<B: BusClient>(
        &mut self,
        client: &B,
        case: PayloadCase,
        bytes: &[u8],
        wants_key: bool,
    ) -> Result<(usize, u32, u32), String> {
        let address = &mut self.address;
        let unread = client.address_unread(case, bytes.len()).filter(|_| !wants_key);
        if let Some((destination, size)) = unread {
            (address.destination, address.size) = (destination, size);
        } else {
            // What is in a batch was read before it came there.
            let view = EventView::reread(bytes).map_err(|error| error.to_string())?;
            (address.destination, address.size) = (0, bytes.len());
            address.key.clear();
            client.address(&view, bytes, wants_key, address)?;
        }
        let key = if wants_key { crc32c::crc32c(address.key.as_bytes()) } else { 0 };
        let lane = address.destination * self.limits.lanes + key as usize % self.limits.lanes;
        while self.lanes.len() <= lane {
            let destination = self.lanes.len() / self.limits.lanes;
            self.lanes.push(Lane { destination, ..Lane::default() });
        }
        let size = u32::try_from(address.size).unwrap_or(u32::MAX);
        Ok((lane, size, key))
    }

    /// The next request that may be sent now; `hurry` lets none wait for company.
    pub(crate) fn next(&mut self, now: Instant, hurry: bool) -> Option<Outgoing> {
        let lane = (0..self.lanes.len())
            .find(|lane| self.ready_at(&self.lanes[*lane], hurry).is_some_and(|at| at <= now))?;
        let (number, entries, attempts) = if let Some(again) = self.lanes[lane].again.pop_front() {
            (again.number, again.entries, again.attempts)
        } else {
            self.next_request += 1;
            (self.next_request, self.take_waiting(lane), Attempts::begin(self.policy, now))
        };
        let mut events = PickedEvents::with_capacity(entries.len());
        for of_batch in entries.chunk_by(|one, other| one.batch == other.batch) {
            let open = &self.batches[self.place(of_batch[0].batch)];
            events.pick(&open.batch, of_batch.iter().map(|entry| entry.index));
        }
        let amount = self.amount(&entries);
        let lane_state = &mut self.lanes[lane];
        let is_alone = lane_state.in_flight.is_empty();
        let request = Request { destination: lane_state.destination, is_alone, events };
        lane_state.in_flight.push(Flight { number, entries, amount, sent: now, attempts });
        self.in_flight += 1;
        Some(Outgoing { id: RequestId { lane, number }, request, amount })
    }

    /// When something can be sent next, if only time is missing for it.
    pub(crate) fn next_deadline(&self, hurry: bool) -> Option<Instant> {
        self.lanes.iter().filter_map(|lane| self.ready_at(lane, hurry)).min()
    }

    /// When the lane's next request may go; nothing while it has none, or waits for answers.
    fn ready_at(&self, lane: &Lane, hurry: bool) -> Option<Instant> {
        if let Some(again) = lane.again.front() {
            return lane.in_flight.is_empty().then_some(again.at);
        }
        if lane.in_flight.len() >= self.limits.pipelined {
            return None;
        }
        let oldest = self.batches[self.place(lane.waiting.front()?.batch)].admitted;
        let is_full =
            lane.waiting.len() >= self.limits.events || lane.waiting_size >= self.limits.bytes;
        Some(if hurry || is_full { oldest } else { oldest + self.limits.linger })
    }

    /// Takes the events of the lane's next request out of those that wait.
    fn take_waiting(&mut self, lane: usize) -> Vec<Entry> {
        let lane = &mut self.lanes[lane];
        let most = self.limits.events.min(lane.waiting.len());
        let mut entries: Vec<Entry> = Vec::with_capacity(most);
        let mut bytes = 0;
        self.keys.clear();
        let mut passed_over = Vec::new();
        let mut looked_at = 0;
        while let Some(entry) = lane.waiting.front().copied() {
            let size = entry.size as usize;
            let is_over = entries.len() >= self.limits.events || bytes + size > self.limits.bytes;
            if (is_over && !entries.is_empty()) || looked_at >= LOOK_AHEAD * self.limits.events {
                break;
            }
            looked_at += 1;
            lane.waiting.pop_front();
            if self.limits.one_event_per_key && !self.keys.insert(entry.key) {
                passed_over.push(entry);
            } else {
                bytes += size;
                entries.push(entry);
            }
        }
        for entry in passed_over.into_iter().rev() {
            lane.waiting.push_front(entry);
        }
        lane.waiting_size -= bytes;
        entries
    }

    /// Takes in what became of a request. `random` lies in 0..1.
    pub(crate) fn answer(
        &mut self,
        id: RequestId,
        answer: Answer,
        now: Instant,
        random: f64,
    ) -> Settled {
        let flights = &mut self.lanes[id.lane].in_flight;
        let Some(place) = flights.iter().position(|flight| flight.number == id.number) else {
            return Settled::default();
        };
        let flight = flights.remove(place);
        self.in_flight -= 1;
        self.answered = Some(now);
        let mut settled =
            Settled { latency: now.saturating_duration_since(flight.sent), ..Settled::default() };
        match answer {
            Answer::All(Outcome::Acknowledged) => {
                settled.acknowledged = flight.amount;
                self.settle(&flight.entries);
            }
            Answer::All(Outcome::Permanent(reason)) => {
                self.give_up(reason, &flight.entries, &mut settled);
            }
            Answer::All(Outcome::Transient(reason)) => {
                self.try_again(id, flight, reason, now, Some(random), &mut settled);
            }
            // The backoff is that of connecting.
            Answer::Disconnected(reason) => {
                self.try_again(id, flight, reason, now, None, &mut settled);
            }
            Answer::Each(outcomes) => {
                self.answer_each(id, flight, outcomes, now, random, &mut settled);
            }
        }
        settled
    }

    fn answer_each(
        &mut self,
        id: RequestId,
        mut flight: Flight,
        outcomes: Vec<Outcome>,
        now: Instant,
        random: f64,
        settled: &mut Settled,
    ) {
        let mut acknowledged = Vec::with_capacity(flight.entries.len());
        let mut failed = Vec::new();
        let mut failure = None;
        // A bus that says nothing of an event does not know what became of it.
        let silent = std::iter::repeat_with(|| Outcome::Transient("no answer".to_owned()));
        let entries = std::mem::take(&mut flight.entries);
        for (entry, outcome) in entries.into_iter().zip(outcomes.into_iter().chain(silent)) {
            match outcome {
                Outcome::Acknowledged => acknowledged.push(entry),
                Outcome::Transient(reason) => {
                    failed.push(entry);
                    failure.get_or_insert(reason);
                }
                Outcome::Permanent(reason) => self.give_up(reason, &[entry], settled),
            }
        }
        settled.acknowledged = self.amount(&acknowledged);
        self.settle(&acknowledged);
        if let Some(reason) = failure {
            flight.entries = failed;
            self.try_again(id, flight, reason, now, Some(random), settled);
        }
    }

    fn try_again(
        &mut self,
        id: RequestId,
        mut flight: Flight,
        reason: String,
        now: Instant,
        random: Option<f64>,
        settled: &mut Settled,
    ) {
        let Some(wait) = flight.attempts.next_wait(now, random.unwrap_or(0.0)) else {
            let timeout = self.policy.delivery_timeout.as_secs_f64();
            let reason = format!("not delivered within {timeout} s; the last failure: {reason}");
            self.give_up(reason, &flight.entries, settled);
            return;
        };
        settled.again = self.amount(&flight.entries);
        settled.failure = Some(reason);
        let Flight { number, entries, attempts, .. } = flight;
        let again = &mut self.lanes[id.lane].again;
        let place = again.partition_point(|other| other.number < number);
        again.insert(place, Again { number, entries, attempts, at: now + wait });
    }

    fn give_up(&mut self, reason: String, entries: &[Entry], settled: &mut Settled) {
        let events = entries.iter().map(|entry| self.batch_of(*entry).shared(entry.index as usize));
        let same = settled.given_up.last_mut().filter(|before| before.reason == reason);
        if let Some(before) = same {
            before.events.extend(events);
        } else {
            let events = events.collect();
            settled.given_up.push(GivenUp { reason, events });
        }
        self.settle(entries);
    }

    /// Gives up everything that is not in flight.
    pub(crate) fn give_up_waiting(&mut self, reason: &str) -> Vec<GivenUp> {
        let mut settled = Settled::default();
        let mut entries: Vec<Entry> = Vec::new();
        for lane in &mut self.lanes {
            entries.extend(lane.again.drain(..).flat_map(|again| again.entries));
            entries.extend(lane.waiting.drain(..));
            lane.waiting_size = 0;
        }
        entries.sort_unstable();
        if !entries.is_empty() {
            self.give_up(reason.to_owned(), &entries, &mut settled);
        }
        settled.given_up
    }

    /// Takes everything out that is not settled, in the order it was admitted: what is in the backlog
    /// under its position, everything else as it is.
    pub(crate) fn take_back(&mut self) -> Vec<(EventBatch, Option<BacklogPosition>)> {
        let mut entries: Vec<Entry> = Vec::new();
        for lane in std::mem::take(&mut self.lanes) {
            entries.extend(lane.in_flight.into_iter().flat_map(|flight| flight.entries));
            entries.extend(lane.again.into_iter().flat_map(|again| again.entries));
            entries.extend(lane.waiting);
        }
        entries.sort_unstable();
        let mut taken = Vec::new();
        for of_batch in entries.chunk_by(|one, other| one.batch == other.batch) {
            let open = &self.batches[self.place(of_batch[0].batch)];
            let batch = if of_batch.len() == open.batch.len() {
                open.batch.clone()
            } else {
                of_batch.iter().map(|entry| open.batch.event(entry.index as usize)).collect()
            };
            taken.push((batch, open.position));
        }
        self.first_batch += self.batches.len() as u64;
        self.batches.clear();
        (self.held_bytes, self.in_flight) = (0, 0);
        taken
    }

    /// The next place up to which the backlog is done.
    pub(crate) fn take_done(&mut self) -> Option<BacklogPosition> {
        self.done.pop_front()
    }

    #[allow(clippy::cast_possible_truncation)] // as many as are in memory
    fn place(&self, batch: u64) -> usize {
        (batch - self.first_batch) as usize
    }

    fn batch_of(&self, entry: Entry) -> &EventBatch {
        &self.batches[self.place(entry.batch)].batch
    }

    fn amount(&self, entries: &[Entry]) -> Amount {
        let event = |entry: &Entry| self.batch_of(*entry).event(entry.index as usize).1;
        amount_of(entries.iter().map(|entry| event(entry).len()))
    }

    fn settle(&mut self, entries: &[Entry]) {
        for of_batch in entries.chunk_by(|one, other| one.batch == other.batch) {
            let number = of_batch[0].batch;
            let place = self.place(number);
            self.batches[place].left -= of_batch.len();
            self.release(number);
        }
    }

    /// Lets a batch go if all its events are settled.
    fn release(&mut self, number: u64) {
        let place = self.place(number);
        let open = &mut self.batches[place];
        if open.left > 0 {
            return;
        }
        self.held_bytes -= std::mem::take(&mut open.batch).byte_len() as u64;
        while self.batches.front().is_some_and(|open| open.left == 0) {
            let open = self.batches.pop_front();
            self.first_batch += 1;
            if let Some(position) = open.and_then(|open| open.position) {
                match self.done.back_mut().filter(|last| last.is_same_spill(position)) {
                    Some(last) => *last = position,
                    None => self.done.push_back(position),
                }
            }
        }
    }
}

fn amount_of(lengths: impl Iterator<Item = usize>) -> Amount {
    lengths.fold(Amount::default(), |sum, bytes| Amount {
        events: sum.events + 1,
        bytes: sum.bytes + bytes as u64,
    })
}
