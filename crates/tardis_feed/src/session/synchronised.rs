//! Replays exchanges' own messages to several connections that are kept in step.
//!
//! The requests are merged as streams of one replay are, by the time of receipt. What comes out are
//! pieces, each for one connection: sent one after the other, they give every client its messages in
//! the order in which the markets gave them. A piece holds the messages of one connection that
//! follow each other without one of another connection between them.

use std::sync::Arc;

use super::line_reader::{LineReader, Ready, position_of};
use super::turns::{Bound, micros, next_turn};
use super::{Output, SessionError, SessionProgress};
use crate::error::FeedError;
use crate::frames;
use crate::line::Line;
use crate::output::{Chunk, ChunkWriter, Framing};
use crate::request::RawRequest;
use crate::stream::Archive;

/// A replay of exchanges' own messages to connections in step.
pub struct SynchronisedSession {
    connections: Vec<Connection>,
    /// The connection whose messages are in the output.
    turn: usize,
    output: Output,
}

struct Connection {
    /// `None` once there is nothing more to send.
    reader: Option<LineReader>,
    /// The time of the message that is next, if it is known.
    head: Option<i64>,
    /// The time of the last message: the turn of a line that has none.
    last: i64,
}

impl SynchronisedSession {
    /// A session that answers `requests`, one for each connection. Nothing is fetched before its
    /// first chunk is asked for. Disconnects are not told, whatever the requests say.
    pub fn open(
        archive: &Archive,
        requests: Vec<RawRequest>,
        progress: &Arc<SessionProgress>,
    ) -> Result<Self, FeedError> {
        let connections = requests
            .into_iter()
            .map(|request| Connection::new(archive, request, progress))
            .collect::<Result<_, _>>()?;
        let output = Output::new(ChunkWriter::new(Framing::Frames, None), progress);
        Ok(Self { connections, turn: 0, output })
    }

    /// The next piece of output and the connection, by the place of its request, that it is for;
    /// `None` at the end. Its bytes are WebSocket text frames, one for each message. The call may be
    /// given up and made again.
    pub async fn next_chunk(&mut self) -> Result<Option<(usize, Chunk)>, SessionError> {
        loop {
            if let Some(due) = self.output.due() {
                return due.map(|chunk| self.addressed(chunk));
            }
            for connection in &mut self.connections {
                match connection.ready(!self.output.writer.is_empty()).await {
                    Ok(true) => {}
                    Ok(false) => return Ok(self.rest()),
                    Err(failure) => {
                        self.output.failure = Some(failure.into());
                        break;
                    }
                }
            }
            if self.output.failure.is_some() {
                continue;
            }
            let heads = self.connections.iter().map(|connection| connection.head);
            let Some((turn, bound)) = next_turn(heads) else { return Ok(self.rest()) };
            if turn != self.turn && !self.output.writer.is_empty() {
                return Ok(self.rest());
            }
            self.turn = turn;
            let connection = &mut self.connections[turn];
            if let Err(failure) = connection.write_lines(bound, &mut self.output.writer) {
                self.output.failure = Some(failure);
            }
            if connection.head.is_none() {
                // A range with little to send must not keep a thread from others.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Goes on without a connection whose client is gone: nothing more is fetched for it.
    pub fn leave(&mut self, connection: usize) {
        if let Some(left) = self.connections.get_mut(connection) {
            (left.reader, left.head) = (None, None);
        }
        if connection == self.turn {
            self.output.writer.discard();
        }
    }

    fn rest(&mut self) -> Option<(usize, Chunk)> {
        let rest = self.output.rest();
        self.addressed(rest)
    }

    fn addressed(&self, chunk: Option<Chunk>) -> Option<(usize, Chunk)> {
        chunk.map(|chunk| (self.turn, chunk))
    }
}

impl Connection {
    fn new(
        archive: &Archive,
        request: RawRequest,
        progress: &Arc<SessionProgress>,
    ) -> Result<Self, FeedError> {
        let reader = LineReader::of_raw(archive, request, progress)?;
        Ok(Self { reader: Some(reader), head: None, last: i64::MIN })
    }

    /// Sees to it that the next message is known, unless there is none. With `or_not` it does not
    /// wait and says `false` instead.
    async fn ready(&mut self, or_not: bool) -> Result<bool, FeedError> {
        while self.head.is_none()
            && let Some(reader) = &mut self.reader
        {
            match reader.ready(or_not).await? {
                Ready::NotYet => return Ok(false),
                Ready::End => self.reader = None,
                Ready::Lines => self.find_head(),
            }
        }
        Ok(true)
    }

    /// Goes on to the next message of the block, if there is one: disconnects take no turn.
    fn find_head(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        let Some((block, mut lines)) = reader.lines() else { return };
        let mut position = position_of(block, &lines);
        while let Some(line) = lines.next() {
            match line {
                Ok(Line::Message { time, .. }) => self.head = Some(micros(time)),
                Ok(Line::Disconnect) => {
                    position = position_of(block, &lines);
                    continue;
                }
                // The failure is told in its turn.
                Err(_) => self.head = Some(self.last),
            }
            break;
        }
        reader.go_on_at(position);
    }

    /// Writes messages until the block ends, the chunk is full or it is another connection's turn.
    fn write_lines(&mut self, bound: Bound, writer: &mut ChunkWriter) -> Result<(), SessionError> {
        self.head = None;
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let Some((block, mut lines)) = reader.lines() else { return Ok(()) };
        let mut outcome = Ok(());
        let mut position = position_of(block, &lines);
        while !writer.is_full() {
            match lines.next() {
                Some(Ok(Line::Message { time, message, .. })) => {
                    let moment = micros(time);
                    if bound.is_before(moment) {
                        self.head = Some(moment);
                        break;
                    }
                    self.last = moment;
                    let out = writer.raw_line();
                    let frame = frames::begin(out);
                    out.extend_from_slice(message);
                    frames::end(out, frame);
                }
                Some(Ok(Line::Disconnect)) => {}
                Some(Err(error)) => {
                    let slice = Arc::clone(block.slice());
                    outcome = Err(SessionError::Line { slice, error });
                }
                None => break,
            }
            position = position_of(block, &lines);
            if outcome.is_err() {
                break;
            }
        }
        reader.go_on_at(position);
        outcome
    }
}
