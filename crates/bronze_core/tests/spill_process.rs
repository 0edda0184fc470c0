//! What a spill keeps when its process is killed, when the disk refuses, and between two processes.
//!
//! Each test runs itself again as another process, which the variable below tells what to do.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use bronze_core::{
    DeadLetterFile, EventBatch, PayloadCase, RecordFileError, Spill, SpillError, SpillOptions,
    read_dead_letters,
};

const DIRECTORY: &str = "SPILL_TEST_DIRECTORY";

fn open(directory: &Path) -> Result<Spill, SpillError> {
    let directory = directory.to_owned();
    let options = SpillOptions { directory, max_bytes: 1 << 30, segment_bytes: 1 << 20 };
    Spill::open(options).map(|(spill, _)| spill)
}

fn numbered(number: u64, event_bytes: usize) -> EventBatch {
    let mut event = number.to_le_bytes().to_vec();
    event.resize(event_bytes, 7);
    EventBatch::from_iter([(PayloadCase::Trade, event.as_slice())])
}

fn number(batch: &EventBatch) -> u64 {
    let (_, event) = batch.iter().next().unwrap();
    u64::from_le_bytes(event[..8].try_into().unwrap())
}

/// Runs one test of this file as another process, under a shell that first does `setup`.
fn other_process(test: &str, directory: &Path, setup: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{setup} exec \"$0\" --exact {test} --nocapture --test-threads=1");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
    command.env(DIRECTORY, directory);
    command
}

#[test]
fn another_process_is_refused_the_directory() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let error = open(Path::new(&directory)).unwrap_err();
        assert!(matches!(error, SpillError::File(RecordFileError::Locked { .. })), "{error}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let spill = open(directory.path()).unwrap();
    let test = "another_process_is_refused_the_directory";
    assert!(other_process(test, directory.path(), "").status().unwrap().success());
    drop(spill);
    assert!(!other_process(test, directory.path(), "").output().unwrap().status.success());
}

#[test]
fn a_killed_process_leaves_what_it_appended_and_did_not_commit() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let mut spill = open(Path::new(&directory)).unwrap();
        for number in 0.. {
            spill.append(&numbered(number, 20_000)).unwrap();
            println!("\nappended {number}");
            if number % 3 == 0 {
                let position = spill.next().unwrap().unwrap().position;
                spill.commit(position).unwrap();
                println!("\ncommitted {}", number / 3);
            }
        }
    }
    for lines in [40, 401, 1000] {
        let directory = tempfile::tempdir().unwrap();
        let test = "a_killed_process_leaves_what_it_appended_and_did_not_commit";
        let mut process = other_process(test, directory.path(), "");
        let mut process = process.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let (mut appended, mut committed) = (None, None);
        let mut note = |line: String| {
            let number = |line: &str| line.parse::<u64>().unwrap();
            appended = line.strip_prefix("appended ").map(number).or(appended);
            committed = line.strip_prefix("committed ").map(number).or(committed);
        };
        output.by_ref().take(lines).for_each(&mut note);
        process.kill().unwrap();
        process.wait().unwrap();
        output.for_each(note);
        let mut spill = open(directory.path()).unwrap();
        let mut expected = None;
        while let Some(spilled) = spill.next().unwrap() {
            let found = number(&spilled.batch);
            match expected {
                // A last call may have done its work without having said so.
                None => assert!([1, 2].contains(&(found - committed.unwrap_or(0)))),
                Some(expected) => assert_eq!(found, expected),
            }
            expected = Some(found + 1);
        }
        let behind = expected.unwrap() - appended.unwrap();
        assert!([1, 2].contains(&behind), "{behind} behind the last that was said");
    }
}

#[test]
fn a_write_that_fails_halfway_is_taken_back() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let directory = Path::new(&directory);
        let mut spill = open(directory).unwrap();
        spill.append(&numbered(0, 30_000)).unwrap();
        let before = spill.disk_bytes();
        let error = spill.append(&numbered(1, 30_000)).unwrap_err().to_string();
        assert!(error.starts_with("cannot append to ") && error.contains("1.spill"), "{error}");
        let segment = directory.join(format!("{:020}.spill", 1));
        assert_eq!(segment.metadata().unwrap().len(), before, "as it was before");
        assert_eq!((spill.events(), spill.disk_bytes()), (1, before));
        spill.append(&numbered(2, 100)).unwrap();
        spill.append(&numbered(3, 60_000)).unwrap_err();
        assert_eq!(spill.events(), 2);

        let path = directory.join("dead");
        let mut dead_letters = DeadLetterFile::new(&path);
        for (number, bytes, fits) in [(0, 60_000, false), (1, 30_000, true), (2, 30_000, false)] {
            let appended = dead_letters.append("a reason", numbered(number, bytes).iter());
            assert_eq!(appended.is_ok(), fits, "{number}");
        }
        assert_eq!(dead_letters.events_written(), 1);
        assert_eq!(read_dead_letters(&path).unwrap().map(Result::unwrap).count(), 1);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let test = "a_write_that_fails_halfway_is_taken_back";
    // No file beyond 80 blocks of 512 bytes, and an error for it instead of a signal.
    let setup = "trap '' XFSZ; [ -z \"$BASH_VERSION\" ] || set -o posix; ulimit -f 80 || exit 1;";
    assert!(other_process(test, directory.path(), setup).status().unwrap().success());
    let mut spill = open(directory.path()).unwrap();
    let numbers =
        std::iter::from_fn(|| spill.next().unwrap()).map(|spilled| number(&spilled.batch));
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 2]);
}
