//! The way from connections to their session: a queue that is bounded in messages and in bytes.

use std::sync::Arc;

use market_data::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_tungstenite::tungstenite::Bytes;

use super::fault::Fault;

/// How many messages may wait for their session.
const MESSAGES: usize = 4_096;
/// How many bytes they may have together; one message may have more.
const BYTES: u32 = 8 << 20;

/// The number of what comes over none of a stream's connections.
pub(super) const FROM_NO_CONNECTION: u64 = 0;

/// What comes from a connection.
pub(super) struct Arrival {
    /// Which of the session's streams it belongs to.
    pub(super) stream: usize,
    /// Which of the stream's connections it is from, in their order.
    pub(super) epoch: u64,
    pub(super) what: What,
}

pub(super) enum What {
    /// A message of the exchange.
    Message {
        bytes: Bytes,
        at: Timestamp,
        /// Given back when the message is dropped.
        _room: OwnedSemaphorePermit,
    },
    /// Something failed, but the connection goes on.
    Fault(Fault),
    /// The connection is gone, or was never made.
    Lost(Loss),
}

/// How a connection ended.
#[derive(Debug, Default)]
pub(super) struct Loss {
    /// What went wrong, unless the exchange just closed it.
    pub(super) fault: Option<Fault>,
    /// Whether the fault means that the exchange cannot be used: a quiet market does not.
    pub(super) counts: bool,
    /// Whether there was a connection to lose.
    pub(super) was_open: bool,
    /// The WebSocket close code, 0 if there was none.
    pub(super) close_code: u16,
    /// What was said about it.
    pub(super) reason: String,
}

/// Where connections put what they receive.
#[derive(Clone)]
pub(super) struct Arrivals {
    sender: mpsc::Sender<Arrival>,
    room: Arc<Semaphore>,
}

/// The session is gone.
#[derive(Debug)]
pub(super) struct Gone;

impl Arrivals {
    pub(super) fn new() -> (Self, mpsc::Receiver<Arrival>) {
        let (sender, receiver) = mpsc::channel(MESSAGES);
        (Self { sender, room: Arc::new(Semaphore::new(BYTES as usize)) }, receiver)
    }

    /// Waits until there is room for a message.
    pub(super) async fn message(
        &self,
        stream: usize,
        epoch: u64,
        bytes: Bytes,
        at: Timestamp,
    ) -> Result<(), Gone> {
        let taken = u32::try_from(bytes.len()).unwrap_or(BYTES).clamp(1, BYTES);
        let room = Arc::clone(&self.room).acquire_many_owned(taken).await.map_err(|_| Gone)?;
        self.put(Arrival { stream, epoch, what: What::Message { bytes, at, _room: room } }).await
    }

    pub(super) async fn put(&self, arrival: Arrival) -> Result<(), Gone> {
        self.sender.send(arrival).await.map_err(|_| Gone)
    }
}
