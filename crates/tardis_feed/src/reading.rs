//! Reading one slice after another into the queue of blocks.
//!
//! Reading is work for the blocking pool, but it never waits there: it goes on as long as the queue
//! has room and the slice has text, then gives its thread back. So any number of streams with slow
//! readers take no threads, only their share of memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::spawn_blocking;

use crate::block::{Block, BlockReader, BufferPool, ReadFault, ReadSoFar};
use crate::decompress::{self, ZstdDecoder};
use crate::download::stopped;
use crate::error::FeedError;
use crate::options::Compression;
use crate::progress::Progress;
use crate::slice::{SliceFile, SliceId};

/// How many bytes of blocks wait, and room for more.
#[derive(Debug)]
pub(crate) struct Backlog {
    waiting: AtomicUsize,
    limit: usize,
    room: Notify,
}

impl Backlog {
    pub(crate) fn new(limit: usize) -> Self {
        Self { waiting: AtomicUsize::new(0), limit: limit.max(1), room: Notify::new() }
    }

    fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < self.limit
    }

    fn added(&self, bytes: usize) {
        self.waiting.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(crate) fn taken(&self, bytes: usize) {
        let before = self.waiting.fetch_sub(bytes, Ordering::AcqRel);
        if before - bytes <= self.limit / 2 {
            self.room.notify_one();
        }
    }

    /// Waits until half of it is free: a reader that is called for every block runs mostly errands.
    async fn wait_for_room(&self) {
        while self.waiting.load(Ordering::Acquire) > self.limit / 2 {
            self.room.notified().await;
        }
    }
}

/// What the queue holds.
#[derive(Debug)]
pub(crate) enum Item {
    Block(Block),
    Error(FeedError),
    /// The range is complete.
    End,
}

/// Where blocks go.
#[derive(Clone)]
pub(crate) struct BlockQueue {
    pub(crate) sender: UnboundedSender<Item>,
    pub(crate) backlog: Arc<Backlog>,
    pub(crate) pool: Arc<BufferPool>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stopped: Arc<AtomicBool>,
    pub(crate) max_line_bytes: usize,
    /// The decoder of the slice before.
    pub(crate) decoder: Arc<Mutex<Option<ZstdDecoder>>>,
}

/// How the reading of a slice ended.
#[derive(Debug)]
pub(crate) enum SliceEnd {
    /// All of it is in the queue.
    Complete,
    /// The file is not good from some place on.
    Damaged { slice: Arc<SliceId>, reason: String, so_far: ReadSoFar },
}

enum Hop {
    NoRoom,
    End,
}

impl BlockQueue {
    /// Reads a slice into the queue. `so_far` is what the queue already got of it from another copy.
    pub(crate) async fn read(
        &self,
        slice: SliceId,
        file: &SliceFile,
        so_far: ReadSoFar,
    ) -> Result<SliceEnd, FeedError> {
        let slice = Arc::new(slice);
        let compression = file.compression;
        let mut reader = None;
        loop {
            self.backlog.wait_for_room().await;
            let (queue, of) = (self.clone(), Arc::clone(&slice));
            let hop = spawn_blocking(move || {
                let mut opened = match reader {
                    Some(reader) => reader,
                    None => match queue.open(&of, compression, so_far)? {
                        Ok(reader) => reader,
                        Err(fault) => return Ok((None, Err(fault))),
                    },
                };
                let hop = queue.fill(&mut opened);
                Ok((Some(opened), hop))
            });
            let (back, hop) = hop.await.map_err(|error| stopped(&error))??;
            match hop {
                Ok(Hop::NoRoom) => reader = back,
                Ok(Hop::End) => {
                    *self.spare_decoder() = back.and_then(BlockReader::into_decoder);
                    return Ok(SliceEnd::Complete);
                }
                Err(ReadFault::Damaged(reason)) => {
                    let so_far = back.map_or(so_far, |reader| reader.so_far());
                    return Ok(SliceEnd::Damaged { slice, reason, so_far });
                }
                Err(ReadFault::LineTooLong { line }) => {
                    let (slice, limit) = (SliceId::clone(&slice), self.max_line_bytes);
                    return Err(FeedError::LineTooLong { slice, line, limit });
                }
            }
        }
    }

    fn spare_decoder(&self) -> MutexGuard<'_, Option<ZstdDecoder>> {
        self.decoder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(
        &self,
        slice: &Arc<SliceId>,
        compression: Compression,
        so_far: ReadSoFar,
    ) -> Result<Result<BlockReader, ReadFault>, FeedError> {
        let source = match decompress::open(&slice.path, compression, &mut self.spare_decoder()) {
            Ok(source) => source,
            Err(error) => return classify_open(slice, error).map(Err),
        };
        let pool = Arc::clone(&self.pool);
        let mut reader = BlockReader::new(source, Arc::clone(slice), pool, self.max_line_bytes);
        match reader.skip(so_far) {
            Ok(true) => Ok(Ok(reader)),
            Ok(false) => Err(FeedError::Damaged {
                slice: SliceId::clone(slice),
                reason: "it was replaced by another while it was read".to_owned(),
                consequence: "the cache now holds a good one; start this replay again",
            }),
            Err(fault) => Ok(Err(fault)),
        }
    }

    /// Reads until there is no room, no more text, or nobody who wants it.
    fn fill(&self, reader: &mut BlockReader) -> Result<Hop, ReadFault> {
        while self.backlog.has_room() {
            if self.stopped.load(Ordering::Relaxed) {
                return Ok(Hop::End);
            }
            let block = reader.next_block()?;
            let length = block.as_ref().map_or(0, |block| block.text().len());
            self.progress.read(reader.newly_compressed(), length);
            let Some(block) = block else { return Ok(Hop::End) };
            self.backlog.added(block.memory());
            if self.sender.send(Item::Block(block)).is_err() {
                return Ok(Hop::End);
            }
        }
        Ok(Hop::NoRoom)
    }
}

/// A file that is gone or has no beginning can be replaced; one that may not be read cannot.
fn classify_open(slice: &SliceId, error: std::io::Error) -> Result<ReadFault, FeedError> {
    use std::io::ErrorKind::{InvalidData, NotFound, UnexpectedEof};
    match error.kind() {
        NotFound => Ok(ReadFault::Damaged("its file is gone".to_owned())),
        UnexpectedEof | InvalidData => Ok(ReadFault::Damaged(error.to_string())),
        _ => Err(FeedError::Disk { action: "read", path: slice.path.clone(), source: error }),
    }
}
