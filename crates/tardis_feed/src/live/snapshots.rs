//! Order books that are fetched when a connection is there, because the exchange sends changes only.
//!
//! They reach the mapper as messages of their own, `btcusdt@depthSnapshot`. Changes must be on their
//! way before a book is fetched, or there would be a gap between the two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use market_data::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::arrivals::Arrivals;
use super::endpoints::Settings;
use super::fault::Fault;
use super::feed::Rest;
use super::network::Network;
use super::pacing::LivePacing;
use super::rest::RestClient;

/// How many books are fetched at once where the environment does not say.
const CONCURRENCY: u64 = 4;
/// How many levels each side has.
const LEVELS: &str = "1000";
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The order books of a connection.
#[derive(Clone)]
pub(super) struct DepthSnapshots {
    pub(super) symbols: Vec<String>,
    pub(super) rest: Rest,
    pub(super) base: String,
    pub(super) settings: Settings,
    pub(super) network: Arc<Network>,
    pub(super) pacing: LivePacing,
    pub(super) arrivals: Arrivals,
    pub(super) stream: usize,
}

impl DepthSnapshots {
    /// Fetches all books of the connection numbered `epoch` and sends them to the session.
    pub(super) async fn fetch(self, epoch: u64, received: Arc<AtomicU64>) -> Result<(), Fault> {
        self.wait_for_messages(&received).await;
        let client = RestClient::new(&self.network, &self.base, self.pacing)?;
        let concurrency = self.settings.concurrency.unwrap_or(CONCURRENCY);
        let weight = self.rest.depth_weight;
        let mut weights = client.weights(&self.settings, 2 * concurrency * weight).await?;
        let at_once = usize::try_from(concurrency).unwrap_or(usize::MAX);
        for symbols in self.symbols.chunks(at_once) {
            let together = symbols.len() as u64 * weight;
            RestClient::wait_for(&mut weights, together).await?;
            let mut questions = JoinSet::new();
            for symbol in symbols {
                questions.spawn(self.clone().fetch_one(client.clone(), symbol.clone(), epoch));
            }
            let mut used = None;
            while let Some(answer) = questions.join_next().await {
                let answer = answer.map_err(|error| Fault::connect(error.to_string()))?;
                used = used.max(answer?);
            }
            weights.used(used, together);
        }
        Ok(())
    }

    /// Waits for some messages of each symbol, which show that changes are on their way.
    async fn wait_for_messages(&self, received: &AtomicU64) {
        let enough = self.symbols.len() as u64 * 2;
        let until = Instant::now() + self.pacing.snapshot_patience;
        while received.load(Ordering::Relaxed) < enough && Instant::now() < until {
            sleep(CHECK_INTERVAL.min(self.pacing.snapshot_patience)).await;
        }
        sleep(self.pacing.snapshot_delay).await;
    }

    async fn fetch_one(
        self,
        client: RestClient,
        symbol: String,
        epoch: u64,
    ) -> Result<Option<u64>, Fault> {
        let query = [("symbol", &*symbol.to_uppercase()), ("limit", LEVELS)];
        let answer = client.get("/depth", &query).await?;
        let message = generated(&symbol, "depthSnapshot", &answer.body);
        // Without a session nobody is there who could be told.
        let sent = self.arrivals.message(self.stream, epoch, message.into(), Timestamp::now());
        if let (Ok(()), Some(millis)) = (sent.await, self.settings.snapshot_delay_ms) {
            sleep(Duration::from_millis(millis)).await;
        }
        Ok(answer.used_weight)
    }
}

/// A message as if the exchange had sent it.
pub(super) fn generated(symbol: &str, channel: &str, data: &[u8]) -> Vec<u8> {
    let mut message =
        format!(r#"{{"stream":"{symbol}@{channel}","generated":true,"data":"#).into_bytes();
    message.extend_from_slice(data);
    message.push(b'}');
    message
}
