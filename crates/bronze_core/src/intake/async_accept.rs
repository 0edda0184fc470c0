//! Accepting for tasks: the same order of places as for threads, but a task that waits keeps no
//! thread from others.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::{Intake, NotAccepted, amount};
use crate::event_batch::EventBatch;
use crate::ledger::{Amount, Place};
use crate::queue::PushError;

/// How often a task that waits looks for room.
const ROOM_CHECK: Duration = Duration::from_millis(2);

/// A batch that the ledger counts as accepted, and takes back unless it is placed: the task that waits
/// may be ended at any moment.
struct Claim {
    intake: Arc<Intake>,
    amount: Amount,
    is_placed: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_placed {
            self.intake.ledger.refuse(Place::Memory, self.amount);
        }
    }
}

impl Intake {
    /// Takes a batch in, or the part of it that this bus publishes, and returns how many events that
    /// are.
    pub(crate) async fn accept_async(
        self: &Arc<Self>,
        batch: &EventBatch,
    ) -> Result<u64, NotAccepted> {
        let batch = self.published(batch);
        if batch.is_empty() {
            return Ok(0);
        }
        let amount = amount(&batch);
        self.ledger.accept(Place::Memory, amount);
        let mut claim = Claim { intake: Arc::clone(self), amount, is_placed: false };
        let Some(batch) = self.place_in_memory(batch).await? else {
            claim.is_placed = true;
            return Ok(amount.events);
        };
        loop {
            let disk_batch = batch.clone();
            let on_disk = spawn_blocking(move || {
                let placed = claim.intake.place(disk_batch, Duration::ZERO, &mut || false);
                claim.is_placed = placed.is_ok();
                (claim, placed)
            });
            let Ok((back, placed)) = on_disk.await else { return Err(NotAccepted::Closed) };
            match placed {
                Ok(()) => return Ok(amount.events),
                Err(NotAccepted::Interrupted) => claim = back,
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Puts a batch into the queue if there is room within `max_block`, else gives it back.
    async fn place_in_memory(
        &self,
        mut batch: EventBatch,
    ) -> Result<Option<EventBatch>, NotAccepted> {
        let until = Instant::now() + self.max_block;
        while !self.spilling.load(SeqCst) {
            batch = match self.queue.push(batch, Duration::ZERO) {
                Ok(()) => return Ok(None),
                Err(PushError::Closed(_)) => return Err(NotAccepted::Closed),
                Err(PushError::Full(batch)) => batch,
            };
            if Instant::now() >= until {
                break;
            }
            sleep(ROOM_CHECK).await;
        }
        Ok(Some(batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::DeadLetterFile;
    use crate::delivery::{DeliveryOptions, Overflow};
    use crate::event_batch::EventBuffer;
    use crate::notice::Notices;
    use crate::payload_case::PayloadCase;
    use crate::payload_filter::PayloadFilter;

    fn batch() -> EventBatch {
        let mut buffer = EventBuffer::default();
        buffer.bytes.extend_from_slice(&vec![7; 600 << 10]);
        buffer.finish_event(PayloadCase::Trade);
        buffer.take_batch()
    }

    /// An intake without a disk and with room for one batch.
    fn intake(overflow: Overflow, max_block_ms: u64) -> Arc<Intake> {
        let options = DeliveryOptions {
            max_memory_mb: 1,
            max_block_ms,
            overflow,
            ..DeliveryOptions::default()
        };
        let directory = std::env::temp_dir();
        let dead_letters = DeadLetterFile::new(directory.join("never-written.dead"));
        let filter = PayloadFilter::ALL;
        Arc::new(Intake::new("test", filter, &options, None, dead_letters, Notices::default()))
    }

    #[tokio::test]
    async fn a_task_waits_for_room_and_is_woken_by_it() {
        let intake = intake(Overflow::Block, 60_000);
        assert_eq!(intake.accept_async(&batch()).await, Ok(1));
        let waiting = tokio::spawn({
            let intake = Arc::clone(&intake);
            async move { intake.accept_async(&batch()).await }
        });
        sleep(Duration::from_millis(10)).await;
        assert!(!waiting.is_finished());
        assert!(intake.queue.try_pop().is_some());
        assert_eq!(waiting.await.unwrap(), Ok(1));
        assert_eq!(intake.stats().accepted.events, 2);
    }

    #[tokio::test]
    async fn a_task_that_is_ended_while_it_waits_leaves_no_trace() {
        for max_block_ms in [0, 60_000] {
            let intake = intake(Overflow::Block, max_block_ms);
            assert_eq!(intake.accept_async(&batch()).await, Ok(1));
            let waiting = tokio::spawn({
                let intake = Arc::clone(&intake);
                async move { intake.accept_async(&batch()).await }
            });
            sleep(Duration::from_millis(10)).await;
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
            intake.close();
            while Arc::strong_count(&intake) > 1 {
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(intake.stats().accepted.events, 1);
        }
    }

    #[tokio::test]
    async fn without_room_anywhere_the_policy_decides() {
        let intake = intake(Overflow::Drop, 0);
        assert_eq!(intake.accept_async(&batch()).await, Ok(1));
        assert_eq!(intake.accept_async(&batch()).await, Ok(1));
        assert_eq!(intake.stats().dropped.events, 1);
    }

    #[tokio::test]
    async fn a_closed_intake_takes_nothing() {
        let intake = intake(Overflow::Block, 0);
        intake.close();
        assert_eq!(intake.accept_async(&batch()).await, Err(NotAccepted::Closed));
        assert_eq!(intake.stats().accepted.events, 0);
    }
}
