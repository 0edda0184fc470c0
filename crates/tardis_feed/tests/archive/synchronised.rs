//! Raw replays to several connections that are kept in step.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tardis_feed::{
    Archive, Chunk, RawRequest, RawSession, SessionError, SessionProgress, SynchronisedSession,
};

use crate::loopback::{Loopback, Reply, Request, minutes_text, options};

/// The range of all requests begins here.
const FROM: &str = "2020-02-01T00:55:00.000Z";

fn request(exchange: &str, minutes: u32) -> RawRequest {
    let to = format!("2020-02-01T00:{}:00.000Z", 55 + minutes);
    RawRequest::of_parts(exchange, FROM, &to, Vec::new()).unwrap()
}

/// A line of the first minute for each second and its message.
fn lines(lines: &[(u32, &str)]) -> String {
    let line = |(second, message): &(u32, &str)| match *message {
        "" => "\n".to_owned(),
        "!" => "nonsense\n".to_owned(),
        message => format!("2020-02-01T00:55:{second:02}.0000000Z {message}\n"),
    };
    lines.iter().map(line).collect()
}

/// An API that has one minute of two exchanges, and nothing after it.
async fn two_exchanges(bitmex: &[(u32, &str)], deribit: &[(u32, &str)]) -> Loopback {
    let (bitmex, deribit) = (lines(bitmex), lines(deribit));
    Loopback::start(move |request: &Request| match request.offset() {
        0 if request.target.starts_with("/data-feeds/bitmex?") => Reply::slice(&bitmex),
        0 if request.target.starts_with("/data-feeds/deribit?") => Reply::slice(&deribit),
        _ => Reply::slice(""),
    })
    .await
}

fn archive(api: &Loopback, root: &tempfile::TempDir) -> Archive {
    let runtime = tokio::runtime::Handle::current();
    Archive::new(Arc::new(options(&api.endpoint, root.path())), &runtime).unwrap()
}

fn open(archive: &Archive, requests: Vec<RawRequest>) -> SynchronisedSession {
    SynchronisedSession::open(archive, requests, &Arc::default()).unwrap()
}

/// The messages of frames, all of which are short.
fn messages(chunk: &Chunk) -> Vec<String> {
    let mut messages = Vec::new();
    let mut rest = &*chunk.lines;
    while let [0x81, length @ 0..=125, after @ ..] = rest {
        let (message, after) = after.split_at(usize::from(*length));
        messages.push(String::from_utf8(message.to_vec()).unwrap());
        rest = after;
    }
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(chunk.messages, messages.len() as u64);
    messages
}

/// All pieces, with their connections; neighbours for the same one are joined, since a piece also
/// ends where nothing more is at hand.
async fn pieces(session: &mut SynchronisedSession) -> Result<Pieces, (Pieces, SessionError)> {
    let mut pieces: Pieces = Vec::new();
    loop {
        match session.next_chunk().await {
            Ok(Some((connection, chunk))) => match pieces.last_mut() {
                Some((last, piece)) if *last == connection => piece.extend(messages(&chunk)),
                _ => pieces.push((connection, messages(&chunk))),
            },
            Ok(None) => return Ok(pieces),
            Err(error) => return Err((pieces, error)),
        }
    }
}

type Pieces = Vec<(usize, Vec<String>)>;

fn expected(pieces: &[(usize, &[&str])]) -> Pieces {
    let owned = |messages: &[&str]| messages.iter().map(ToString::to_string).collect();
    pieces.iter().map(|(connection, messages)| (*connection, owned(messages))).collect()
}

const BITMEX: &[(u32, &str)] = &[(1, "b1"), (2, "b2"), (2, ""), (5, "b5"), (7, "b7"), (8, "b8")];
const DERIBIT: &[(u32, &str)] = &[(0, ""), (2, "d2"), (3, "d3"), (3, ""), (5, "d5")];

#[tokio::test]
async fn messages_come_in_the_order_of_time_and_ties_go_to_the_earlier_connection() {
    let root = tempfile::tempdir().unwrap();
    let api = two_exchanges(BITMEX, DERIBIT).await;
    let archive = archive(&api, &root);
    let progress = Arc::new(SessionProgress::default());
    let requests = vec![request("bitmex", 1), request("deribit", 1)];
    let mut session = SynchronisedSession::open(&archive, requests, &progress).unwrap();
    assert_eq!(
        pieces(&mut session).await.unwrap(),
        expected(&[
            (0, &["b1", "b2"]),
            (1, &["d2", "d3"]),
            (0, &["b5"]),
            (1, &["d5"]),
            (0, &["b7", "b8"])
        ])
    );
    assert!(progress.to_json().contains(r#""messages":8"#), "{}", progress.to_json());

    let mut other_way = open(&archive, vec![request("deribit", 1), request("bitmex", 1)]);
    assert_eq!(
        pieces(&mut other_way).await.unwrap(),
        expected(&[
            (1, &["b1"]),
            (0, &["d2"]),
            (1, &["b2"]),
            (0, &["d3", "d5"]),
            (1, &["b5", "b7", "b8"])
        ])
    );
    let mut nobody = open(&archive, Vec::new());
    assert!(nobody.next_chunk().await.unwrap().is_none());
}

#[tokio::test]
async fn a_piece_holds_all_messages_until_it_is_another_connections_turn() {
    let root = tempfile::tempdir().unwrap();
    let api = two_exchanges(BITMEX, DERIBIT).await;
    let mut session =
        open(&archive(&api, &root), vec![request("bitmex", 1), request("deribit", 1)]);
    let (connection, chunk) = session.next_chunk().await.unwrap().unwrap();
    assert_eq!((connection, chunk.lines.as_slice()), (0, &b"\x81\x02b1\x81\x02b2"[..]));
}

#[tokio::test]
async fn a_connection_whose_range_ends_leaves_the_rest_to_the_others() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|request: &Request| {
        Reply::slice(&minutes_text(request.offset(), request.minutes()))
    })
    .await;
    let requests = vec![request("bitmex", 1), request("deribit", 3), request("ftx", 0)];
    let mut session = open(&archive(&api, &root), requests);
    let [one, two, three] = [r#"{"offset":0}"#, r#"{"offset":1}"#, r#"{"offset":2}"#];
    let all = expected(&[
        (0, &[one]),
        (1, &[one]),
        (0, &[one]),
        (1, &[one]),
        (0, &[one]),
        (1, &[one, two, two, two, three, three, three]),
    ]);
    assert_eq!(pieces(&mut session).await.unwrap(), all);
}

#[tokio::test]
async fn one_connection_gets_what_a_raw_replay_gives() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|request: &Request| {
        Reply::slice(&minutes_text(request.offset(), 1).repeat(3_000))
    })
    .await;
    let archive = archive(&api, &root);
    let mut raw = RawSession::open(&archive, request("bitmex", 3), &Arc::default()).unwrap();
    let mut replayed = Vec::new();
    while let Some(chunk) = raw.next_chunk().await.unwrap() {
        for line in std::str::from_utf8(&chunk.lines).unwrap().lines() {
            let (_, message) = line.split_once(r#""message":"#).unwrap();
            replayed.push(message.strip_suffix('}').unwrap().to_owned());
        }
    }
    assert_eq!(replayed.len(), 27_000);
    let mut session = open(&archive, vec![request("bitmex", 3)]);
    assert!(pieces(&mut session).await.unwrap() == [(0, replayed)]);
}

#[tokio::test]
async fn waiting_for_a_piece_can_be_given_up_at_any_time() {
    let root = tempfile::tempdir().unwrap();
    let api = Loopback::start(|request: &Request| {
        Reply::slice(&minutes_text(request.offset(), 1).repeat(1_000))
    })
    .await;
    let mut session =
        open(&archive(&api, &root), vec![request("bitmex", 2), request("deribit", 2)]);
    let mut counts = [0, 0];
    loop {
        // Polled once, then dropped.
        let mut next = Box::pin(session.next_chunk());
        let polled = poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
        drop(next);
        match polled {
            Poll::Ready(Ok(Some((connection, chunk)))) => {
                counts[connection] += messages(&chunk).len();
            }
            Poll::Ready(Ok(None)) => break,
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
    assert_eq!(counts, [6_000, 6_000]);
}

#[tokio::test]
async fn an_error_of_one_connection_ends_the_session_after_what_came_before_it() {
    let root = tempfile::tempdir().unwrap();
    let broken = [(2, "d2"), (0, "!"), (6, "d6")];
    let api = two_exchanges(BITMEX, &broken).await;
    let requests = || vec![request("bitmex", 1), request("deribit", 1)];
    let mut session = open(&archive(&api, &root), requests());
    let (before, error) = pieces(&mut session).await.unwrap_err();
    assert_eq!(before, expected(&[(0, &["b1", "b2"]), (1, &["d2"])]));
    assert!(error.to_string().contains("line 2 of the slice"), "{error}");

    let refusing = Loopback::start(|request: &Request| {
        if request.target.starts_with("/data-feeds/deribit?") {
            return Reply::new(401, r#"{"message":"no such key"}"#);
        }
        Reply::slice(&lines(BITMEX))
    })
    .await;
    let other_root = tempfile::tempdir().unwrap();
    let mut session = open(&archive(&refusing, &other_root), requests());
    let (before, error) = pieces(&mut session).await.unwrap_err();
    assert_eq!(before, []);
    assert!(
        matches!(&error, SessionError::Feed(feed) if feed.api_status() == Some(401)),
        "{error}"
    );
}

#[tokio::test]
async fn a_session_goes_on_without_a_client_that_left() {
    let root = tempfile::tempdir().unwrap();
    let api = two_exchanges(BITMEX, DERIBIT).await;
    let mut session =
        open(&archive(&api, &root), vec![request("bitmex", 1), request("deribit", 1)]);
    session.next_chunk().await.unwrap().unwrap();
    session.leave(1);
    assert_eq!(pieces(&mut session).await.unwrap(), expected(&[(0, &["b5", "b7", "b8"])]));
    session.leave(0);
    assert!(session.next_chunk().await.unwrap().is_none());
}
