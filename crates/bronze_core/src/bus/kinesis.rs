//! Kinesis: `PutRecords`, a record per event.
//!
//! A record has bytes and a partition key and no headers, so the operator's static headers are added
//! to the event's `meta`.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_kinesis::Client;
use aws_sdk_kinesis::operation::put_records::PutRecordsOutput;
use aws_sdk_kinesis::primitives::Blob;
use aws_sdk_kinesis::types::PutRecordsRequestEntry;
use serde::Deserialize;

use super::aws::{
    Access, AccessOptions, CONNECT_LIMIT, Connection, Failure, FailureKind, FittedKey, Service,
    outcome_of_entry, peer, warning_of,
};
use super::{
    Address, Answer, BatchOptions, BusClient, ConnectError, Connected, Names, Pairs, Request,
    RequestLimits, Secret,
};
use crate::config_error::{ConfigError, ConfigFault};
use crate::delivery::DeliveryOptions;
use crate::encode::OWN_META_KEYS;
use crate::event_view::{EventView, META};
use crate::notice::{Level, Notices};
use crate::payload_filter::PayloadFilter;
use crate::retry::Outcome;
use crate::route::Route;
use crate::static_pairs::StaticPairs;
use crate::template::Template;
use crate::wire::{put_nested, put_text};

// Limits

/// Records in a request, by the API.
const MOST_RECORDS: usize = 500;
/// Bytes of a request's records with their keys. Where AWS takes 10 MiB, this is still enough to fill
/// five shards for a second.
const MOST_REQUEST_BYTES: usize = 5 << 20;
/// Bytes of a record with its key; a stream takes more only if it was told to.
const MOST_RECORD_BYTES: usize = 1 << 20;
/// Characters of a partition key.
const MOST_KEY_CHARACTERS: usize = 256;
/// Requests in flight to a stream. Four full ones are more than twenty shards take in a second, and
/// with one event of a key in a request it is the keys that bound the rate, not the lanes.
const LANES: usize = 4;
/// How long an event waits for others.
const LINGER: Duration = Duration::from_millis(10);
/// Keys of `meta` by which a session and a request are found again, besides those of the encoder.
const SESSION_META_KEYS: [&str; 2] = ["request_id", "session_id"];

const SERVICE: Service = Service {
    prefix: "--kinesis",
    destination_flags: "--kinesis-stream and --kinesis-stream-routing",
    action: "kinesis:PutRecords",
};

// Options

/// The operator's options.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KinesisOptions {
    /// The stream of all events that have no route of their own.
    #[serde(alias = "stream_name")]
    pub stream: String,
    /// The region, such as `eu-west-1`; if absent, the one of the environment or the profile.
    pub region: Option<String>,
    /// Other streams by payload case, `trade:stream-a,quote:stream-b`.
    pub stream_routing: Pairs,
    /// Payload cases that are published; all if empty.
    pub include_payloads: Names,
    /// The access key; if absent, the default chain of AWS is asked for keys.
    pub access_key_id: Option<Secret>,
    /// The secret of the access key.
    pub secret_access_key: Option<Secret>,
    /// The session token of keys that expire.
    pub session_token: Option<Secret>,
    /// Where to send instead of AWS, such as `http://127.0.0.1:4566`.
    pub endpoint_url: Option<String>,
    /// The partition key, which decides the shard and what stays in order; if absent,
    /// `{{exchange}}|{{symbol}}|{{payloadCase}}`. One that is longer than 256 characters is cut, and
    /// `~` and a hash of it follow, so that different keys stay different. Where it is empty for an
    /// event, the default key stands in.
    pub partition_key_template: Option<String>,
    /// Pairs that are added to the `meta` of every event, `key:value,key:value`; they replace those of
    /// the same key.
    pub static_headers: Pairs,
    /// Records in a request, at most 500.
    pub max_batch_size: Option<u64>,
    /// Milliseconds an event waits for others.
    pub max_batch_delay_ms: Option<u64>,
    /// How far the order of a partition key is kept: `key` (the default) or `batch`.
    ///
    /// Kinesis may take a later record of a request and refuse an earlier one. With `key` a request
    /// therefore holds one event of a key, and nothing is ever out of order; the rate of a key is then
    /// one event in each round trip. With `batch` a request holds as many as fit, which is much faster
    /// where keys are few; if then a shard is throttled and takes a part of a request, the refused
    /// events arrive behind later ones of their key that were in the same request.
    pub ordering: Option<String>,
}

/// A client of Kinesis.
#[derive(Debug)]
pub struct Kinesis {
    access: Access,
    route: Route,
    filter: PayloadFilter,
    key: FittedKey,
    /// The static headers as pairs of `meta`, which are added behind every event.
    static_meta: Vec<u8>,
    limits: RequestLimits,
    notices: Notices,
    connection: Connection<Client>,
}

fn check_stream(stream: &str, flag: &str) -> Result<(), ConfigError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if stream.len() > 128 || !stream.chars().all(is_name) {
        let remedy = "give up to 128 letters, digits, `_`, `.` and `-`";
        return Err(ConfigFault::unusable(stream, "is no name of a stream", remedy).of(flag));
    }
    Ok(())
}

fn static_meta(pairs: &StaticPairs, flag: &str) -> Result<Vec<u8>, ConfigError> {
    let mut bytes = Vec::new();
    for (key, value) in pairs.iter() {
        if OWN_META_KEYS.contains(&key) || SESSION_META_KEYS.contains(&key) {
            let problem = "is a key of `meta` that every event may have itself";
            return Err(ConfigFault::unusable(key, problem, "choose another key").of(flag));
        }
        put_nested(&mut bytes, META, |bytes| {
            put_text(bytes, 1, key);
            put_text(bytes, 2, value);
        });
    }
    Ok(bytes)
}

fn one_event_per_key(ordering: Option<&str>) -> Result<bool, ConfigError> {
    match ordering.map(str::trim) {
        None | Some("key") => Ok(true),
        Some("batch") => Ok(false),
        Some(other) => {
            let fault = ConfigFault::unusable(other, "is no ordering", "give `key` or `batch`");
            Err(fault.of("--kinesis-ordering"))
        }
    }
}

fn key_template(text: Option<&str>, flag: &str) -> Result<Template, ConfigError> {
    match text.map(str::trim) {
        None => Ok(Template::default_key()),
        Some("") => Err(ConfigFault::missing("give a template, or leave the option out").of(flag)),
        Some(text) => Template::of_flag(flag, text),
    }
}

// Connect

impl Kinesis {
    async fn connect_now(&self) -> Result<Connected, ConnectError> {
        let config = self.access.load().await?;
        let client = Client::new(&config);
        let mut warnings = Vec::new();
        for stream in self.route.destinations() {
            let looked = client.describe_stream_summary().stream_name(stream).send().await;
            let Err(error) = looked else { continue };
            let failure = Failure::of(&SERVICE, &error);
            if failure.kind == FailureKind::Denied {
                self.tell_unchecked(stream);
            } else {
                warnings.push(warning_of(stream, failure)?);
            }
        }
        self.connection.open(client);
        Ok(Connected { peer: peer(&config), warnings })
    }

    fn tell_unchecked(&self, stream: &str) {
        let message = format!(
            "the keys may not ask for the stream `{stream}` (kinesis:DescribeStreamSummary), so \
             whether it is there shows with the first events"
        );
        self.notices.tell(Level::Info, Self::NAME, "unchecked", message, Vec::new());
    }
}

impl BusClient for Kinesis {
    const NAME: &'static str = "kinesis";

    type Options = KinesisOptions;

    fn validate(
        options: KinesisOptions,
        _delivery: &DeliveryOptions,
        notices: &Notices,
    ) -> Result<Self, ConfigError> {
        let prefix = SERVICE.prefix;
        let (base, routing) = ("--kinesis-stream", "--kinesis-stream-routing");
        let route = Route::to(base, &options.stream)?;
        check_stream(&route.destinations()[0], base)?;
        let route = options.stream_routing.add_to(route, routing)?;
        for stream in &route.destinations()[1..] {
            check_stream(stream, routing)?;
        }
        let filter = options.include_payloads.payload_filter("--kinesis-include-payloads")?;
        let flag = "--kinesis-partition-key-template";
        let template = key_template(options.partition_key_template.as_deref(), flag)?;
        let flag = "--kinesis-static-headers";
        let static_meta = static_meta(&options.static_headers.static_pairs(flag)?, flag)?;
        let batch = BatchOptions {
            max_batch_size: options.max_batch_size,
            max_batch_delay_ms: options.max_batch_delay_ms,
        };
        let limits = RequestLimits {
            events: batch.events(prefix, MOST_RECORDS, MOST_RECORDS)?,
            bytes: MOST_REQUEST_BYTES,
            linger: batch.linger(prefix, LINGER)?,
            lanes: LANES,
            pipelined: 1,
            one_event_per_key: one_event_per_key(options.ordering.as_deref())?,
        };
        let access = AccessOptions {
            region: options.region,
            access_key_id: options.access_key_id,
            secret_access_key: options.secret_access_key,
            session_token: options.session_token,
            endpoint_url: options.endpoint_url,
        };
        Ok(Self {
            access: Access::validate(SERVICE, access)?,
            route,
            filter,
            key: FittedKey::new(template, MOST_KEY_CHARACTERS, |_| true),
            static_meta,
            limits,
            notices: notices.clone(),
            connection: Connection::default(),
        })
    }

    fn filter(&self) -> PayloadFilter {
        self.filter
    }

    fn limits(&self) -> RequestLimits {
        self.limits
    }

    /// The key counts in the size, so it is always made.
    fn address(
        &self,
        event: &EventView<'_>,
        bytes: &[u8],
        _wants_key: bool,
        address: &mut Address,
    ) -> Result<(), String> {
        address.destination = self.route.index(event.case());
        self.key.render(event, &mut address.key);
        address.size = bytes.len() + self.static_meta.len() + address.key.len();
        if address.size > MOST_RECORD_BYTES {
            return Err(format!(
                "the event takes {} bytes with its partition key and static headers; a record of \
                 Kinesis has at most {MOST_RECORD_BYTES}",
                address.size
            ));
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connected, ConnectError> {
        tokio::time::timeout(CONNECT_LIMIT, self.connect_now()).await.unwrap_or_else(|_| {
            Err(ConnectError::transient(format!("Kinesis took longer than {CONNECT_LIMIT:?}")))
        })
    }

    async fn send(self: Arc<Self>, request: Request) -> Answer {
        self.connection.send(|client| self.put_records(client, request)).await
    }

    async fn close(&self) {
        self.connection.close();
    }
}

// Send

impl Kinesis {
    async fn put_records(&self, client: Client, request: Request) -> Answer {
        let Some(stream) = self.route.destinations().get(request.destination) else {
            return Answer::All(Outcome::Permanent("there is no such destination".to_owned()));
        };
        let records = request.events.iter().map(|(_, event)| self.record(event));
        let records = match records.collect::<Result<Vec<_>, _>>() {
            Ok(records) => records,
            Err(reason) => return Answer::All(Outcome::Permanent(reason)),
        };
        let sent = client.put_records().stream_name(stream).set_records(Some(records)).send().await;
        match sent {
            Ok(output) => Answer::Each(outcomes(&output, request.events.len())),
            Err(error) => self.access.answer_of(Failure::of(&SERVICE, &error)),
        }
    }

    fn record(&self, event: &[u8]) -> Result<PutRecordsRequestEntry, String> {
        let view = EventView::reread(event).map_err(|error| error.to_string())?;
        let mut key = String::new();
        self.key.render(&view, &mut key);
        let data = [event, &self.static_meta].concat();
        PutRecordsRequestEntry::builder()
            .data(Blob::new(data))
            .partition_key(key)
            .build()
            .map_err(|error| error.to_string())
    }
}

// Which errors are transient

/// What became of each of `sent` records. Kinesis answers for them in their order.
fn outcomes(output: &PutRecordsOutput, sent: usize) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = output
        .records()
        .iter()
        .take(sent)
        .map(|record| match (record.error_code(), record.sequence_number()) {
            (Some(code), _) => outcome_of_entry(&SERVICE, code, record.error_message(), false),
            (None, Some(_)) => Outcome::Acknowledged,
            (None, None) => Outcome::Transient("Kinesis gave it no number".to_owned()),
        })
        .collect();
    outcomes.resize(sent, Outcome::Transient("Kinesis did not answer for it".to_owned()));
    outcomes
}

#[cfg(test)]
mod tests;
