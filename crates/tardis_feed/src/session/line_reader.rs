//! The lines of a stream, segment after segment, and how far they are read.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use market_data::Filter;

use super::SessionProgress;
use crate::block::Block;
use crate::error::FeedError;
use crate::line::Lines;
use crate::options::SliceRange;
use crate::request::{RawRequest, TimeRange};
use crate::stream::{Archive, SliceStream};

/// A part of a stream's range, and what is asked for in it.
pub(super) struct Segment {
    pub(super) range: TimeRange,
    pub(super) filters: Vec<Filter>,
}

/// Whether a reader has lines.
pub(super) enum Ready {
    /// It has.
    Lines,
    /// It has none now, and its caller did not want to wait.
    NotYet,
    /// There are no more.
    End,
}

/// How much of a block is read.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    offset: usize,
    /// The number of the line given last.
    number: usize,
}

pub(super) struct LineReader {
    archive: Archive,
    exchange: &'static str,
    wait_minutes: Option<u32>,
    segments: VecDeque<Segment>,
    progress: Arc<SessionProgress>,
    stream: Option<SliceStream>,
    /// The segment that the lines belong to.
    range: Option<TimeRange>,
    block: Option<Block>,
    position: Position,
}

impl LineReader {
    pub(super) fn new(
        archive: Archive,
        exchange: &'static str,
        wait_minutes: Option<u32>,
        segments: impl IntoIterator<Item = Segment>,
        progress: &Arc<SessionProgress>,
    ) -> Self {
        Self {
            archive,
            exchange,
            wait_minutes,
            segments: segments.into_iter().collect(),
            progress: Arc::clone(progress),
            stream: None,
            range: None,
            block: None,
            position: Position::default(),
        }
    }

    /// The lines that a raw request asks for: all of its range is one segment.
    pub(super) fn of_raw(
        archive: &Archive,
        request: RawRequest,
        progress: &Arc<SessionProgress>,
    ) -> Result<Self, FeedError> {
        let RawRequest { exchange, filters, terms, .. } = request;
        let archive = archive.for_request(terms.api_key, terms.auto_cleanup)?;
        let segments = [Segment { range: terms.range, filters }];
        Ok(Self::new(archive, exchange, terms.wait_minutes, segments, progress))
    }

    /// Sees to it that there are lines to read, unless there are no more. With `or_not` it does not
    /// wait for them.
    pub(super) async fn ready(&mut self, or_not: bool) -> Result<Ready, FeedError> {
        loop {
            if let Some(block) = &self.block {
                if self.position.offset < block.text().len() {
                    return Ok(Ready::Lines);
                }
                self.block = None;
            }
            if self.stream.is_none() {
                self.open_next()?;
            }
            let Some(stream) = &mut self.stream else { return Ok(Ready::End) };
            let next = if or_not {
                match stream.next_block().now_or_never() {
                    Some(next) => next,
                    None => return Ok(Ready::NotYet),
                }
            } else {
                stream.next_block().await
            };
            match next.transpose()? {
                Some(block) => {
                    self.position = Position { offset: 0, number: block.first_line() - 1 };
                    self.block = Some(block);
                }
                None => self.stream = None,
            }
        }
    }

    /// The segment that the lines belong to.
    pub(super) fn range(&self) -> Option<TimeRange> {
        self.range
    }

    /// The block that is read, and its lines that are left.
    pub(super) fn lines(&self) -> Option<(&Block, Lines<'_>)> {
        let block = self.block.as_ref()?;
        let Position { offset, number } = self.position;
        Some((block, Lines::numbered(&block.text()[offset..], number + 1)))
    }

    /// Goes on at `position`, which [`position_of`] gave.
    pub(super) fn go_on_at(&mut self, position: Position) {
        self.position = position;
    }

    /// Opens the stream of the next segment, if there is one.
    fn open_next(&mut self) -> Result<(), FeedError> {
        if let Some(segment) = self.segments.pop_front() {
            let TimeRange { from, to } = segment.range;
            self.range = Some(segment.range);
            let stream = self.archive.open(SliceRange {
                exchange: self.exchange.to_owned(),
                from,
                to,
                filters: segment.filters,
                wait_when_data_not_yet_available: self.wait_minutes,
            })?;
            self.progress.add(stream.progress());
            self.stream = Some(stream);
        }
        Ok(())
    }
}

/// How much of `block` is read when `lines` of it are left.
pub(super) fn position_of(block: &Block, lines: &Lines<'_>) -> Position {
    Position { offset: block.text().len() - lines.rest().len(), number: lines.number() }
}
