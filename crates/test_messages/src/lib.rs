//! Messages that tests of several crates share.

mod answers;
mod conformance;
mod mapper_cases;
mod random;

pub use answers::{RecordedAnswer, recorded_answers};
pub use conformance::{Source, conformance_messages, sample_messages};
pub use mapper_cases::{MapperCase, MapperStep, exchange_table, feed_table, mapper_cases};
pub use random::{any_message, message_of_every_kind};
