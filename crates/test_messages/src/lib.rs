//! Messages that tests of several crates share.

mod conformance;
mod random;

pub use conformance::{Source, conformance_messages, sample_messages};
pub use random::{any_message, message_of_every_kind};
