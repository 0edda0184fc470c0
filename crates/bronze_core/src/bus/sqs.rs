//! SQS: `SendMessageBatch`, a message per event.
//!
//! The body is the event in base64, because a body is text. Queues whose name ends in `.fifo` keep the
//! order of a key and drop an event that comes twice within five minutes; others keep no order.

mod attributes;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName, SendMessageBatchRequestEntry};
use serde::Deserialize;

use self::attributes::{Attributes, STATIC_FLAG, TEMPLATES_FLAG, TYPE};
use super::aws::{
    Access, AccessOptions, CONNECT_LIMIT, Connection, Failure, FailureKind, FittedKey, Service,
    check_url, outcome_of_entry, peer, sha256, warning_of,
};
use super::{
    Address, Answer, BatchOptions, BusClient, ConnectError, Connected, Names, Pairs, Request,
    RequestLimits, Secret,
};
use crate::config_error::{ConfigError, ConfigFault};
use crate::delivery::DeliveryOptions;
use crate::event_view::EventView;
use crate::notice::{Level, Notices};
use crate::payload_filter::PayloadFilter;
use crate::retry::Outcome;
use crate::route::Route;
use crate::template::Template;

// Limits

/// Messages in a request, by the API.
const MOST_MESSAGES: usize = 10;
/// Bytes of a request's messages. AWS takes 1 MiB since 2025, older servers and those of other makers
/// 256 KiB; ten messages of usual events are far below either. A larger event goes alone.
const MOST_REQUEST_BYTES: usize = 256 << 10;
/// Bytes of a message, by the API. A queue may take less, and says so when it is asked.
const MOST_MESSAGE_BYTES: usize = 1 << 20;
/// Characters of a message group id.
const MOST_GROUP_CHARACTERS: usize = 128;
/// Requests in flight to a queue. With ten messages in a request and a round trip of about 10 ms, this
/// is what reaches ten thousand messages in a second.
const LANES: usize = 16;
/// How long an event waits for others.
const LINGER: Duration = Duration::from_millis(10);

const SERVICE: Service = Service {
    prefix: "--sqs",
    destination_flags: "--sqs-queue-url and --sqs-queue-routing",
    action: "sqs:SendMessage",
};

// Options

/// The operator's options.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SqsOptions {
    /// The URL of the queue of all events that have no route of their own.
    ///
    /// Of a `.fifo` queue an event's group is `{{exchange}}|{{symbol}}|{{payloadCase}}`. Characters
    /// that SQS does not take there become `_`, a group longer than 128 characters is cut, and in both
    /// cases `~` and a hash of it follow, so that different groups stay different. The deduplication
    /// id is the SHA-256 of the event's bytes.
    pub queue_url: String,
    /// The region, such as `eu-west-1`; if absent, the one of the environment or the profile.
    pub region: Option<String>,
    /// URLs of other queues by payload case, `trade:https://…,quote:https://…`.
    pub queue_routing: Pairs,
    /// Payload cases that are published; all if empty.
    pub include_payloads: Names,
    /// The access key; if absent, the default chain of AWS is asked for keys.
    pub access_key_id: Option<Secret>,
    /// The secret of the access key.
    pub secret_access_key: Option<Secret>,
    /// The session token of keys that expire.
    pub session_token: Option<Secret>,
    /// Where to send instead of AWS, such as `http://127.0.0.1:4566`, whatever the queues' URLs say.
    pub endpoint_url: Option<String>,
    /// Attributes of every message, `name:value,name:value`, at most seven with those of
    /// `attribute_templates`.
    #[serde(alias = "static_message_attributes")]
    pub static_attributes: Pairs,
    /// Attributes that an event fills, `name:template,name:template`. One that is empty for an event
    /// is left out of its message: SQS takes no empty values.
    pub attribute_templates: Pairs,
    /// Messages in a request, at most 10.
    pub max_batch_size: Option<u64>,
    /// Milliseconds an event waits for others.
    pub max_batch_delay_ms: Option<u64>,
}

/// A client of SQS.
#[derive(Debug)]
pub struct Sqs {
    access: Access,
    route: Route,
    /// For each destination what is known of the queue.
    queues: Vec<Queue>,
    filter: PayloadFilter,
    group: FittedKey,
    attributes: Attributes,
    limits: RequestLimits,
    notices: Notices,
    connection: Connection<Client>,
}

#[derive(Debug)]
struct Queue {
    is_fifo: bool,
    /// Bytes of a message that it takes.
    most_bytes: AtomicUsize,
}

fn check_queue(url: &str, access: &Access, flag: &str) -> Result<(), ConfigError> {
    check_url(url).map_err(|fault| fault.of(flag))?;
    let name = url.rsplit('/').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    let stem = name.strip_suffix(".fifo").unwrap_or(name);
    // Before the name there are the scheme, a host, and mostly an account.
    let has_path = url.split('/').count() > 3;
    if !has_path || stem.is_empty() || name.len() > 80 || !stem.chars().all(is_name) {
        let problem = "has no name of a queue at its end";
        let remedy = "give one like `https://sqs.eu-west-1.amazonaws.com/123456789012/bronze`";
        return Err(ConfigFault::unusable(url, problem, remedy).of(flag));
    }
    let is_aws = access.options.endpoint_url.is_none();
    let Some(region) = access.options.region.as_deref().filter(|_| is_aws) else {
        return Ok(());
    };
    let host = url.split('/').nth(2).unwrap_or_default();
    let of_host = host.strip_prefix("sqs.").and_then(|rest| rest.split_once(".amazonaws.com"));
    match of_host {
        Some((other, _)) if other != region => {
            let problem = format!("`{url}` is in `{other}`, not in `{region}`");
            let remedy = "give the region of the queue";
            Err(ConfigFault::contradiction("--sqs-region", problem, remedy).of(flag))
        }
        _ => Ok(()),
    }
}

// Connect

impl Sqs {
    async fn connect_now(&self) -> Result<Connected, ConnectError> {
        let config = self.access.load().await?;
        let client = Client::new(&config);
        let mut warnings = Vec::new();
        for (url, queue) in self.route.destinations().iter().zip(&self.queues) {
            let size = QueueAttributeName::MaximumMessageSize;
            let asked = client.get_queue_attributes().queue_url(url).attribute_names(size.clone());
            match asked.send().await {
                Ok(answer) => {
                    let attributes = answer.attributes();
                    queue.learn(attributes.and_then(|all| all.get(&size)).map(String::as_str));
                }
                Err(error) => {
                    let failure = Failure::of(&SERVICE, &error);
                    if failure.kind == FailureKind::Denied {
                        self.tell_unchecked(url);
                    } else {
                        warnings.push(warning_of(url, failure)?);
                    }
                }
            }
        }
        self.connection.open(client);
        Ok(Connected { peer: peer(&config), warnings })
    }

    fn tell_unchecked(&self, url: &str) {
        let message = format!(
            "the keys may not ask for the queue `{url}` (sqs:GetQueueAttributes), so whether it is \
             there shows with the first events"
        );
        self.notices.tell(Level::Info, Self::NAME, "unchecked", message, Vec::new());
    }
}

impl Queue {
    fn learn(&self, most_bytes: Option<&str>) {
        if let Some(most) = most_bytes.and_then(|text| text.parse().ok()) {
            self.most_bytes.store(most, Ordering::Relaxed);
        }
    }
}

impl BusClient for Sqs {
    const NAME: &'static str = "sqs";

    type Options = SqsOptions;

    fn validate(
        options: SqsOptions,
        _delivery: &DeliveryOptions,
        notices: &Notices,
    ) -> Result<Self, ConfigError> {
        let prefix = SERVICE.prefix;
        let access = AccessOptions {
            region: options.region,
            access_key_id: options.access_key_id,
            secret_access_key: options.secret_access_key,
            session_token: options.session_token,
            endpoint_url: options.endpoint_url,
        };
        let access = Access::validate(SERVICE, access)?;
        let (base, routing) = ("--sqs-queue-url", "--sqs-queue-routing");
        let route = Route::to(base, &options.queue_url)?;
        check_queue(&route.destinations()[0], &access, base)?;
        let route = options.queue_routing.add_to(route, routing)?;
        for url in &route.destinations()[1..] {
            check_queue(url, &access, routing)?;
        }
        let queue = |url: &String| Queue {
            is_fifo: url.strip_suffix(".fifo").is_some(),
            most_bytes: AtomicUsize::new(MOST_MESSAGE_BYTES),
        };
        let queues: Vec<Queue> = route.destinations().iter().map(queue).collect();
        let batch = BatchOptions {
            max_batch_size: options.max_batch_size,
            max_batch_delay_ms: options.max_batch_delay_ms,
        };
        let limits = RequestLimits {
            events: batch.events(prefix, MOST_MESSAGES, MOST_MESSAGES)?,
            bytes: MOST_REQUEST_BYTES,
            linger: batch.linger(prefix, LINGER)?,
            lanes: LANES,
            pipelined: 1,
            // A request may be taken in part. One limit is for all queues, so where one keeps an
            // order, all are sent to as if they did.
            one_event_per_key: queues.iter().any(|queue| queue.is_fifo),
        };
        let attributes = Attributes::validate(
            &options.static_attributes.static_pairs(STATIC_FLAG)?,
            &options.attribute_templates.static_pairs(TEMPLATES_FLAG)?,
        )?;
        let is_allowed = |c: char| c.is_ascii_graphic();
        Ok(Self {
            access,
            route,
            queues,
            filter: options.include_payloads.payload_filter("--sqs-include-payloads")?,
            group: FittedKey::new(Template::default_key(), MOST_GROUP_CHARACTERS, is_allowed),
            attributes,
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

    fn address(
        &self,
        event: &EventView<'_>,
        bytes: &[u8],
        wants_key: bool,
        address: &mut Address,
    ) -> Result<(), String> {
        address.destination = self.route.index(event.case());
        if wants_key {
            self.group.render(event, &mut address.key);
        }
        address.size = bytes.len().div_ceil(3) * 4 + self.attributes.size(event);
        let most = self.queues[address.destination].most_bytes.load(Ordering::Relaxed);
        if address.size > most {
            return Err(format!(
                "the event takes {} bytes in base64 with its attributes; the queue takes at most \
                 {most}",
                address.size
            ));
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connected, ConnectError> {
        tokio::time::timeout(CONNECT_LIMIT, self.connect_now()).await.unwrap_or_else(|_| {
            Err(ConnectError::transient(format!("SQS took longer than {CONNECT_LIMIT:?}")))
        })
    }

    async fn send(self: Arc<Self>, request: Request) -> Answer {
        self.connection.send(|client| self.send_messages(client, request)).await
    }

    async fn close(&self) {
        self.connection.close();
    }
}

// Send

impl Sqs {
    async fn send_messages(&self, client: Client, request: Request) -> Answer {
        let place = request.destination;
        let (Some(url), Some(queue)) =
            (self.route.destinations().get(place), self.queues.get(place))
        else {
            return Answer::All(Outcome::Permanent("there is no such destination".to_owned()));
        };
        let messages = request.events.iter().enumerate();
        let messages = messages.map(|(number, (_, event))| self.message(queue, number, event));
        let messages = match messages.collect::<Result<Vec<_>, _>>() {
            Ok(messages) => messages,
            Err(reason) => return Answer::All(Outcome::Permanent(reason)),
        };
        let sent = client.send_message_batch().queue_url(url).set_entries(Some(messages));
        match sent.send().await {
            Ok(output) => Answer::Each(outcomes(&output, request.events.len())),
            Err(error) => self.access.answer_of(Failure::of(&SERVICE, &error)),
        }
    }

    fn message(
        &self,
        queue: &Queue,
        number: usize,
        event: &[u8],
    ) -> Result<SendMessageBatchRequestEntry, String> {
        let view = EventView::reread(event).map_err(|error| error.to_string())?;
        let mut message = SendMessageBatchRequestEntry::builder()
            .id(number.to_string())
            .message_body(base64_simd::STANDARD.encode_to_string(event));
        let mut attributes = Vec::new();
        self.attributes.each(&view, |name, value| {
            let value = MessageAttributeValue::builder().data_type(TYPE).string_value(value);
            attributes.push((name.to_owned(), value));
        });
        for (name, value) in attributes {
            let value = value.build().map_err(|error| error.to_string())?;
            message = message.message_attributes(name, value);
        }
        if queue.is_fifo {
            let mut group = String::new();
            self.group.render(&view, &mut group);
            message = message.message_group_id(group).message_deduplication_id(sha256(event));
        }
        message.build().map_err(|error| error.to_string())
    }
}

// Which errors are transient

/// What became of each of `sent` messages. SQS answers for them by their numbers, in any order.
fn outcomes(output: &SendMessageBatchOutput, sent: usize) -> Vec<Outcome> {
    let unanswered = Outcome::Transient("SQS did not answer for it".to_owned());
    let mut outcomes = vec![unanswered; sent];
    let mut settle = |id: &str, outcome: Outcome| {
        if let Some(place) = id.parse().ok().and_then(|place: usize| outcomes.get_mut(place)) {
            *place = outcome;
        }
    };
    for message in output.successful() {
        settle(message.id(), Outcome::Acknowledged);
    }
    for message in output.failed() {
        let (code, is_ours) = (message.code(), message.sender_fault());
        let outcome = outcome_of_entry(&SERVICE, code, message.message(), is_ours);
        settle(message.id(), outcome);
    }
    outcomes
}

#[cfg(test)]
mod tests;
