//! Single cases; sequences of all operations are in `tests/spill_model.rs`.

use std::path::Path;

use super::*;
use crate::payload_case::PayloadCase;
use crate::read_dead_letters;

fn batch(text: &str) -> EventBatch {
    [(PayloadCase::Trade, text.as_bytes()), (PayloadCase::Quote, b"q")].into_iter().collect()
}

fn text(spilled: &SpilledBatch) -> String {
    spilled
        .batch
        .iter()
        .next()
        .map(|(_, event)| String::from_utf8_lossy(event).into_owned())
        .unwrap()
}

fn options(directory: &Path) -> SpillOptions {
    // Two records of four letters each: 16 + 2 * (8 + 8 + 12 + 5).
    SpillOptions { directory: directory.to_owned(), max_bytes: 1000, segment_bytes: 82 }
}

fn open(directory: &Path) -> (Spill, Recovered) {
    Spill::open(options(directory)).unwrap()
}

fn read_all(spill: &mut Spill) -> Vec<String> {
    std::iter::from_fn(|| spill.next().unwrap()).map(|spilled| text(&spilled)).collect()
}

fn segments(directory: &Path) -> Vec<u64> {
    segment::list(directory).unwrap().into_iter().map(|(number, _)| number).collect()
}

#[test]
fn batches_come_back_in_order_and_segments_go_when_they_are_done() {
    let directory = tempfile::tempdir().unwrap();
    let (mut spill, recovered) = open(directory.path());
    assert_eq!(recovered, Recovered::default());
    for text in ["aaaa", "bbbb", "cccc", "dddd", "eeee"] {
        spill.append(&batch(text)).unwrap();
    }
    spill.append(&EventBatch::default()).unwrap();
    assert_eq!(segments(directory.path()), [1, 2, 3]);
    assert_eq!((spill.events(), spill.bytes(), spill.disk_bytes()), (10, 165, 213));
    let positions = (0..3).map(|_| spill.next().unwrap().unwrap().position).collect::<Vec<_>>();
    spill.commit(positions[2]).unwrap();
    spill.commit(positions[0]).unwrap();
    assert_eq!(segments(directory.path()), [2, 3]);
    assert_eq!((spill.events(), spill.bytes(), spill.disk_bytes()), (4, 66, 131));
    assert_eq!(read_all(&mut spill), ["dddd", "eeee"]);
    spill.rewind();
    assert_eq!(read_all(&mut spill), ["dddd", "eeee"]);
    drop(spill);
    let (mut spill, recovered) = open(directory.path());
    let expected = Recovered { records: 2, events: 4, bytes: 66, ..Recovered::default() };
    assert_eq!(recovered, expected);
    assert_eq!(read_all(&mut spill), ["dddd", "eeee"]);
}

#[test]
fn a_number_is_never_used_again() {
    let directory = tempfile::tempdir().unwrap();
    for number in 1..4 {
        let (mut spill, recovered) = open(directory.path());
        assert_eq!(recovered, Recovered::default());
        spill.append(&batch("aaaa")).unwrap();
        assert_eq!(segments(directory.path()), [number]);
        let position = spill.next().unwrap().unwrap().position;
        spill.commit(position).unwrap();
        assert!(spill.is_empty() && segments(directory.path()).is_empty());
    }
}

#[test]
fn a_second_user_of_the_directory_is_refused_with_its_name_and_a_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let (spill, _) = open(directory.path());
    let error = Spill::open(options(directory.path())).unwrap_err().to_string();
    let named = directory.path().display();
    let remedy = "stop that process or configure another path";
    assert_eq!(error, format!("{named} is in use by another process; {remedy}"));
    drop(spill);
    open(directory.path());
}

#[test]
fn a_full_spill_says_so_and_has_room_after_a_commit() {
    let directory = tempfile::tempdir().unwrap();
    let limited = SpillOptions { max_bytes: 131, ..options(directory.path()) };
    let (mut spill, _) = Spill::open(limited).unwrap();
    for text in ["aaaa", "bbbb", "cccc"] {
        spill.append(&batch(text)).unwrap();
    }
    let error = spill.append(&batch("dddd")).unwrap_err();
    assert!(matches!(error, SpillError::Full { limit: 131 }), "{error}");
    let error = spill.append(&batch(&"d".repeat(100))).unwrap_err();
    assert!(matches!(error, SpillError::TooLarge { bytes: 145, limit: 131 }), "{error}");
    assert_eq!((spill.events(), spill.disk_bytes()), (6, 131));
    spill.next().unwrap();
    let position = spill.next().unwrap().unwrap().position;
    spill.commit(position).unwrap();
    spill.append(&batch("eeee")).unwrap();
    assert_eq!(read_all(&mut spill), ["cccc", "eeee"]);
}

#[test]
fn a_position_read_before_a_rewind_can_be_committed_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let (mut spill, _) = open(directory.path());
    for text in ["aaaa", "bbbb", "cccc"] {
        spill.append(&batch(text)).unwrap();
    }
    spill.next().unwrap();
    let second = spill.next().unwrap().unwrap().position;
    spill.rewind();
    assert_eq!(text(&spill.next().unwrap().unwrap()), "aaaa");
    spill.commit(second).unwrap();
    assert_eq!(read_all(&mut spill), ["cccc"]);
    assert_eq!(spill.events(), 2);
}

#[test]
fn what_becomes_corrupt_while_it_is_open_is_set_aside_and_the_rest_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let (mut spill, _) = open(directory.path());
    for text in ["aaaa", "bbbb", "cccc", "dddd", "eeee"] {
        spill.append(&batch(text)).unwrap();
    }
    let read = read_all(&mut spill);
    assert_eq!(read.len(), 5);
    let path = segment::path(directory.path(), 2);
    let mut bytes = fs::read(&path).unwrap();
    bytes[16 + 30] ^= 1;
    fs::write(&path, &bytes).unwrap();
    spill.rewind();
    assert_eq!(text(&spill.next().unwrap().unwrap()), "aaaa");
    assert_eq!(text(&spill.next().unwrap().unwrap()), "bbbb");
    let Err(SpillError::SetAside(aside)) = spill.next() else { panic!("it was not found out") };
    assert_eq!((aside.bytes, aside.events), (66, 4));
    assert_eq!(fs::read(&aside.moved_to).unwrap(), bytes[16..]);
    assert_eq!((spill.events(), spill.bytes()), (6, 99));
    spill.append(&batch("ffff")).unwrap();
    assert_eq!(read_all(&mut spill), ["eeee", "ffff"]);
    let last = spill.handed_out.back().unwrap().end;
    spill.commit(last).unwrap();
    assert!(spill.is_empty());
    assert_eq!((spill.events(), spill.bytes(), spill.disk_bytes()), (0, 0, 0));
}

#[test]
fn a_cursor_that_cannot_be_read_repeats_and_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (mut spill, _) = open(directory.path());
    spill.append(&batch("aaaa")).unwrap();
    spill.append(&batch("bbbb")).unwrap();
    let first = spill.next().unwrap().unwrap().position;
    spill.commit(first).unwrap();
    drop(spill);
    fs::write(directory.path().join("cursor"), "nonsense").unwrap();
    let (mut spill, recovered) = open(directory.path());
    assert!(recovered.cursor_lost);
    assert_eq!(read_all(&mut spill), ["aaaa", "bbbb"]);
}

#[test]
fn a_segment_of_a_later_version_refuses_the_start_and_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut later = file_header().to_vec();
    later[8] = 2;
    let checksum = crc32c::crc32c(&later[..12]);
    later[12..].copy_from_slice(&checksum.to_le_bytes());
    let path = segment::path(directory.path(), 1);
    fs::write(&path, &later).unwrap();
    let error = Spill::open(options(directory.path())).unwrap_err().to_string();
    assert!(error.contains("has version 2, this program reads version 1"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), later);
}

#[test]
fn a_failed_write_keeps_what_was_there_and_the_next_segment_takes_over() {
    let directory = tempfile::tempdir().unwrap();
    let (mut spill, _) = open(directory.path());
    spill.append(&batch("aaaa")).unwrap();
    // A file that was opened for reading refuses both the write and the cut.
    spill.writer = Some(File::open(segment::path(directory.path(), 1)).unwrap());
    let error = spill.append(&batch("bbbb")).unwrap_err().to_string();
    assert!(error.starts_with("cannot append to ") && error.contains("1.spill"), "{error}");
    assert_eq!((spill.events(), spill.bytes()), (2, 33));
    spill.append(&batch("cccc")).unwrap();
    assert_eq!(segments(directory.path()), [1, 2]);
    assert_eq!(read_all(&mut spill), ["aaaa", "cccc"]);
}

#[test]
fn a_segment_can_be_read_as_dead_letters() {
    let directory = tempfile::tempdir().unwrap();
    let (mut spill, _) = open(directory.path());
    spill.append(&batch("aaaa")).unwrap();
    let letters = read_dead_letters(segment::path(directory.path(), 1)).unwrap();
    let letters = letters.map(Result::unwrap).map(|letter| (letter.reason, letter.case));
    let expected = [PayloadCase::Trade, PayloadCase::Quote].map(|case| ("".into(), case));
    assert_eq!(letters.collect::<Vec<_>>(), expected);
}
