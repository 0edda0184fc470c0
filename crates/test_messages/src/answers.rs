//! The recorded answers to requests for normalized messages, where the conformance data is.

use std::fs;

use serde::Deserialize;

use crate::conformance::conformance_root;

/// The answer to a request for one exchange.
#[derive(Clone, Debug)]
pub struct RecordedAnswer {
    /// The name of the request: the recording, a slash, what it is about.
    pub name: String,
    /// The data types asked for.
    pub data_types: Vec<String>,
    /// The symbols asked for.
    pub symbols: Vec<String>,
    /// The messages, one a line.
    pub body: String,
}

#[derive(Deserialize)]
struct RequestFields {
    name: String,
    transport: String,
    path: String,
    options: serde_json::Value,
    status: u16,
    body: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OptionFields {
    data_types: Vec<String>,
    #[serde(default)]
    symbols: Vec<String>,
}

/// All of them; `None`, and a line that says so, where the data is not beside the project.
#[must_use]
pub fn recorded_answers() -> Option<Vec<RecordedAnswer>> {
    let folder = conformance_root()?.join("e2e");
    let requests = fs::read(folder.join("requests.json")).expect("the list of requests");
    let requests: Vec<RequestFields> = serde_json::from_slice(&requests).expect("requests");
    let answer = |request: RequestFields| {
        let is_wanted = request.transport == "http"
            && request.path == "/replay-normalized"
            && request.status == 200
            && request.options.is_object();
        let body = request.body.filter(|_| is_wanted)?;
        let options: OptionFields = serde_json::from_value(request.options).expect("options");
        let body = fs::File::open(folder.join(body)).expect("a body");
        let body = zstd::decode_all(body).expect("zstd data");
        Some(RecordedAnswer {
            name: request.name,
            data_types: options.data_types,
            symbols: options.symbols,
            body: String::from_utf8(body).expect("text"),
        })
    };
    Some(requests.into_iter().filter_map(answer).collect())
}
