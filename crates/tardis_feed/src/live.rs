//! Live streams: connections to exchanges become chunks of normalized messages.
//!
//! A request's channels are spread over connections as its exchange asks for it. Each connection is a
//! task that connects, subscribes, answers what the exchange asks and, when it is lost, connects
//! again; what it receives goes through a bounded queue to the [`LiveSession`], which maps it when a
//! chunk is asked for. So a slow client makes its sockets wait, and nothing grows.
//!
//! An exchange is a file in `feeds` and a line in its list.

mod arrivals;
mod backoff;
mod connection;
mod endpoints;
mod fault;
mod feed;
mod feeds;
mod network;
mod open_interest;
mod pacing;
mod progress;
mod request;
mod rest;
mod session;
mod snapshots;
mod weight;

pub use endpoints::LiveEndpoints;
pub use pacing::LivePacing;
pub use progress::LiveProgress;
pub use request::LiveRequest;
pub use session::LiveSession;
