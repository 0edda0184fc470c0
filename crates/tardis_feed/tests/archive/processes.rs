//! Several streams on one cache, in one process and in several, and a disk that takes no more.
//!
//! A test here runs itself again as another process, which the variables below tell what to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tardis_feed::FeedError;

use crate::loopback::{Loopback, Reply, files, good, minutes_text, options, range, replay};

const DIRECTORY: &str = "ARCHIVE_TEST_DIRECTORY";
const ENDPOINT: &str = "ARCHIVE_TEST_ENDPOINT";

fn other_process(test: &str, directory: &Path, endpoint: &str, setup: &str) -> Command {
    let script = format!("{setup} exec \"$0\" --exact {test} --nocapture --test-threads=1");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
    command.env(DIRECTORY, directory).env(ENDPOINT, endpoint).stdout(Stdio::null());
    command
}

/// What to do, in a process that another one of this test started.
fn told() -> Option<(PathBuf, String)> {
    Some((std::env::var_os(DIRECTORY)?.into(), std::env::var(ENDPOINT).ok()?))
}

fn assert_good(directory: &Path, slices: usize) {
    let names = files(directory);
    assert_eq!(names.len(), slices, "{names:?}");
    for name in names {
        let bytes = std::fs::read(directory.join(&name)).unwrap();
        assert!(zstd::decode_all(bytes.as_slice()).is_ok(), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_share_a_cache() {
    if let Some((directory, endpoint)) = told() {
        let text = replay(options(&endpoint, &directory), range(40)).await.unwrap();
        assert_eq!(text, minutes_text(0, 40));
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    let test = "processes::two_processes_share_a_cache";
    let mut children: Vec<_> = (0..2)
        .map(|_| other_process(test, root.path(), &api.endpoint, "").spawn().unwrap())
        .collect();
    let mine = replay(options(&api.endpoint, root.path()), range(40)).await.unwrap();
    assert_eq!(mine, minutes_text(0, 40));
    tokio::task::spawn_blocking(move || {
        for child in &mut children {
            assert!(child.wait().unwrap().success());
        }
    })
    .await
    .unwrap();
    assert_good(root.path(), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_share_a_cache() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    let streams: Vec<_> = (0..4)
        .map(|_| tokio::spawn(replay(options(&api.endpoint, root.path()), range(40))))
        .collect();
    for stream in streams {
        assert_eq!(stream.await.unwrap().unwrap(), minutes_text(0, 40));
    }
    assert_good(root.path(), 40);
}

/// The limit of a file's size stands in for a full disk: the write fails in the same place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_takes_no_more_is_an_error_and_leaves_no_file() {
    let large = |_: &crate::loopback::Request| {
        let text: String = (0..200_000).map(|_| fastrand::alphanumeric()).collect();
        Reply::slice(&text)
    };
    if let Some((directory, _)) = told() {
        let api = Loopback::start(large).await;
        let error = replay(options(&api.endpoint, &directory), range(3)).await.unwrap_err();
        assert!(matches!(error, FeedError::Disk { action: "write", .. }), "{error}");
        assert!(error.to_string().ends_with("or choose another cache directory"), "{error}");
        assert_eq!(api.requests().len(), 1);
        assert!(files(&directory).is_empty());
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let test = "processes::a_disk_that_takes_no_more_is_an_error_and_leaves_no_file";
    // The signal that goes with the limit would end the process.
    let mut child = other_process(test, root.path(), "", "trap '' XFSZ; ulimit -f 8;");
    assert!(child.status().unwrap().success());
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_is_named() {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("feeds"), "a file where a folder should be").unwrap();
    let api = Loopback::start(good).await;
    let error = replay(options(&api.endpoint, root.path()), range(3)).await.unwrap_err();
    assert!(matches!(error, FeedError::Disk { action: "create", .. }), "{error}");
    assert!(error.to_string().contains("feeds"), "{error}");
}
