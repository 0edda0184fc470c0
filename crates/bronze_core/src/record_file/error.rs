//! What can go wrong with a file of records.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::VERSION;

/// A failure at a file of records.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordFileError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Another process writes there.
    #[error(
        "{} is in use by another process; stop that process or configure another path",
        path.display()
    )]
    Locked {
        /// The file or directory.
        path: PathBuf,
    },
    /// A later version of the program wrote the file.
    #[error(
        "{} has version {found}, this program reads version {VERSION}; use the program that wrote \
         it, or move the file away",
        path.display()
    )]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// The end of the file is the beginning of a record: its writer was stopped.
    #[error(
        "{} ends within a record: {good_bytes} bytes are complete, {bytes_behind} bytes behind them \
         are not",
        path.display()
    )]
    Torn {
        /// The file.
        path: PathBuf,
        /// Where the last complete record ends.
        good_bytes: u64,
        /// How many bytes follow.
        bytes_behind: u64,
    },
    /// A record is not what was written.
    #[error(
        "{} is corrupt: {good_bytes} bytes are good, {bytes_behind} bytes behind them cannot be read",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the last good record ends.
        good_bytes: u64,
        /// How many bytes follow.
        bytes_behind: u64,
    },
    /// More than a record can hold.
    #[error("a record of {} cannot hold 4 GiB; make batches smaller", path.display())]
    RecordTooLarge {
        /// The file or directory that was written to.
        path: PathBuf,
    },
}

impl RecordFileError {
    /// Gives an I/O error its place.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}
