//! From the events of a request to a batch for each partition.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::lz4_frame::Lz4Writer;
use super::partitioner::partition_of;
use super::record_batch::{Codec, HeaderWriter, Packed, Records};
use crate::bus::Request;
use crate::bus::kafka::RECORD_OVERHEAD;
use crate::bus::kafka::record::RecordForm;
use crate::event_view::EventView;
use crate::payload_case::PayloadCase;

/// What a batch takes beside its records, and more.
const BATCH_OVERHEAD: usize = 1_000;
/// How much room for records is kept while no batch uses it.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// A batch of one partition.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) partition: usize,
    pub(super) packed: Packed,
    /// Bytes of its records before they were compressed.
    pub(super) bytes: usize,
    /// The places of its events in the request.
    pub(super) events: Vec<usize>,
}

/// How batches are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchForm<'a> {
    pub(super) record: &'a RecordForm,
    pub(super) codec: Codec,
    /// Bytes of a batch's records.
    pub(super) most_bytes: usize,
    pub(super) most_events: usize,
    pub(super) spare: &'a SpareRoom,
}

/// Room for records that no batch uses. Memory that is new costs more than what is put into it.
#[derive(Debug, Default)]
pub(super) struct SpareRoom(Mutex<Vec<Vec<u8>>>);

impl SpareRoom {
    fn rooms(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records without a record, with room for so many bytes.
    fn records(&self, bytes: usize) -> Records {
        let mut room = self.rooms().pop().unwrap_or_default();
        room.reserve(bytes);
        Records::within(room)
    }

    fn take_back(&self, records: Records) {
        let room = records.into_room();
        let mut rooms = self.rooms();
        let kept: usize = rooms.iter().map(Vec::capacity).sum();
        if kept + room.capacity() <= KEPT_BYTES {
            rooms.push(room);
        }
    }
}

/// The batches of a request, by partition and then in order.
#[derive(Debug, Default)]
pub(super) struct Batches {
    pub(super) all: Vec<Batch>,
    /// The places of events that are none, with the reason.
    pub(super) unreadable: Vec<(usize, String)>,
}

/// Records for one partition.
#[derive(Debug, Default)]
struct Open {
    records: Records,
    events: Vec<usize>,
}

impl BatchForm<'_> {
    /// Batches for all events of a request.
    pub(super) fn batches(&self, request: &Request, partitions: usize) -> std::io::Result<Batches> {
        let mut writer = RecordWriter::new(self.record);
        let mut lz4 = Lz4Writer::default();
        let mut batches = Batches::default();
        let room = self.room(request, partitions);
        let mut open: Vec<Open> = Vec::new();
        open.resize_with(partitions, Open::default);
        for (place, (_, bytes)) in request.events.iter().enumerate() {
            let event = match EventView::reread(bytes) {
                Ok(event) => event,
                Err(error) => {
                    batches.unreadable.push((place, error.to_string()));
                    continue;
                }
            };
            writer.prepare(&event);
            // Without a key it goes anywhere, but to the same partition if it is sent again.
            let partition = partition_of(writer.key().unwrap_or(bytes), partitions);
            let batch = &mut open[partition];
            let bytes_with = batch.records.byte_len() + bytes.len();
            let is_full = bytes_with + RECORD_OVERHEAD + BATCH_OVERHEAD > self.most_bytes
                || batch.events.len() >= self.most_events;
            if is_full && !batch.events.is_empty() {
                batches.all.push(self.close(std::mem::take(batch), partition, &mut lz4)?);
            }
            if batch.events.is_empty() {
                batch.records = self.spare.records(room);
            }
            writer.write(bytes, &mut batch.records);
            batch.events.push(place);
        }
        for (partition, open) in open.into_iter().enumerate() {
            if !open.events.is_empty() {
                batches.all.push(self.close(open, partition, &mut lz4)?);
            }
        }
        // Stable: those of a partition stay in their order.
        batches.all.sort_by_key(|batch| batch.partition);
        Ok(batches)
    }

    fn close(&self, open: Open, partition: usize, lz4: &mut Lz4Writer) -> std::io::Result<Batch> {
        let Open { records, events } = open;
        let packed = records.pack(self.codec, lz4)?;
        let bytes = records.byte_len();
        self.spare.take_back(records);
        Ok(Batch { partition, packed, bytes, events })
    }

    /// Bytes that the records of a partition will take, about.
    fn room(&self, request: &Request, partitions: usize) -> usize {
        let events: usize = request.events.iter().map(|(_, bytes)| bytes.len()).sum();
        let bytes = events + request.events.len() * RECORD_OVERHEAD;
        // Keys are never spread evenly, and growing means copying.
        (bytes / partitions * 2).min(self.most_bytes)
    }

    /// The same events in two batches.
    pub(super) fn halves(&self, request: &Request, batch: &Batch) -> std::io::Result<[Batch; 2]> {
        let (first, second) = batch.events.split_at(batch.events.len() / 2);
        let half = |events: &[usize]| {
            let mut writer = RecordWriter::new(self.record);
            let mut open = Open { events: events.to_vec(), ..Open::default() };
            for place in events {
                let bytes = request.events.event(*place).1;
                let event = EventView::reread(bytes).map_err(std::io::Error::other)?;
                writer.prepare(&event);
                writer.write(bytes, &mut open.records);
            }
            self.close(open, batch.partition, &mut Lz4Writer::default())
        };
        Ok([half(first)?, half(second)?])
    }
}

/// Writes records: keys and headers from their templates, each in memory that is used again.
struct RecordWriter<'a> {
    form: &'a RecordForm,
    key: String,
    headers: Vec<u8>,
    pairs: HeaderWriter,
    /// What the headers were made for, where nothing else is in them.
    made_for: Option<(PayloadCase, String)>,
}

impl<'a> RecordWriter<'a> {
    fn new(form: &'a RecordForm) -> Self {
        let (key, headers) = (String::new(), Vec::new());
        Self { form, key, headers, pairs: HeaderWriter::default(), made_for: None }
    }

    /// Makes key and headers of an event.
    fn prepare(&mut self, event: &EventView<'_>) {
        self.key.clear();
        self.form.key.render(event, &mut self.key);
        let is_same = self.made_for.as_ref().is_some_and(|(case, data_type)| {
            *case == event.case() && data_type == event.data_type()
        });
        if is_same {
            return;
        }
        self.pairs.clear();
        let Self { form, pairs, .. } = self;
        form.each_header(event, |name, value| pairs.push(name, value));
        self.pairs.finish(&mut self.headers);
        let depends_on_case_only = self.form.meta_headers_prefix.is_none();
        self.made_for = depends_on_case_only.then(|| (event.case(), event.data_type().to_owned()));
    }

    /// The key that was made, if there is any.
    fn key(&self) -> Option<&[u8]> {
        (!self.key.is_empty()).then_some(self.key.as_bytes())
    }

    fn write(&self, event: &[u8], records: &mut Records) {
        records.push(self.key(), event, &self.headers);
    }
}
