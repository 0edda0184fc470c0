//! The spill: batches that wait on disk for one bus, first in, first out.
//!
//! A directory holds
//!
//! ```text
//! lock                        locked by the process that uses the directory
//! NUMBER.spill                segments, oldest first; their layout is that of `record_file`
//! cursor                      how far the oldest segment is done; see `spill::cursor`
//! NUMBER-at-OFFSET.corrupt    what could not be read, kept for people; not counted, never deleted
//! ```
//!
//! Invariants
//! - One process at a time: the lock goes with the process, also when it is killed.
//! - A segment's number is never used again, not even when all segments are gone: the cursor keeps the
//!   last one. A cursor therefore never skips records that were written after it.
//! - Only the last segment grows, and only while the process that created it lives. A restart begins
//!   a new one.
//! - A commit is the renaming of the cursor file; deleting what it made superfluous comes after. A
//!   process that is killed in between deletes it when it starts again. So what was committed does
//!   not come again, and what was appended and not committed does, in order.
//! - The segments together never exceed `max_bytes`. The done part of the oldest one counts until
//!   that segment is deleted.
//! - Nothing that was appended is deleted before it is committed: what is corrupt is moved aside.
//!   Only a torn end is cut, which no one was told is kept.
//!
//! Durability: an append is in the page cache when it returns, so it survives the end of the process,
//! SIGKILL included, but not a power failure. A segment is synchronised to the disk when the next one
//! begins, and the last one by [`Spill::sync`]. The cursor is not synchronised: after a power failure,
//! what was committed since may come again.

mod cursor;
mod error;
mod recover;
mod segment;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::PathBuf;

use crate::event_batch::EventBatch;
use crate::record_file::{
    self, FILE_HEADER_BYTES, RecordFileError, RecordReader, Unread, append_whole, encode_record,
    file_header, sync_directory,
};
use segment::Segment;

pub use error::{SetAside, SpillError};
pub use recover::Recovered;

/// Where a spill is and how large it may become.
#[derive(Clone, Debug)]
pub struct SpillOptions {
    /// Its own directory; made if it is missing.
    pub directory: PathBuf,
    /// Bytes of all segments together.
    pub max_bytes: u64,
    /// Bytes after which the next segment begins. A larger batch has a segment of its own.
    pub segment_bytes: u64,
}

/// The end of a batch in its spill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpillPosition {
    segment: u64,
    offset: u64,
}

/// A batch that was read and waits for its commit.
#[derive(Clone, Debug)]
pub struct SpilledBatch {
    /// The events, in the order in which they were appended.
    pub batch: EventBatch,
    /// What to commit once they are delivered.
    pub position: SpillPosition,
}

/// A batch that was read and is not committed.
#[derive(Debug)]
struct HandedOut {
    end: SpillPosition,
    events: u64,
}

/// Batches that wait on disk for one bus.
#[derive(Debug)]
pub struct Spill {
    options: SpillOptions,
    /// Oldest first, each with something that is not committed.
    segments: VecDeque<Segment>,
    /// The last segment's file, while it may grow.
    writer: Option<File>,
    next_number: u64,
    /// Where the next record is read; what is committed is skipped.
    read_position: SpillPosition,
    /// Of the segment and at the place of `read_position`.
    reader: Option<RecordReader>,
    /// What was read since the last commit, also before a rewind.
    handed_out: VecDeque<HandedOut>,
    /// How many of `handed_out` were read since the rewind.
    read_since_rewind: usize,
    /// A file header and the record that is being appended.
    scratch: Vec<u8>,
    /// Locked until it is closed.
    _lock: File,
}

impl Spill {
    /// Takes the directory and recovers what an earlier process left in it.
    pub fn open(options: SpillOptions) -> Result<(Self, Recovered), SpillError> {
        let directory = &options.directory;
        fs::create_dir_all(directory).map_err(RecordFileError::io("create", directory))?;
        let lock_path = directory.join("lock");
        let lock = File::options().create(true).append(true).open(&lock_path);
        let lock = lock.map_err(RecordFileError::io("open", &lock_path))?;
        record_file::lock(&lock, &lock_path, directory)?;
        let found = recover::recover(directory)?;
        let spill = Self {
            options,
            segments: found.segments,
            writer: None,
            next_number: found.next_number,
            read_position: SpillPosition::default(),
            reader: None,
            handed_out: VecDeque::new(),
            read_since_rewind: 0,
            scratch: Vec::new(),
            _lock: lock,
        };
        Ok((spill, found.recovered))
    }

    /// Appends a batch behind all others; an empty one leaves no trace. After an error nothing was
    /// appended.
    pub fn append(&mut self, batch: &EventBatch) -> Result<(), SpillError> {
        self.scratch.clear();
        self.scratch.extend_from_slice(&file_header());
        let events = encode_record(&mut self.scratch, "", batch.iter()).map_err(|_| {
            RecordFileError::RecordTooLarge { path: self.options.directory.clone() }
        })?;
        if events == 0 {
            return Ok(());
        }
        let limit = self.options.max_bytes;
        let file_bytes = self.scratch.len() as u64;
        if file_bytes > limit {
            return Err(SpillError::TooLarge { bytes: file_bytes, limit });
        }
        let record_bytes = file_bytes - FILE_HEADER_BYTES as u64;
        let fits = |segment: &Segment| segment.len + record_bytes <= self.options.segment_bytes;
        let grows = self.writer.is_some() && self.segments.back().is_some_and(fits);
        let added = if grows { record_bytes } else { file_bytes };
        if self.disk_bytes().saturating_add(added) > limit {
            return Err(SpillError::Full { limit });
        }
        if grows { self.grow_last(events) } else { self.begin_segment(events) }
    }

    fn grow_last(&mut self, events: u64) -> Result<(), SpillError> {
        let (Some(file), Some(segment)) = (self.writer.as_mut(), self.segments.back_mut()) else {
            return Ok(());
        };
        let record = &self.scratch[FILE_HEADER_BYTES..];
        if let Err(failure) = append_whole(file, segment.len, record) {
            if !failure.restored {
                self.writer = None;
            }
            return Err(RecordFileError::io("append to", &segment.path)(failure.source).into());
        }
        segment.len += record.len() as u64;
        segment.events += events;
        Ok(())
    }

    fn begin_segment(&mut self, events: u64) -> Result<(), SpillError> {
        self.sync()?;
        self.writer = None;
        let number = self.next_number;
        let path = segment::path(&self.options.directory, number);
        let file = File::options().create_new(true).append(true).open(&path);
        let mut file = file.map_err(RecordFileError::io("create", &path))?;
        self.next_number += 1;
        if let Err(failure) = append_whole(&mut file, 0, &self.scratch) {
            // Where this fails too, the file is empty or torn, and the next start removes it.
            let _ = fs::remove_file(&path);
            return Err(RecordFileError::io("append to", &path)(failure.source).into());
        }
        self.writer = Some(file);
        let len = self.scratch.len() as u64;
        let committed = FILE_HEADER_BYTES as u64;
        self.segments.push_back(Segment { number, path, committed, len, events });
        Ok(())
    }

    /// The next batch, which stays in the spill until it is committed; nothing when all were read.
    ///
    /// [`SpillError::SetAside`] says that what came next is corrupt and was moved aside; the spill
    /// goes on behind it.
    #[expect(clippy::should_implement_trait, reason = "an iterator would end at the first `None`")]
    pub fn next(&mut self) -> Result<Option<SpilledBatch>, SpillError> {
        let Some(index) = self.segment_to_read() else { return Ok(None) };
        let segment = &self.segments[index];
        let number = segment.number;
        let offset = self.read_position.offset;
        let read = match self.reader.take() {
            Some(reader) => Ok(reader),
            None => RecordReader::open_at(&segment.path, offset),
        };
        let read = read.and_then(|mut reader| {
            reader.set_limit(segment.len);
            Ok((reader.read()?, reader))
        });
        match read {
            Ok((Some(record), reader)) => {
                let end = SpillPosition { segment: number, offset: reader.position() };
                self.reader = Some(reader);
                self.read_position = end;
                if self.read_since_rewind == self.handed_out.len() {
                    let events = record.batch.len() as u64;
                    self.handed_out.push_back(HandedOut { end, events });
                }
                self.read_since_rewind += 1;
                Ok(Some(SpilledBatch { batch: record.batch, position: end }))
            }
            Ok((None, _)) => Ok(None),
            Err(Unread::Damaged(_)) => Err(self.set_aside_from(index, offset)?.into()),
            Err(unread) => Err(unread.at(&segment.path).into()),
        }
    }

    /// The segment that has something to read, with `read_position` in it.
    fn segment_to_read(&mut self) -> Option<usize> {
        let mut index =
            self.segments.partition_point(|segment| segment.number < self.read_position.segment);
        loop {
            let segment = self.segments.get(index)?;
            if segment.number != self.read_position.segment {
                self.reader = None;
                self.read_position = SpillPosition { segment: segment.number, offset: 0 };
            }
            if self.read_position.offset < segment.committed {
                self.reader = None;
                self.read_position.offset = segment.committed;
            }
            if self.read_position.offset < segment.len {
                return Some(index);
            }
            index += 1;
        }
    }

    /// Moves a segment's records from `offset` on out of the spill.
    fn set_aside_from(&mut self, index: usize, offset: u64) -> Result<SetAside, SpillError> {
        let read = self.read_since_rewind;
        let segment = &mut self.segments[index];
        let number = segment.number;
        let of_segment = |handed_out: &&HandedOut| handed_out.end.segment == number;
        let before = self.handed_out.iter().take(read).filter(of_segment);
        let kept_events = before.map(|handed_out| handed_out.events).sum();
        let bytes = segment.len - offset;
        let moved_to = segment::set_aside(&segment.path, number, offset)?;
        let events = segment.events.saturating_sub(kept_events);
        let aside = SetAside { segment: segment.path.clone(), moved_to, bytes, events };
        segment.len = offset;
        segment.events = kept_events;
        if index + 1 == self.segments.len() {
            self.writer = None;
        }
        let emptied = if kept_events == 0 { self.segments.remove(index) } else { None };
        let mut place = 0;
        self.handed_out.retain(|handed_out| {
            place += 1;
            place <= read || handed_out.end.segment != number
        });
        emptied.map_or(Ok(()), Segment::delete)?;
        Ok(aside)
    }

    /// Marks all batches up to and including `position` as done. What was not read yet is not affected.
    ///
    /// After an error they are done for this process, and may come again after a restart.
    pub fn commit(&mut self, position: SpillPosition) -> Result<(), SpillError> {
        let mut done = None;
        while let Some(batch) = pop_front_if(&mut self.handed_out, |batch| batch.end <= position) {
            done = Some(batch.end);
            self.read_since_rewind = self.read_since_rewind.saturating_sub(1);
            if let Ok(index) =
                self.segments.binary_search_by_key(&batch.end.segment, |segment| segment.number)
            {
                let segment = &mut self.segments[index];
                segment.events = segment.events.saturating_sub(batch.events);
                segment.committed = batch.end.offset;
            }
        }
        let Some(done) = done else { return Ok(()) };
        // Deleting what is done makes room on a full disk, on which the cursor may fail.
        let written = cursor::write(&self.options.directory, done);
        self.delete_done()?;
        Ok(written?)
    }

    /// Deletes the segments of which all is committed.
    fn delete_done(&mut self) -> Result<(), SpillError> {
        let mut failed = None;
        while let Some(segment) = pop_front_if(&mut self.segments, |segment| segment.events == 0) {
            if self.segments.is_empty() {
                self.writer = None;
            }
            if segment.number == self.read_position.segment {
                self.reader = None;
            }
            failed = segment.delete().err().or(failed);
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Reads again what was read and not committed.
    pub fn rewind(&mut self) {
        self.read_position = SpillPosition::default();
        self.reader = None;
        self.read_since_rewind = 0;
    }

    /// Makes all that was appended survive a power failure.
    pub fn sync(&mut self) -> Result<(), SpillError> {
        if let (Some(file), Some(segment)) = (&self.writer, self.segments.back()) {
            file.sync_data().map_err(RecordFileError::io("synchronise", &segment.path))?;
            sync_directory(&self.options.directory)?;
        }
        Ok(())
    }

    /// Whether everything is committed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Events that are not committed.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.segments.iter().map(|segment| segment.events).sum()
    }

    /// Bytes of the records that are not committed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len - segment.committed).sum()
    }

    /// Bytes of all segments, which `max_bytes` limits.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len).sum()
    }
}

/// The deque's own method is younger than the oldest compiler this builds with.
fn pop_front_if<T>(deque: &mut VecDeque<T>, condition: impl FnOnce(&T) -> bool) -> Option<T> {
    deque.front().is_some_and(condition).then(|| deque.pop_front()).flatten()
}

#[cfg(test)]
mod tests;
