//! Replay sessions: a client's request becomes chunks of output.
//!
//! A session does nothing by itself: each call of `next_chunk` takes blocks of lines, which are
//! downloaded and decompressed beside it within bounds, and makes a chunk of them. So a slow client
//! slows its session and nothing else. Dropping a session ends all of its work.

mod line_reader;
mod normalized;
mod progress;
mod raw;
mod synchronised;
mod turns;

pub use normalized::NormalizedSession;
pub use progress::SessionProgress;
pub use raw::RawSession;
pub use synchronised::SynchronisedSession;

use std::sync::Arc;

use market_data::MapError;
use thiserror::Error;

use crate::error::FeedError;
use crate::line::LineError;
use crate::output::{Chunk, ChunkWriter};
use crate::slice::SliceId;

/// Why a session ends early.
#[derive(Debug, Error)]
pub enum SessionError {
    /// Data could not be had.
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// A slice holds something else than lines.
    #[error("{slice}: {error}")]
    Line {
        /// The slice.
        slice: Arc<SliceId>,
        /// What is wrong with it.
        error: LineError,
    },
    /// A message could not be mapped.
    #[error("{slice}, line {line}: {error}")]
    Map {
        /// The slice.
        slice: Arc<SliceId>,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        error: MapError,
    },
    /// A live exchange failed too often in a row. Clients know this text, spaces included.
    #[error("Too many subsequent errors when connecting to  {exchange} WS API")]
    TooManyErrors {
        /// The exchange.
        exchange: &'static str,
    },
}

/// What a session writes to. A failure is told after what was written before it.
struct Output {
    writer: ChunkWriter,
    failure: Option<SessionError>,
    progress: Arc<SessionProgress>,
}

impl Output {
    fn new(writer: ChunkWriter, progress: &Arc<SessionProgress>) -> Self {
        Self { writer, failure: None, progress: Arc::clone(progress) }
    }

    /// What is to be handed over now: a full chunk, or a failure.
    fn due(&mut self) -> Option<Result<Option<Chunk>, SessionError>> {
        if self.writer.is_full() || self.failure.is_some() && !self.writer.is_empty() {
            return Some(Ok(self.rest()));
        }
        self.failure.take().map(Err)
    }

    /// The chunk begun, if there is one.
    fn rest(&mut self) -> Option<Chunk> {
        (!self.writer.is_empty()).then(|| {
            let chunk = self.writer.take_chunk();
            self.progress.sent(chunk.messages);
            chunk
        })
    }
}
