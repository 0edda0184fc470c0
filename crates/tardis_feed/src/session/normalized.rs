//! Replays normalized messages of one or several streams.
//!
//! Streams are merged line by line before they are mapped: by the time of receipt, ties to the
//! earlier stream. All messages made from a line have its time, so this is the order of messages
//! too, and one writer numbers them.

use std::sync::Arc;

use bronze_core::BronzeEncoder;
use market_data::{Normalization, SentTypes, StreamPlan};

use super::line_reader::{LineReader, Ready, Segment, position_of};
use super::turns::{Bound, micros, next_turn};
use super::{Output, SessionError, SessionProgress};
use crate::error::FeedError;
use crate::line::Line;
use crate::minute::Minute;
use crate::output::{Chunk, ChunkWriter, Framing};
use crate::request::{NormalizedRequest, TimeRange};
use crate::stream::Archive;

/// How many blocks are mapped before others have their turn: a few milliseconds. To go on somewhere
/// else after every block costs more than it gives, since what a session keeps is then elsewhere.
const BLOCKS_A_TURN: u32 = 8;

/// A replay of normalized messages.
pub struct NormalizedSession {
    streams: Vec<Stream>,
    output: Output,
    /// Blocks that are left of its turn.
    turn: u32,
}

struct Stream {
    reader: LineReader,
    normalization: Normalization,
    /// The segment that the normalization is at.
    range: Option<TimeRange>,
    /// The time of the line that is next, if there is one at hand.
    head: Option<i64>,
    /// The time of the last message: that of a disconnect after it.
    last: i64,
    has_ended: bool,
}

impl NormalizedSession {
    /// A session that answers `requests`, merged into one. With an encoder, chunks have events too.
    /// Nothing is fetched before the first chunk is asked for.
    pub fn open(
        archive: &Archive,
        requests: Vec<NormalizedRequest>,
        framing: Framing,
        encoder: Option<BronzeEncoder>,
        progress: &Arc<SessionProgress>,
    ) -> Result<Self, FeedError> {
        let sent: Vec<SentTypes> = requests
            .iter()
            .map(|request| {
                let same = requests.iter().filter(|other| other.exchange.id == request.exchange.id);
                SentTypes::of(same.flat_map(|other| &other.data_types))
            })
            .collect();
        let streams = requests
            .into_iter()
            .zip(sent)
            .map(|(request, sent_types)| Stream::new(archive, request, sent_types, progress))
            .collect::<Result<_, _>>()?;
        let output = Output::new(ChunkWriter::new(framing, encoder), progress);
        Ok(Self { streams, output, turn: BLOCKS_A_TURN })
    }

    /// The next piece of output; `None` at the end. The call may be given up and made again.
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>, SessionError> {
        loop {
            if let Some(due) = self.output.due() {
                return due;
            }
            for stream in &mut self.streams {
                match stream.ready(!self.output.writer.is_empty()).await {
                    Ok(true) => {}
                    Ok(false) => return Ok(self.output.rest()),
                    Err(failure) => {
                        self.output.failure = Some(failure);
                        break;
                    }
                }
            }
            if self.output.failure.is_some() {
                continue;
            }
            let Some((turn, bound)) = next_turn(self.streams.iter().map(|stream| stream.head))
            else {
                return Ok(self.output.rest());
            };
            if let Err(failure) = self.streams[turn].write_lines(bound, &mut self.output.writer) {
                self.output.failure = Some(failure);
            }
            if self.streams[turn].head.is_none() {
                self.turn -= 1;
                if self.turn == 0 {
                    self.turn = BLOCKS_A_TURN;
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

impl Stream {
    fn new(
        archive: &Archive,
        request: NormalizedRequest,
        sent_types: SentTypes,
        progress: &Arc<SessionProgress>,
    ) -> Result<Self, FeedError> {
        let terms = request.terms;
        let plan = StreamPlan {
            exchange: request.exchange,
            symbols: request.symbols,
            data_types: request.data_types,
            with_disconnects: request.with_disconnect_messages,
            sent_types,
        };
        let segments = segments(&plan, terms.range);
        let archive = archive.for_request(terms.api_key, terms.auto_cleanup)?;
        let (id, wait) = (plan.exchange.id, terms.wait_minutes);
        Ok(Self {
            reader: LineReader::new(archive, id, wait, segments, progress),
            normalization: Normalization::new(plan, Some(terms.range.from.start())),
            range: None,
            head: None,
            last: i64::MIN,
            has_ended: false,
        })
    }

    /// Sees to it that the next line is known, unless there is none. With `or_not` it does not wait
    /// and says `false` instead.
    async fn ready(&mut self, or_not: bool) -> Result<bool, SessionError> {
        if self.has_ended || self.head.is_some() {
            return Ok(true);
        }
        match self.reader.ready(or_not).await? {
            Ready::NotYet => return Ok(false),
            Ready::End => self.has_ended = true,
            Ready::Lines => {
                let range = self.reader.range();
                if let Some(range) = range.filter(|range| self.range != Some(*range))
                    && self.range.replace(range).is_some()
                {
                    self.normalization.begin_segment(Some(range.from.start()));
                }
                let next = self.reader.lines().and_then(|(_, mut lines)| lines.next());
                self.head = match next {
                    Some(Ok(Line::Message { time, .. })) => Some(micros(time)),
                    // The failure is told in its turn.
                    Some(Ok(Line::Disconnect) | Err(_)) => Some(self.last),
                    None => None,
                };
            }
        }
        Ok(true)
    }

    /// Maps lines until the block ends, the chunk is full or it is another stream's turn.
    fn write_lines(&mut self, bound: Bound, writer: &mut ChunkWriter) -> Result<(), SessionError> {
        self.head = None;
        let Some((block, mut lines)) = self.reader.lines() else { return Ok(()) };
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
                    if let Err(error) = self.normalization.message(message, time, writer) {
                        let slice = Arc::clone(block.slice());
                        let line = lines.number();
                        outcome = Err(SessionError::Map { slice, line, error });
                    }
                }
                Some(Ok(Line::Disconnect)) => {
                    if bound.is_before(self.last) {
                        self.head = Some(self.last);
                        break;
                    }
                    self.normalization.disconnect(writer);
                }
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
        self.reader.go_on_at(position);
        outcome
    }
}

/// The range, cut where a way of mapping ends.
fn segments(plan: &StreamPlan, range: TimeRange) -> Vec<Segment> {
    let switches = plan.exchange.switch_times(plan.kinds()).into_iter().filter_map(Minute::of);
    let inside = switches.filter(|minute| range.from < *minute && *minute < range.to);
    let mut from = range.from;
    inside
        .chain([range.to])
        .map(|to| {
            let segment = TimeRange { from, to };
            from = to;
            Segment { filters: plan.filters(Some(segment.from.start())), range: segment }
        })
        .collect()
}
