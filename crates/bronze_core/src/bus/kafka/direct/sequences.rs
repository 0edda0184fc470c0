//! What must be remembered of a topic so that the broker knows a batch that it has already.
//!
//! Each topic has a producer of its own for the brokers, with a sequence for each partition. One batch
//! of a partition is on its way at a time, so a sequence is never ahead of an answer.
//!
//! Invariants
//! - A sequence moves on only when the broker says that it has the batch.
//! - While nobody knows what became of a batch, its sequence belongs to it alone: the same records
//!   may be sent again under it, and the broker takes them once. Other records under it could be
//!   taken for the old ones and be lost, so before they are sent there is a new producer.

use std::collections::HashMap;

use super::record_batch::{Fingerprint, Producer};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// As the brokers know it; nothing until it has asked, or if they no longer do.
    pub(super) producer: Option<Producer>,
    partitions: HashMap<usize, Sequence>,
}

#[derive(Debug, Default)]
struct Sequence {
    next: i32,
    /// The batch that was sent under `next`, if nobody knows what became of it.
    unknown: Option<Fingerprint>,
}

impl Sequences {
    /// Whether a batch may be sent to a partition by the producer that is there.
    pub(super) fn may_send(&self, partition: usize, records: Fingerprint) -> bool {
        let unknown = self.partitions.get(&partition).and_then(|sequence| sequence.unknown);
        unknown.is_none_or(|unknown| unknown == records)
    }

    /// Becomes a new producer, which nothing was sent by.
    pub(super) fn start_afresh(&mut self) {
        self.producer = None;
        self.partitions.clear();
    }

    /// The sequence for a batch that is being sent now; until it is settled nobody knows of it.
    pub(super) fn begin(&mut self, partition: usize, records: Fingerprint) -> i32 {
        let sequence = self.partitions.entry(partition).or_default();
        sequence.unknown = Some(records);
        sequence.next
    }

    /// The broker has the batch.
    pub(super) fn acknowledged(&mut self, partition: usize, count: i32) {
        let sequence = self.partitions.entry(partition).or_default();
        sequence.unknown = None;
        // After the largest comes 0.
        sequence.next = sequence.next.checked_add(count).unwrap_or_else(|| {
            let left = i32::MAX - sequence.next;
            count - left - 1
        });
    }

    /// The broker does not have the batch, and never will.
    pub(super) fn refused(&mut self, partition: usize) {
        self.partitions.entry(partition).or_default().unknown = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::kafka::direct::lz4_frame::Lz4Writer;
    use crate::bus::kafka::direct::record_batch::{Codec, Records};

    fn records(text: &str) -> Fingerprint {
        let mut records = Records::default();
        records.push(None, text.as_bytes(), &[0]);
        records.pack(Codec::None, &mut Lz4Writer::default()).unwrap().fingerprint()
    }

    #[test]
    fn a_sequence_moves_on_with_acknowledgements_only() {
        let mut sequences = Sequences::default();
        assert_eq!(sequences.begin(3, records("a")), 0);
        sequences.acknowledged(3, 10);
        assert_eq!(sequences.begin(3, records("b")), 10);
        // Nobody knows, so it goes again under the same number.
        assert!(sequences.may_send(3, records("b")));
        assert_eq!(sequences.begin(3, records("b")), 10);
        sequences.acknowledged(3, 1);
        assert_eq!(sequences.begin(3, records("c")), 11);
        sequences.refused(3);
        assert_eq!(sequences.begin(3, records("d")), 11);
        assert_eq!(sequences.begin(4, records("e")), 0);
    }

    #[test]
    fn other_records_never_take_the_number_of_a_batch_nobody_knows_of() {
        let mut sequences =
            Sequences { producer: Some(Producer { id: 1, epoch: 0 }), ..Sequences::default() };
        sequences.begin(0, records("a"));
        assert!(!sequences.may_send(0, records("b")));
        assert!(sequences.may_send(1, records("b")));
        sequences.start_afresh();
        assert!(sequences.producer.is_none() && sequences.may_send(0, records("b")));
        sequences.begin(0, records("b"));
        sequences.refused(0);
        assert!(sequences.may_send(0, records("c")));
    }

    #[test]
    fn after_the_largest_sequence_comes_zero() {
        let mut sequences = Sequences::default();
        sequences.acknowledged(0, i32::MAX);
        assert_eq!(sequences.begin(0, records("a")), i32::MAX);
        sequences.acknowledged(0, 1);
        assert_eq!(sequences.begin(0, records("b")), 0);
        sequences.acknowledged(0, i32::MAX - 1);
        sequences.acknowledged(0, 5);
        assert_eq!(sequences.begin(0, records("c")), 3);
    }
}
