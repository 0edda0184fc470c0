//! Encoded events, many in one buffer.

use bytes::Bytes;

use crate::batch_room;
use crate::payload_case::PayloadCase;

/// Bytes after which the next batch begins, where events are cut into batches: a size that suits
/// queue, spill and buses.
pub(crate) const BATCH_BYTES: usize = 128 * 1024;

/// A guess at an event's bytes, for buffers of about the right size.
pub(crate) const EVENT_BYTES: usize = 192;

/// One event's place in its batch.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where the event's bytes end; they begin where the one before ends.
    end: usize,
    case: PayloadCase,
}

/// A buffer that encoded events are appended to.
#[derive(Debug, Default)]
pub struct EventBuffer {
    pub(crate) bytes: Vec<u8>,
    entries: Vec<Entry>,
}

/// Encoded events that share one allocation. Cloning it, or taking an event's bytes, copies nothing.
#[derive(Clone, Debug, Default)]
pub struct EventBatch {
    bytes: Bytes,
    entries: std::sync::Arc<[Entry]>,
}

impl EventBuffer {
    /// An empty buffer with room for `bytes`.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), entries: Vec::with_capacity(bytes / 256) }
    }

    /// An empty buffer with room for so many events, and their bytes.
    pub(crate) fn with_room(events: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), entries: Vec::with_capacity(events) }
    }

    /// An empty buffer for events that come to about so many bytes, and may be several batches.
    pub(crate) fn for_batches(bytes: usize) -> Self {
        let room = if bytes < BATCH_BYTES { Vec::with_capacity(bytes) } else { batch_room::take() };
        Self { bytes: room, entries: Vec::new() }
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all events together.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all events and keeps the room they took.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Removes all events after the first `events`.
    pub(crate) fn truncate(&mut self, events: usize) {
        self.entries.truncate(events);
        self.bytes.truncate(self.entries.last().map_or(0, |entry| entry.end));
    }

    /// The events after the first `events`.
    pub(crate) fn after(&self, events: usize) -> impl Iterator<Item = &[u8]> {
        let first = self.entries.get(events.wrapping_sub(1)).map_or(0, |entry| entry.end);
        let starts = std::iter::once(first).chain(self.entries[events..].iter().map(|e| e.end));
        starts.zip(&self.entries[events..]).map(|(start, entry)| &self.bytes[start..entry.end])
    }

    /// Appends an event.
    pub(crate) fn push(&mut self, case: PayloadCase, event: &[u8]) {
        self.bytes.extend_from_slice(event);
        self.finish_event(case);
    }

    /// What was appended to `bytes` since the last event.
    pub(crate) fn unfinished(&self) -> &[u8] {
        &self.bytes[self.entries.last().map_or(0, |entry| entry.end)..]
    }

    /// Makes what was appended to `bytes` since the last event an event.
    pub(crate) fn finish_event(&mut self, case: PayloadCase) {
        self.entries.push(Entry { end: self.bytes.len(), case });
    }

    /// Each event's case and bytes.
    pub fn iter(&self) -> impl Iterator<Item = (PayloadCase, &[u8])> + Clone {
        events(&self.entries, &self.bytes)
    }

    /// The events' bytes one after the other, and where each ends.
    #[must_use]
    pub fn into_parts(self) -> (Vec<u8>, Vec<usize>) {
        (self.bytes, self.entries.into_iter().map(|entry| entry.end).collect())
    }

    /// Takes the events out as a batch and leaves the buffer empty.
    pub fn take_batch(&mut self) -> EventBatch {
        self.take_batch_for(Vec::new())
    }

    /// The same, and the buffer is ready for another full batch.
    pub(crate) fn take_full_batch(&mut self) -> EventBatch {
        self.take_batch_for(batch_room::take())
    }

    fn take_batch_for(&mut self, next: Vec<u8>) -> EventBatch {
        let entries = self.entries.as_slice().into();
        self.entries.clear();
        EventBatch { bytes: batch_room::freeze(std::mem::replace(&mut self.bytes, next)), entries }
    }

    /// The events as the last batch, which takes no more memory than they need; none if there are none.
    pub(crate) fn into_last_batch(mut self) -> Option<EventBatch> {
        let is_used = self.bytes.len() > self.bytes.capacity() / 2;
        let batch = if self.is_empty() {
            None
        } else if is_used {
            return Some(self.take_batch());
        } else {
            let bytes = Bytes::copy_from_slice(&self.bytes);
            Some(EventBatch { bytes, entries: self.entries.as_slice().into() })
        };
        batch_room::give_back(self.bytes);
        batch
    }
}

/// Cuts events into batches as they come.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    full: Vec<EventBatch>,
    /// Where the next events go.
    pub(crate) buffer: EventBuffer,
}

impl BatchBuilder {
    /// Nothing yet; about so many events will come.
    pub(crate) fn with_room(events: usize) -> Self {
        let buffer = EventBuffer::for_batches(events.saturating_mul(EVENT_BYTES));
        Self { full: Vec::new(), buffer }
    }

    /// Begins the next batch if this one is full.
    #[inline]
    pub(crate) fn cut(&mut self) {
        if self.buffer.byte_len() >= BATCH_BYTES {
            self.full.push(self.buffer.take_full_batch());
        }
    }

    /// All batches; none is empty.
    pub(crate) fn finish(self) -> Vec<EventBatch> {
        let Self { mut full, buffer } = self;
        full.extend(buffer.into_last_batch());
        full
    }
}

impl EventBatch {
    /// The events that lie one after the other in `bytes`, given each one's case and length;
    /// nothing where the lengths do not fill `bytes` exactly.
    pub(crate) fn of_lengths(
        bytes: Bytes,
        lengths: impl Iterator<Item = (PayloadCase, usize)>,
    ) -> Option<Self> {
        let mut end = 0_usize;
        let entries = lengths.map(|(case, length)| {
            end = end.checked_add(length).filter(|end| *end <= bytes.len())?;
            Some(Entry { end, case })
        });
        let entries = entries.collect::<Option<_>>()?;
        (end == bytes.len()).then_some(Self { bytes, entries })
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all events together.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Each event's case and bytes.
    pub fn iter(&self) -> impl Iterator<Item = (PayloadCase, &[u8])> + Clone {
        events(&self.entries, &self.bytes)
    }

    /// All events, one after the other.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where each event ends.
    pub(crate) fn ends(&self) -> impl ExactSizeIterator<Item = usize> {
        self.entries.iter().map(|entry| entry.end)
    }

    /// The case and bytes of the event at a place, which must be one.
    #[inline]
    #[must_use]
    pub fn event(&self, index: usize) -> (PayloadCase, &[u8]) {
        let (case, span) = self.span(index);
        (case, &self.bytes[span])
    }

    /// The same, sharing the batch's memory.
    #[must_use]
    pub fn shared(&self, index: usize) -> (PayloadCase, Bytes) {
        let (case, span) = self.span(index);
        (case, self.bytes.slice(span))
    }

    #[inline]
    fn span(&self, index: usize) -> (PayloadCase, std::ops::Range<usize>) {
        let entry = self.entries[index];
        let start = index.checked_sub(1).map_or(0, |before| self.entries[before].end);
        (entry.case, start..entry.end)
    }
}

impl<'a> FromIterator<(PayloadCase, &'a [u8])> for EventBatch {
    /// Copies events into a batch of their own.
    fn from_iter<I: IntoIterator<Item = (PayloadCase, &'a [u8])>>(events: I) -> Self {
        let mut buffer = EventBuffer::default();
        for (case, event) in events {
            buffer.bytes.extend_from_slice(event);
            buffer.finish_event(case);
        }
        buffer.take_batch()
    }
}

fn events<'a>(
    entries: &'a [Entry],
    bytes: &'a [u8],
) -> impl Iterator<Item = (PayloadCase, &'a [u8])> + Clone {
    let mut start = 0;
    entries.iter().map(move |entry| {
        let event = &bytes[start..entry.end];
        start = entry.end;
        (entry.case, event)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_pairs_gives_them_back() {
        let pairs: [(PayloadCase, &[u8]); 3] =
            [(PayloadCase::Trade, b"one"), (PayloadCase::Error, b""), (PayloadCase::Quote, b"2")];
        let batch = EventBatch::from_iter(pairs);
        assert_eq!(batch.iter().collect::<Vec<_>>(), pairs);
        assert_eq!(batch.event(2), (PayloadCase::Quote, &b"2"[..]));
        assert_eq!(batch.shared(0), (PayloadCase::Trade, Bytes::from_static(b"one")));
    }

    #[test]
    fn lengths_that_do_not_fill_the_bytes_make_no_batch() {
        let batch = |lengths: &[usize]| {
            let lengths = lengths.iter().map(|length| (PayloadCase::Trade, *length));
            EventBatch::of_lengths(Bytes::from_static(b"abcd"), lengths)
        };
        assert_eq!(batch(&[1, 0, 3]).map(|batch| batch.len()), Some(3));
        assert!(batch(&[1, 2]).is_none());
        assert!(batch(&[1, 4]).is_none());
        assert!(batch(&[usize::MAX, 5]).is_none());
    }
}
