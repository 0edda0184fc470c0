//! The answers of the Tardis API, made of the sample market.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use market_data::{Filter, Timestamp, parse_date};
use sample_market::{SampleError, SampleMarket};
use thiserror::Error;

use crate::options::Compression;

/// The fastest levels: nobody keeps this data.
const ZSTD_LEVEL: i32 = 1;
/// Minutes that one answer may have.
const MAX_MINUTES: i64 = 60;

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum SampleApiError {
    /// A parameter is not usable.
    #[error("the parameter `{name}` cannot be `{value}`: {remedy}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// What to give.
        remedy: String,
    },
    /// The market has no such data.
    #[error(transparent)]
    Market(#[from] SampleError),
    /// Compression failed.
    #[error("the slice cannot be compressed: {0}")]
    Compression(#[from] io::Error),
}

/// What is asked for: `minutes` minutes, beginning `offset` minutes after `from`.
#[derive(Clone, Debug)]
pub struct SampleQuestion<'a> {
    /// The exchange.
    pub exchange: &'a str,
    /// ISO 8601.
    pub from: &'a str,
    /// Minutes.
    pub offset: i64,
    /// Minutes in one answer.
    pub minutes: i64,
    /// JSON: a list of channels with their symbols.
    pub filters: &'a str,
    /// How the answer is compressed.
    pub compression: Compression,
}

/// Reads a list of filters.
pub(crate) fn sample_filters(json: &str) -> Result<Vec<Filter>, SampleApiError> {
    serde_json::from_str(json).map_err(|error| SampleApiError::Parameter {
        name: "filters",
        value: json.to_owned(),
        remedy: format!("give a list of filters as JSON; {error}"),
    })
}

/// The body of the answer: one frame or member a minute.
pub fn sample_slice(
    market: &SampleMarket,
    question: &SampleQuestion<'_>,
) -> Result<Vec<u8>, SampleApiError> {
    let unusable = |name, value: &dyn ToString, remedy: &str| SampleApiError::Parameter {
        name,
        value: value.to_string(),
        remedy: remedy.to_owned(),
    };
    let from = parse_date(question.from)
        .micros()
        .ok_or_else(|| unusable("from", &question.from, "give a date in ISO 8601 format"))?;
    if !(1..=MAX_MINUTES).contains(&question.minutes) {
        let remedy = format!("give 1 to {MAX_MINUTES}");
        return Err(unusable("sliceSize", &question.minutes, &remedy));
    }
    let filters = sample_filters(question.filters)?;
    let mut lines = Vec::new();
    let mut body = Vec::new();
    for minute in question.offset..question.offset.saturating_add(question.minutes) {
        let micros = minute.checked_mul(60_000_000).and_then(|after| from.checked_add(after));
        let micros = micros.ok_or_else(|| unusable("offset", &minute, "give fewer minutes"))?;
        lines.clear();
        market.minute(question.exchange, Timestamp::from_micros(micros), &filters, &mut lines)?;
        match question.compression {
            Compression::Zstd => {
                zstd::stream::copy_encode(&*lines, &mut body, ZSTD_LEVEL)?;
            }
            Compression::Gzip => {
                let mut member = GzEncoder::new(&mut body, flate2::Compression::fast());
                member.write_all(&lines)?;
                member.finish()?;
            }
        }
    }
    Ok(body)
}
