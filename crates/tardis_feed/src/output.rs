//! What a session gives out: chunks of lines or frames, and the events made from the same messages.

use bronze_core::{BronzeEncoder, EventBatch, EventBuffer};
use market_data::{Message, Sink, Timestamp, write_message};

use crate::frames;

/// A chunk is handed over when it has this many bytes: large enough that what is done per chunk
/// does not count, small enough that it stays in the processor's cache. With its last message it is
/// a little less than four of the largest packets, so that a client on the same machine, where these
/// are of 64 KiB, is not sent a fifth one for a few bytes.
pub(crate) const CHUNK_BYTES: usize = 255 << 10;

/// A chunk of at most this many bytes is handed over as a copy of just its size, so that many small
/// ones that wait for their clients do not hold the room of as many full ones.
const SMALL_CHUNK_BYTES: usize = 8 << 10;

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
    /// Whole lines, each with its newline, or whole frames. It may be empty where there are events
    /// only.
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
    /// How long the next chunk may become: as long as the last. Those of a replay are full, those of
    /// a live stream hold a few messages.
    room: usize,
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
        Self { framing, lines: Vec::new(), messages: 0, events, room: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() >= CHUNK_BYTES
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages == 0 && self.events.as_ref().is_none_or(|events| events.buffer.is_empty())
    }

    /// Takes a message that is published, but not sent to the client.
    pub(crate) fn publish_only(&mut self, message: &Message<'_>) {
        if let Some(events) = &mut self.events {
            if events.buffer.is_empty() {
                events.ingest = Timestamp::now();
            }
            events.encoder.encode(message, events.ingest, &mut events.buffer);
        }
    }

    /// Where a raw line is written, which counts as one message.
    pub(crate) fn raw_line(&mut self) -> &mut Vec<u8> {
        self.begin();
        &mut self.lines
    }

    /// What was written so far.
    pub(crate) fn take_chunk(&mut self) -> Chunk {
        let events = self.events.as_mut().map(|events| events.buffer.take_batch());
        Chunk { lines: self.take_lines(), messages: std::mem::take(&mut self.messages), events }
    }

    /// Forgets what was written since the last chunk.
    pub(crate) fn discard(&mut self) {
        self.take_chunk();
    }

    fn take_lines(&mut self) -> Vec<u8> {
        if self.lines.len() > SMALL_CHUNK_BYTES {
            self.room = self.lines.len() + self.lines.len() / 8;
            return std::mem::take(&mut self.lines);
        }
        let lines = self.lines.as_slice().to_vec();
        self.lines.clear();
        lines
    }

    fn begin(&mut self) {
        if self.lines.capacity() == 0 {
            self.lines.reserve(self.room.max(1_024));
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
        self.publish_only(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_chunk_holds_no_more_room_than_it_needs() {
        let mut writer = ChunkWriter::new(Framing::Lines, None);
        for text in [&b"one\n"[..], b"another\n"] {
            writer.raw_line().extend_from_slice(text);
            let chunk = writer.take_chunk();
            assert_eq!((chunk.lines.as_slice(), chunk.messages), (text, 1));
            assert!(chunk.lines.capacity() <= SMALL_CHUNK_BYTES);
            assert!(writer.is_empty());
        }
        let long = vec![b'x'; CHUNK_BYTES];
        writer.raw_line().extend_from_slice(&long);
        assert!(writer.is_full());
        assert_eq!(writer.take_chunk().lines, long);
        assert!(writer.is_empty() && !writer.is_full());
    }
}
