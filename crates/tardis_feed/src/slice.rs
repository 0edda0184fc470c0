//! A slice of the archive: the messages of one exchange in one or more minutes, as a file.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::minute::Minute;
use crate::options::Compression;

/// Which slice lines came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceId {
    /// The exchange.
    pub exchange: String,
    /// The first minute.
    pub minute: Minute,
    /// How many minutes it covers.
    pub minutes: u32,
    /// The file.
    pub path: PathBuf,
}

impl fmt::Display for SliceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exchange, minute, path, .. } = self;
        write!(formatter, "the slice of {exchange} at {minute} ({})", path.display())
    }
}

/// The file of a slice, ready to be read.
#[derive(Debug)]
pub(crate) struct SliceFile {
    pub(crate) path: PathBuf,
    pub(crate) minutes: u32,
    pub(crate) compression: Compression,
    /// Removed with this value: once it is read, or when its stream goes away.
    pub(crate) temporary: bool,
}

impl Drop for SliceFile {
    fn drop(&mut self) {
        if self.temporary {
            remove_with_empty_folders(&self.path);
        }
    }
}

/// Removes a slice, and the folders of its hour, day, month and year that hold nothing else.
fn remove_with_empty_folders(path: &Path) {
    // Another stream may have been faster, or be writing there: then the folder stays.
    let _ = fs::remove_file(path);
    for folder in path.ancestors().skip(1).take(4) {
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}
