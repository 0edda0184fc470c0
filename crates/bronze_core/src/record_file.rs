//! Events on disk: the one file format of spill segments and dead letters.
//!
//! All numbers are little-endian.
//!
//! ```text
//! file   = magic "BRONZREC", u32 version, u32 CRC-32C of those twelve bytes, record*
//! record = u32 length of the body, u32 CRC-32C of the body, body
//! body   = u32 length of the reason, u32 number of events,
//!          reason (UTF-8; empty in a spill),
//!          per event: u16 field number of its payload case, u32 length,
//!          the events' bytes one after the other
//! ```
//!
//! Invariants
//! - A record holds at least one event, and its lengths add up to its body exactly. A stretch of
//!   zeros is therefore never a record, although its checksum would be right.
//! - A record is appended by one write, so a process that is killed leaves at most the beginning of
//!   one record, at the end. That is *torn*: nobody was told it was kept, and it may be cut off.
//! - Everything else that cannot be read is *corrupt*, and what is behind it may be good: it is never
//!   cut off. The table before the bytes tells the two apart: a wrong length contradicts it, where
//!   that of a torn record does not.
//! - No length is believed before it is known to fit into what the file holds.
//! - A case is kept as its field number, which never changes, not as its place in the enum.
//! - Every later version keeps the first sixteen bytes, so that an old program can say that a file
//!   is too new instead of calling it corrupt.

mod error;
mod read;

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use crate::payload_case::PayloadCase;

pub use error::RecordFileError;
pub(crate) use read::{Damage, RecordReader, Unread};

pub(crate) const MAGIC: [u8; 8] = *b"BRONZREC";
pub(crate) const VERSION: u32 = 1;
pub(crate) const FILE_HEADER_BYTES: usize = 16;
const RECORD_HEADER_BYTES: usize = 8;
/// The two lengths that a body begins with.
const BODY_HEADER_BYTES: usize = 8;
/// An event's line in the table.
const TABLE_ENTRY_BYTES: usize = 6;

/// A record's number of bytes does not fit into its length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordTooLarge;

/// What every file begins with.
pub(crate) fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Appends a record to `out` and tells how many events it holds. Without events nothing is appended.
pub(crate) fn encode_record<'a>(
    out: &mut Vec<u8>,
    reason: &str,
    events: impl Iterator<Item = (PayloadCase, &'a [u8])> + Clone,
) -> Result<u64, RecordTooLarge> {
    let start = out.len();
    let body = start + RECORD_HEADER_BYTES;
    let mut count = 0_u32;
    out.extend_from_slice(&[0; RECORD_HEADER_BYTES + BODY_HEADER_BYTES]);
    out.extend_from_slice(reason.as_bytes());
    for (case, event) in events.clone() {
        out.extend_from_slice(&stored_case(case).to_le_bytes());
        out.extend_from_slice(&length(event.len())?.to_le_bytes());
        count = count.checked_add(1).ok_or(RecordTooLarge)?;
    }
    if count == 0 {
        out.truncate(start);
        return Ok(0);
    }
    for (_, event) in events {
        out.extend_from_slice(event);
    }
    let body_bytes = length(out.len() - body)?;
    out[body..body + 4].copy_from_slice(&length(reason.len())?.to_le_bytes());
    out[body + 4..body + 8].copy_from_slice(&count.to_le_bytes());
    let checksum = crc32c::crc32c(&out[body..]);
    out[start..start + 4].copy_from_slice(&body_bytes.to_le_bytes());
    out[start + 4..body].copy_from_slice(&checksum.to_le_bytes());
    Ok(u64::from(count))
}

fn length(bytes: usize) -> Result<u32, RecordTooLarge> {
    u32::try_from(bytes).map_err(|_| RecordTooLarge)
}

#[allow(clippy::cast_possible_truncation)] // field numbers of cases are below 152
fn stored_case(case: PayloadCase) -> u16 {
    case.field_number() as u16
}

/// Takes a file's lock, which goes with the process. `name` is what a second process is told is in use.
pub(crate) fn lock(file: &File, path: &Path, name: &Path) -> Result<(), RecordFileError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => RecordFileError::Locked { path: name.to_owned() },
        TryLockError::Error(source) => RecordFileError::io("lock", path)(source),
    })
}

/// How an append failed.
pub(crate) struct AppendFailure {
    pub(crate) source: io::Error,
    /// Whether the file is as it was before; if not, nothing more may be appended to it.
    pub(crate) restored: bool,
}

/// Appends to a file that is `len` bytes long and was opened for appending. What a failed write left
/// (the disk is full) is cut off again.
pub(crate) fn append_whole(file: &mut File, len: u64, bytes: &[u8]) -> Result<(), AppendFailure> {
    file.write_all(bytes)
        .map_err(|source| AppendFailure { source, restored: file.set_len(len).is_ok() })
}

/// Makes what was created, renamed or deleted in a directory survive a power failure, where the
/// operating system lets a directory be synchronised.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), RecordFileError> {
    if cfg!(unix) {
        File::open(directory)
            .and_then(|opened| opened.sync_all())
            .map_err(RecordFileError::io("synchronise", directory))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_layout() {
        let mut out = b"before".to_vec();
        let events: [(PayloadCase, &[u8]); 2] =
            [(PayloadCase::Trade, b"abc"), (PayloadCase::Disconnect, b"")];
        assert_eq!(encode_record(&mut out, "why", events.into_iter()), Ok(2));
        let body = b"\x03\0\0\0\x02\0\0\0why\x64\0\x03\0\0\0\x97\0\0\0\0\0abc";
        let mut expected = b"before".to_vec();
        expected.extend_from_slice(&26_u32.to_le_bytes());
        expected.extend_from_slice(&crc32c::crc32c(body).to_le_bytes());
        expected.extend_from_slice(body);
        assert_eq!(out, expected);
        assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283, "the check value of CRC-32C");
    }

    #[test]
    fn without_events_there_is_no_record() {
        let mut out = b"before".to_vec();
        assert_eq!(encode_record(&mut out, "why", std::iter::empty()), Ok(0));
        assert_eq!(out, b"before");
    }
}
