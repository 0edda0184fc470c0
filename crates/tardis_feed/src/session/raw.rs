//! Replays an exchange's own messages, untouched.

use std::sync::Arc;

use super::line_reader::{LineReader, Ready, position_of};
use super::{Output, SessionError, SessionProgress};
use crate::error::FeedError;
use crate::line::Line;
use crate::output::{Chunk, ChunkWriter, Framing};
use crate::request::RawRequest;
use crate::stream::Archive;

/// A replay of an exchange's own messages.
pub struct RawSession {
    reader: LineReader,
    with_disconnects: bool,
    /// Several disconnects in a row are told once.
    after_disconnect: bool,
    output: Output,
}

impl RawSession {
    /// A session that answers `request`. Nothing is fetched before its first chunk is asked for.
    pub fn open(
        archive: &Archive,
        request: RawRequest,
        progress: &Arc<SessionProgress>,
    ) -> Result<Self, FeedError> {
        let with_disconnects = request.with_disconnects;
        Ok(Self {
            reader: LineReader::of_raw(archive, request, progress)?,
            with_disconnects,
            after_disconnect: false,
            output: Output::new(ChunkWriter::new(Framing::Lines, None), progress),
        })
    }

    /// The next piece of output; `None` at the end. The call may be given up and made again.
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>, SessionError> {
        loop {
            if let Some(due) = self.output.due() {
                return due;
            }
            match self.reader.ready(!self.output.writer.is_empty()).await {
                Ok(Ready::Lines) => self.write_lines(),
                Ok(Ready::NotYet | Ready::End) => return Ok(self.output.rest()),
                Err(failure) => self.output.failure = Some(failure.into()),
            }
        }
    }

    /// Writes lines until the block ends or the chunk is full.
    fn write_lines(&mut self) {
        let Some((block, mut lines)) = self.reader.lines() else { return };
        while !self.output.writer.is_full() {
            match lines.next() {
                Some(Ok(Line::Message { timestamp, message, .. })) => {
                    self.after_disconnect = false;
                    let out = self.output.writer.raw_line();
                    out.extend_from_slice(b"{\"localTimestamp\":\"");
                    out.extend_from_slice(timestamp);
                    out.extend_from_slice(b"\",\"message\":");
                    out.extend_from_slice(message);
                    out.extend_from_slice(b"}\n");
                }
                Some(Ok(Line::Disconnect)) => {
                    if self.with_disconnects && !self.after_disconnect {
                        self.output.writer.raw_line().push(b'\n');
                    }
                    self.after_disconnect = true;
                }
                Some(Err(error)) => {
                    let slice = Arc::clone(block.slice());
                    self.output.failure = Some(SessionError::Line { slice, error });
                    break;
                }
                None => break,
            }
        }
        let position = position_of(block, &lines);
        self.reader.go_on_at(position);
    }
}
