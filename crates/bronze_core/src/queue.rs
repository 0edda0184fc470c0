//! The queue between producers and a bus: bounded in events and in bytes, lock-free, batches only.
//!
//! Invariants:
//! - What is in the queue never exceeds its limits, with one exception: a batch that is larger than a
//!   limit all by itself is taken when the queue is empty, for otherwise it could never leave.
//! - Batches of one producer come out in the order they went in.
//! - A producer waits no longer than it says. The lock and its condition variable are only for
//!   producers that found no room.
//! - Events and bytes are claimed together, in one word, before the batch goes in, and given back
//!   after it came out: what is claimed is never less than what is in.
//! - After `close` nothing goes in; what is in comes out, then the end.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use tokio::sync::Notify;

use crate::event_batch::EventBatch;

/// Bits of the claim word that count bytes; those above count events.
const BYTE_BITS: u32 = 40;
/// The most bytes that can be counted.
const MAX_BYTES: u64 = (1 << BYTE_BITS) - 1;
/// The most events that can be counted.
const MAX_EVENTS: u64 = (1 << (u64::BITS - BYTE_BITS)) - 1;

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Events.
    pub events: u64,
    /// Bytes of encoded events.
    pub bytes: u64,
    /// Batches; the ring is made for as many at the start.
    pub batches: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { events: 500_000, bytes: 128 * 1024 * 1024, batches: 8_192 }
    }
}

/// Why a batch did not go in. It is given back.
#[derive(Clone, Debug)]
pub enum PushError {
    /// There was no room in time.
    Full(EventBatch),
    /// The queue was closed.
    Closed(EventBatch),
}

/// A queue with many producers and one consumer.
#[derive(Debug)]
pub struct BatchQueue {
    limits: QueueLimits,
    ring: ArrayQueue<EventBatch>,
    /// Events and bytes that are claimed, in one word.
    claimed: AtomicU64,
    is_closed: AtomicBool,
    arrived: Notify,
    waiting_producers: AtomicUsize,
    lock: Mutex<()>,
    room: Condvar,
}

impl BatchQueue {
    /// An empty queue. Limits of more than 16 million events or 1 TiB are cut to that.
    #[must_use]
    pub fn new(limits: QueueLimits) -> Self {
        Self {
            limits: QueueLimits {
                events: limits.events.min(MAX_EVENTS),
                bytes: limits.bytes.min(MAX_BYTES),
                batches: limits.batches.max(1),
            },
            ring: ArrayQueue::new(limits.batches.max(1)),
            claimed: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            arrived: Notify::new(),
            waiting_producers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            room: Condvar::new(),
        }
    }

    /// Events in the queue, and their bytes.
    #[must_use]
    pub fn used(&self) -> (u64, u64) {
        split(self.claimed.load(SeqCst))
    }

    /// Puts a batch in, waiting for room at most `patience`.
    pub fn push(&self, batch: EventBatch, patience: Duration) -> Result<(), PushError> {
        match self.try_push(batch) {
            Err(PushError::Full(batch)) if !patience.is_zero() => {
                self.wait_to_push(batch, patience)
            }
            result => result,
        }
    }

    /// Takes the next batch if there is one.
    pub fn try_pop(&self) -> Option<EventBatch> {
        let batch = self.ring.pop()?;
        self.give_back(&batch);
        if self.waiting_producers.load(SeqCst) > 0 {
            self.wake_producers();
        }
        Some(batch)
    }

    /// Waits until something came in, was said to, or the queue was closed, since this last returned.
    pub async fn arrival(&self) {
        self.arrived.notified().await;
    }

    /// Ends a wait for an arrival.
    pub fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(SeqCst)
    }

    /// Lets nothing more in. Producers that wait are told at once.
    pub fn close(&self) {
        self.is_closed.store(true, SeqCst);
        self.arrived.notify_one();
        self.wake_producers();
    }

    fn try_push(&self, batch: EventBatch) -> Result<(), PushError> {
        if self.is_closed.load(SeqCst) {
            return Err(PushError::Closed(batch));
        }
        let (events, bytes) = size(&batch);
        let claim = self.claimed.fetch_update(SeqCst, SeqCst, |claimed| {
            let (used_events, used_bytes) = split(claimed);
            let fits = claimed == 0
                || (used_events + events <= self.limits.events
                    && used_bytes + bytes <= self.limits.bytes);
            fits.then(|| claimed + join(events, bytes))
        });
        if claim.is_err() {
            return Err(PushError::Full(batch));
        }
        // Looked at again: a consumer that sees the end and no claim must have seen all batches.
        if self.is_closed.load(SeqCst) {
            self.give_back(&batch);
            self.arrived.notify_one();
            return Err(PushError::Closed(batch));
        }
        self.ring.push(batch).map_err(|batch| {
            self.give_back(&batch);
            PushError::Full(batch)
        })?;
        self.arrived.notify_one();
        Ok(())
    }

    fn wait_to_push(&self, batch: EventBatch, patience: Duration) -> Result<(), PushError> {
        let deadline = Instant::now() + patience;
        self.waiting_producers.fetch_add(1, SeqCst);
        let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Err(PushError::Full(batch));
        // Room is given back before the lock is taken to wake, so none is missed while it is held.
        while let Err(PushError::Full(batch)) = result {
            result = self.try_push(batch);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !matches!(result, Err(PushError::Full(_))) {
                break;
            }
            let waited = self.room.wait_timeout(guard, left);
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(guard);
        self.waiting_producers.fetch_sub(1, SeqCst);
        result
    }

    fn give_back(&self, batch: &EventBatch) {
        let (events, bytes) = size(batch);
        self.claimed.fetch_sub(join(events, bytes), SeqCst);
    }

    fn wake_producers(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.room.notify_all();
    }
}

/// A batch's events and bytes as they are counted. An empty one counts as one event, so that the
/// word is never 0 while a batch is in.
fn size(batch: &EventBatch) -> (u64, u64) {
    let events = batch.len() as u64;
    (events.clamp(1, MAX_EVENTS / 2), (batch.byte_len() as u64).min(MAX_BYTES / 2))
}

fn join(events: u64, bytes: u64) -> u64 {
    events << BYTE_BITS | bytes
}

fn split(claimed: u64) -> (u64, u64) {
    (claimed >> BYTE_BITS, claimed & MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_batch::EventBuffer;
    use crate::payload_case::PayloadCase;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::Arc;

    /// A batch of `events` events of `bytes` bytes each, the first of which begins with `mark`.
    fn batch(mark: u32, events: usize, bytes: usize) -> EventBatch {
        let mut buffer = EventBuffer::default();
        for _ in 0..events {
            let mut event = mark.to_le_bytes().to_vec();
            event.resize(bytes.max(4), 0);
            buffer.bytes.extend_from_slice(&event);
            buffer.finish_event(PayloadCase::Trade);
        }
        buffer.take_batch()
    }

    fn mark(batch: &EventBatch) -> u32 {
        let (_, bytes) = batch.event(0);
        u32::from_le_bytes(bytes[..4].try_into().unwrap())
    }

    /// The next batch, waiting for one as the dispatcher does; nothing once closed and empty.
    async fn pop(queue: &BatchQueue) -> Option<EventBatch> {
        loop {
            if let Some(batch) = queue.try_pop() {
                return Some(batch);
            }
            // A claim without a batch is a producer between its two steps.
            if queue.is_closed() && queue.used() == (0, 0) {
                return None;
            }
            queue.arrival().await;
        }
    }

    fn limits(events: u64, bytes: u64) -> QueueLimits {
        QueueLimits { events, bytes, batches: 1_024 }
    }

    #[test]
    fn a_batch_that_is_too_large_goes_in_alone() {
        let queue = BatchQueue::new(limits(10, 100));
        queue.push(batch(1, 20, 50), Duration::ZERO).unwrap();
        let refused = queue.push(batch(2, 1, 4), Duration::ZERO);
        assert!(matches!(refused, Err(PushError::Full(batch)) if mark(&batch) == 2));
        assert_eq!(mark(&queue.try_pop().unwrap()), 1);
        queue.push(batch(2, 1, 4), Duration::ZERO).unwrap();
        assert_eq!(queue.used(), (1, 4));
    }

    #[test]
    fn the_number_of_batches_is_bounded_too() {
        let queue = BatchQueue::new(QueueLimits { batches: 2, ..limits(100, 10_000) });
        queue.push(batch(1, 1, 4), Duration::ZERO).unwrap();
        queue.push(batch(2, 1, 4), Duration::ZERO).unwrap();
        assert!(queue.push(batch(3, 1, 4), Duration::ZERO).is_err());
        assert_eq!(queue.used(), (2, 8));
    }

    #[test]
    fn a_producer_waits_for_room_and_gives_up_in_time() {
        let queue = Arc::new(BatchQueue::new(limits(1, 1_000)));
        queue.push(batch(1, 1, 4), Duration::ZERO).unwrap();
        let refused = queue.push(batch(2, 1, 4), Duration::from_millis(20));
        assert!(matches!(refused, Err(PushError::Full(_))));
        let producer = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.push(batch(3, 1, 4), Duration::from_mins(1))
        });
        while queue.waiting_producers.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert_eq!(mark(&queue.try_pop().unwrap()), 1);
        producer.join().unwrap().unwrap();
        assert_eq!(mark(&queue.try_pop().unwrap()), 3);
    }

    #[test]
    fn closing_ends_the_wait_of_producers_and_lets_the_rest_out() {
        let queue = Arc::new(BatchQueue::new(limits(1, 1_000)));
        queue.push(batch(1, 1, 4), Duration::ZERO).unwrap();
        let producer = std::thread::spawn({
            let queue = Arc::clone(&queue);
            move || queue.push(batch(2, 1, 4), Duration::from_mins(1))
        });
        while queue.waiting_producers.load(SeqCst) == 0 {
            std::thread::yield_now();
        }
        queue.close();
        assert!(matches!(producer.join().unwrap(), Err(PushError::Closed(_))));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            assert_eq!(mark(&pop(&queue).await.unwrap()), 1);
            assert!(pop(&queue).await.is_none());
        });
        let refused = queue.push(batch(3, 1, 4), Duration::from_mins(1));
        assert!(matches!(refused, Err(PushError::Closed(_))));
    }

    #[test]
    fn many_producers_keep_their_order_and_the_bounds() {
        const PRODUCERS: u32 = 4;
        const BATCHES: u32 = 2_000;
        let limits = limits(16, 400);
        let queue = Arc::new(BatchQueue::new(limits));
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let queue = Arc::clone(&queue);
                std::thread::spawn(move || {
                    for number in 0..BATCHES {
                        let events = 1 + number as usize % 5;
                        let batch = batch(producer * BATCHES + number, events, 20);
                        queue.push(batch, Duration::from_mins(1)).unwrap();
                    }
                })
            })
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut next = [0; PRODUCERS as usize];
        for _ in 0..PRODUCERS * BATCHES {
            let (events, bytes) = queue.used();
            assert!(events <= limits.events && bytes <= limits.bytes);
            let mark = mark(&runtime.block_on(pop(&queue)).unwrap());
            let producer = (mark / BATCHES) as usize;
            assert_eq!(mark % BATCHES, next[producer]);
            next[producer] += 1;
        }
        for producer in producers {
            producer.join().unwrap();
        }
        assert_eq!(queue.used(), (0, 0));
    }

    proptest! {
        #[test]
        fn it_does_what_a_plain_list_does(
            steps in proptest::collection::vec(proptest::option::of((1..8usize, 4..60usize)), 1..200),
        ) {
            let limits = QueueLimits { events: 12, bytes: 200, batches: 5 };
            let queue = BatchQueue::new(limits);
            let mut model: VecDeque<(u32, u64, u64)> = VecDeque::new();
            for (number, step) in (0u32..).zip(steps) {
                let Some((events, bytes)) = step else {
                    let popped = queue.try_pop().map(|batch| mark(&batch));
                    prop_assert_eq!(popped, model.pop_front().map(|of| of.0));
                    continue;
                };
                let (events_added, bytes_added) = (events as u64, (events * bytes) as u64);
                let used: (u64, u64) =
                    model.iter().fold((0, 0), |sum, of| (sum.0 + of.1, sum.1 + of.2));
                prop_assert_eq!(queue.used(), used);
                let fits = model.is_empty()
                    || (used.0 + events_added <= limits.events
                        && used.1 + bytes_added <= limits.bytes
                        && model.len() < limits.batches);
                let pushed = queue.push(batch(number, events, bytes), Duration::ZERO);
                prop_assert_eq!(pushed.is_ok(), fits);
                if fits {
                    model.push_back((number, events_added, bytes_added));
                }
            }
        }
    }
}
