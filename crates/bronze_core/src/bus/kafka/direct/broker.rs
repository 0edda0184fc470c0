//! A connection to one broker: requests go out in the order of the calls, and a broker answers in
//! that order.
//!
//! Invariants: a connection that failed once takes no more calls, and every call that waits on it
//! ends; a call ends within its time. Dropping the connection ends its tasks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, InitProducerIdRequest, InitProducerIdResponse,
    MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse, RequestHeader,
    ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a broker has to take a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a broker has to answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The largest answer; none that is asked for comes near it, but what is no broker may say anything.
const MOST_ANSWER_BYTES: usize = 64 << 20;
/// Calls that may wait to be written.
const WAITING_CALLS: usize = 64;

/// Where a broker listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct BrokerAddress {
    pub(in super::super) host: String,
    pub(in super::super) port: u16,
}

impl std::fmt::Display for BrokerAddress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

/// A question that brokers answer.
pub(super) trait Question: Encodable + HeaderVersion {
    /// Its number in the protocol.
    const KEY: ApiKey;
    /// What is answered.
    type Answer: Decodable + HeaderVersion;
}

impl Question for ApiVersionsRequest {
    const KEY: ApiKey = ApiKey::ApiVersions;
    type Answer = ApiVersionsResponse;
}

impl Question for InitProducerIdRequest {
    const KEY: ApiKey = ApiKey::InitProducerId;
    type Answer = InitProducerIdResponse;
}

impl Question for MetadataRequest {
    const KEY: ApiKey = ApiKey::Metadata;
    type Answer = MetadataResponse;
}

impl Question for ProduceRequest {
    const KEY: ApiKey = ApiKey::Produce;
    type Answer = ProduceResponse;
}

/// A connection to one broker.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) address: BrokerAddress,
    client_id: StrBytes,
    calls: mpsc::Sender<Call>,
    next_number: AtomicI32,
    shared: Arc<Shared>,
    /// What the broker understands, by request.
    versions: Vec<(i16, i16, i16)>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Call {
    number: i32,
    frame: BytesMut,
    answer: oneshot::Sender<Bytes>,
}

/// What both directions know.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Calls that are written, or being written.
    waiting: VecDeque<(i32, oneshot::Sender<Bytes>)>,
    /// Why the connection is of no more use.
    lost: Option<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends all calls; the first reason counts.
    fn lose(&self, reason: String) {
        let mut state = self.state();
        state.lost.get_or_insert(reason);
        state.waiting.clear();
    }
}

impl Broker {
    /// Connects and asks what the broker understands.
    pub(super) async fn connect(address: BrokerAddress, client_id: &str) -> Result<Self, String> {
        let opened = timeout(CONNECT_TIMEOUT, open(&address)).await;
        let stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(format!("{address}: {error}")),
            Err(_) => {
                let seconds = CONNECT_TIMEOUT.as_secs();
                return Err(format!("{address}: no connection within {seconds} s"));
            }
        };
        let (reader, writer) = stream.into_split();
        let (calls, received) = mpsc::channel(WAITING_CALLS);
        let shared = Arc::new(Shared::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(write_calls(writer, received, Arc::clone(&shared)));
        tasks.spawn(read_answers(reader, Arc::clone(&shared)));
        let mut broker = Self {
            address,
            client_id: StrBytes::from_string(client_id.to_owned()),
            calls,
            next_number: AtomicI32::new(0),
            shared,
            versions: Vec::new(),
            _tasks: tasks,
        };
        // The oldest form of the question, which every broker understands.
        let answer = broker.call_as(&ApiVersionsRequest::default(), 0, CONNECT_TIMEOUT).await?;
        let ranges = answer.api_keys.iter();
        broker.versions =
            ranges.map(|range| (range.api_key, range.min_version, range.max_version)).collect();
        Ok(broker)
    }

    /// Whether it still takes calls.
    pub(super) fn is_lost(&self) -> bool {
        self.shared.state().lost.is_some()
    }

    /// The newest version of a request that both sides know, of those between `oldest` and `newest`.
    pub(super) fn version<R: Question>(&self, oldest: i16, newest: i16) -> Result<i16, String> {
        let known = self.versions.iter().find(|(key, ..)| *key == R::KEY as i16);
        let version = known.map(|(_, low, high)| (oldest.max(*low), newest.min(*high)));
        match version {
            Some((low, high)) if low <= high => Ok(high),
            _ => Err(format!(
                "{}: the broker does not speak the protocol of Kafka 0.11 or newer; try \
                 --kafka-client librdkafka",
                self.address
            )),
        }
    }

    /// Asks the broker; an error is the end of the connection.
    pub(super) async fn call<R: Question>(
        &self,
        request: &R,
        version: i16,
    ) -> Result<R::Answer, String> {
        self.call_as(request, version, REQUEST_TIMEOUT).await
    }

    async fn call_as<R: Question>(
        &self,
        request: &R,
        version: i16,
        patience: Duration,
    ) -> Result<R::Answer, String> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let frame = self.frame(request, version, number);
        let frame = frame.map_err(|error| format!("{}: {error}", self.address))?;
        let (answer, answered) = oneshot::channel();
        let exchange = async {
            self.calls.send(Call { number, frame, answer }).await.ok()?;
            answered.await.ok()
        };
        match timeout(patience, exchange).await {
            Ok(Some(mut answer)) => {
                let header = <R::Answer as HeaderVersion>::header_version(version);
                ResponseHeader::decode(&mut answer, header)
                    .and_then(|_| R::Answer::decode(&mut answer, version))
                    .map_err(|error| {
                        self.lose(format!("an answer that is none of Kafka's: {error}"))
                    })
            }
            Ok(None) => Err(self.lose("the connection is closed".to_owned())),
            Err(_) => Err(self.lose(format!("no answer within {} s", patience.as_secs()))),
        }
    }

    fn frame<R: Question>(
        &self,
        request: &R,
        version: i16,
        number: i32,
    ) -> Result<BytesMut, String> {
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY as i16)
            .with_request_api_version(version)
            .with_correlation_id(number)
            .with_client_id(Some(self.client_id.clone()));
        let size = request.compute_size(version).map_err(|error| error.to_string())?;
        let mut frame = BytesMut::with_capacity(size + 64 + self.client_id.len());
        frame.put_i32(0);
        header
            .encode(&mut frame, R::header_version(version))
            .and_then(|()| request.encode(&mut frame, version))
            .map_err(|error| error.to_string())?;
        let length = i32::try_from(frame.len() - 4).map_err(|error| error.to_string())?;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        Ok(frame)
    }

    /// Ends the connection, and says why: the first reason is the one that counts.
    fn lose(&self, reason: String) -> String {
        self.shared.lose(reason);
        let why = self.shared.state().lost.clone().unwrap_or_default();
        format!("{}: {why}", self.address)
    }
}

async fn open(address: &BrokerAddress) -> std::io::Result<TcpStream> {
    let mut last = None;
    for found in tokio::net::lookup_host((address.host.as_str(), address.port)).await? {
        let socket = if found.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // Else a peer that vanished while nothing was sent is missed only with the next request.
        socket.set_keepalive(true)?;
        match socket.connect(found).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| std::io::Error::other("the name has no address")))
}

async fn write_calls(
    mut writer: OwnedWriteHalf,
    mut calls: mpsc::Receiver<Call>,
    shared: Arc<Shared>,
) {
    while let Some(call) = calls.recv().await {
        {
            let mut state = shared.state();
            if state.lost.is_some() {
                return;
            }
            state.waiting.push_back((call.number, call.answer));
        }
        if let Err(error) = writer.write_all(&call.frame).await {
            shared.lose(error.to_string());
            return;
        }
    }
}

async fn read_answers(mut reader: OwnedReadHalf, shared: Arc<Shared>) {
    loop {
        let read = async {
            let length = usize::try_from(reader.read_i32().await?).unwrap_or(usize::MAX);
            if !(4..=MOST_ANSWER_BYTES).contains(&length) {
                return Err(std::io::Error::other("an answer that is none of Kafka's"));
            }
            let mut answer = BytesMut::zeroed(length);
            reader.read_exact(&mut answer).await?;
            Ok(answer.freeze())
        };
        let answer = match read.await {
            Ok(answer) => answer,
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return shared.lose("the connection is closed by peer".to_owned());
            }
            Err(error) => return shared.lose(error.to_string()),
        };
        let number = i32::from_be_bytes([answer[0], answer[1], answer[2], answer[3]]);
        let asked = shared.state().waiting.pop_front();
        match asked {
            // Who asked may have given up.
            Some((asked, waiting)) if asked == number => drop(waiting.send(answer)),
            _ => return shared.lose("an answer to a question nobody asked".to_owned()),
        }
    }
}
