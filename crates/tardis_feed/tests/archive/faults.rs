//! An API that refuses, fails, lies or falls silent, and streams that are given up.

use std::time::Duration;

use tardis_feed::{ApiKey, Archive, FeedError, FeedOptions, RetryPolicy, SliceRange};

use crate::loopback::{
    Ending, Loopback, Reply, Request, TRICKLE_PAUSE, TRICKLE_PIECES, files, good, minutes_text,
    open, options, range, replay, zstd_frame,
};

/// An API whose middle minute fails the first `times` times with `reply`.
async fn failing(times: usize, reply: Reply) -> Loopback {
    Loopback::start(move |request: &Request| {
        if request.offset() == 1 && request.times_before < times {
            reply.clone()
        } else {
            good(request)
        }
    })
    .await
}

/// Replays past a fault, and sees that the cache holds good slices and nothing else.
async fn survives(times: usize, reply: Reply, more: impl FnOnce(&mut FeedOptions)) {
    let root = tempfile::tempdir().unwrap();
    let api = failing(times, reply).await;
    let mut options = options(&api.endpoint, root.path());
    more(&mut options);
    let offline = FeedOptions { offline: true, ..options.clone() };
    assert_eq!(replay(options, range(3)).await.unwrap(), minutes_text(0, 3));
    assert_eq!(api.requests().len(), 3 + times);
    assert_eq!(files(root.path()).len(), 3);
    assert_eq!(replay(offline, range(3)).await.unwrap(), minutes_text(0, 3));
}

/// The error of a fault that stays, after both ends were good; the cache holds these two alone.
async fn gives_up(reply: Reply) -> (FeedError, usize) {
    let root = tempfile::tempdir().unwrap();
    let api = failing(usize::MAX, reply).await;
    let options =
        FeedOptions { api_key: ApiKey::new("TD.secret"), ..options(&api.endpoint, root.path()) };
    let error = replay(options, range(3)).await.unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("secret"), "{text}");
    }
    assert_eq!(files(root.path()).len(), 2, "{:?}", files(root.path()));
    (error, api.requests().len() - 2)
}

#[tokio::test]
async fn refusals_are_passed_on_at_once() {
    for (status, advice) in
        [(400, ""), (401, " (check the API key and what it gives access to)"), (404, "")]
    {
        let text = r#"{"code":1,"message":"no, TD.secret"}"#;
        let (error, asked) = gives_up(Reply::new(status, text)).await;
        assert_eq!(asked, 1);
        assert_eq!(error.api_status(), Some(status));
        let said = error.to_string();
        let start = format!("the Tardis API answered {status} to http://127.0.0.1:");
        let end = format!(r#"zstd-multiframe: {{"code":1,"message":"no, ***"}}{advice}"#);
        assert!(said.starts_with(&start) && said.ends_with(&end), "{said}");
    }
}

#[tokio::test]
async fn a_refusal_of_the_last_minute_comes_before_anything_else() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|_| Reply::new(401, "who are you?")).await;
    let error = replay(options(&api.endpoint, root.path()), range(100)).await.unwrap_err();
    assert_eq!(error.api_status(), Some(401));
    assert_eq!(api.asked(), [(99, 1)]);
}

#[tokio::test]
async fn too_many_requests_are_asked_again() {
    survives(2, Reply::new(429, "slow down").header("retry-after", "3600"), |_| {}).await;
    survives(2, Reply::new(429, "slow down"), |_| {}).await;
    let (error, asked) = gives_up(Reply::new(429, "slow down")).await;
    assert_eq!((error.api_status(), asked), (Some(429), 3));
}

#[tokio::test]
async fn failures_of_the_server_are_asked_again() {
    survives(2, Reply::new(500, "oops"), |_| {}).await;
    survives(1, Reply::new(503, "").header("retry-after", "1"), |_| {}).await;
    let (error, asked) = gives_up(Reply::new(500, "oops ".repeat(10_000))).await;
    assert_eq!((error.api_status(), asked), (Some(500), 3));
    let said = error.to_string();
    assert!(said.ends_with("… (asked 3 times; try again later)") && said.len() < 1_500, "{said}");
}

#[tokio::test]
async fn a_cut_body_is_no_slice() {
    for ending in [Ending::Cut, Ending::ChunkedCut] {
        let reply = Reply::slice(&minutes_text(1, 1)).ending(ending);
        survives(2, reply.clone(), |_| {}).await;
        let (error, asked) = gives_up(reply).await;
        assert_eq!(asked, 3);
        let said = error.to_string();
        assert!(matches!(error, FeedError::Unreachable { all_cached: false, .. }), "{said}");
        assert!(said.contains("in 3 attempts"), "{said}");
    }
}

#[tokio::test]
async fn a_body_that_ends_early_without_saying_so_is_no_slice() {
    let whole = zstd_frame(minutes_text(1, 1).as_bytes());
    for bad in [&whole[..whole.len() - 5], &whole[..3], b"", b"no zstd at all"] {
        let reply = Reply::new(200, bad).header("content-encoding", "zstd");
        survives(2, reply.clone(), |_| {}).await;
        let (error, asked) = gives_up(reply).await;
        assert!(matches!(error, FeedError::BadBody { attempts: 3, .. }), "{error}");
        assert_eq!(asked, 3);
    }
}

#[tokio::test]
async fn a_wrong_checksum_is_no_slice() {
    let mut zstd = zstd_frame(minutes_text(1, 1).as_bytes());
    let mut gzip = crate::loopback::gzip(&minutes_text(1, 1));
    *zstd.last_mut().unwrap() ^= 1;
    let at = gzip.len() - 5;
    gzip[at] ^= 1;
    for (bytes, encoding) in [(zstd, "zstd"), (gzip, "gzip")] {
        let reply = Reply::new(200, bytes).header("content-encoding", encoding);
        survives(1, reply.clone(), |_| {}).await;
        let (error, _) = gives_up(reply).await;
        assert!(error.to_string().contains("gave no good slice in 3 attempts"), "{error}");
    }
}

#[tokio::test]
async fn a_silent_api_is_asked_again() {
    let patience = |options: &mut FeedOptions| options.attempt_timeout = Duration::from_millis(500);
    for ending in [Ending::Stall, Ending::Silence] {
        survives(1, Reply::slice(&minutes_text(1, 1)).ending(ending), patience).await;
    }
}

#[tokio::test]
async fn a_slow_body_is_waited_for_as_long_as_something_comes() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|request: &Request| good(request).ending(Ending::Trickle)).await;
    let options = FeedOptions {
        // Less than the whole takes.
        attempt_timeout: TRICKLE_PAUSE * u32::try_from(TRICKLE_PIECES).unwrap() * 5 / 6,
        ..options(&api.endpoint, root.path())
    };
    assert_eq!(replay(options, range(1)).await.unwrap(), minutes_text(0, 1));
}

#[tokio::test]
async fn answers_that_are_not_understood_are_not_asked_again() {
    for (name, value) in [
        ("content-encoding", "br"),
        ("content-encoding", "garbage"),
        ("x-slice-size", "0"),
        ("x-slice-size", "many"),
        ("x-slice-size", "2"),
        ("x-suggested-slice-size", "-1"),
    ] {
        let (error, asked) = gives_up(Reply::new(200, "").header(name, value)).await;
        assert!(matches!(error, FeedError::Answer { .. }), "{name}: {error}");
        assert_eq!(asked, 1);
    }
}

#[tokio::test]
async fn an_api_that_is_not_there_is_said_to_be_so_and_a_full_cache_is_offered() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(good).await;
    replay(options(&api.endpoint, root.path()), range(4)).await.unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options = || options(&format!("http://{nobody}"), root.path());
    let error = replay(options(), range(4)).await.unwrap_err().to_string();
    assert!(error.contains("in 3 attempts"), "{error}");
    assert!(error.ends_with("the option `offline` replays it without the API"), "{error}");
    let error = replay(options(), range(5)).await.unwrap_err().to_string();
    assert!(error.ends_with("check the network and the endpoint"), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_origin_does_not_carry_the_key() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = Loopback::start(good).await;
    let target = elsewhere.endpoint.clone();
    let api = Loopback::start(move |request: &Request| {
        let location = match request.target.strip_prefix("/old") {
            Some(rest) => format!("/new{rest}"),
            None => request.target.replacen("/new", &target, 1),
        };
        Reply::new(307, "").header("location", location)
    })
    .await;
    let options = FeedOptions {
        api_key: ApiKey::new("TD.secret"),
        ..options(&format!("{}/old", api.endpoint), root.path())
    };
    assert_eq!(replay(options, range(1)).await.unwrap(), minutes_text(0, 1));
    let keys = |api: &Loopback| {
        let requests = api.requests();
        requests
            .iter()
            .map(|request| request.headers.contains_key("authorization"))
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&api), [true, true]);
    assert_eq!(keys(&elsewhere), [false]);
}

#[tokio::test]
async fn keys_do_not_print() {
    let options = FeedOptions { api_key: ApiKey::new("TD.secret"), ..FeedOptions::default() };
    let archive = Archive::new(options.into(), &tokio::runtime::Handle::current()).unwrap();
    assert!(!format!("{archive:?}").contains("secret"));
}

#[tokio::test]
async fn what_is_no_exchange_or_no_range_is_refused() {
    let archive = Archive::new(FeedOptions::default().into(), &tokio::runtime::Handle::current());
    for exchange in ["", "../bitmex", "bit mex", "a?b"] {
        let range = SliceRange { exchange: exchange.to_owned(), ..range(1) };
        let error = archive.as_ref().unwrap().open(range).unwrap_err();
        assert!(matches!(error, FeedError::Option { option: "exchange", .. }), "{error}");
    }
    let error = archive.as_ref().unwrap().open(range(u32::MAX)).unwrap_err();
    assert!(matches!(error, FeedError::Option { option: "to", .. }), "{error}");
}

#[tokio::test]
async fn a_line_without_end_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let text = format!("{}{}", minutes_text(0, 1), "x".repeat(1_000_000));
    let api = Loopback::start(move |_| Reply::slice(&text)).await;
    let options = FeedOptions { max_line_bytes: 500_000, ..options(&api.endpoint, root.path()) };
    let error = replay(options, range(1)).await.unwrap_err().to_string();
    let start = "line 5 of the slice of bitmex at 2020-02-01T00:55:00.000Z (";
    assert!(error.starts_with(start) && error.ends_with("is longer than 500000 bytes"), "{error}");
}

#[tokio::test]
async fn a_stream_that_is_dropped_leaves_no_temporary_file_and_no_download() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|request: &Request| {
        let body = minutes_text(request.offset(), 1).repeat(5_000);
        let ending = if request.offset() == 0 || request.offset() == 9 {
            Ending::Whole
        } else {
            Ending::Stall
        };
        Reply::slice(&body).ending(ending)
    })
    .await;
    let mut stream = open(options(&api.endpoint, root.path()), range(10));
    stream.next_block().await.unwrap().unwrap();
    let unconfirmed =
        || files(root.path()).iter().filter(|name| name.ends_with(".unconfirmed")).count();
    while unconfirmed() < 8 {
        tokio::task::yield_now().await;
    }
    drop(stream);
    while unconfirmed() > 0 || api.given_up() < 8 {
        tokio::task::yield_now().await;
    }
    assert_eq!(files(root.path()).len(), 2);
}

#[tokio::test]
async fn a_stream_that_waits_for_its_next_attempt_can_be_dropped() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|_| Reply::new(500, "")).await;
    let retry = RetryPolicy {
        base_delay: Duration::from_hours(1),
        max_delay: Duration::from_hours(1),
        ..RetryPolicy::default()
    };
    let stream = open(FeedOptions { retry, ..options(&api.endpoint, root.path()) }, range(1));
    while api.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(stream);
    assert!(files(root.path()).is_empty());
}
