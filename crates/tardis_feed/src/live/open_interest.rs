//! Open interest that is fetched again and again, because the exchange does not send it.

use std::sync::Arc;
use std::time::Duration;

use market_data::Timestamp;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::arrivals::{Arrival, Arrivals, FROM_NO_CONNECTION, Gone, What};
use super::endpoints::Settings;
use super::fault::Fault;
use super::network::Network;
use super::pacing::LivePacing;
use super::rest::{Answer, RestClient};
use super::snapshots::generated;
use super::weight::Weights;

const INTERVAL: Duration = Duration::from_secs(5);
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
const LONGEST_INTERVAL: Duration = Duration::from_mins(1);
/// By how much a longer interval becomes shorter again with each round.
const RECOVERY: Duration = Duration::from_secs(1);
/// How much of the exchange's limit is left to others where the environment does not say.
const RESERVE: u64 = 100;
const AT_ONCE: usize = 10;

/// The open interest of a stream's symbols.
pub(super) struct OpenInterest {
    pub(super) symbols: Vec<String>,
    pub(super) base: String,
    pub(super) settings: Settings,
    pub(super) network: Arc<Network>,
    pub(super) pacing: LivePacing,
    pub(super) arrivals: Arrivals,
    pub(super) stream: usize,
}

impl OpenInterest {
    /// Goes on until the session is gone.
    pub(super) async fn run(self) {
        let asked = self.settings.open_interest_ms.map_or(INTERVAL, Duration::from_millis);
        let shortest = asked.max(SHORTEST_INTERVAL);
        let mut interval = shortest;
        let mut known = None;
        loop {
            match self.round(&mut known).await {
                Ok(Ok(true)) => {
                    interval = (interval + shortest).min(LONGEST_INTERVAL.max(shortest));
                }
                Ok(Ok(false)) => interval = interval.saturating_sub(RECOVERY).max(shortest),
                Ok(Err(fault)) => {
                    if self.tell(fault).await.is_err() {
                        return;
                    }
                }
                Err(Gone) => return,
            }
            sleep(interval).await;
        }
    }

    /// Fetches all once. Says whether it had to wait for the limit.
    async fn round(
        &self,
        known: &mut Option<(RestClient, Weights)>,
    ) -> Result<Result<bool, Fault>, Gone> {
        let (client, weights) = match known {
            Some(known) => known,
            None => match self.prepare().await {
                Ok(prepared) => known.insert(prepared),
                Err(fault) => return Ok(Err(fault)),
            },
        };
        let mut has_waited = false;
        let mut rest = &*self.symbols;
        while !rest.is_empty() {
            match RestClient::wait_for(weights, 1).await {
                Ok(waited) => has_waited |= waited,
                Err(fault) => return Ok(Err(fault)),
            }
            let left = usize::try_from(weights.left()).unwrap_or(AT_ONCE).clamp(1, AT_ONCE);
            let (symbols, later) = rest.split_at(left.min(rest.len()));
            rest = later;
            let used = self.ask(client, symbols).await?;
            weights.used(used, symbols.len() as u64);
        }
        Ok(Ok(has_waited))
    }

    async fn prepare(&self) -> Result<(RestClient, Weights), Fault> {
        let client = RestClient::new(&self.network, &self.base, self.pacing)?;
        let weights = client.weights(&self.settings, RESERVE).await?;
        Ok((client, weights))
    }

    /// Asks for some symbols at once. Says how much of the limit is used then.
    async fn ask(&self, client: &RestClient, symbols: &[String]) -> Result<Option<u64>, Gone> {
        let mut questions = JoinSet::new();
        for symbol in symbols {
            let (client, symbol) = (client.clone(), symbol.clone());
            questions.spawn(async move {
                let query = [("symbol", &*symbol.to_uppercase())];
                (client.get("/openInterest", &query).await, symbol)
            });
        }
        let mut used = None;
        while let Some(answer) = questions.join_next().await {
            match answer {
                Ok((Ok(Answer { body, used_weight }), symbol)) => {
                    used = used.max(used_weight);
                    let message = generated(&symbol.to_lowercase(), "openInterest", &body);
                    let now = Timestamp::now();
                    let (stream, epoch) = (self.stream, FROM_NO_CONNECTION);
                    self.arrivals.message(stream, epoch, message.into(), now).await?;
                }
                Ok((Err(fault), _)) => self.tell(fault).await?,
                Err(error) => self.tell(Fault::connect(error.to_string())).await?,
            }
        }
        Ok(used)
    }

    async fn tell(&self, fault: Fault) -> Result<(), Gone> {
        let epoch = FROM_NO_CONNECTION;
        let arrival = Arrival { stream: self.stream, epoch, what: What::Fault(fault) };
        self.arrivals.put(arrival).await
    }
}
