//! A connection while it is there: it subscribes, receives, keeps itself alive and watches that the
//! exchange does the same.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use market_data::{ErrorCode, Timestamp};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{self, Bytes, Message};

use super::super::arrivals::{Gone, Loss};
use super::super::fault::Fault;
use super::super::feed::{Incoming, Ping};
use super::super::network::Socket;
use super::{Connection, Ended};

/// How long the exchange may take to accept what it is sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a farewell may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How many messages that are there already are taken before timers have their turn.
const AT_ONCE: usize = 256;

type Frame = Option<Result<Message, tungstenite::Error>>;

pub(super) struct OpenConnection<'a> {
    connection: &'a Connection,
    epoch: u64,
    socket: Socket,
    since: Instant,
    /// What is to be sent, in its order.
    outbox: VecDeque<&'a str>,
    /// How many messages came, without signs of life.
    received: Arc<AtomicU64>,
    /// When the last of these came.
    last: Instant,
}

/// Why a connection does not go on.
enum End {
    Lost(Box<Loss>),
    Gone,
}

impl From<Gone> for End {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}

impl From<Fault> for End {
    fn from(fault: Fault) -> Self {
        Self::Lost(Box::new(Loss { fault: Some(fault), counts: true, ..Loss::default() }))
    }
}

impl<'a> OpenConnection<'a> {
    pub(super) fn new(connection: &'a Connection, epoch: u64, socket: Socket) -> Self {
        let plan = &connection.plan;
        let now = Instant::now();
        Self {
            connection,
            epoch,
            socket,
            since: now,
            outbox: plan.greeting.iter().chain(&plan.subscribe).map(|text| &**text).collect(),
            received: Arc::default(),
            last: now,
        }
    }

    pub(super) async fn run(mut self) -> Result<Ended, Gone> {
        let mut fetching = JoinSet::new();
        if let Some(snapshots) = self.connection.snapshots.clone() {
            fetching.spawn(snapshots.fetch(self.epoch, Arc::clone(&self.received)));
        }
        let end = self.serve(&mut fetching).await;
        // Nothing may come from this connection after the news of its loss.
        fetching.shutdown().await;
        let mut loss = match end {
            Ok(()) => Loss::default(),
            Err(End::Lost(loss)) => *loss,
            Err(End::Gone) => return Err(Gone),
        };
        let _ = timeout(CLOSE_TIMEOUT, self.socket.close(None)).await;
        loss.was_open = true;
        if let (true, Some(fault)) = (loss.reason.is_empty(), &loss.fault) {
            loss.reason.clone_from(&fault.details);
        }
        let has_received = self.received.load(Ordering::Relaxed) > 0;
        let is_quiet = loss.fault.is_some() && !loss.counts;
        // A quiet market says nothing against the connection.
        let lasted = if is_quiet { Duration::MAX } else { self.since.elapsed() };
        Ok(Ended { loss, lasted: has_received.then_some(lasted) })
    }

    async fn serve(&mut self, fetching: &mut JoinSet<Result<(), Fault>>) -> Result<(), End> {
        let connection = self.connection;
        let ping_interval = connection.pacing.ping_interval;
        let mut pings = interval_at(self.since + ping_interval, ping_interval);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next_send = self.since;
        let mut silence_check = self.since + connection.patience.unwrap_or_default();
        loop {
            tokio::select! {
                frame = self.socket.next() => self.take(frame).await?,
                () = sleep_until(next_send), if !self.outbox.is_empty() => {
                    if let Some(text) = self.outbox.pop_front() {
                        self.send(Message::text(text)).await?;
                    }
                    next_send = Instant::now() + connection.plan.throttle;
                }
                _ = pings.tick() => {
                    let ping = match connection.feed.ping() {
                        Ping::Frame => Message::Ping(Bytes::new()),
                        Ping::Text(text) => Message::text(text),
                    };
                    self.send(ping).await?;
                }
                () = silence(connection.patience, silence_check) => {
                    silence_check = self.last + connection.patience.unwrap_or_default();
                    if silence_check <= Instant::now() {
                        return Err(self.stale());
                    }
                }
                () = connection.restart.asked(self.epoch) => {
                    let reason = "a message could not be mapped".to_owned();
                    return Err(End::Lost(Box::new(Loss { reason, ..Loss::default() })));
                }
                Some(fetched) = fetching.join_next() => {
                    fetched.map_err(|error| Fault::connect(error.to_string()))??;
                }
            }
        }
    }

    /// Takes a frame, and those that are there already.
    async fn take(&mut self, first: Frame) -> Result<(), End> {
        let mut frame = first;
        for taken in 1.. {
            match frame {
                Some(Ok(Message::Text(text))) => self.message(text.into()).await?,
                Some(Ok(Message::Binary(bytes))) => self.message(bytes).await?,
                Some(Ok(Message::Close(said))) => return Err(self.closed(said)),
                // Pings are answered by the socket itself.
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    return Err(Fault::socket(error, &self.connection.url).into());
                }
                None => return Err(self.closed(None)),
            }
            if taken == AT_ONCE {
                break;
            }
            let Some(next) = self.socket.next().now_or_never() else { break };
            frame = next;
        }
        Ok(())
    }

    async fn message(&mut self, bytes: Bytes) -> Result<(), End> {
        let at = Timestamp::now();
        let connection = self.connection;
        match connection.feed.read(&bytes) {
            Incoming::Data => {
                self.received.fetch_add(1, Ordering::Relaxed);
                let sent = connection.arrivals.message(connection.stream, self.epoch, bytes, at);
                sent.await?;
                // After the wait for room: a slow client does not make an exchange silent.
                self.last = Instant::now();
            }
            Incoming::Heartbeat => {}
            Incoming::Question(answer) => self.send(Message::text(answer)).await?,
            Incoming::Refusal => return Err(Fault::refused(&bytes).into()),
        }
        Ok(())
    }

    async fn send(&mut self, message: Message) -> Result<(), End> {
        let reason = match timeout(SEND_TIMEOUT, self.socket.send(message)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the exchange does not read".to_owned(),
        };
        let details = format!("{}: could not send: {reason}", self.connection.url);
        Err(Fault::new(ErrorCode::Send, details).into())
    }

    fn closed(&self, said: Option<tungstenite::protocol::CloseFrame>) -> End {
        let (close_code, reason) =
            said.map_or((0, String::new()), |said| (said.code.into(), said.reason.to_string()));
        let is_early = self.received.load(Ordering::Relaxed) == 0;
        let fault = is_early.then(|| {
            let url = &self.connection.url;
            Fault::connect(format!(
                "{url} closed the connection before it sent anything (code {close_code}) {reason}"
            ))
        });
        End::Lost(Box::new(Loss { fault, counts: is_early, close_code, reason, ..Loss::default() }))
    }

    fn stale(&self) -> End {
        let (url, patience) = (&self.connection.url, self.connection.patience.unwrap_or_default());
        let details = format!("{url} sent no messages for {} ms", patience.as_millis());
        // One that answered may just have nothing to tell.
        let counts = self.received.load(Ordering::Relaxed) == 0;
        let fault = Some(Fault::connect(details));
        End::Lost(Box::new(Loss { fault, counts, ..Loss::default() }))
    }
}

/// Waits until the exchange may have been silent for too long.
async fn silence(patience: Option<Duration>, check: Instant) {
    match patience {
        Some(_) => sleep_until(check).await,
        None => pending().await,
    }
}
