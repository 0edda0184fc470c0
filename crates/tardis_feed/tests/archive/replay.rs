//! Ranges that are there: what is asked, in which order, and what comes out.

use std::future::poll_fn;
use std::task::Poll;

use market_data::Filter;
use tardis_feed::{ApiKey, Compression, FeedOptions, Line, SliceRange};

use crate::loopback::{
    Loopback, Reply, files, good, gzip, minutes_text, open, options, range, replay, slice_names,
    text_of,
};

fn filtered(minutes: u32) -> SliceRange {
    let filter = |channel: &str, symbols: &[&str]| Filter {
        channel: channel.to_owned(),
        symbols: Some(symbols.iter().map(ToString::to_string).collect()),
    };
    let filters = vec![filter("trade", &["b", "a"]), filter("book", &[]), filter("trade", &["a"])];
    SliceRange { filters, ..range(minutes) }
}

#[tokio::test]
async fn both_ends_are_asked_for_first_and_blocks_come_in_order() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    let mut stream = open(options(&api.endpoint, root.path()), range(10));
    assert_eq!(text_of(&mut stream).await.unwrap(), minutes_text(0, 10));
    let mut asked = api.asked();
    assert_eq!(asked[..2], [(9, 1), (0, 1)]);
    asked.sort_unstable();
    assert_eq!(asked, (0..10).map(|offset| (offset, 1)).collect::<Vec<_>>());
    assert_eq!(slice_names(root.path())[..2], ["55.json.zst<00", "56.json.zst<00"]);
    assert_eq!(files(root.path()).len(), 10);

    let progress = stream.progress();
    assert_eq!((progress.slices_done(), progress.slices_total()), (10, 10));
    assert_eq!((progress.minutes_done(), progress.minutes_total()), (10, 10));
    assert_eq!(progress.decompressed_bytes(), minutes_text(0, 10).len() as u64);
    assert_eq!(progress.bytes_downloaded(), progress.compressed_bytes());
    let reached = progress.market_time().unwrap();
    assert_eq!(reached.to_string(), "2020-02-01T01:04:59.123456Z");
}

#[tokio::test]
async fn the_api_hears_the_key_the_filters_and_who_asks() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    let options = FeedOptions {
        api_key: ApiKey::new("TD.secret"),
        user_agent: "tester/1".to_owned(),
        ..options(&api.endpoint, root.path())
    };
    replay(options, filtered(1)).await.unwrap();
    let request = api.requests().remove(0);
    assert!(request.target.starts_with("/data-feeds/bitmex?"), "{}", request.target);
    assert_eq!(request.query("from"), Some("2020-02-01T00:55:00.000Z"));
    assert_eq!(request.query("compression"), Some("zstd-multiframe"));
    assert_eq!(
        request.query("filters"),
        Some(
            "%5B%7B%22channel%22%3A%22book%22%2C%22symbols%22%3A%5B%5D%7D%2C%7B%22channel%22%3A\
             %22trade%22%2C%22symbols%22%3A%5B%22a%22%2C%22b%22%5D%7D%5D"
        )
    );
    assert_eq!(request.headers["authorization"], "Bearer TD.secret");
    assert_eq!(request.headers["accept-encoding"], "zstd, gzip");
    assert_eq!(request.headers["user-agent"], "tester/1");
}

#[tokio::test]
async fn slices_are_as_long_as_the_api_suggests() {
    let root = tempfile::tempdir().unwrap();
    let suggesting = |request: &crate::loopback::Request| {
        let size = if request.offset() == 0 { 4 } else { 3 };
        good(request).header("x-suggested-slice-size", size)
    };
    let api = Loopback::start(suggesting).await;
    let text = replay(options(&api.endpoint, root.path()), filtered(12)).await.unwrap();
    assert_eq!(text, minutes_text(0, 12));
    let mut asked = api.asked();
    asked.sort_unstable();
    assert_eq!(asked, [(0, 1), (1, 4), (5, 4), (9, 2), (11, 1)]);
    let names = slice_names(root.path());
    assert!(names.contains(&"00.size-4.json.zst<01".to_owned()), "{names:?}");

    // Without filters slices are a minute long, whatever the API says.
    let api = Loopback::start(suggesting).await;
    replay(options(&api.endpoint, root.path()), range(12)).await.unwrap();
    assert!(api.asked().iter().all(|(_, minutes)| *minutes == 1));
}

#[tokio::test]
async fn an_answer_shorter_than_asked_is_completed() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|request| {
        let minutes = request.minutes().min(2);
        Reply::slice(&minutes_text(request.offset(), minutes))
            .header("x-slice-size", minutes)
            .header("x-suggested-slice-size", 5)
    })
    .await;
    let text = replay(options(&api.endpoint, root.path()), filtered(12)).await.unwrap();
    assert_eq!(text, minutes_text(0, 12));
    // The name in the cache says what is inside, not what was asked for.
    let names = slice_names(root.path());
    assert!(names.contains(&"56.size-2.json.zst<00".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.contains("size-5")), "{names:?}");
}

#[tokio::test]
async fn gzip_is_asked_for_and_read_and_an_empty_body_is_an_empty_slice() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|request| {
        assert_eq!(request.query("compression"), Some("gzip"));
        match request.offset() {
            0 => Reply::new(200, gzip(&minutes_text(0, 1)).repeat(2))
                .header("content-encoding", "gzip"),
            1 => Reply::new(200, ""),
            offset => Reply::new(200, gzip(&minutes_text(offset, 1))),
        }
    })
    .await;
    let options =
        || FeedOptions { compression: Compression::Gzip, ..options(&api.endpoint, root.path()) };
    let expected = [minutes_text(0, 1), minutes_text(0, 1), minutes_text(2, 1)].concat();
    assert_eq!(replay(options(), range(3)).await.unwrap(), expected);
    let offline = FeedOptions { offline: true, ..options() };
    assert_eq!(replay(offline, range(3)).await.unwrap(), expected);
}

#[tokio::test]
async fn an_empty_range_asks_nothing() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    assert_eq!(replay(options(&api.endpoint, root.path()), range(0)).await.unwrap(), "");
    assert!(api.requests().is_empty());
}

/// Minutes of about a megabyte.
fn long(request: &crate::loopback::Request) -> Reply {
    Reply::slice(&minutes_text(request.offset(), 1).repeat(6_000))
}

#[tokio::test]
async fn what_waits_is_bounded_and_numbered() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(long).await;
    let limit = 1 << 20;
    let options = FeedOptions {
        prefetch_bytes: limit,
        slices_ahead: 2,
        ..options(&api.endpoint, root.path())
    };
    let mut stream = open(options, range(6));
    let mut taken = 0;
    let mut lines = 0;
    let mut slice = 0;
    while let Some(block) = stream.next_block().await {
        let block = block.unwrap();
        if block.first_line() == 1 {
            (slice, lines) = (slice + 1, 0);
        }
        assert_eq!(block.first_line(), lines + 1);
        assert_eq!(block.slice().minute, crate::loopback::start().after(slice - 1));
        lines += block
            .lines()
            .filter(|line| matches!(line, Ok(Line::Message { .. } | Line::Disconnect)))
            .count();
        taken += block.text().len();
        let waiting = stream.progress().decompressed_bytes() - taken as u64;
        assert!(waiting <= limit as u64 + (256 << 10), "{waiting}");
        // The one that is read, those ahead of it, and both ends.
        let fetched = api.requests().len();
        assert!(fetched <= slice as usize + 1 + 2 + 2, "{fetched} for {slice}");
    }
    assert_eq!((slice, lines), (6, 24_000));
}

#[tokio::test]
async fn waiting_for_a_block_can_be_given_up_at_any_time() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(long).await;
    let mut stream = open(options(&api.endpoint, root.path()), range(3));
    let mut length = 0;
    loop {
        // Polled once, then dropped.
        let mut next = Box::pin(stream.next_block());
        let polled = poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
        drop(next);
        match polled {
            Poll::Ready(Some(block)) => length += block.unwrap().text().len(),
            Poll::Ready(None) => break,
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
    assert_eq!(length, 3 * 6_000 * minutes_text(0, 1).len());
}
