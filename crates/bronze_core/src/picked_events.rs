//! Some of the events of some batches, in an order of their own.
//!
//! Each batch is held once, however many of its events are picked: to count holders for every event would
//! cost more than to look the event up.

use bytes::Bytes;

use crate::event_batch::EventBatch;
use crate::payload_case::PayloadCase;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct PickedEvents {
    batches: Vec<EventBatch>,
    /// For each event the place of its batch, and its own place in that.
    places: Vec<(u32, u32)>,
}

impl PickedEvents {
    pub(crate) fn with_capacity(events: usize) -> Self {
        Self { batches: Vec::new(), places: Vec::with_capacity(events) }
    }

    /// Picks events of a batch, after those that were picked before.
    #[allow(clippy::cast_possible_truncation)] // as many as are in memory
    pub(crate) fn pick(&mut self, batch: &EventBatch, indices: impl Iterator<Item = u32>) {
        let place = self.batches.len() as u32;
        self.batches.push(batch.clone());
        self.places.extend(indices.map(|index| (place, index)));
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Each event's case and bytes.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (PayloadCase, &[u8])> {
        self.places.iter().map(|place| self.at(*place))
    }

    /// The case and bytes of the event at a place, which must be one.
    #[must_use]
    pub fn event(&self, place: usize) -> (PayloadCase, &[u8]) {
        self.at(self.places[place])
    }

    /// The same, sharing the memory of its batch.
    #[must_use]
    pub fn shared(&self, place: usize) -> (PayloadCase, Bytes) {
        let (batch, index) = self.places[place];
        self.batches[batch as usize].shared(index as usize)
    }

    #[inline]
    fn at(&self, (batch, index): (u32, u32)) -> (PayloadCase, &[u8]) {
        self.batches[batch as usize].event(index as usize)
    }
}

impl<'a> FromIterator<(PayloadCase, &'a [u8])> for PickedEvents {
    /// Copies events into a batch of their own, and picks all of it.
    fn from_iter<I: IntoIterator<Item = (PayloadCase, &'a [u8])>>(events: I) -> Self {
        let batch: EventBatch = events.into_iter().collect();
        let mut picked = Self::default();
        picked.pick(&batch, (0..).take(batch.len()));
        picked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_the_order_in_which_they_were_picked() {
        let batch = |texts: &[&'static str]| {
            let events = texts.iter().map(|text| (PayloadCase::Trade, text.as_bytes()));
            events.collect::<EventBatch>()
        };
        let (one, two) = (batch(&["a", "bb", "", "ccc"]), batch(&["d", "ee"]));
        let mut picked = PickedEvents::with_capacity(4);
        assert!(picked.is_empty());
        picked.pick(&one, [1, 2].into_iter());
        picked.pick(&two, [1].into_iter());
        picked.pick(&one, [0].into_iter());
        let texts: Vec<_> = picked.iter().map(|(_, event)| event).collect();
        assert_eq!(texts, [&b"bb"[..], b"", b"ee", b"a"]);
        for (place, text) in texts.into_iter().enumerate() {
            assert_eq!(picked.event(place), (PayloadCase::Trade, text));
            assert_eq!(picked.shared(place).1, text);
        }
        assert_eq!(picked.len(), 4);
    }
}
