//! The exchanges of the sample market as live connections: WebSocket frames and answers over HTTP.

use market_data::Timestamp;
use sample_market::{SampleError, SampleMarket, SampleStream};

use crate::frames;
use crate::sample_api::{SampleApiError, sample_filters};

/// Where the answer begins in a message that a recorder made of it.
const ANSWER: &[u8] = b"\"data\":";

/// A live connection to an exchange of the sample market.
#[derive(Debug)]
pub struct SampleConnection {
    stream: SampleStream,
}

impl SampleConnection {
    /// Connects to an exchange at `now`.
    pub fn new(
        market: &SampleMarket,
        exchange: &str,
        now: Timestamp,
    ) -> Result<Self, SampleApiError> {
        Ok(Self { stream: market.connect(exchange, now)? })
    }

    /// Subscribes to `filters`, which are JSON, and gives the frames that the exchange sends first.
    pub fn subscribe(&mut self, filters: &str) -> Result<Vec<u8>, SampleApiError> {
        let filters = sample_filters(filters)?;
        let mut out = Vec::new();
        self.stream.subscribe(filters, |message| put_frame(&mut out, message))?;
        Ok(out)
    }

    /// The frames of all messages since the last time, up to `now`.
    pub fn frames(&mut self, now: Timestamp) -> Result<Vec<u8>, SampleError> {
        let mut out = Vec::new();
        self.stream.advance(now, |message| put_frame(&mut out, message))?;
        Ok(out)
    }
}

fn put_frame(out: &mut Vec<u8>, message: &[u8]) {
    let start = frames::begin(out);
    out.extend_from_slice(message);
    frames::end(out, start);
}

/// What an exchange answers over HTTP at `now` to the question that stands behind `filters`, which
/// are JSON: the part of the recorder's message that came from the exchange. Nothing if there is no
/// such message.
pub fn sample_state(
    market: &SampleMarket,
    exchange: &str,
    now: Timestamp,
    filters: &str,
) -> Result<Vec<u8>, SampleApiError> {
    let mut lines = Vec::new();
    market.state(exchange, now, &sample_filters(filters)?, &mut lines)?;
    let first = lines.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let answer = memchr::memmem::find(first, ANSWER)
        .and_then(|at| first.get(at + ANSWER.len()..first.len() - 1));
    Ok(answer.unwrap_or_default().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sample_market::SampleOptions;

    #[test]
    fn questions_are_answered_also_while_the_archive_has_lost_its_connection() {
        let losing = SampleOptions { disconnects_per_hour: 60.0, ..SampleOptions::default() };
        let start = Timestamp::of_minute(2024, 3, 1, 7, 30).micros().unwrap();
        for (channel, field) in
            [("depthSnapshot", "{\"lastUpdateId\":"), ("openInterest", "{\"symbol\":")]
        {
            let filters = format!(r#"[{{"channel":"{channel}","symbols":["BTCUSDT"]}}]"#);
            for second in 0..60 {
                let now = Timestamp::from_micros(start + second * 1_000_000);
                let market = SampleMarket::new(losing.clone());
                let answer = sample_state(&market, "binance-futures", now, &filters).unwrap();
                let answer = String::from_utf8(answer).unwrap();
                assert!(answer.starts_with(field), "{channel} at {second} s: {answer}");
            }
        }
    }
}
