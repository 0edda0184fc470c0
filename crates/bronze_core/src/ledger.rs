//! The ledger of a bus: where every accepted event is.
//!
//! An event enters in one place (memory, flight or spill), moves between them, and is settled once:
//! acknowledged, dead-lettered or dropped. Every change is one step under one lock, once per batch, so
//! at every moment it is read
//!
//! `accepted = acknowledged + dead_lettered + dropped + waiting`, with
//! `waiting = in memory + in flight + spilled`.
//!
//! A step that would take out more than is there is a fault of the caller: it is counted in
//! `faults`, which tests hold to be 0, and takes what is there.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use market_data::Timestamp;

/// Where an event waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the queue, or held back for a retry.
    Memory,
    /// Sent and not yet answered.
    Flight,
    /// On disk.
    Spill,
}

/// How an event ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The broker has it.
    Acknowledged,
    /// It is in the dead-letter file.
    DeadLettered,
    /// It was given up because the spill was full and the policy says so.
    Dropped,
}

/// A number of events and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Events.
    pub events: u64,
    /// Their encoded bytes.
    pub bytes: u64,
}

impl Amount {
    /// Adds `other`.
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.bytes += other.bytes;
    }

    /// Takes `other` out, or what is there; returns what was taken.
    fn take(&mut self, other: Self) -> Self {
        let taken =
            Self { events: self.events.min(other.events), bytes: self.bytes.min(other.bytes) };
        self.events -= taken.events;
        self.bytes -= taken.bytes;
        // What an earlier process spilled was counted with the bytes around it on disk.
        if self.events == 0 {
            self.bytes = 0;
        }
        taken
    }
}

/// Upper bounds of the buckets of [`Latency`], in seconds.
pub const LATENCY_BOUNDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];

/// How long acknowledgements took, as a histogram of events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Events up to each bound of [`LATENCY_BOUNDS`], and those above all; not cumulative.
    pub buckets: [u64; LATENCY_BOUNDS.len() + 1],
    /// Seconds of all events together.
    pub sum_seconds: f64,
}

impl Latency {
    #[allow(clippy::cast_precision_loss)] // a sum for an average
    fn record(&mut self, events: u64, latency: Duration) {
        let seconds = latency.as_secs_f64();
        let bucket = LATENCY_BOUNDS.iter().position(|bound| seconds <= *bound);
        self.buckets[bucket.unwrap_or(LATENCY_BOUNDS.len())] += events;
        self.sum_seconds += seconds * events as f64;
    }
}

/// The ledger at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerSnapshot {
    /// All events that were taken in, those of an earlier process's spill included.
    pub accepted: Amount,
    /// Events that the broker has.
    pub acknowledged: Amount,
    /// Events in the dead-letter file.
    pub dead_lettered: Amount,
    /// Events given up by policy.
    pub dropped: Amount,
    /// Events in the queue or held back for a retry.
    pub in_memory: Amount,
    /// Events sent and not yet answered.
    pub in_flight: Amount,
    /// Events on disk.
    pub spilled: Amount,
    /// How many times events went to disk, in all.
    pub spilled_total: u64,
    /// How many times events were sent again, in all.
    pub retried_total: u64,
    /// How long acknowledgements took.
    pub latency: Latency,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_at: Option<Timestamp>,
    /// Steps that took out more than was there.
    pub faults: u64,
}

impl LedgerSnapshot {
    /// Events that are accepted and not settled.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.in_memory.events + self.in_flight.events + self.spilled.events
    }

    /// Whether every accepted event is accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let settled = self.acknowledged.events + self.dead_lettered.events + self.dropped.events;
        self.faults == 0 && self.accepted.events == settled + self.waiting()
    }

    fn place(&mut self, place: Place) -> &mut Amount {
        match place {
            Place::Memory => &mut self.in_memory,
            Place::Flight => &mut self.in_flight,
            Place::Spill => &mut self.spilled,
        }
    }

    fn take(&mut self, place: Place, amount: Amount) -> Amount {
        let taken = self.place(place).take(amount);
        self.faults += u64::from(taken.events != amount.events);
        taken
    }
}

/// A bus's ledger, shared by its producers and its dispatcher.
#[derive(Debug, Default)]
pub struct Ledger {
    state: Mutex<LedgerSnapshot>,
}

impl Ledger {
    fn state(&self) -> MutexGuard<'_, LedgerSnapshot> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes events in: into memory, straight to the spill, or found in the spill at the start.
    pub fn accept(&self, place: Place, amount: Amount) {
        let mut state = self.state();
        state.accepted.add(amount);
        state.place(place).add(amount);
        if place == Place::Spill {
            state.spilled_total += amount.events;
        }
    }

    /// Moves events. From flight to memory means that they will be sent again.
    pub fn shift(&self, from: Place, to: Place, amount: Amount) {
        let mut state = self.state();
        let taken = state.take(from, amount);
        state.place(to).add(taken);
        match (from, to) {
            (_, Place::Spill) => state.spilled_total += taken.events,
            (Place::Flight, Place::Memory) => state.retried_total += taken.events,
            _ => {}
        }
    }

    /// Ends events that were waiting.
    pub fn settle(&self, from: Place, end: End, amount: Amount) {
        let mut state = self.state();
        let taken = state.take(from, amount);
        let total = match end {
            End::Acknowledged => &mut state.acknowledged,
            End::DeadLettered => &mut state.dead_lettered,
            End::Dropped => &mut state.dropped,
        };
        total.add(taken);
    }

    /// Ends events in flight that the broker has, `latency` after they were sent.
    pub fn acknowledge(&self, amount: Amount, latency: Duration) {
        let mut state = self.state();
        let taken = state.take(Place::Flight, amount);
        state.acknowledged.add(taken);
        state.latency.record(taken.events, latency);
    }

    /// Forgets events that were taken in and could not be placed; their producer is told.
    pub fn refuse(&self, place: Place, amount: Amount) {
        let mut state = self.state();
        let taken = state.take(place, amount);
        state.accepted.take(taken);
    }

    /// Events that are accepted and not settled.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.state().waiting()
    }

    /// Notes what went wrong. The text must hold no secret.
    pub fn note_error(&self, error: impl Into<String>) {
        let mut state = self.state();
        state.last_error = Some(error.into());
        state.last_error_at = Some(Timestamp::now());
    }

    /// The ledger at this moment.
    #[must_use]
    pub fn snapshot(&self) -> LedgerSnapshot {
        self.state().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn amount(events: u64) -> Amount {
        Amount { events, bytes: events * 200 }
    }

    #[test]
    fn an_event_is_followed_to_its_end() {
        let ledger = Ledger::default();
        ledger.accept(Place::Memory, amount(10));
        ledger.shift(Place::Memory, Place::Flight, amount(8));
        ledger.shift(Place::Memory, Place::Spill, amount(2));
        ledger.acknowledge(amount(5), Duration::from_millis(3));
        ledger.shift(Place::Flight, Place::Memory, amount(3));
        ledger.settle(Place::Memory, End::DeadLettered, amount(1));
        ledger.accept(Place::Memory, amount(4));
        ledger.settle(Place::Memory, End::Dropped, amount(4));
        ledger.accept(Place::Memory, amount(9));
        ledger.refuse(Place::Memory, amount(9));
        ledger.note_error("broker is away");
        let now = ledger.snapshot();
        assert!(now.is_balanced());
        assert_eq!((now.accepted, now.acknowledged), (amount(14), amount(5)));
        assert_eq!((now.dead_lettered, now.dropped), (amount(1), amount(4)));
        assert_eq!((now.in_memory, now.in_flight, now.spilled), (amount(2), amount(0), amount(2)));
        assert_eq!((now.waiting(), now.spilled_total, now.retried_total), (4, 2, 3));
        assert_eq!(now.latency.buckets[3], 5);
        assert_eq!(now.last_error.as_deref(), Some("broker is away"));
        assert!(now.last_error_at.is_some());
    }

    #[test]
    fn taking_out_what_is_not_there_is_a_fault() {
        let ledger = Ledger::default();
        ledger.accept(Place::Memory, amount(1));
        ledger.settle(Place::Memory, End::Acknowledged, amount(2));
        let now = ledger.snapshot();
        assert_eq!((now.acknowledged, now.faults), (amount(1), 1));
        assert!(!now.is_balanced());
    }

    proptest! {
        /// Whatever the steps, the events of all columns add up to those accepted.
        #[test]
        fn nothing_appears_and_nothing_vanishes(
            steps in proptest::collection::vec(
                (
                    0..4u8,
                    select(vec![Place::Memory, Place::Flight, Place::Spill]),
                    select(vec![Place::Memory, Place::Flight, Place::Spill]),
                    select(vec![End::Acknowledged, End::DeadLettered, End::Dropped]),
                    0u64..1_000,
                ),
                0..100,
            ),
        ) {
            let ledger = Ledger::default();
            for (step, from, to, end, events) in steps {
                match step {
                    0 => ledger.accept(from, amount(events)),
                    1 => ledger.shift(from, to, amount(events)),
                    2 => ledger.settle(from, end, amount(events)),
                    _ => ledger.acknowledge(amount(events), Duration::from_millis(events)),
                }
                let now = ledger.snapshot();
                let settled =
                    now.acknowledged.events + now.dead_lettered.events + now.dropped.events;
                prop_assert_eq!(now.accepted.events, settled + now.waiting());
            }
        }
    }

    #[test]
    fn it_is_balanced_at_every_moment_it_is_read() {
        let ledger = Ledger::default();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..2_000 {
                        ledger.accept(Place::Memory, amount(3));
                        ledger.shift(Place::Memory, Place::Flight, amount(3));
                        if round % 7 == 0 {
                            ledger.shift(Place::Flight, Place::Memory, amount(3));
                            ledger.settle(Place::Memory, End::DeadLettered, amount(3));
                        } else {
                            ledger.acknowledge(amount(3), Duration::from_millis(1));
                        }
                    }
                    done.store(true, Ordering::Release);
                });
            }
            while !done.load(Ordering::Acquire) {
                assert!(ledger.snapshot().is_balanced());
            }
        });
        let end = ledger.snapshot();
        assert!(end.is_balanced());
        assert_eq!((end.accepted, end.waiting()), (amount(12_000), 0));
    }
}
