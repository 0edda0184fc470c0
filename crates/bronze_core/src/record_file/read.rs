//! Reading records, and telling a torn end from a corrupt one. The layout is in the parent module.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use bytes::Bytes;

use super::{
    BODY_HEADER_BYTES, FILE_HEADER_BYTES, MAGIC, RECORD_HEADER_BYTES, RecordFileError,
    TABLE_ENTRY_BYTES, VERSION, file_header,
};
use crate::event_batch::EventBatch;
use crate::payload_case::PayloadCase;

/// A record that was read.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) reason: Box<str>,
    pub(crate) batch: EventBatch,
}

/// Why there are bytes that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Where the last good record ends.
    pub(crate) good_bytes: u64,
    /// How many bytes follow.
    pub(crate) bytes_behind: u64,
    /// Whether those are the beginning of one record, and nothing else.
    pub(crate) torn: bool,
}

/// Why a record was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    Io(io::Error),
    Damaged(Damage),
    UnsupportedVersion(u32),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Unread {
    /// The same with its place.
    pub(crate) fn at(self, path: &Path) -> RecordFileError {
        let path = path.to_owned();
        match self {
            Self::Io(source) => RecordFileError::Io { action: "read", path, source },
            Self::UnsupportedVersion(found) => RecordFileError::UnsupportedVersion { path, found },
            Self::Damaged(Damage { good_bytes, bytes_behind, torn: true }) => {
                RecordFileError::Torn { path, good_bytes, bytes_behind }
            }
            Self::Damaged(Damage { good_bytes, bytes_behind, torn: false }) => {
                RecordFileError::Corrupt { path, good_bytes, bytes_behind }
            }
        }
    }
}

/// Reads the records of a file one after the other.
#[derive(Debug)]
pub(crate) struct RecordReader {
    source: BufReader<File>,
    position: u64,
    limit: u64,
}

impl RecordReader {
    /// A reader behind the file's header, of all that the file holds now.
    pub(crate) fn open(path: &Path) -> Result<Self, Unread> {
        let file = File::open(path)?;
        let limit = file.metadata()?.len();
        let mut reader = Self { source: BufReader::new(file), position: 0, limit };
        reader.read_file_header()?;
        Ok(reader)
    }

    /// A reader at `position`, where a record begins.
    pub(crate) fn open_at(path: &Path, position: u64) -> Result<Self, Unread> {
        let mut reader = Self::open(path)?;
        reader.source.seek(SeekFrom::Start(position))?;
        reader.position = position;
        Ok(reader)
    }

    /// Where the next record begins, and the last good one ends.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Reads up to `limit`, to which the file has grown.
    pub(crate) const fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn read_file_header(&mut self) -> Result<(), Unread> {
        let mut header = Vec::with_capacity(FILE_HEADER_BYTES);
        self.source.by_ref().take(FILE_HEADER_BYTES as u64).read_to_end(&mut header)?;
        if header.len() < FILE_HEADER_BYTES {
            let torn = file_header().starts_with(&header);
            return Err(self.damage(torn));
        }
        let checksum = le_u32(&header, 12);
        if !header.starts_with(&MAGIC) || checksum != Some(crc32c::crc32c(&header[..12])) {
            return Err(self.damage(false));
        }
        match le_u32(&header, 8) {
            Some(VERSION) => {
                self.position = FILE_HEADER_BYTES as u64;
                Ok(())
            }
            found => Err(Unread::UnsupportedVersion(found.unwrap_or_default())),
        }
    }

    /// The next record; nothing at the clean end. After an error it is not asked again.
    pub(crate) fn read(&mut self) -> Result<Option<Record>, Unread> {
        let remaining = self.limit.saturating_sub(self.position);
        if remaining == 0 {
            return Ok(None);
        }
        let Some(behind_header) = remaining.checked_sub(RECORD_HEADER_BYTES as u64) else {
            return Err(self.damage(true));
        };
        let mut header = [0; RECORD_HEADER_BYTES];
        self.source.read_exact(&mut header).map_err(|error| self.shorter_than_known(error))?;
        let [l0, l1, l2, l3, c0, c1, c2, c3] = header;
        let body_bytes = u32::from_le_bytes([l0, l1, l2, l3]);
        let checksum = u32::from_le_bytes([c0, c1, c2, c3]);
        if u64::from(body_bytes) > behind_header {
            let mut prefix = Vec::new();
            self.source.by_ref().take(behind_header).read_to_end(&mut prefix)?;
            return Err(self.damage(begins_body_of(u64::from(body_bytes), &prefix)));
        }
        let mut body = vec![0; body_bytes as usize];
        self.source.read_exact(&mut body).map_err(|error| self.shorter_than_known(error))?;
        if crc32c::crc32c(&body) != checksum {
            return Err(self.damage(false));
        }
        let record = parse_body(&Bytes::from(body)).ok_or_else(|| self.damage(false))?;
        self.position += RECORD_HEADER_BYTES as u64 + u64::from(body_bytes);
        Ok(Some(record))
    }

    /// A file that ends before its limit was cut by somebody else: asking again would not help.
    fn shorter_than_known(&self, error: io::Error) -> Unread {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.damage(false),
            _ => Unread::Io(error),
        }
    }

    fn damage(&self, torn: bool) -> Unread {
        Unread::Damaged(Damage {
            good_bytes: self.position,
            bytes_behind: self.limit.saturating_sub(self.position),
            torn,
        })
    }
}

fn parse_body(body: &Bytes) -> Option<Record> {
    let reason_bytes = le_u32(body, 0)? as usize;
    let count = le_u32(body, 4)? as usize;
    let table_start = BODY_HEADER_BYTES.checked_add(reason_bytes)?;
    let table_end = table_start.checked_add(count.checked_mul(TABLE_ENTRY_BYTES)?)?;
    let reason = std::str::from_utf8(body.get(BODY_HEADER_BYTES..table_start)?).ok()?;
    let table = body.get(table_start..table_end).filter(|table| !table.is_empty())?;
    let lengths = table.chunks_exact(TABLE_ENTRY_BYTES).map(table_entry);
    let lengths = lengths.collect::<Option<Vec<_>>>()?;
    let lengths = lengths.into_iter().map(|(case, length)| (case, length as usize));
    let batch = EventBatch::of_lengths(body.slice(table_end..), lengths)?;
    Some(Record { reason: reason.into(), batch })
}

/// Whether `prefix` can be how a body of `body_bytes` begins. A complete table must add up to that
/// length, so a length that is wrong is found out although the file ends before it.
fn begins_body_of(body_bytes: u64, prefix: &[u8]) -> bool {
    let (Some(reason_bytes), Some(count)) = (le_u32(prefix, 0), le_u32(prefix, 4)) else {
        return body_bytes > BODY_HEADER_BYTES as u64;
    };
    let table_start = BODY_HEADER_BYTES as u64 + u64::from(reason_bytes);
    let table_end = table_start + u64::from(count) * TABLE_ENTRY_BYTES as u64;
    let Some(event_bytes) = body_bytes.checked_sub(table_end).filter(|_| count > 0) else {
        return false;
    };
    let present = prefix.len() as u64;
    let table = prefix
        .get(usize::try_from(table_start).unwrap_or(usize::MAX)..)
        .map(|table| &table[..usize::try_from(table_end.min(present) - table_start).unwrap_or(0)]);
    let mut found = 0_u64;
    for entry in table.unwrap_or_default().chunks_exact(TABLE_ENTRY_BYTES) {
        match table_entry(entry) {
            Some((_, length)) => found += u64::from(length),
            None => return false,
        }
    }
    if present >= table_end { found == event_bytes } else { found <= event_bytes }
}

fn table_entry(entry: &[u8]) -> Option<(PayloadCase, u32)> {
    let (case, length) = entry.split_first_chunk::<2>()?;
    let case = PayloadCase::of_field_number(u32::from(u16::from_le_bytes(*case)))?;
    Some((case, le_u32(length, 0)?))
}

fn le_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record_file::encode_record;

    const FIRST: [(PayloadCase, &[u8]); 2] =
        [(PayloadCase::Trade, b"first"), (PayloadCase::Quote, b"second event")];
    const SECOND: [(PayloadCase, &[u8]); 1] = [(PayloadCase::Error, b"third")];

    /// A file of two records, and where each ends.
    fn two_records() -> (Vec<u8>, [u64; 2]) {
        let mut bytes = file_header().to_vec();
        encode_record(&mut bytes, "a reason", FIRST.into_iter()).unwrap();
        let first_end = bytes.len() as u64;
        encode_record(&mut bytes, "", SECOND.into_iter()).unwrap();
        let second_end = bytes.len() as u64;
        (bytes, [first_end, second_end])
    }

    /// Number of records of a file, and what ends it.
    fn read_all(bytes: &[u8]) -> (usize, Option<Unread>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut reader = match RecordReader::open(file.path()) {
            Ok(reader) => reader,
            Err(unread) => return (0, Some(unread)),
        };
        let mut records = 0;
        loop {
            match reader.read() {
                Ok(Some(_)) => records += 1,
                Ok(None) => return (records, None),
                Err(unread) => return (records, Some(unread)),
            }
        }
    }

    #[test]
    fn records_come_back() {
        let (bytes, ends) = two_records();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let mut reader = RecordReader::open(file.path()).unwrap();
        let first = reader.read().unwrap().unwrap();
        assert_eq!(&*first.reason, "a reason");
        assert_eq!(first.batch.iter().collect::<Vec<_>>(), FIRST);
        assert_eq!(reader.position(), ends[0]);
        let second = reader.read().unwrap().unwrap();
        assert_eq!(&*second.reason, "");
        assert_eq!(second.batch.iter().collect::<Vec<_>>(), SECOND);
        assert!(reader.read().unwrap().is_none());
    }

    #[test]
    fn a_file_cut_anywhere_is_torn_where_the_last_record_ends() {
        let (bytes, ends) = two_records();
        for cut in 0..bytes.len() {
            let (records, end) = read_all(&bytes[..cut]);
            let cut = cut as u64;
            let header = FILE_HEADER_BYTES as u64;
            let good_bytes = match cut {
                cut if cut >= ends[0] => ends[0],
                cut if cut >= header => header,
                _ => 0,
            };
            assert_eq!(records, usize::from(cut >= ends[0]));
            match end {
                None => assert!(cut == good_bytes && cut >= header, "{cut} is a clean end"),
                Some(Unread::Damaged(damage)) => {
                    let bytes_behind = cut - good_bytes;
                    assert_eq!(damage, Damage { good_bytes, bytes_behind, torn: true });
                }
                Some(other) => panic!("{cut}: {other:?}"),
            }
        }
    }

    #[test]
    fn any_changed_byte_of_a_complete_record_is_corrupt_and_never_torn() {
        let (bytes, ends) = two_records();
        for (place, change) in (0..bytes.len()).flat_map(|place| (0..8).map(move |b| (place, b))) {
            let mut changed = bytes.clone();
            changed[place] ^= 1 << change;
            let good_bytes = match place as u64 {
                place if place >= ends[0] => ends[0],
                place if place >= FILE_HEADER_BYTES as u64 => FILE_HEADER_BYTES as u64,
                _ => 0,
            };
            let bytes_behind = ends[1] - good_bytes;
            let (_, Some(Unread::Damaged(damage))) = read_all(&changed) else {
                panic!("bit {change} of byte {place} was not found out");
            };
            assert_eq!(damage, Damage { good_bytes, bytes_behind, torn: false });
        }
    }

    #[test]
    fn zeros_and_enormous_numbers_are_corrupt() {
        let with = |record: &[u8]| {
            let (_, end) = read_all(&[&file_header(), record].concat());
            matches!(end, Some(Unread::Damaged(Damage { good_bytes: 16, torn: false, .. })))
        };
        assert!(with(&[0; 64]), "the checksum of nothing is zero");
        assert!(with(&[0xff; 64]));
        assert!(with(&[&[0xff; 4][..], &[0; 4], &[0; 4], &[0xff; 4]].concat()));
    }

    #[test]
    fn a_later_version_is_told_from_a_corrupt_one() {
        let mut later = file_header();
        later[8] = 2;
        assert!(matches!(read_all(&later), (0, Some(Unread::Damaged(_)))));
        let checksum = crc32c::crc32c(&later[..12]);
        later[12..].copy_from_slice(&checksum.to_le_bytes());
        assert!(matches!(read_all(&later), (0, Some(Unread::UnsupportedVersion(2)))));
    }
}
