//! Where producers hand batches to a bus: into memory, or to disk when there is no room.
//!
//! Invariants
//! - What is in the queue is older than what nobody has read from the backlog: while `spilling`, all
//!   new batches go to disk, and the dispatcher reads the disk only when the queue is empty, which it
//!   makes sure of under the lock of the disk. So a producer's batches come out in their order.
//! - `spilling` ends only under that lock, when everything on disk was read.
//! - A producer waits for room in memory at most `max_block`; longer only if the disk is full too, or
//!   there is none, and the policy says `block`.
//! - The ledger knows of a batch before the dispatcher can see it.

mod async_accept;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::backlog::{Backlog, BacklogPosition};
use crate::dead_letter::DeadLetterFile;
use crate::delivery::{DeliveryOptions, Overflow};
use crate::event_batch::EventBatch;
use crate::ledger::{Amount, End, Ledger, LedgerSnapshot, Place};
use crate::notice::{Level, Notices};
use crate::payload_filter::PayloadFilter;
use crate::queue::{BatchQueue, PushError};
use crate::record_file::RecordFileError;
use crate::spill::SpillError;

/// How long a producer that must wait goes without asking whether it still should.
const WAIT_STEP: Duration = Duration::from_millis(100);

/// Processes that can write dead letters of a bus below one directory at once.
const MOST_DEAD_LETTER_FILES: u32 = 256;

/// Why a batch was not accepted. None of it was.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotAccepted {
    /// The publisher was closed.
    #[error("the publisher is closed")]
    Closed,
    /// The producer did not want to wait any longer.
    #[error("there was no room, and the wait for it was interrupted")]
    Interrupted,
}

/// The producers' side of a bus.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(crate) name: &'static str,
    pub(crate) queue: BatchQueue,
    pub(crate) ledger: Ledger,
    pub(crate) notices: Notices,
    pub(crate) is_connected: AtomicBool,
    /// Bytes that may be in memory, and on disk.
    pub(crate) limits: (u64, u64),
    filter: PayloadFilter,
    max_block: Duration,
    overflow: Overflow,
    disk: Mutex<Option<Backlog>>,
    disk_room: Condvar,
    spilling: AtomicBool,
    dead_letters: Mutex<DeadLetterFile>,
    flushing: AtomicUsize,
    idle_lock: Mutex<()>,
    idle: Condvar,
}

impl Intake {
    pub(crate) fn new(
        name: &'static str,
        filter: PayloadFilter,
        options: &DeliveryOptions,
        backlog: Option<Backlog>,
        dead_letters: DeadLetterFile,
        notices: Notices,
    ) -> Self {
        let is_left = backlog.as_ref().is_some_and(|backlog| !backlog.is_empty());
        Self {
            name,
            queue: BatchQueue::new(options.queue_limits()),
            ledger: Ledger::default(),
            notices,
            is_connected: AtomicBool::new(false),
            limits: (
                options.queue_limits().bytes + options.window_bytes(),
                if backlog.is_some() { options.spill_max_bytes() } else { 0 },
            ),
            filter,
            max_block: options.max_block(),
            overflow: options.overflow,
            disk: Mutex::new(backlog),
            disk_room: Condvar::new(),
            spilling: AtomicBool::new(is_left),
            dead_letters: Mutex::new(dead_letters),
            flushing: AtomicUsize::new(0),
            idle_lock: Mutex::new(()),
            idle: Condvar::new(),
        }
    }

    /// Takes a batch in, or the part of it that this bus publishes, and returns how many events that
    /// are. `keep_waiting` is asked while there is no room anywhere.
    pub(crate) fn accept(
        &self,
        batch: &EventBatch,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<u64, NotAccepted> {
        let batch = self.published(batch);
        if batch.is_empty() {
            return Ok(0);
        }
        let amount = amount(&batch);
        self.ledger.accept(Place::Memory, amount);
        let placed = self.place(batch, self.max_block, keep_waiting);
        placed.map(|()| amount.events).inspect_err(|_| self.ledger.refuse(Place::Memory, amount))
    }

    /// The events of a batch that this bus publishes.
    fn published(&self, batch: &EventBatch) -> EventBatch {
        if batch.iter().all(|(case, _)| self.filter.allows(case)) {
            return batch.clone();
        }
        batch.iter().filter(|(case, _)| self.filter.allows(*case)).collect()
    }

    /// Puts a batch into the queue, waiting for room at most `patience`, else on disk.
    fn place(
        &self,
        mut batch: EventBatch,
        patience: Duration,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), NotAccepted> {
        if !self.spilling.load(SeqCst) {
            batch = match self.queue.push(batch, patience) {
                Ok(()) => return Ok(()),
                Err(PushError::Closed(_)) => return Err(NotAccepted::Closed),
                Err(PushError::Full(batch)) => batch,
            };
        }
        let mut disk = self.disk();
        loop {
            if self.queue.is_closed() {
                return Err(NotAccepted::Closed);
            }
            let Some(backlog) = disk.as_mut() else {
                drop(disk);
                return self.place_without_disk(batch, keep_waiting);
            };
            match backlog.append(&batch) {
                Ok(()) => {
                    self.ledger.shift(Place::Memory, Place::Spill, amount(&batch));
                    if !self.spilling.swap(true, SeqCst) {
                        self.tell_spilling(backlog);
                    }
                    self.queue.wake();
                    return Ok(());
                }
                Err(SpillError::TooLarge { .. }) => {
                    drop(disk);
                    return self.place_in_halves(&batch, keep_waiting);
                }
                Err(error) => self.tell_no_room(&error),
            }
            if self.overflow == Overflow::Drop {
                self.drop_batch(&batch);
                return Ok(());
            }
            let waited = self.disk_room.wait_timeout(disk, WAIT_STEP);
            disk = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !keep_waiting() {
                return Err(NotAccepted::Interrupted);
            }
        }
    }

    fn place_without_disk(
        &self,
        mut batch: EventBatch,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), NotAccepted> {
        if self.overflow == Overflow::Drop {
            self.drop_batch(&batch);
            return Ok(());
        }
        loop {
            batch = match self.queue.push(batch, WAIT_STEP) {
                Ok(()) => return Ok(()),
                Err(PushError::Closed(_)) => return Err(NotAccepted::Closed),
                Err(PushError::Full(batch)) => batch,
            };
            if !keep_waiting() {
                return Err(NotAccepted::Interrupted);
            }
        }
    }

    /// Places a batch that is larger than the whole spill. Once a part is placed it is accepted, so
    /// what cannot be placed after it is a dead letter.
    fn place_in_halves(
        &self,
        batch: &EventBatch,
        keep_waiting: &mut dyn FnMut() -> bool,
    ) -> Result<(), NotAccepted> {
        if batch.len() == 1 {
            let reason = "larger than the whole spill; raise --spill-max-mb";
            self.bury(reason, batch, Place::Memory);
            return Ok(());
        }
        let (first, second): (Vec<_>, Vec<_>) =
            batch.iter().enumerate().partition(|(index, _)| *index < batch.len() / 2);
        let first: EventBatch = first.into_iter().map(|(_, event)| event).collect();
        self.place(first, self.max_block, keep_waiting)?;
        let second: EventBatch = second.into_iter().map(|(_, event)| event).collect();
        if self.place(second.clone(), self.max_block, keep_waiting).is_err() {
            self.bury("the publisher was closed before there was room", &second, Place::Memory);
        }
        Ok(())
    }

    fn drop_batch(&self, batch: &EventBatch) {
        let amount = amount(batch);
        self.ledger.settle(Place::Memory, End::Dropped, amount);
        let message = format!("{} events dropped: there is no room for them", amount.events);
        let fields = vec![("events", amount.events.to_string())];
        self.notices.tell(Level::Error, self.name, "dropped", message, fields);
    }

    fn tell_no_room(&self, error: &SpillError) {
        let message = format!("memory is full, and nothing can be spilled: {error}");
        self.ledger.note_error(message.as_str());
        let fields = vec![("overflow", format!("{:?}", self.overflow).to_lowercase())];
        self.notices.tell(Level::Error, self.name, "no_room", message, fields);
    }

    fn tell_spilling(&self, backlog: &Backlog) {
        let directory = backlog.directory().display().to_string();
        let message = format!("memory is full: events go to {directory} until the bus takes them");
        let fields = vec![("directory", directory)];
        self.notices.tell(Level::Warning, self.name, "spilling", message, fields);
    }

    /// Writes events to the dead-letter file and settles them; says whether that worked. Where it did
    /// not, they are where they were.
    pub(crate) fn bury(&self, reason: &str, batch: &EventBatch, from: Place) -> bool {
        let amount = amount(batch);
        let (written, path) = self.write_dead_letters(reason, batch);
        self.ledger.note_error(reason);
        let count = amount.events;
        if let Err(error) = written {
            let message =
                format!("{count} events cannot be delivered ({reason}), nor kept: {error}");
            let fields = vec![("events", count.to_string()), ("reason", reason.to_owned())];
            self.notices.tell(Level::Error, self.name, "dead_letter_failed", message, fields);
            return false;
        }
        self.ledger.settle(from, End::DeadLettered, amount);
        let message =
            format!("{count} events cannot be delivered and are kept in {path}: {reason}");
        let fields =
            vec![("events", count.to_string()), ("reason", reason.to_owned()), ("file", path)];
        self.notices.tell(Level::Error, self.name, "dead_letter", message, fields);
        true
    }

    /// Appends to the bus's dead-letter file, or to the first beside it that no other process writes.
    fn write_dead_letters(
        &self,
        reason: &str,
        batch: &EventBatch,
    ) -> (Result<(), RecordFileError>, String) {
        let mut file = self.dead_letters.lock().unwrap_or_else(PoisonError::into_inner);
        let first = file.path().to_owned();
        let mut number = 1;
        let written = loop {
            match file.append(reason, batch.iter()) {
                Err(RecordFileError::Locked { .. }) if number < MOST_DEAD_LETTER_FILES => {
                    number += 1;
                    let name = format!("{}-{number}.dead", self.name);
                    *file = DeadLetterFile::new(first.with_file_name(name));
                }
                written => break written,
            }
        };
        (written, file.path().display().to_string())
    }

    /// The next batch in order, for the dispatcher; nothing if none waits.
    pub(crate) fn next(&self) -> Result<Option<(EventBatch, Option<BacklogPosition>)>, SpillError> {
        if let Some(batch) = self.queue.try_pop() {
            return Ok(Some((batch, None)));
        }
        if !self.spilling.load(SeqCst) {
            return Ok(None);
        }
        let mut disk = self.disk();
        if let Some(batch) = self.queue.try_pop() {
            return Ok(Some((batch, None)));
        }
        let Some(backlog) = disk.as_mut() else { return Ok(None) };
        let Some((batch, position)) = backlog.next()? else {
            self.spilling.store(false, SeqCst);
            return Ok(None);
        };
        self.ledger.shift(Place::Spill, Place::Memory, amount(&batch));
        Ok(Some((batch, Some(position))))
    }

    /// Marks what was read from disk up to a place as done.
    pub(crate) fn commit(&self, position: BacklogPosition) -> Result<(), SpillError> {
        let committed = self.disk().as_mut().map_or(Ok(()), |backlog| backlog.commit(position));
        self.disk_room.notify_all();
        committed
    }

    /// Keeps what a shutdown found in memory, and lets the disk go. `None` without a disk.
    pub(crate) fn keep(
        &self,
        batches: &[(EventBatch, Option<BacklogPosition>)],
    ) -> Option<(Result<(), SpillError>, PathBuf, u64)> {
        let mut backlog = self.disk().take()?;
        self.disk_room.notify_all();
        let kept = backlog.keep(batches);
        Some((kept, backlog.directory().to_owned(), backlog.events()))
    }

    /// Whether everything that was accepted is with the dispatcher.
    pub(crate) fn is_drained(&self) -> bool {
        !self.spilling.load(SeqCst) && self.queue.used() == (0, 0)
    }

    /// Lets nothing more in.
    pub(crate) fn close(&self) {
        self.queue.close();
        self.disk_room.notify_all();
    }

    /// Which events this bus publishes.
    pub(crate) fn filter(&self) -> PayloadFilter {
        self.filter
    }

    /// The ledger at this moment.
    pub(crate) fn stats(&self) -> LedgerSnapshot {
        self.ledger.snapshot()
    }

    /// The dead-letter file, if something was written to it.
    pub(crate) fn dead_letter_file(&self) -> Option<PathBuf> {
        let file = self.dead_letters.lock().unwrap_or_else(PoisonError::into_inner);
        (file.events_written() > 0).then(|| file.path().to_owned())
    }

    /// Waits until nothing waits; says whether that came true. `keep_waiting` is asked now and then.
    pub(crate) fn flush(&self, until: Instant, keep_waiting: &mut dyn FnMut() -> bool) -> bool {
        self.flushing.fetch_add(1, SeqCst);
        self.queue.wake();
        let mut guard = self.idle_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_done = loop {
            if self.ledger.waiting() == 0 {
                break true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !keep_waiting() {
                break false;
            }
            let waited = self.idle.wait_timeout(guard, left.min(WAIT_STEP));
            guard = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(guard);
        self.flushing.fetch_sub(1, SeqCst);
        is_done
    }

    /// Whether somebody waits for everything to be delivered.
    pub(crate) fn is_flushing(&self) -> bool {
        self.flushing.load(SeqCst) > 0
    }

    /// Tells those who flush that nothing is with the dispatcher any more.
    pub(crate) fn tell_idle(&self) {
        drop(self.idle_lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.idle.notify_all();
    }

    fn disk(&self) -> MutexGuard<'_, Option<Backlog>> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A batch's events and bytes.
pub(crate) fn amount(batch: &EventBatch) -> Amount {
    Amount { events: batch.len() as u64, bytes: batch.byte_len() as u64 }
}
