//! The buses: what each must be able to do, and which there are.
//!
//! A bus file holds only what is true of its broker: limits, options, wire format, which errors are
//! transient. Queue, batching, order, retries, spill and dead letters are the dispatcher's, once for
//! all. Every file has the same sections in the same order: limits, options, connect, send, which
//! errors are transient, tests.

#[cfg(feature = "aws")]
mod aws;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "kinesis")]
pub mod kinesis;
#[cfg(feature = "lake")]
pub mod lake;
#[cfg(feature = "nats")]
pub mod nats;
mod options;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "sqs")]
pub mod sqs;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::config_error::{ConfigError, ConfigFault};
use crate::delivery::DeliveryOptions;
use crate::event_view::EventView;
use crate::notice::Notices;
use crate::payload_case::PayloadCase;
use crate::payload_filter::PayloadFilter;
use crate::picked_events::PickedEvents;
use crate::publisher::{Prepared, PreparedBus, unreadable};
use crate::retry::Outcome;

pub use options::{BatchOptions, Names, Pairs, Secret};

/// Declares the buses: a line each.
macro_rules! buses {
    ($($(#[$attribute:meta])* $name:literal => $client:ty,)*) => {
        /// The buses of this build.
        pub const NAMES: &[&str] = &[$($(#[$attribute])* $name,)*];

        /// Checks the options of the bus of a name.
        pub(crate) fn prepare(
            name: &str,
            options: Value,
            delivery: &DeliveryOptions,
            notices: &Notices,
        ) -> Result<Box<dyn PreparedBus>, ConfigError> {
            match name {
                $($(#[$attribute])* $name => prepare_client::<$client>(options, delivery, notices),)*
                _ => {
                    let known = NAMES.join(", ");
                    let remedy = format!("use one of {known}");
                    Err(ConfigFault::unusable(name, "is no bus of this build", remedy).of("bus"))
                }
            }
        }
    };
}

buses! {
    #[cfg(feature = "kafka")]
    "kafka" => kafka::Kafka,
    #[cfg(feature = "kinesis")]
    "kinesis" => kinesis::Kinesis,
    #[cfg(feature = "lake")]
    "lake" => lake::Lake,
    #[cfg(feature = "nats")]
    "nats" => nats::Nats,
    #[cfg(feature = "redis")]
    "redis" => redis::Redis,
    #[cfg(feature = "sqs")]
    "sqs" => sqs::Sqs,
}

fn prepare_client<B: BusClient>(
    options: Value,
    delivery: &DeliveryOptions,
    notices: &Notices,
) -> Result<Box<dyn PreparedBus>, ConfigError> {
    let options = serde_json::from_value(options)
        .map_err(|error| unreadable("the options", &error).of(B::NAME))?;
    let client = B::validate(options, delivery, notices)?;
    Ok(Box::new(Prepared { client, notices: notices.clone() }))
}

/// A client of a broker.
///
/// Order per key: events of one key are in one lane, and a lane has one request in flight, or several
/// where the client itself keeps their order (`pipelined`). Inside a request the client keeps the
/// order of its events; where the broker may take a later event and refuse an earlier one,
/// `one_event_per_key` keeps them apart.
pub trait BusClient: Send + Sync + Sized + 'static {
    /// How the bus is called in options, logs and metrics.
    const NAME: &'static str;

    /// The operator's options, as they come from flags, environment, file or Python.
    type Options: DeserializeOwned;

    /// Checks the options and makes a client that is not connected, without I/O.
    fn validate(
        options: Self::Options,
        delivery: &DeliveryOptions,
        notices: &Notices,
    ) -> Result<Self, ConfigError>;

    /// Which events are published.
    fn filter(&self) -> PayloadFilter;

    /// How requests are made up.
    fn limits(&self) -> RequestLimits;

    /// Says where an event goes. `address` comes cleared; the key is asked for by `wants_key` only.
    /// An event that the broker can never take is refused with the reason.
    fn address(
        &self,
        event: &EventView<'_>,
        bytes: &[u8],
        wants_key: bool,
        address: &mut Address,
    ) -> Result<(), String>;

    /// The place of an event's destination and its size in a request, where that can be said without
    /// reading it; else [`Self::address`] is asked. Only of use where no key is wanted.
    fn address_unread(&self, _case: PayloadCase, _bytes: usize) -> Option<(usize, usize)> {
        None
    }

    /// Connects, or connects anew after [`Answer::Disconnected`]. Ends in bounded time.
    fn connect(&self) -> impl Future<Output = Result<Connected, ConnectError>> + Send;

    /// Sends a request and waits until the broker has answered for every event of it. Ends in bounded
    /// time. Not called before a connect, and not after `Disconnected` until the next one. It is called
    /// in the order of requests; the futures it gives may run in any.
    fn send(self: Arc<Self>, request: Request) -> impl Future<Output = Answer> + Send;

    /// Lets the connection go; requests in flight end soon, as transient failures.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// How requests to a broker are made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Events in a request.
    pub events: usize,
    /// The sizes of a request's events together, as [`Address::size`] gives them.
    pub bytes: usize,
    /// How long an event waits for others to fill its request.
    pub linger: Duration,
    /// Into how many lanes the keys of a destination are spread.
    pub lanes: usize,
    /// Requests of a lane in flight; more than one only where the client keeps their order.
    pub pipelined: usize,
    /// Whether a request holds at most one event of a key.
    pub one_event_per_key: bool,
}

/// Where an event goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Address {
    /// The place of its destination among the bus's; a request is for one destination.
    pub destination: usize,
    /// Bytes it takes in a request, as the broker counts them.
    pub size: usize,
    /// Events with equal keys keep their order.
    pub key: String,
}

/// Events that are sent together.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Where they go, as [`Address::destination`] said.
    pub destination: usize,
    /// Whether no other request of their lane is in flight, nor was when this one was made; so it is
    /// with every request that is sent again.
    pub is_alone: bool,
    /// The events.
    pub events: PickedEvents,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The same of every event.
    All(Outcome),
    /// Of each event, in their order.
    Each(Vec<Outcome>),
    /// The connection is lost; what became of the events nobody knows.
    Disconnected(String),
}

/// A connection that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connected {
    /// With whom, for people.
    pub peer: String,
    /// What will not work all the same, such as a destination that is not there.
    pub warnings: Vec<String>,
}

/// Why there is no connection.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{reason}")]
pub struct ConnectError {
    /// Whether trying again is of no use until somebody changes something: a wrong password.
    pub is_permanent: bool,
    /// What went wrong; holds no secret.
    pub reason: String,
}

impl ConnectError {
    /// One that may go away by itself.
    pub fn transient(reason: impl Into<String>) -> Self {
        Self { is_permanent: false, reason: reason.into() }
    }

    /// One that stays until somebody changes something.
    pub fn permanent(reason: impl Into<String>) -> Self {
        Self { is_permanent: true, reason: reason.into() }
    }
}
