//! An exchange of one's own: its WebSocket does what a test says, step by step, and its HTTP answers
//! as a test tells it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

/// Far more than anything here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What is answered over HTTP: status, header lines, body.
pub(crate) type Answer = (u16, &'static str, String);

/// Answers to questions for a path, in their order; the last one stays.
pub(crate) type Answers = HashMap<&'static str, VecDeque<Answer>>;

pub(crate) struct StandIn {
    pub(crate) port: u16,
    peers: mpsc::UnboundedReceiver<Peer>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    answers: Mutex<Answers>,
    asked: Mutex<Vec<String>>,
    /// With what connections are refused before one is accepted.
    refusals: Mutex<VecDeque<(u16, &'static str)>>,
}

/// The exchange's end of a connection.
pub(crate) struct Peer {
    pub(crate) path: String,
    pub(crate) socket: WebSocketStream<TcpStream>,
}

impl StandIn {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, peers) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving), sender.clone()));
            }
        });
        Self { port, peers, shared }
    }

    /// What is answered to questions for `path` over HTTP, time after time.
    pub(crate) fn answer(&self, path: &'static str, answers: impl IntoIterator<Item = Answer>) {
        self.shared.answers.lock().unwrap().insert(path, answers.into_iter().collect());
    }

    /// The next connections are refused so.
    pub(crate) fn refuse(&self, refusals: impl IntoIterator<Item = (u16, &'static str)>) {
        self.shared.refusals.lock().unwrap().extend(refusals);
    }

    /// What was asked over HTTP.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// The next connection.
    pub(crate) async fn peer(&mut self) -> Peer {
        timeout(PATIENCE, self.peers.recv()).await.expect("a connection").unwrap()
    }
}

impl Peer {
    /// The next message that is no ping.
    pub(crate) async fn next(&mut self) -> Message {
        loop {
            let next = timeout(PATIENCE, self.socket.next()).await.expect("a message");
            match next {
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(message)) => return message,
                other => panic!("the client went away: {other:?}"),
            }
        }
    }

    pub(crate) async fn expect(&mut self, expected: &Value) {
        let message = self.next().await;
        let text = message.to_text().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *expected, "{}", self.path);
    }

    pub(crate) async fn send(&mut self, message: &str) {
        self.socket.send(Message::text(message)).await.unwrap();
    }

    pub(crate) async fn send_all(&mut self, messages: &[&str]) {
        for message in messages {
            self.send(message).await;
        }
    }

    pub(crate) async fn ping(&mut self) {
        self.socket.send(Message::Ping(Bytes::from_static(b"hello"))).await.unwrap();
    }

    pub(crate) async fn close(mut self, code: u16, reason: &'static str) {
        let frame = CloseFrame { code: code.into(), reason: reason.into() };
        self.socket.close(Some(frame)).await.unwrap();
    }

    /// Waits until the client is gone.
    pub(crate) async fn until_gone(mut self) {
        let gone = async { while let Some(Ok(_)) = self.socket.next().await {} };
        timeout(PATIENCE, gone).await.expect("the client to go away");
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>, peers: mpsc::UnboundedSender<Peer>) {
    // A look at the question, which is left there for the one who reads it.
    let mut head = vec![0; 16 << 10];
    let text = loop {
        let Ok(length) = stream.peek(&mut head).await else { return };
        // TLS begins so, and it is not spoken here.
        if head[..length].starts_with(&[22]) {
            return write_answer(&mut stream, &(400, "", String::new())).await;
        }
        let text = String::from_utf8_lossy(&head[..length]).to_lowercase();
        if length == 0 || text.contains("\r\n\r\n") {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    if !text.contains("upgrade: websocket") {
        return answer(stream, &shared).await;
    }
    let refusal = shared.refusals.lock().unwrap().pop_front();
    if let Some((status, headers)) = refusal {
        let _ = stream.read(&mut head).await;
        return write_answer(&mut stream, &(status, headers, String::new())).await;
    }
    let mut path = String::new();
    #[allow(clippy::result_large_err)] // the shape is the library's
    let note = |request: &Request, response: Response| {
        path = request.uri().to_string();
        Ok(response)
    };
    if let Ok(socket) = accept_hdr_async(stream, note).await {
        let _ = peers.send(Peer { path, socket });
    }
}

async fn answer(mut stream: TcpStream, shared: &Shared) {
    let mut head = vec![0; 16 << 10];
    loop {
        let Ok(length @ 1..) = stream.read(&mut head).await else { return };
        let text = String::from_utf8_lossy(&head[..length]).into_owned();
        let Some(target) = text.split(' ').nth(1) else { return };
        shared.asked.lock().unwrap().push(target.to_owned());
        let path = target.split('?').next().unwrap_or_default();
        let found = {
            let mut answers = shared.answers.lock().unwrap();
            answers.get_mut(path).and_then(|answers| {
                if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
            })
        };
        let found = found.unwrap_or((404, "", "{}".to_owned()));
        write_answer(&mut stream, &found).await;
    }
}

async fn write_answer(stream: &mut TcpStream, (status, headers, body): &Answer) {
    let length = body.len();
    let text = format!("HTTP/1.1 {status} Said\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
    let _ = stream.write_all(text.as_bytes()).await;
}
