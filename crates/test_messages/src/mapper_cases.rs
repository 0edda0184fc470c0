//! The recorded cases of mappers, where the conformance data is.

use std::fs;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::conformance::{conformance_root, files, with_javascript_exponents};

/// Raw messages of an exchange, one after the other, and what they must give.
#[derive(Clone, Debug)]
pub struct MapperCase {
    /// The exchange.
    pub exchange: String,
    /// The time the mapper is made for; `None` = the newest.
    pub at: Option<String>,
    /// The names of the kinds asked for.
    pub normalizers: Vec<String>,
    /// The messages.
    pub steps: Vec<MapperStep>,
}

/// One raw message.
#[derive(Clone, Debug)]
pub struct MapperStep {
    /// When it was received.
    pub local_timestamp: String,
    /// Its JSON.
    pub message: String,
    /// The JSON of the messages it must give, or the text of the error.
    pub expected: Result<Vec<String>, String>,
}

#[derive(Deserialize)]
struct CaseFields<'a> {
    exchange: String,
    at: Option<String>,
    normalizers: Vec<String>,
    #[serde(borrow)]
    steps: Vec<StepFields<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StepFields<'a> {
    local_timestamp: String,
    #[serde(borrow)]
    message: &'a RawValue,
    output: Option<Vec<&'a RawValue>>,
    error: Option<String>,
}

/// All recorded cases; `None`, and a line that says so, where the data is not beside the project.
#[must_use]
pub fn mapper_cases() -> Option<Vec<MapperCase>> {
    let mut cases = Vec::new();
    for path in files(&conformance_root()?.join("mappers"), "jsonl") {
        let text = fs::read_to_string(&path).expect("a readable case file");
        for line in text.lines() {
            let fields: CaseFields<'_> = serde_json::from_str(line).expect("a case");
            cases.push(MapperCase {
                exchange: fields.exchange,
                at: fields.at,
                normalizers: fields.normalizers,
                steps: fields.steps.into_iter().map(step).collect(),
            });
        }
    }
    Some(cases)
}

fn step(fields: StepFields<'_>) -> MapperStep {
    let expected = match (fields.output, fields.error) {
        (_, Some(error)) => Err(error),
        (output, None) => Ok(output
            .unwrap_or_default()
            .into_iter()
            .map(|message| with_javascript_exponents(message.get()))
            .collect()),
    };
    MapperStep {
        local_timestamp: fields.local_timestamp,
        message: fields.message.get().to_owned(),
        expected,
    }
}

/// The recorded table of exchanges, as JSON text; `None` where the data is not beside the project.
#[must_use]
pub fn exchange_table() -> Option<String> {
    let path = conformance_root()?.join("exchanges.json");
    Some(fs::read_to_string(path).expect("the table of exchanges"))
}

/// The table of live feeds, as JSON; `None`, and a line that says so, where it is not beside the
/// project.
#[must_use]
pub fn feed_table() -> Option<String> {
    let path = conformance_root()?.join("feeds.json");
    Some(fs::read_to_string(path).expect("the table of feeds"))
}
