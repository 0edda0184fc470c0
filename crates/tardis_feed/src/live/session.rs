//! Streams live messages of one or several requests, in the order in which they come.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bronze_core::BronzeEncoder;
use market_data::{
    Disconnect, ErrorCode, ErrorNotice, Message, Normalization, SentTypes, Sink, StreamPlan,
    Timestamp,
};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinSet;

use super::arrivals::{Arrival, Arrivals, FROM_NO_CONNECTION, Loss, What};
use super::connection::{Connection, Restart};
use super::endpoints::LiveEndpoints;
use super::fault::Fault;
use super::feeds::feed;
use super::network::Network;
use super::open_interest::OpenInterest;
use super::progress::LiveProgress;
use super::request::LiveRequest;
use super::snapshots::DepthSnapshots;
use crate::error::FeedError;
use crate::filters::optimise;
use crate::output::{Chunk, ChunkWriter, Framing};
use crate::session::SessionError;

/// After so many errors in a row an exchange is given up, and the session with it.
const MAX_ERRORS: u32 = 50;

/// A stream of live messages. All of its work starts with the first chunk asked for and ends when
/// the session is dropped.
pub struct LiveSession {
    streams: Vec<Stream>,
    /// What is started with the first chunk.
    planned: Vec<Task>,
    tasks: JoinSet<()>,
    arrivals: Receiver<Arrival>,
    writer: ChunkWriter,
    /// Told after what was written before it.
    failure: Option<SessionError>,
    /// Errors of each exchange since its last message.
    errors: HashMap<&'static str, u32>,
    /// Whether somebody asked for disconnects: then all of them are told.
    tells_disconnects: bool,
    progress: Arc<LiveProgress>,
}

/// What comes over one connection. Its channels are its own, so its state is too, and what happens
/// to another connection leaves it alone.
struct Stream {
    exchange: &'static str,
    symbols: Option<Vec<String>>,
    tells_errors: bool,
    normalization: Normalization,
    restart: Arc<Restart>,
    /// The connection of which nothing more is wanted.
    spoilt: Option<u64>,
    /// When the last message came.
    last: Option<Timestamp>,
}

enum Task {
    Connection(Box<Connection>),
    OpenInterest(Box<OpenInterest>),
}

impl LiveSession {
    /// A session that answers `requests`. With an encoder, chunks have events too. Nothing is
    /// connected before the first chunk is asked for.
    pub fn open(
        requests: Vec<LiveRequest>,
        framing: Framing,
        encoder: Option<BronzeEncoder>,
        endpoints: &LiveEndpoints,
        progress: &Arc<LiveProgress>,
    ) -> Result<Self, FeedError> {
        let (sender, arrivals) = Arrivals::new();
        let mut session = Self {
            streams: Vec::new(),
            planned: Vec::new(),
            tasks: JoinSet::new(),
            arrivals,
            writer: ChunkWriter::new(framing, encoder),
            failure: None,
            errors: HashMap::new(),
            tells_disconnects: requests.iter().any(|request| request.with_disconnect_messages),
            progress: Arc::clone(progress),
        };
        let network = Arc::new(Network::default());
        let sent: Vec<SentTypes> = requests
            .iter()
            .map(|request| {
                let same = requests.iter().filter(|other| other.exchange.id == request.exchange.id);
                SentTypes::of(same.flat_map(|other| &other.data_types))
            })
            .collect();
        for (request, sent_types) in requests.into_iter().zip(sent) {
            session.plan(&request, sent_types, endpoints, &network, &sender)?;
        }
        progress.planned(session.streams.len() as u64);
        Ok(session)
    }

    /// The next piece of output: what came since the last one, as soon as there is something;
    /// `None` at the end. The call may be given up and made again.
    pub async fn next_chunk(&mut self) -> Result<Option<Chunk>, SessionError> {
        for task in self.planned.drain(..) {
            match task {
                Task::Connection(connection) => self.tasks.spawn(connection.run()),
                Task::OpenInterest(polling) => self.tasks.spawn(polling.run()),
            };
        }
        loop {
            let is_due = self.writer.is_full() || self.failure.is_some();
            let arrival = if !is_due && self.writer.is_empty() {
                self.arrivals.recv().await
            } else if is_due {
                None
            } else {
                self.arrivals.try_recv().ok()
            };
            match arrival {
                Some(arrival) => self.take(arrival),
                None if !self.writer.is_empty() => {
                    let chunk = self.writer.take_chunk();
                    self.progress.sent(chunk.messages);
                    return Ok(Some(chunk));
                }
                None => return self.failure.take().map_or(Ok(None), Err),
            }
        }
    }

    /// Adds the connections of a request.
    fn plan(
        &mut self,
        request: &LiveRequest,
        sent_types: SentTypes,
        endpoints: &LiveEndpoints,
        network: &Arc<Network>,
        arrivals: &Arrivals,
    ) -> Result<(), FeedError> {
        let exchange = request.exchange.id;
        let unusable = |reason: String| FeedError::Option { option: "the request", reason };
        let feed = feed(exchange)
            .ok_or_else(|| unusable(format!("{exchange} cannot be streamed live")))?;
        let settings = endpoints.settings(exchange);
        let pacing = endpoints.pacing;
        let plan = StreamPlan {
            exchange: request.exchange,
            symbols: request.symbols.clone(),
            data_types: request.data_types.clone(),
            // Told or not, they drop what was computed.
            with_disconnects: true,
            sent_types,
        };
        let connections = feed
            .connections(&optimise(&plan.filters(None)))
            .map_err(|needed| unusable(format!("{exchange}: {needed}")))?;
        for mut connection in connections {
            let stream = self.streams.len();
            let restart = Arc::new(Restart::default());
            let base = feed.rest().map(|rest| settings.rest_url(rest.url)).unwrap_or_default();
            let open_interest = std::mem::take(&mut connection.open_interest);
            let books = std::mem::take(&mut connection.depth_snapshots);
            let snapshots = feed.rest().filter(|_| !books.is_empty()).map(|rest| DepthSnapshots {
                symbols: books,
                rest,
                base: base.clone(),
                settings: settings.clone(),
                network: Arc::clone(network),
                pacing,
                arrivals: arrivals.clone(),
                stream,
            });
            self.planned.push(Task::Connection(Box::new(Connection {
                stream,
                feed,
                url: settings.socket_url(feed, connection.url),
                plan: connection,
                patience: request.timeout,
                snapshots,
                pacing,
                network: Arc::clone(network),
                arrivals: arrivals.clone(),
                restart: Arc::clone(&restart),
                progress: Arc::clone(&self.progress),
            })));
            if !open_interest.is_empty() {
                self.planned.push(Task::OpenInterest(Box::new(OpenInterest {
                    symbols: open_interest,
                    base,
                    settings: settings.clone(),
                    network: Arc::clone(network),
                    pacing,
                    arrivals: arrivals.clone(),
                    stream,
                })));
            }
            self.streams.push(Stream {
                exchange,
                symbols: request.symbols.clone(),
                tells_errors: request.with_error_messages,
                normalization: Normalization::new(plan.clone(), None),
                restart,
                spoilt: None,
                last: None,
            });
        }
        Ok(())
    }

    fn take(&mut self, Arrival { stream, epoch, what }: Arrival) {
        match what {
            What::Message { bytes, at, .. } => self.map(stream, epoch, &bytes, at),
            What::Fault(fault) => self.fail(stream, &fault, true),
            What::Lost(loss) => self.lose(stream, &loss),
        }
    }

    fn map(&mut self, index: usize, epoch: u64, bytes: &[u8], at: Timestamp) {
        let stream = &mut self.streams[index];
        if stream.spoilt == Some(epoch) {
            return;
        }
        stream.last = Some(at);
        self.progress.received(at);
        let mut sent = Counted { writer: &mut self.writer, messages: 0 };
        let mapped = stream.normalization.message(bytes, at, &mut sent);
        if sent.messages > 0 {
            self.errors.remove(stream.exchange);
        }
        if let Err(error) = mapped {
            // What was fetched over HTTP says nothing against the connection.
            if epoch != FROM_NO_CONNECTION {
                stream.spoilt = Some(epoch);
                stream.restart.ask(epoch);
            }
            let fault = Fault::new(ErrorCode::Unspecified, error.to_string());
            self.fail(index, &fault, true);
        }
    }

    /// Tells an error to those who asked for it.
    fn fail(&mut self, index: usize, fault: &Fault, counts: bool) {
        let stream = &self.streams[index];
        let count = self.errors.entry(stream.exchange).or_default();
        *count += u32::from(counts);
        let notice = Message::Error(ErrorNotice {
            exchange: Cow::Borrowed(stream.exchange),
            local_timestamp: Timestamp::now(),
            details: Cow::Borrowed(&fault.details),
            subsequent_errors: (*count).max(1),
            code: fault.code,
        });
        if stream.tells_errors {
            self.writer.take(&notice);
        } else {
            self.writer.publish_only(&notice);
        }
        self.progress.failed(&format!("{}: {}", stream.exchange, fault.details));
        if *count >= MAX_ERRORS {
            self.failure = Some(SessionError::TooManyErrors { exchange: stream.exchange });
            self.tasks.abort_all();
            self.arrivals.close();
        }
    }

    fn lose(&mut self, index: usize, loss: &Loss) {
        if let Some(fault) = &loss.fault {
            self.fail(index, fault, loss.counts);
        }
        let stream = &mut self.streams[index];
        stream.normalization.disconnect(&mut |_: &Message<'_>| {});
        if !loss.was_open {
            return;
        }
        let symbols = stream.symbols.as_deref();
        let disconnect = Message::Disconnect(Disconnect {
            exchange: Cow::Borrowed(stream.exchange),
            local_timestamp: stream.last.unwrap_or_else(Timestamp::now),
            symbols: symbols
                .map(|symbols| symbols.iter().map(|symbol| Cow::Borrowed(&**symbol)).collect()),
            reason: Cow::Borrowed(&loss.reason),
            close_code: loss.close_code.into(),
        });
        if self.tells_disconnects {
            self.writer.take(&disconnect);
        } else {
            self.writer.publish_only(&disconnect);
        }
    }
}

/// Counts the messages that are made of a raw one.
struct Counted<'a> {
    writer: &'a mut ChunkWriter,
    messages: u64,
}

impl Sink for Counted<'_> {
    fn take(&mut self, message: &Message<'_>) {
        self.messages += 1;
        self.writer.take(message);
    }
}
