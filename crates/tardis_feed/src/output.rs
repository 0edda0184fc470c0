//! What a session gives out: chunks of lines or frames, and the events made from the same messages.

use bronze_core::{BronzeEncoder, EventBatch, EventBuffer};
use market_data::{Message, Sink, Timestamp, write_message};

use crate::frames;

/// A chunk is handed over when it has this many bytes: large enough that what is done per chunk
/// does not count, small enough that it stays in the processor's cache.
pub(crate) const CHUNK_BYTES: usize = 128 << 10;

/// How messages are set apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Each is a line with its newline.
    #[default]
    Lines,
    /// Each is a WebSocket text frame, as a server sends it.
    Frames,
}

/// A piece of a session's output.
#[derive(Debug)]
pub struct Chunk {
    /// Whole lines, each with its newline, or whole frames.
    pub lines: Vec<u8>,
    /// How many there are.
    pub messages: u64,
    /// The events of the same messages, if the session was asked to make them.
    pub events: Option<EventBatch>,
}

/// Writes messages into the next chunk.
pub(crate) struct ChunkWriter {
    framing: Framing,
    lines: Vec<u8>,
    messages: u64,
    events: Option<EventWriter>,
}

struct EventWriter {
    encoder: BronzeEncoder,
    buffer: EventBuffer,
    ingest: Timestamp,
}

impl ChunkWriter {
    pub(crate) fn new(framing: Framing, encoder: Option<BronzeEncoder>) -> Self {
        let events = encoder.map(|encoder| EventWriter {
            encoder,
            buffer: EventBuffer::with_capacity(CHUNK_BYTES),
            ingest: Timestamp::now(),
        });
        Self { framing, lines: Vec::new(), messages: 0, events }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= CHUNK_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Where a raw line is written, which counts as one message.
    pub(crate) fn raw_line(&mut self) -> &mut Vec<u8> {
        self.begin();
        &mut self.lines
    }

    /// What was written so far.
    pub(crate) fn take_chunk(&mut self) -> Chunk {
        let events = self.events.as_mut().map(|events| {
            let batch = events.buffer.take_batch();
            events.ingest = Timestamp::now();
            batch
        });
        Chunk {
            lines: std::mem::take(&mut self.lines),
            messages: std::mem::take(&mut self.messages),
            events,
        }
    }

    fn begin(&mut self) {
        if self.lines.capacity() == 0 {
            self.lines.reserve(CHUNK_BYTES + CHUNK_BYTES / 8);
        }
        self.messages += 1;
    }
}

impl Sink for ChunkWriter {
    fn take(&mut self, message: &Message<'_>) {
        self.begin();
        match self.framing {
            Framing::Lines => {
                write_message(&mut self.lines, message);
                self.lines.push(b'\n');
            }
            Framing::Frames => {
                let frame = frames::begin(&mut self.lines);
                write_message(&mut self.lines, message);
                frames::end(&mut self.lines, frame);
            }
        }
        if let Some(events) = &mut self.events {
            events.encoder.encode(message, events.ingest, &mut events.buffer);
        }
    }
}
