//! Dead letters: events that could not be delivered, each with the reason why, in one file per bus.
//!
//! The layout is that of `record_file`, so spill segments can be read here, too. One record holds the
//! events that one call appended, with their common reason.
//!
//! Invariants
//! - The file only grows; it is never rotated and nothing in it is replaced. It is created with its
//!   first event, so a bus without failures leaves no file.
//! - One process at a time appends: the file is locked while it is open.
//! - What follows a damaged place cannot be read, so nothing is appended behind one. At the first append
//!   a torn end is cut off, and a corrupt file is renamed to `*.corrupt` and a new one begun;
//!   [`DeadLetterFile::repair`] tells which.
//!
//! Durability: an append survives the end of the process when it returns, and a power failure after
//! [`DeadLetterFile::sync`].

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::event_batch::EventBatch;
use crate::payload_case::PayloadCase;
use crate::record_file::{
    Damage, FILE_HEADER_BYTES, RecordFileError, RecordReader, Unread, append_whole, encode_record,
    file_header, lock, sync_directory,
};

/// Where events end that cannot be delivered.
#[derive(Debug)]
pub struct DeadLetterFile {
    path: PathBuf,
    open: Option<OpenFile>,
    events_written: u64,
    repair: Option<DeadLetterRepair>,
    /// A file header and the record that is being appended.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    len: u64,
}

/// What had to be done to an existing file before something could be appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterRepair {
    /// The end was a record whose writing was cut short; it was cut off.
    CutTornEnd {
        /// How many bytes.
        bytes: u64,
    },
    /// A record was corrupt; the whole file was renamed and a new one begun.
    Renamed {
        /// The file's new name.
        moved_to: PathBuf,
        /// Up to where it can be read.
        good_bytes: u64,
    },
}

/// An event that could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Why not; empty for an event from a spill.
    pub reason: Arc<str>,
    /// Which payload the event carries.
    pub case: PayloadCase,
    /// The event.
    pub event: Bytes,
}

impl DeadLetterFile {
    /// The dead letters of one bus; touches no file yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), open: None, events_written: 0, repair: None, scratch: Vec::new() }
    }

    /// Appends events with the reason why they could not be delivered. After an error none was
    /// appended.
    pub fn append<'a, I>(&mut self, reason: &str, events: I) -> Result<(), RecordFileError>
    where
        I: IntoIterator<Item = (PayloadCase, &'a [u8]), IntoIter: Clone>,
    {
        self.scratch.clear();
        self.scratch.extend_from_slice(&file_header());
        let count = encode_record(&mut self.scratch, reason, events.into_iter())
            .map_err(|_| RecordFileError::RecordTooLarge { path: self.path.clone() })?;
        if count == 0 {
            return Ok(());
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_file()?,
        };
        let bytes = &self.scratch[if open.len == 0 { 0 } else { FILE_HEADER_BYTES }..];
        match append_whole(&mut open.file, open.len, bytes) {
            Ok(()) => {
                open.len += bytes.len() as u64;
                self.open = Some(open);
                self.events_written += count;
                Ok(())
            }
            Err(failure) => {
                // Left closed where it is not as it was: the next append repairs it.
                self.open = failure.restored.then_some(open);
                Err(RecordFileError::io("append to", &self.path)(failure.source))
            }
        }
    }

    /// Opens the file so that something can be appended to it.
    fn open_file(&mut self) -> Result<OpenFile, RecordFileError> {
        if let Some(directory) = self.path.parent() {
            fs::create_dir_all(directory).map_err(RecordFileError::io("create", directory))?;
        }
        let open = self.lock_file()?;
        if open.len == 0 {
            return Ok(open);
        }
        let good_bytes = match good_bytes(&self.path) {
            Ok(len) => return Ok(OpenFile { len, ..open }),
            Err(Unread::Damaged(Damage { good_bytes, bytes_behind, torn: true })) => {
                open.file.set_len(good_bytes).map_err(RecordFileError::io("cut", &self.path))?;
                self.repair = Some(DeadLetterRepair::CutTornEnd { bytes: bytes_behind });
                return Ok(OpenFile { len: good_bytes, ..open });
            }
            Err(Unread::Damaged(Damage { good_bytes, .. })) => good_bytes,
            Err(unread) => return Err(unread.at(&self.path)),
        };
        let moved_to = free_name(&self.path);
        fs::rename(&self.path, &moved_to).map_err(RecordFileError::io("rename", &self.path))?;
        self.repair = Some(DeadLetterRepair::Renamed { moved_to, good_bytes });
        self.lock_file()
    }

    fn lock_file(&self) -> Result<OpenFile, RecordFileError> {
        let file = File::options().create(true).append(true).open(&self.path);
        let file = file.map_err(RecordFileError::io("open", &self.path))?;
        lock(&file, &self.path, &self.path)?;
        let len = file.metadata().map_err(RecordFileError::io("read", &self.path))?.len();
        Ok(OpenFile { file, len })
    }

    /// Makes all that was appended survive a power failure.
    pub fn sync(&mut self) -> Result<(), RecordFileError> {
        let Some(open) = &self.open else { return Ok(()) };
        open.file.sync_data().map_err(RecordFileError::io("synchronise", &self.path))?;
        match self.path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
            Some(directory) => sync_directory(directory),
            None => Ok(()),
        }
    }

    /// Events that were appended since `new`.
    #[must_use]
    pub const fn events_written(&self) -> u64 {
        self.events_written
    }

    /// What had to be repaired before the last time the file was opened, if anything.
    #[must_use]
    pub const fn repair(&self) -> Option<&DeadLetterRepair> {
        self.repair.as_ref()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Where the last record of a file ends that can be read to its end.
fn good_bytes(path: &Path) -> Result<u64, Unread> {
    let mut reader = RecordReader::open(path)?;
    while reader.read()?.is_some() {}
    Ok(reader.position())
}

fn free_name(path: &Path) -> PathBuf {
    let mut copies = 1_u32;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(if copies == 1 { ".corrupt".to_owned() } else { format!(".{copies}.corrupt") });
        let name = PathBuf::from(name);
        if !name.exists() {
            return name;
        }
        copies += 1;
    }
}

/// The dead letters of a file, or the events of a spill segment, in order. An end that cannot be read
/// is reported by a last item that is an error.
pub fn read_dead_letters(path: impl Into<PathBuf>) -> Result<DeadLetters, RecordFileError> {
    let path = path.into();
    let reader = RecordReader::open(&path).map_err(|unread| unread.at(&path))?;
    let reason = Arc::from("");
    Ok(DeadLetters { path, reader: Some(reader), reason, batch: EventBatch::default(), next: 0 })
}

/// See [`read_dead_letters`].
#[derive(Debug)]
pub struct DeadLetters {
    path: PathBuf,
    /// Nothing after an error.
    reader: Option<RecordReader>,
    reason: Arc<str>,
    batch: EventBatch,
    next: usize,
}

impl Iterator for DeadLetters {
    type Item = Result<DeadLetter, RecordFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next < self.batch.len() {
                let (case, event) = self.batch.shared(self.next);
                self.next += 1;
                return Some(Ok(DeadLetter { reason: Arc::clone(&self.reason), case, event }));
            }
            match self.reader.as_mut()?.read() {
                Ok(Some(record)) => {
                    self.reason = record.reason.into();
                    self.batch = record.batch;
                    self.next = 0;
                }
                Ok(None) => return None,
                Err(unread) => {
                    self.reader = None;
                    return Some(Err(unread.at(&self.path)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: [(PayloadCase, &[u8]); 2] =
        [(PayloadCase::Trade, b"too large"), (PayloadCase::Quote, b"not allowed")];

    fn letters(path: &Path) -> Vec<(String, PayloadCase, Vec<u8>)> {
        let letters = read_dead_letters(path).unwrap().map(Result::unwrap);
        letters
            .map(|letter| (letter.reason.to_string(), letter.case, letter.event.into()))
            .collect()
    }

    #[test]
    fn events_are_read_with_their_reasons_and_a_restart_appends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/kafka.dead");
        let mut file = DeadLetterFile::new(&path);
        file.append("no events", []).unwrap();
        file.sync().unwrap();
        assert!(!path.exists(), "without an event there is no file");
        file.append("first reason", EVENTS).unwrap();
        file.append("", EVENTS.into_iter().skip(1)).unwrap();
        file.sync().unwrap();
        assert_eq!(file.events_written(), 3);
        drop(file);
        let mut file = DeadLetterFile::new(&path);
        file.append("Zweck: 東京", EVENTS.into_iter().take(1)).unwrap();
        assert_eq!((file.events_written(), file.repair()), (1, None));
        let letter = |reason: &str, event: usize| {
            (reason.to_owned(), EVENTS[event].0, EVENTS[event].1.to_vec())
        };
        let expected = [("first reason", 0), ("first reason", 1), ("", 1), ("Zweck: 東京", 0)];
        assert_eq!(letters(&path), expected.map(|(reason, event)| letter(reason, event)));
    }

    #[test]
    fn a_torn_end_is_an_error_at_the_end_and_is_cut_before_the_next_append() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dead");
        let mut file = DeadLetterFile::new(&path);
        file.append("first", EVENTS).unwrap();
        let good = fs::metadata(&path).unwrap().len();
        file.append("second", EVENTS).unwrap();
        drop(file);
        let cut = fs::metadata(&path).unwrap().len() - 3;
        File::options().write(true).open(&path).unwrap().set_len(cut).unwrap();
        let mut read = read_dead_letters(&path).unwrap();
        assert!(read.next().unwrap().is_ok() && read.next().unwrap().is_ok());
        let error = read.next().unwrap().unwrap_err();
        assert!(matches!(error, RecordFileError::Torn { good_bytes, bytes_behind, .. }
            if good_bytes == good && bytes_behind == cut - good));
        assert!(read.next().is_none());
        let mut file = DeadLetterFile::new(&path);
        file.append("third", EVENTS.into_iter().take(1)).unwrap();
        assert_eq!(file.repair(), Some(&DeadLetterRepair::CutTornEnd { bytes: cut - good }));
        let reasons = letters(&path).into_iter().map(|(reason, ..)| reason);
        assert_eq!(reasons.collect::<Vec<_>>(), ["first", "first", "third"]);
    }

    #[test]
    fn a_corrupt_file_is_renamed_and_a_new_one_begun() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dead");
        for moved_to in ["dead.corrupt", "dead.2.corrupt"] {
            fs::write(&path, b"this is not a file of records").unwrap();
            let mut file = DeadLetterFile::new(&path);
            file.append("reason", EVENTS).unwrap();
            let moved_to = directory.path().join(moved_to);
            assert!(moved_to.exists());
            assert_eq!(file.repair(), Some(&DeadLetterRepair::Renamed { moved_to, good_bytes: 0 }));
            assert_eq!(letters(&path).len(), 2);
        }
    }

    #[test]
    fn only_one_appends_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dead");
        let mut file = DeadLetterFile::new(&path);
        file.append("reason", EVENTS).unwrap();
        let error = DeadLetterFile::new(&path).append("reason", EVENTS).unwrap_err();
        assert!(matches!(error, RecordFileError::Locked { .. }), "{error}");
        assert_eq!(letters(&path).len(), 2, "reading needs no lock");
    }
}
