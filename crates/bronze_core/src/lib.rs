//! Bronze events: normalized messages in their envelope, as they are published and kept.

mod backlog;
mod batch_room;
pub mod bus;
mod bus_report;
pub mod columns;
mod config_error;
mod config_list;
mod dead_letter;
mod dead_letter_batches;
mod decode;
mod delivery;
mod dispatcher;
mod encode;
mod event_batch;
mod event_view;
pub mod generated;
mod intake;
mod json_lines;
mod ledger;
mod notice;
mod outbox;
mod payload_case;
mod payload_filter;
mod picked_events;
mod publish_input;
mod publisher;
mod queue;
mod record_file;
mod retry;
mod route;
mod rows;
mod runtime;
mod spill;
mod static_pairs;
mod template;
mod wire;

pub use bus_report::{BusCheck, BusLeft, BusStats};
pub use config_error::{ConfigError, ConfigFault};
pub use dead_letter::{
    DeadLetter, DeadLetterFile, DeadLetterRepair, DeadLetters, read_dead_letters,
};
pub use dead_letter_batches::DeadLetterBatches;
pub use decode::{DecodeError, DecodedEvent, LevelPart, MessageAssembler, decode_event};
pub use delivery::{DeliveryOptions, Overflow};
pub use dispatcher::Left;
pub use encode::{BookChanges, BronzeEncoder, EncoderError, EncoderOptions, Origin};
pub use event_batch::{EventBatch, EventBuffer};
pub use event_view::{EventView, EventViewError};
pub use intake::NotAccepted;
pub use json_lines::{JsonEventError, JsonLineError, decode_json_lines};
pub use ledger::{Amount, End, LATENCY_BOUNDS, Latency, Ledger, LedgerSnapshot, Place};
pub use notice::{Level, Notice, Notices};
pub use payload_case::{PayloadCase, UnknownPayloadCase};
pub use payload_filter::PayloadFilter;
pub use picked_events::PickedEvents;
pub use publish_input::PublishError;
pub use publisher::{Publisher, PublisherOptions, StartError};
pub use queue::{BatchQueue, PushError, QueueLimits};
pub use record_file::RecordFileError;
pub use retry::{Attempts, Outcome, RetryPolicy};
pub use route::Route;
pub use rows::{Dataset, Rejected, RowEvents, RowForm, RowReader, RowsError, UnknownDataset};
pub use runtime::runtime;
pub use spill::{
    Recovered, SetAside, Spill, SpillError, SpillOptions, SpillPosition, SpilledBatch,
};
pub use static_pairs::StaticPairs;
pub use template::{Template, TemplateError, TemplateFault};
pub use wire::WireError;
