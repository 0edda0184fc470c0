//! What can go wrong with a spill.

use std::path::PathBuf;

use thiserror::Error;

use crate::record_file::RecordFileError;

/// Records of a segment that cannot be read, and were kept in a file of their own.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "{} is corrupt: {bytes} bytes with {events} events that were not delivered are kept in {}",
    segment.display(),
    moved_to.display()
)]
pub struct SetAside {
    /// The segment they were in.
    pub segment: PathBuf,
    /// The file they are in now, without the header of a file of records.
    pub moved_to: PathBuf,
    /// Their bytes.
    pub bytes: u64,
    /// How many events were not committed among them.
    pub events: u64,
}

/// A failure of the spill.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SpillError {
    /// The batch does not fit until others are committed.
    #[error("the spill is full: it may hold {limit} bytes")]
    Full {
        /// The bytes it may hold.
        limit: u64,
    },
    /// The batch would not even fit into an empty spill.
    #[error(
        "a batch that takes {bytes} bytes on disk never fits into a spill of {limit} bytes; make \
         batches smaller or the spill larger"
    )]
    TooLarge {
        /// What the batch takes, with the header of its segment.
        bytes: u64,
        /// The bytes the spill may hold.
        limit: u64,
    },
    /// Corrupt records were taken out of the spill.
    #[error(transparent)]
    SetAside(#[from] SetAside),
    /// A file or directory of the spill failed.
    #[error(transparent)]
    File(#[from] RecordFileError),
}
