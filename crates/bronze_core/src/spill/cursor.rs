//! The cursor of a spill: up to where it is done.
//!
//! ```text
//! magic "BRONZCUR", u64 segment, u64 offset, u32 CRC-32C of those 24 bytes; little-endian
//! ```
//!
//! The file is written under another name and renamed, so a reader sees the old one or the new one,
//! whole. One that cannot be read is as none: what was committed may then come again, and nothing is
//! skipped.

use std::fs;
use std::io;
use std::path::Path;

use super::SpillPosition;
use crate::record_file::RecordFileError;

const MAGIC: [u8; 8] = *b"BRONZCUR";

/// What a directory says about how far it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cursor {
    /// Nothing: there was no commit yet.
    Missing,
    /// Something that is no cursor.
    Unreadable,
    /// Everything up to here is done.
    At(SpillPosition),
}

pub(super) fn write(directory: &Path, done: SpillPosition) -> Result<(), RecordFileError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&done.segment.to_le_bytes());
    bytes.extend_from_slice(&done.offset.to_le_bytes());
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
    let path = directory.join("cursor");
    let temporary = directory.join("cursor.tmp");
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, &path))
        .map_err(RecordFileError::io("write", &path))
}

pub(super) fn read(directory: &Path) -> Result<Cursor, RecordFileError> {
    let path = directory.join("cursor");
    match fs::read(&path) {
        Ok(bytes) => Ok(parse(&bytes).map_or(Cursor::Unreadable, Cursor::At)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Cursor::Missing),
        Err(error) => Err(RecordFileError::io("read", &path)(error)),
    }
}

fn parse(bytes: &[u8]) -> Option<SpillPosition> {
    let (content, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (segment, offset) = content.strip_prefix(&MAGIC)?.split_first_chunk()?;
    let segment = u64::from_le_bytes(*segment);
    Some(SpillPosition { segment, offset: u64::from_le_bytes(offset.try_into().ok()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_cursor_written_is_read() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(directory.path()).unwrap(), Cursor::Missing);
        for offset in [5, u64::MAX, 3] {
            let done = SpillPosition { segment: 7, offset };
            write(directory.path(), done).unwrap();
            assert_eq!(read(directory.path()).unwrap(), Cursor::At(done));
        }
    }

    #[test]
    fn a_changed_or_cut_cursor_is_none() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), SpillPosition { segment: 7, offset: 5 }).unwrap();
        let path = directory.path().join("cursor");
        let bytes = fs::read(&path).unwrap();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            for damaged in [&changed[..], &bytes[..place]] {
                fs::write(&path, damaged).unwrap();
                assert_eq!(read(directory.path()).unwrap(), Cursor::Unreadable);
            }
        }
    }
}
