//! Questions to an exchange over HTTP.

use std::sync::Arc;
use std::time::Duration;

use market_data::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde::Deserialize;
use tokio::time::{sleep, timeout};

use super::endpoints::Settings;
use super::fault::Fault;
use super::network::Network;
use super::pacing::LivePacing;
use super::weight::Weights;
use crate::api::describe;

/// How often a question is put.
const ATTEMPTS: u32 = 10;
const LONGEST_RETRY: Duration = Duration::from_secs(5);
const LONGEST_ASKED: Duration = Duration::from_mins(2);
/// No answer is longer.
const MAX_BODY_BYTES: usize = 64 << 20;

/// An exchange over HTTP.
#[derive(Clone, Debug)]
pub(super) struct RestClient {
    http: Client,
    base: Arc<str>,
    pacing: LivePacing,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) body: Vec<u8>,
    /// How much of the limit is used now, if the exchange says so.
    pub(super) used_weight: Option<u64>,
}

#[derive(Deserialize)]
struct ExchangeInfo<'a> {
    #[serde(borrow, rename = "rateLimits", default)]
    limits: Vec<RateLimit<'a>>,
}

#[derive(Deserialize)]
struct RateLimit<'a> {
    #[serde(rename = "rateLimitType")]
    kind: &'a str,
    limit: u64,
}

impl RestClient {
    pub(super) fn new(network: &Network, base: &str, pacing: LivePacing) -> Result<Self, Fault> {
        Ok(Self { http: network.http(base)?, base: base.into(), pacing })
    }

    /// Asks for `path`. What may be better the next time is tried again, a few times.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, Fault> {
        let place = format!("{}{path}", self.base);
        let mut url = Url::parse(&place)
            .map_err(|error| Fault::connect(format!("{place} is no URL ({error})")))?;
        for (name, value) in query {
            url.query_pairs_mut().append_pair(name, value);
        }
        let mut attempt = 1;
        loop {
            let asked = timeout(self.pacing.rest_timeout, self.ask(url.clone()));
            let (fault, may_retry) = match asked.await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => {
                    let patience = self.pacing.rest_timeout.as_secs_f64();
                    (Fault::connect(format!("{url} did not answer in {patience} seconds")), true)
                }
            };
            if !may_retry || attempt >= ATTEMPTS {
                return Err(fault);
            }
            let doubled = self.pacing.rest_retry.saturating_mul(1 << (attempt - 1).min(16));
            let wait = fault
                .retry_after
                .map_or(doubled.min(LONGEST_RETRY), |asked| asked.min(LONGEST_ASKED));
            sleep(wait).await;
            attempt += 1;
        }
    }

    /// Asks once; on failure it is said whether to ask again.
    async fn ask(&self, url: Url) -> Result<Answer, (Fault, bool)> {
        let failed = |error| (Fault::connect(format!("{url}: {}", describe(error))), true);
        let mut response = self.http.get(url.clone()).send().await.map_err(failed)?;
        let status = response.status().as_u16();
        if status != 200 {
            let may_retry = matches!(status, 403 | 429 | 500);
            return Err((Fault::status(status, response.headers(), url.as_str()), may_retry));
        }
        let used_weight = used_weight(response.headers());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_BODY_BYTES {
                let details = format!("{url} gave more than {MAX_BODY_BYTES} bytes");
                return Err((Fault::connect(details), false));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { body, used_weight })
    }

    /// What may be asked in a minute: as the environment says, or else as the exchange says.
    pub(super) async fn weights(
        &self,
        settings: &Settings,
        reserve: u64,
    ) -> Result<Weights, Fault> {
        let reserve = settings.weight_reserve.unwrap_or(reserve);
        if let Some(limit) = settings.weight_limit {
            return Ok(Weights::new(limit, reserve, 0));
        }
        let answer = self.get("/exchangeInfo", &[]).await?;
        let unclear = |reason: &str| {
            Fault::connect(format!("{}/exchangeInfo is not understood: {reason}", self.base))
        };
        let info: ExchangeInfo<'_> =
            serde_json::from_slice(&answer.body).map_err(|error| unclear(&error.to_string()))?;
        let limit = info.limits.iter().find(|limit| limit.kind == "REQUEST_WEIGHT");
        let limit = limit.ok_or_else(|| unclear("it has no limit of REQUEST_WEIGHT"))?.limit;
        Ok(Weights::new(limit, reserve, answer.used_weight.unwrap_or(0)))
    }

    /// Waits until questions of this weight may be put. Says whether it had to.
    pub(super) async fn wait_for(weights: &mut Weights, weight: u64) -> Result<bool, Fault> {
        let Some(wait) = weights.wait(weight, Timestamp::now())? else { return Ok(false) };
        sleep(wait).await;
        weights.renew();
        Ok(true)
    }
}

fn used_weight(headers: &HeaderMap) -> Option<u64> {
    headers.get("x-mbx-used-weight-1m")?.to_str().ok()?.trim().parse().ok()
}
