//! An API of one's own on the loopback interface, which answers as a test tells it.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tardis_feed::{
    Archive, Compression, FeedError, FeedOptions, Minute, RetryPolicy, SliceRange, SliceStream,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) target: String,
    pub(crate) headers: HashMap<String, String>,
    /// How often the same was asked before.
    pub(crate) times_before: usize,
}

impl Request {
    /// A value of the query, as it stands there.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn offset(&self) -> u32 {
        self.query("offset").unwrap().parse().unwrap()
    }

    pub(crate) fn minutes(&self) -> u32 {
        self.query("sliceSize").map_or(1, |size| size.parse().unwrap())
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) ending: Ending,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    /// The connection is closed in the middle of the body.
    Cut,
    /// In the middle of the body nothing more comes.
    Stall,
    /// A chunked body without its last chunk.
    ChunkedCut,
    /// Nothing comes at all.
    Silence,
    /// The body comes in small pieces, one every few milliseconds.
    Trickle,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), ending: Ending::Whole }
    }

    pub(crate) fn slice(text: &str) -> Self {
        Self::new(200, zstd_frames(text)).header("content-encoding", "zstd")
    }

    pub(crate) fn header(mut self, name: &str, value: impl Display) -> Self {
        self.headers.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }
}

/// In how many pieces a body trickles, and the pause after each.
pub(crate) const TRICKLE_PIECES: usize = 60;
pub(crate) const TRICKLE_PAUSE: Duration = Duration::from_millis(10);

type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

/// The API; it stops with its runtime.
pub(crate) struct Loopback {
    pub(crate) endpoint: String,
    requests: Arc<Mutex<Vec<Request>>>,
    given_up: Arc<AtomicUsize>,
}

impl Loopback {
    pub(crate) async fn start(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let given_up = Arc::new(AtomicUsize::new(0));
        let (seen, left) = (Arc::clone(&requests), Arc::clone(&given_up));
        let answer: Arc<Answer> = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (answer, seen, left) =
                    (Arc::clone(&answer), Arc::clone(&seen), Arc::clone(&left));
                tokio::spawn(async move {
                    if serve(connection, answer, seen).await == Ending::Stall {
                        left.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Self { endpoint, requests, given_up }
    }

    /// How many clients closed their connection after an answer fell silent.
    pub(crate) fn given_up(&self) -> usize {
        self.given_up.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Offset and size of every request, in the order they came.
    pub(crate) fn asked(&self) -> Vec<(u32, u32)> {
        self.requests().iter().map(|request| (request.offset(), request.minutes())).collect()
    }
}

/// Answers until the connection cannot be used any more; gives the last answer's ending.
async fn serve(
    connection: TcpStream,
    answer: Arc<Answer>,
    seen: Arc<Mutex<Vec<Request>>>,
) -> Ending {
    let mut connection = BufReader::new(connection);
    while let Some(mut request) = read_request(&mut connection).await {
        {
            let mut seen = seen.lock().unwrap();
            request.times_before = seen.iter().filter(|old| old.target == request.target).count();
            seen.push(request.clone());
        }
        let reply = answer(&request);
        write_reply(&mut connection, &reply).await;
        if !matches!(reply.ending, Ending::Whole | Ending::Trickle) {
            return reply.ending;
        }
    }
    Ending::Whole
}

async fn read_request(connection: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    connection.read_line(&mut line).await.ok()?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Some(Request { target, headers, times_before: 0 })
}

async fn write_reply(connection: &mut BufReader<TcpStream>, reply: &Reply) {
    if reply.ending == Ending::Silence {
        let _ = connection.read_u8().await;
        return;
    }
    let mut head = format!("HTTP/1.1 {} Said\r\n", reply.status).into_bytes();
    for (name, value) in &reply.headers {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    let body = &reply.body;
    let half = &body[..body.len() / 2];
    match reply.ending {
        Ending::ChunkedCut => {
            write!(head, "transfer-encoding: chunked\r\n\r\n{:x}\r\n", half.len()).unwrap();
        }
        _ => write!(head, "content-length: {}\r\n\r\n", body.len()).unwrap(),
    }
    // A client that is gone already is seen at the next read.
    let _ = connection.write_all(&head).await;
    let _ = match reply.ending {
        Ending::Whole => connection.write_all(body).await,
        Ending::Trickle => {
            for piece in body.chunks(body.len().div_ceil(TRICKLE_PIECES)) {
                let _ = connection.write_all(piece).await;
                tokio::time::sleep(TRICKLE_PAUSE).await;
            }
            Ok(())
        }
        Ending::ChunkedCut => connection.write_all(&[half, b"\r\n"].concat()).await,
        _ => connection.write_all(half).await,
    };
    if reply.ending == Ending::Stall {
        // Until the other side gives up.
        let _ = connection.read_u8().await;
    }
}

pub(crate) fn zstd_frame(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// A text in several frames.
pub(crate) fn zstd_frames(text: &str) -> Vec<u8> {
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    [zstd_frame(first), zstd_frame(second)].concat()
}

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn start() -> Minute {
    Minute::of(market_data::Timestamp::of_minute(2020, 2, 1, 0, 55)).unwrap()
}

/// The lines of some minutes after [`start`].
pub(crate) fn minutes_text(offset: u32, minutes: u32) -> String {
    let mut text = String::new();
    for offset in offset..offset + minutes {
        let minute = start().after(offset).to_string();
        let minute = &minute[..16];
        for second in [1, 30, 59] {
            writeln!(text, "{minute}:{second:02}.1234567Z {{\"offset\":{offset}}}").unwrap();
        }
        text.push('\n');
    }
    text
}

/// The answer of an API without faults.
pub(crate) fn good(request: &Request) -> Reply {
    let (offset, minutes) = (request.offset(), request.minutes());
    Reply::slice(&minutes_text(offset, minutes)).header("x-slice-size", minutes)
}

pub(crate) fn range(minutes: u32) -> SliceRange {
    SliceRange {
        exchange: "bitmex".to_owned(),
        from: start(),
        to: start().after(minutes),
        filters: Vec::new(),
        wait_when_data_not_yet_available: None,
    }
}

pub(crate) fn options(endpoint: &str, cache_dir: &std::path::Path) -> FeedOptions {
    FeedOptions {
        endpoint: endpoint.to_owned(),
        cache_dir: cache_dir.to_owned(),
        compression: Compression::Zstd,
        retry: RetryPolicy {
            attempts: 3,
            base_delay: Duration::from_millis(1),
            max_delay: Duration::from_millis(5),
            max_retry_after: Duration::from_millis(5),
        },
        ..FeedOptions::default()
    }
}

pub(crate) fn open(options: FeedOptions, range: SliceRange) -> SliceStream {
    let runtime = tokio::runtime::Handle::current();
    Archive::new(Arc::new(options), &runtime).unwrap().open(range).unwrap()
}

/// All text of a stream.
pub(crate) async fn text_of(stream: &mut SliceStream) -> Result<String, FeedError> {
    let mut text = Vec::new();
    while let Some(block) = stream.next_block().await {
        text.extend_from_slice(block?.text());
    }
    Ok(String::from_utf8(text).unwrap())
}

pub(crate) async fn replay(options: FeedOptions, range: SliceRange) -> Result<String, FeedError> {
    text_of(&mut open(options, range)).await
}

/// The files below a folder, by their path in it.
pub(crate) fn files(folder: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().filter_map(Result::ok) {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => names.push(path.strip_prefix(folder).unwrap().display().to_string()),
            }
        }
    }
    names.sort();
    names
}

/// Only the names of the files, from the hour on.
pub(crate) fn slice_names(folder: &std::path::Path) -> Vec<String> {
    let names = files(folder);
    names.iter().map(|name| name.rsplit('/').take(2).collect::<Vec<_>>().join("<")).collect()
}
