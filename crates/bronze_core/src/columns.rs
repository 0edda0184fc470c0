//! Bronze events as Arrow columns, and back.
//!
//! Two shapes. **Wide** takes events of every case: the envelope's columns, then one nullable
//! struct per payload case, of which a row fills one, or none if its event carries no payload.
//! **Narrow** takes events of one case: the envelope's columns, then the payload's fields flat.
//! Columns are named as the fields of the schema.
//!
//! | field | column |
//! |---|---|
//! | text | Utf8; null if empty, except for `underlying_index`, which is null if absent |
//! | integer | Int32 for int32, else Int64; a uint64 past its range is an error |
//! | flag | Boolean |
//! | enum | Utf8: the value's full name (`SIDE_BUY`), or its number if the name is not known |
//! | time | Timestamp in microseconds, UTC; null if absent; digits below are cut |
//! | levels | List of Struct of `price_str` and `qty_str`; no levels is an empty list |
//! | `meta` | Map of Utf8 to Utf8, sorted by key; no pairs is an empty map |
//! | symbols | List of Utf8; null if absent |
//!
//! Events whose times are whole microseconds come back byte for byte as `prost` would write them.
//! On the way back null is the default of every field; texts may also be `LargeUtf8` or `Utf8View`,
//! integers Int32 or Int64, lists `LargeList`, and times may be of any zone.

mod bronze_rows;
mod builders;
mod cells;
mod check;
mod decode;
mod decode_checked;
mod encode;
mod error;
mod fields;
mod names;
mod schema;
mod slots;
mod sound_rows;
mod texts;

pub use crate::wire::WireError;
pub(crate) use bronze_rows::BronzeRows;
pub(crate) use check::check_message;
pub use check::{EventCheck, EventProblem};
pub(crate) use decode::nullable_event_bytes;
pub use decode::{event_bytes, events_by_case, events_to_narrow, events_to_wide};
pub use decode_checked::{event_keys, events_to_checked};
pub use encode::{
    batch_to_events, buffer_to_events, event_batch_to_events, event_batches_to_events,
    narrow_to_events, wide_to_events,
};
pub(crate) use encode::{narrow_case, narrow_to_batches};
pub use error::{ColumnsError, FieldProblem};
pub use schema::{narrow_schema, wide_schema};
pub(crate) use sound_rows::SoundRows;
