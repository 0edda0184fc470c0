//! Chunks of JSON lines to events and back: what whole-chunk callers do with the codec.
//!
//! A chunk is taken whole or not at all: every line is read before the first is encoded, so a bad one
//! uses up no `event_seq`.

use market_data::{Message, ReadError, Timestamp, read_message, write_message};
use thiserror::Error;

use crate::decode::{DecodeError, MessageAssembler, decode_event};
use crate::encode::BronzeEncoder;
use crate::event_batch::EventBuffer;

/// A line that is no message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {number}: {error}")]
pub struct JsonLineError {
    /// The line's number in its chunk, from 1.
    pub number: usize,
    /// What is wrong with it.
    pub error: ReadError,
}

/// Why events are no messages.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum JsonEventError {
    /// A row cannot be decoded, or does not follow the one before it.
    #[error("row {row}: {error}")]
    Row {
        /// The event's place among the rows, from 0.
        row: usize,
        /// What is wrong with it.
        error: DecodeError,
    },
    /// The last message is not complete.
    #[error(transparent)]
    End(DecodeError),
}

/// Reads normalized messages, one JSON object a line; blank lines are passed over.
pub(crate) fn read_json_lines(lines: &[u8]) -> Result<Vec<Message<'_>>, JsonLineError> {
    lines
        .split(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_ascii()))
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| read_message(line).map_err(|error| JsonLineError { number, error }))
        .collect()
}

impl BronzeEncoder {
    /// Appends the events of normalized messages, one JSON object a line; blank lines are passed over.
    pub fn encode_json_lines(
        &mut self,
        lines: &[u8],
        ingest: Timestamp,
        out: &mut EventBuffer,
    ) -> Result<(), JsonLineError> {
        let messages = read_json_lines(lines)?;
        for message in &messages {
            self.encode(message, ingest, out);
        }
        Ok(())
    }
}

/// Decodes events into one JSON object a line. Book changes that were published a level at a time are
/// put together again; with `per_event` each event is a line of its own.
pub fn decode_json_lines<'a>(
    events: impl IntoIterator<Item = &'a [u8]>,
    per_event: bool,
) -> Result<Vec<u8>, JsonEventError> {
    let mut lines = Vec::new();
    let mut assembler = MessageAssembler::default();
    for (row, bytes) in events.into_iter().enumerate() {
        let bad_row = |error| JsonEventError::Row { row, error };
        let event = decode_event(bytes).map_err(bad_row)?;
        let message =
            if per_event { Some(event.message) } else { assembler.push(event).map_err(bad_row)? };
        if let Some(message) = message {
            write_message(&mut lines, &message);
            lines.push(b'\n');
        }
    }
    assembler.finish().map_err(JsonEventError::End)?;
    Ok(lines)
}
