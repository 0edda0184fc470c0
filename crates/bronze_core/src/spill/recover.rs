//! What an earlier process left in a spill's directory. The rules are in the parent module.

use std::collections::VecDeque;
use std::path::Path;

use super::cursor::{self, Cursor};
use super::error::SetAside;
use super::segment::{self, Segment};
use crate::record_file::{Damage, FILE_HEADER_BYTES, RecordFileError, RecordReader, Unread};

/// What was found when a spill was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Batches that wait.
    pub records: u64,
    /// Their events.
    pub events: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// Bytes of a record whose writing was cut short, which were cut off. Its `append` had not returned.
    pub torn_bytes: u64,
    /// What could not be read and was moved aside. How many events it holds is not known, so each
    /// says 0.
    pub set_aside: Vec<SetAside>,
    /// Whether it was not known any more what is done, so that some of it may come again.
    pub cursor_lost: bool,
}

pub(super) struct Found {
    pub(super) segments: VecDeque<Segment>,
    pub(super) next_number: u64,
    pub(super) recovered: Recovered,
}

/// The good records of a segment behind a place.
struct Scan {
    records: u64,
    events: u64,
    end: u64,
    damage: Option<Damage>,
}

pub(super) fn recover(directory: &Path) -> Result<Found, RecordFileError> {
    let cursor = cursor::read(directory)?;
    let done = match cursor {
        Cursor::At(position) => position,
        Cursor::Missing | Cursor::Unreadable => super::SpillPosition::default(),
    };
    let paths = segment::list(directory)?;
    let last_number = paths.last().map_or(0, |(number, _)| *number);
    let mut segments = VecDeque::new();
    let mut recovered =
        Recovered { cursor_lost: cursor == Cursor::Unreadable, ..Recovered::default() };
    for (number, path) in paths {
        if number < done.segment {
            segment::delete(&path)?;
            continue;
        }
        let header = FILE_HEADER_BYTES as u64;
        let committed = if number == done.segment { done.offset.max(header) } else { header };
        let scan = scan(&path, committed)?;
        match scan.damage {
            None => {}
            Some(Damage { good_bytes, bytes_behind, torn }) if torn && number == last_number => {
                segment::cut(&path, good_bytes)?;
                recovered.torn_bytes += bytes_behind;
            }
            Some(Damage { good_bytes, bytes_behind, .. }) => {
                let moved_to = segment::set_aside(&path, number, good_bytes)?;
                let aside =
                    SetAside { segment: path.clone(), moved_to, bytes: bytes_behind, events: 0 };
                recovered.set_aside.push(aside);
            }
        }
        if scan.records == 0 {
            segment::delete(&path)?;
            continue;
        }
        recovered.records += scan.records;
        recovered.events += scan.events;
        recovered.bytes += scan.end - committed;
        segments.push_back(Segment { number, path, committed, len: scan.end, events: scan.events });
    }
    let next_number = last_number.max(done.segment).saturating_add(1);
    Ok(Found { segments, next_number, recovered })
}

fn scan(path: &Path, from: u64) -> Result<Scan, RecordFileError> {
    let mut scan = Scan { records: 0, events: 0, end: from, damage: None };
    let mut read_all = || -> Result<(), Unread> {
        let mut reader = RecordReader::open_at(path, from)?;
        while let Some(record) = reader.read()? {
            scan.records += 1;
            scan.events += record.batch.len() as u64;
            scan.end = reader.position();
        }
        Ok(())
    };
    match read_all() {
        Ok(()) => {}
        Err(Unread::Damaged(damage)) => scan.damage = Some(damage),
        Err(unread) => return Err(unread.at(path)),
    }
    Ok(scan)
}
