//! What waits on disk for a bus: the spill, and before it what a shutdown took out of memory.
//!
//! ```text
//! DIRECTORY/         the spill that producers append to
//! DIRECTORY/front/   a spill of its own: events that were in memory when the process ended
//! ```
//!
//! A spill only grows at its end, but at a shutdown the events in memory are older than those that
//! nobody has read from the spill yet. They go to the front, which is read first. Of what was read from
//! the spill and not settled, the shutdown moves a copy to the front too, in its place, and then marks
//! it as done in the spill: killed in between, it comes twice, never out of order.

use std::path::{Path, PathBuf};

use crate::event_batch::EventBatch;
use crate::spill::{Recovered, Spill, SpillError, SpillOptions, SpillPosition};

/// Bytes after which the next segment of a spill begins.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

/// The end of a batch in the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BacklogPosition {
    Front(SpillPosition),
    Spill(SpillPosition),
}

impl BacklogPosition {
    pub(crate) fn is_same_spill(self, other: Self) -> bool {
        matches!((self, other), (Self::Front(_), Self::Front(_)) | (Self::Spill(_), Self::Spill(_)))
    }
}

/// Batches on disk, oldest first.
#[derive(Debug)]
pub(crate) struct Backlog {
    directory: PathBuf,
    front: Spill,
    spill: Spill,
    /// The last batch that was read from the spill.
    read: Option<SpillPosition>,
}

impl Backlog {
    /// Takes the directory, with what an earlier process left in it.
    pub(crate) fn open(
        directory: &Path,
        max_bytes: u64,
    ) -> Result<(Self, [Recovered; 2]), SpillError> {
        let options = |directory: PathBuf, max_bytes| SpillOptions {
            directory,
            max_bytes,
            segment_bytes: SEGMENT_BYTES.min(max_bytes / 4).max(1),
        };
        let (spill, recovered) = Spill::open(options(directory.to_owned(), max_bytes))?;
        // What memory held fits on the disk or it does not; a limit would only lose it.
        let (front, before) = Spill::open(options(directory.join("front"), u64::MAX))?;
        let backlog = Self { directory: directory.to_owned(), front, spill, read: None };
        Ok((backlog, [before, recovered]))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Appends a batch behind all others.
    pub(crate) fn append(&mut self, batch: &EventBatch) -> Result<(), SpillError> {
        self.spill.append(batch)
    }

    /// The next batch, which stays until it is committed; nothing when all were read.
    pub(crate) fn next(&mut self) -> Result<Option<(EventBatch, BacklogPosition)>, SpillError> {
        if let Some(batch) = self.front.next()? {
            return Ok(Some((batch.batch, BacklogPosition::Front(batch.position))));
        }
        Ok(self.spill.next()?.map(|batch| {
            self.read = Some(batch.position);
            (batch.batch, BacklogPosition::Spill(batch.position))
        }))
    }

    /// Marks what was read up to a place as done.
    pub(crate) fn commit(&mut self, position: BacklogPosition) -> Result<(), SpillError> {
        match position {
            BacklogPosition::Front(position) => self.front.commit(position),
            BacklogPosition::Spill(position) => self.spill.commit(position),
        }
    }

    /// Keeps what a shutdown found in memory, oldest first; what came from the front is there already.
    pub(crate) fn keep(
        &mut self,
        batches: &[(EventBatch, Option<BacklogPosition>)],
    ) -> Result<(), SpillError> {
        let is_in_front = |position: &Option<BacklogPosition>| {
            matches!(position, Some(BacklogPosition::Front(_)))
        };
        for (batch, _) in batches.iter().filter(|(_, position)| !is_in_front(position)) {
            self.front.append(batch)?;
        }
        self.front.sync()?;
        if let Some(read) = self.read {
            self.spill.commit(read)?;
        }
        self.spill.sync()
    }

    /// Events that are not committed.
    pub(crate) fn events(&self) -> u64 {
        self.front.events() + self.spill.events()
    }

    /// Whether everything is committed.
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_empty() && self.spill.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload_case::PayloadCase;

    fn batch(text: &str) -> EventBatch {
        EventBatch::from_iter([(PayloadCase::Trade, text.as_bytes())])
    }

    fn rest(backlog: &mut Backlog) -> Vec<String> {
        let mut texts = Vec::new();
        while let Some((batch, _)) = backlog.next().unwrap() {
            texts.extend(batch.iter().map(|(_, bytes)| String::from_utf8(bytes.to_vec()).unwrap()));
        }
        texts
    }

    #[test]
    fn what_was_in_memory_comes_before_what_nobody_read() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Backlog::open(directory.path(), 1 << 20).unwrap().0;
        let mut backlog = open();
        for text in ["1", "2", "5", "6"] {
            backlog.append(&batch(text)).unwrap();
        }
        let (one, first) = backlog.next().unwrap().unwrap();
        let (two, second) = backlog.next().unwrap().unwrap();
        assert_eq!((one.len(), two.len()), (1, 1));
        backlog.commit(first).unwrap();
        // 3 and 4 were in memory: they are newer than 2 and older than 5 and 6.
        backlog.keep(&[(two, Some(second)), (batch("3"), None), (batch("4"), None)]).unwrap();
        drop(backlog);

        let mut backlog = open();
        assert_eq!(backlog.events(), 5);
        let (two, second) = backlog.next().unwrap().unwrap();
        // The next shutdown finds 2, which is in the front, not settled.
        backlog.keep(&[(two, Some(second))]).unwrap();
        drop(backlog);

        let mut backlog = open();
        assert_eq!(rest(&mut backlog), ["2", "3", "4", "5", "6"]);
        assert!(!backlog.is_empty());
        backlog.commit(BacklogPosition::Front(SpillPosition::default())).unwrap();
        assert_eq!(backlog.events(), 5);
    }
}
