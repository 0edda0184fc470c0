//! A connection to an exchange, made again whenever it is lost.

mod open;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::arrivals::{Arrival, Arrivals, Gone, Loss, What};
use super::backoff::Backoff;
use super::fault::Fault;
use super::feed::{ConnectionPlan, Feed};
use super::network::Network;
use super::pacing::LivePacing;
use super::progress::LiveProgress;
use super::snapshots::DepthSnapshots;
use open::OpenConnection;

/// What a connection is made of.
pub(super) struct Connection {
    pub(super) stream: usize,
    pub(super) feed: &'static dyn Feed,
    pub(super) url: String,
    pub(super) plan: ConnectionPlan,
    /// How long it may be silent.
    pub(super) patience: Option<Duration>,
    pub(super) snapshots: Option<DepthSnapshots>,
    pub(super) pacing: LivePacing,
    pub(super) network: Arc<Network>,
    pub(super) arrivals: Arrivals,
    pub(super) restart: Arc<Restart>,
    pub(super) progress: Arc<LiveProgress>,
}

/// How the session says that a connection is to be made again.
#[derive(Debug, Default)]
pub(super) struct Restart {
    epoch: AtomicU64,
    asked: Notify,
}

impl Restart {
    /// Asks for an end of the connection numbered `epoch`, if it is still there.
    pub(super) fn ask(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Release);
        self.asked.notify_one();
    }

    async fn asked(&self, epoch: u64) {
        loop {
            self.asked.notified().await;
            if self.epoch.load(Ordering::Acquire) == epoch {
                return;
            }
        }
    }
}

/// How an attempt ended.
struct Ended {
    loss: Loss,
    /// How long the connection lasted, if the exchange sent something over it.
    lasted: Option<Duration>,
}

impl Connection {
    /// Goes on until the session is gone.
    pub(super) async fn run(self) {
        let mut backoff = Backoff::new(self.pacing);
        let mut was_open = false;
        for epoch in 1.. {
            let Ok(Ended { loss, lasted }) = self.attempt(epoch, was_open).await else { return };
            was_open |= loss.was_open;
            let wait = backoff.wait(lasted, loss.fault.as_ref());
            let arrival = Arrival { stream: self.stream, epoch, what: What::Lost(loss) };
            if self.arrivals.put(arrival).await.is_err() {
                return;
            }
            sleep(wait).await;
        }
    }

    /// Connects, and goes on until the connection is lost.
    async fn attempt(&self, epoch: u64, again: bool) -> Result<Ended, Gone> {
        let patience = self.pacing.connect_timeout;
        let fault = match timeout(patience, self.network.socket(&self.url)).await {
            Ok(Ok(socket)) => {
                let _connected = self.progress.connected(again);
                return OpenConnection::new(self, epoch, socket).run().await;
            }
            Ok(Err(fault)) => fault,
            Err(_) => {
                let seconds = patience.as_secs_f64();
                Fault::connect(format!("{} did not answer in {seconds} seconds", self.url))
            }
        };
        Ok(Ended {
            loss: Loss { fault: Some(fault), counts: true, ..Loss::default() },
            lasted: None,
        })
    }
}
