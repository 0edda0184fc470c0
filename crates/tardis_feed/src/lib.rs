//! Where market data comes from: the archive's slices, through its API or their cache, as blocks of
//! lines in order.
//!
//! [`Archive`] opens a [`SliceStream`] of a [`SliceRange`]; its blocks give [`Line`]s. Sessions make
//! of them what a client's request asks for. A [`LiveSession`] does the same with what exchanges send
//! as it happens.

mod api;
mod block;
mod cache;
mod client;
mod clock;
mod decompress;
mod download;
mod error;
mod filters;
pub mod frames;
mod line;
mod live;
mod minute;
mod options;
mod output;
mod part;
mod progress;
mod reading;
mod request;
mod sample_api;
mod sample_live;
mod schedule;
mod session;
mod settings;
mod slice;
mod stream;
mod subscriptions;

pub use block::Block;
pub use cache::{CachePart, clear_cache};
pub use error::FeedError;
pub use line::{Line, LineError, Lines};
pub use live::{LiveEndpoints, LivePacing, LiveProgress, LiveRequest, LiveSession};
pub use minute::Minute;
pub use options::{ApiKey, Compression, FeedOptions, RetryPolicy, SliceRange};
pub use output::{Chunk, Framing};
pub use progress::Progress;
pub use request::{NormalizedRequest, RawRequest, RequestError, Terms, TimeRange, read_filters};
pub use sample_api::{SampleApiError, SampleQuestion, sample_slice};
pub use sample_live::{SampleConnection, sample_state};
pub use session::{
    NormalizedSession, RawSession, SessionError, SessionProgress, SynchronisedSession,
};
pub use slice::SliceId;
pub use stream::{Archive, SliceStream};
pub use subscriptions::{SubscriptionError, can_subscribe, subscribed_filters};
