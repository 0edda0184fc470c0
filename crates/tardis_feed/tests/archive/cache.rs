//! What the cache holds is used, repaired, or removed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tardis_feed::{FeedError, FeedOptions};

use crate::loopback::{
    Loopback, Reply, Request, files, good, minutes_text, options, range, replay, zstd_frame,
};

fn path_of(root: &Path, name: &str) -> std::path::PathBuf {
    root.join(files(root).iter().find(|file| file.ends_with(name)).unwrap())
}

#[tokio::test]
async fn only_both_ends_are_asked_for_again() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    let first = replay(options(&api.endpoint, root.path()), range(6)).await.unwrap();
    let before = api.requests().len();
    let second = replay(options(&api.endpoint, root.path()), range(6)).await.unwrap();
    assert_eq!(first, second);
    assert_eq!(api.asked()[before..], [(5, 1), (0, 1)]);
}

#[tokio::test]
async fn offline_asks_nothing_and_names_what_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    replay(options(&api.endpoint, root.path()), range(6)).await.unwrap();
    let asked = api.requests().len();
    let offline = || FeedOptions { offline: true, ..options(&api.endpoint, root.path()) };
    assert_eq!(replay(offline(), range(6)).await.unwrap(), minutes_text(0, 6));
    fs::remove_file(path_of(root.path(), "00/57.json.zst")).unwrap();
    let error = replay(offline(), range(6)).await.unwrap_err();
    assert!(matches!(error, FeedError::NotCached { .. }), "{error}");
    assert!(
        error.to_string().contains("no slice of bitmex for 2020-02-01T00:57:00.000Z"),
        "{error}"
    );
    assert_eq!(api.requests().len(), asked);
}

/// Minutes of several blocks that do not compress well, so that a cut file still gives blocks.
fn long_text(offset: u32) -> String {
    let mut random = fastrand::Rng::with_seed(offset.into());
    let mut text = String::new();
    for _ in 0..15_000 {
        writeln!(text, "2020-02-01T00:56:00.0000000Z {}", random.u64(..)).unwrap();
    }
    text
}

fn long(request: &Request) -> Reply {
    Reply::slice(&long_text(request.offset()))
}

#[tokio::test]
async fn a_damaged_slice_is_fetched_again_and_nothing_comes_twice() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(long).await;
    let expected = (0..3).map(long_text).collect::<String>();
    assert_eq!(replay(options(&api.endpoint, root.path()), range(3)).await.unwrap(), expected);
    let path = path_of(root.path(), "00/56.json.zst");
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for bad in [&good[..good.len() * 3 / 4], &good[..3], b"", b"garbage", &flipped] {
        fs::write(&path, bad).unwrap();
        let before = api.requests().len();
        let text = replay(options(&api.endpoint, root.path()), range(3)).await.unwrap();
        assert!(text == expected);
        assert_eq!(api.asked()[before..], [(2, 1), (0, 1), (1, 1)]);
        assert_eq!(fs::read(&path).unwrap(), good);
    }
}

#[tokio::test]
async fn a_damaged_slice_is_replaced_even_if_it_will_be_removed() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    replay(options(&api.endpoint, root.path()), range(3)).await.unwrap();
    fs::write(path_of(root.path(), "00/56.json.zst"), "garbage").unwrap();
    let cleaning = FeedOptions { auto_cleanup: true, ..options(&api.endpoint, root.path()) };
    assert_eq!(replay(cleaning, range(3)).await.unwrap(), minutes_text(0, 3));
    assert!(files(root.path()).is_empty());
}

#[tokio::test]
async fn a_damaged_slice_whose_beginning_was_another_is_an_error_and_replaced() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(long).await;
    replay(options(&api.endpoint, root.path()), range(3)).await.unwrap();
    let path = path_of(root.path(), "00/56.json.zst");
    let other = zstd_frame(long_text(77).as_bytes());
    fs::write(&path, &other[..other.len() * 3 / 4]).unwrap();
    let error = replay(options(&api.endpoint, root.path()), range(3)).await.unwrap_err();
    assert!(matches!(error, FeedError::Damaged { .. }), "{error}");
    assert!(error.to_string().ends_with("start this replay again"), "{error}");
    replay(options(&api.endpoint, root.path()), range(3)).await.unwrap();
}

#[tokio::test]
async fn a_damaged_slice_stays_an_error_offline() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    replay(options(&api.endpoint, root.path()), range(3)).await.unwrap();
    let path = path_of(root.path(), "00/56.json.zst");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let offline = FeedOptions { offline: true, ..options(&api.endpoint, root.path()) };
    let error = replay(offline, range(3)).await.unwrap_err().to_string();
    assert!(error.starts_with("the slice of bitmex at 2020-02-01T00:56:00.000Z ("), "{error}");
    assert!(error.contains("its last zstd frame ends early"), "{error}");
    assert!(path.exists());
}

#[tokio::test]
async fn slices_can_be_removed_once_they_are_read() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    let cleaning = || FeedOptions { auto_cleanup: true, ..options(&api.endpoint, root.path()) };
    assert_eq!(replay(cleaning(), range(10)).await.unwrap(), minutes_text(0, 10));
    assert!(files(root.path()).is_empty());

    // Also those that nobody came to read.
    let mut stream = crate::loopback::open(cleaning(), range(10));
    stream.next_block().await.unwrap().unwrap();
    drop(stream);
    while !files(root.path()).is_empty() {
        tokio::task::yield_now().await;
    }
}
