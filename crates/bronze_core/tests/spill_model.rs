//! The spill does what a plain list would do, through restarts and damaged files.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use bronze_core::{
    EventBatch, PayloadCase, Recovered, Spill, SpillError, SpillOptions, SpillPosition,
};
use proptest::prelude::*;
use proptest::sample::Index;

const MAX_BYTES: u64 = 1500;
const SEGMENT_BYTES: u64 = 300;
const FILE_HEADER_BYTES: u64 = 16;

type Events = Vec<(PayloadCase, Vec<u8>)>;

#[derive(Clone, Debug)]
enum Step {
    Append(Events),
    Next,
    Commit(Index),
    Rewind,
    Sync,
    Reopen,
    /// Closes, leaves so much of the last record, opens.
    CutLastRecord(Index),
    /// Closes, changes a byte of a record that waits, opens.
    ChangeByte {
        record: Index,
        byte: Index,
        bits: u8,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let case = prop::sample::select(PayloadCase::ALL.to_vec());
    let event = (case, prop::collection::vec(any::<u8>(), 0..60));
    let step = prop_oneof![
        12 => prop::collection::vec(event, 0..5).prop_map(Step::Append),
        10 => Just(Step::Next),
        5 => any::<Index>().prop_map(Step::Commit),
        2 => Just(Step::Rewind),
        1 => Just(Step::Sync),
        2 => Just(Step::Reopen),
        1 => any::<Index>().prop_map(Step::CutLastRecord),
        1 => (any::<Index>(), any::<Index>(), 1..=u8::MAX)
            .prop_map(|(record, byte, bits)| Step::ChangeByte { record, byte, bits }),
    ];
    prop::collection::vec(step, 1..80)
}

/// What should be there.
#[derive(Default)]
struct Model {
    /// Batches that are not committed.
    waiting: VecDeque<Events>,
    /// How many of them were read since the last rewind.
    read: usize,
    /// Positions of those that were ever read since the last start.
    positions: VecDeque<SpillPosition>,
}

impl Model {
    fn events(&self) -> u64 {
        self.waiting.iter().map(|events| events.len() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        self.waiting.iter().map(record_bytes).sum()
    }
}

fn record_bytes(events: &Events) -> u64 {
    events.iter().map(|(_, event)| 6 + event.len() as u64).sum::<u64>() + 16
}

fn batch(events: &Events) -> EventBatch {
    events.iter().map(|(case, event)| (*case, event.as_slice())).collect()
}

fn open(directory: &Path) -> (Spill, Recovered) {
    let directory = directory.to_owned();
    Spill::open(SpillOptions { directory, max_bytes: MAX_BYTES, segment_bytes: SEGMENT_BYTES })
        .unwrap()
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths =
        paths.filter(|path| path.extension().is_some_and(|is| is == "spill")).collect::<Vec<_>>();
    paths.sort();
    paths
}

fn disk_bytes(directory: &Path) -> u64 {
    segments(directory).iter().map(|path| fs::metadata(path).unwrap().len()).sum()
}

/// Where a record is: its segment, its first byte, the first byte behind it.
type Place = (PathBuf, usize, usize);

/// All records on disk in order, read without the code under test.
fn records(directory: &Path) -> Vec<Place> {
    let mut places = Vec::new();
    for path in segments(directory) {
        let bytes = fs::read(&path).unwrap();
        let mut start = 16;
        while start < bytes.len() {
            let length = u32::from_le_bytes(bytes[start..start + 4].try_into().unwrap());
            let end = start + 8 + length as usize;
            places.push((path.clone(), start, end));
            start = end;
        }
    }
    places
}

/// Opens what was closed and compares what was recovered with the model, whose reading starts anew.
fn reopen(directory: &Path, model: &mut Model) -> (Spill, Recovered) {
    let (spill, recovered) = open(directory);
    model.read = 0;
    model.positions.clear();
    assert_eq!(recovered.records, model.waiting.len() as u64);
    assert_eq!(recovered.events, model.events());
    assert_eq!(recovered.bytes, model.bytes());
    assert!(!recovered.cursor_lost);
    (spill, recovered)
}

fn append(spill: &mut Spill, directory: &Path, model: &mut Model, events: Events) {
    let before = disk_bytes(directory);
    match spill.append(&batch(&events)) {
        Ok(()) if events.is_empty() => assert_eq!(disk_bytes(directory), before),
        Ok(()) => model.waiting.push_back(events),
        Err(SpillError::Full { limit }) => {
            assert_eq!(limit, MAX_BYTES);
            assert!(before + record_bytes(&events) + FILE_HEADER_BYTES > MAX_BYTES);
            assert_eq!(disk_bytes(directory), before, "nothing is written then");
        }
        Err(error) => panic!("{error}"),
    }
}

fn next(spill: &mut Spill, model: &mut Model) {
    let spilled = spill.next().unwrap();
    let expected = model.waiting.get(model.read);
    assert_eq!(spilled.is_some(), expected.is_some());
    let (Some(spilled), Some(expected)) = (spilled, expected) else { return };
    let found = spilled.batch.iter().map(|(case, event)| (case, event.to_vec()));
    assert_eq!(&found.collect::<Vec<_>>(), expected);
    match model.positions.get(model.read) {
        Some(position) => assert_eq!(*position, spilled.position, "read again"),
        None => model.positions.push_back(spilled.position),
    }
    model.read += 1;
}

fn commit(spill: &mut Spill, model: &mut Model, index: Index) {
    if model.positions.is_empty() {
        return;
    }
    let done = index.index(model.positions.len()) + 1;
    let position = model.positions[done - 1];
    spill.commit(position).unwrap();
    model.waiting.drain(..done);
    model.positions.drain(..done);
    model.read = model.read.saturating_sub(done);
    spill.commit(position).unwrap();
}

fn cut_last_record(directory: &Path, model: &mut Model, index: Index) -> Spill {
    let Some((path, start, end)) = records(directory).pop() else {
        return reopen(directory, model).0;
    };
    let left = index.index(end - start);
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_len((start + left) as u64).unwrap();
    model.waiting.pop_back();
    let (spill, recovered) = reopen(directory, model);
    assert_eq!(recovered.torn_bytes, left as u64);
    assert_eq!(recovered.set_aside, []);
    spill
}

fn change_byte(directory: &Path, model: &mut Model, record: Index, byte: Index, bits: u8) -> Spill {
    let places = records(directory);
    let waiting = &places[places.len() - model.waiting.len()..];
    if waiting.is_empty() {
        return reopen(directory, model).0;
    }
    let first_lost = record.index(waiting.len());
    let (path, start, end) = &waiting[first_lost];
    let mut bytes = fs::read(path).unwrap();
    bytes[start + byte.index(end - start)] ^= bits;
    fs::write(path, &bytes).unwrap();
    let lost = waiting[first_lost..].iter().filter(|(of, ..)| of == path).count();
    model.waiting.drain(first_lost..first_lost + lost);
    let (spill, recovered) = reopen(directory, model);
    let [aside] = recovered.set_aside.as_slice() else {
        panic!("one segment is corrupt: {recovered:?}");
    };
    assert_eq!(&aside.segment, path);
    assert_eq!(fs::read(&aside.moved_to).unwrap(), bytes[*start..], "nothing of it is lost");
    assert_eq!(recovered.torn_bytes, 0);
    spill
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_spill_is_a_list(steps in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let mut model = Model::default();
        let (mut spill, _) = open(path);
        for step in steps {
            match step {
                Step::Append(events) => append(&mut spill, path, &mut model, events),
                Step::Next => next(&mut spill, &mut model),
                Step::Commit(index) => commit(&mut spill, &mut model, index),
                Step::Rewind => {
                    spill.rewind();
                    model.read = 0;
                }
                Step::Sync => spill.sync().unwrap(),
                Step::Reopen => {
                    drop(spill);
                    let (opened, recovered) = reopen(path, &mut model);
                    prop_assert_eq!((recovered.torn_bytes, recovered.set_aside.len()), (0, 0));
                    spill = opened;
                }
                Step::CutLastRecord(index) => {
                    drop(spill);
                    spill = cut_last_record(path, &mut model, index);
                }
                Step::ChangeByte { record, byte, bits } => {
                    drop(spill);
                    spill = change_byte(path, &mut model, record, byte, bits);
                }
            }
            prop_assert_eq!(spill.is_empty(), model.waiting.is_empty());
            prop_assert_eq!(spill.events(), model.events());
            prop_assert_eq!(spill.bytes(), model.bytes());
            prop_assert_eq!(spill.disk_bytes(), disk_bytes(path));
            prop_assert!(spill.disk_bytes() <= MAX_BYTES);
        }
        spill.rewind();
        model.read = 0;
        for _ in 0..=model.waiting.len() {
            next(&mut spill, &mut model);
        }
    }
}
