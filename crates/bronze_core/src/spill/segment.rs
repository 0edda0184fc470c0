//! One segment of a spill: its name, its file, and moving corrupt records out of it.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::record_file::{FILE_HEADER_BYTES, RecordFileError};

const EXTENSION: &str = ".spill";
/// Names sort like their numbers.
const DIGITS: usize = 20;

/// A segment with something that is not committed.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// Everything before this place is done.
    pub(super) committed: u64,
    /// Where its last good record ends.
    pub(super) len: u64,
    /// Events behind `committed`.
    pub(super) events: u64,
}

impl Segment {
    pub(super) fn delete(self) -> Result<(), RecordFileError> {
        delete(&self.path)
    }
}

pub(super) fn delete(path: &Path) -> Result<(), RecordFileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(RecordFileError::io("delete", path)(error))
        }
        _ => Ok(()),
    }
}

pub(super) fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:0DIGITS$}{EXTENSION}"))
}

/// The numbers and paths of all segments of a directory, oldest first.
pub(super) fn list(directory: &Path) -> Result<Vec<(u64, PathBuf)>, RecordFileError> {
    let read = || -> io::Result<Vec<_>> {
        let mut segments = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let digits = name.to_str().and_then(|name| name.strip_suffix(EXTENSION));
            let digits = digits.filter(|digits| digits.len() == DIGITS);
            if let Some(number) = digits.and_then(|digits| digits.parse().ok()) {
                segments.push((number, entry.path()));
            }
        }
        segments.sort_unstable();
        Ok(segments)
    };
    read().map_err(RecordFileError::io("list", directory))
}

/// Cuts a segment at `offset`; deletes it where no record is left.
pub(super) fn cut(path: &Path, offset: u64) -> Result<(), RecordFileError> {
    if offset <= FILE_HEADER_BYTES as u64 {
        return delete(path);
    }
    let set_len = || File::options().write(true).open(path)?.set_len(offset);
    set_len().map_err(RecordFileError::io("cut", path))
}

/// Moves what is behind `offset` into a new file, whose path it returns. A process that is killed
/// meanwhile leaves the bytes in one of the two files or in both, never in none.
pub(super) fn set_aside(
    segment: &Path,
    number: u64,
    offset: u64,
) -> Result<PathBuf, RecordFileError> {
    let mut moved_to = segment.with_file_name(format!("{number:0DIGITS$}-at-{offset}.corrupt"));
    let mut copies = 1;
    while moved_to.exists() {
        copies += 1;
        let name = format!("{number:0DIGITS$}-at-{offset}-{copies}.corrupt");
        moved_to = segment.with_file_name(name);
    }
    let temporary = segment.with_file_name("corrupt.tmp");
    let copy = || -> io::Result<()> {
        let mut from = File::open(segment)?;
        from.seek(SeekFrom::Start(offset))?;
        let mut to = File::create(&temporary)?;
        io::copy(&mut from, &mut to)?;
        to.sync_all()?;
        fs::rename(&temporary, &moved_to)
    };
    copy().map_err(RecordFileError::io("write", &moved_to))?;
    cut(segment, offset)?;
    Ok(moved_to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_segments_are_listed_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for number in [100, 2, 30] {
            File::create(path(directory.path(), number)).unwrap();
        }
        for name in ["lock", "cursor", "7.spill", "00000000000000000007-at-16.corrupt"] {
            File::create(directory.path().join(name)).unwrap();
        }
        let numbers = list(directory.path()).unwrap().into_iter().map(|(number, _)| number);
        assert_eq!(numbers.collect::<Vec<_>>(), [2, 30, 100]);
    }

    #[test]
    fn setting_aside_twice_at_one_place_keeps_both() {
        let directory = tempfile::tempdir().unwrap();
        let segment = path(directory.path(), 1);
        for behind in ["first", "second"] {
            fs::write(&segment, format!("sixteen bytes...+{behind}")).unwrap();
            let moved_to = set_aside(&segment, 1, 17).unwrap();
            assert_eq!(fs::read_to_string(moved_to).unwrap(), behind);
            assert_eq!(fs::read_to_string(&segment).unwrap(), "sixteen bytes...+");
        }
    }
}
