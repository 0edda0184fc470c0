//! The Arrow types of the schema's fields.
//!
//! Invariants: every type is one that Spark takes from `mapInArrow` and from Python data sources;
//! every column is nullable; nested names are those PySpark gives to its own types, since it compares
//! schemas for equality.

use std::sync::{Arc, LazyLock};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use super::fields::{self, ENVELOPE, Kind, Message};
use crate::payload_case::PayloadCase;

static WIDE: LazyLock<SchemaRef> = LazyLock::new(|| {
    let payloads = PayloadCase::ALL.map(|case| {
        let fields = columns(fields::payload(case)).collect::<Fields>();
        Arc::new(Field::new(case.field_name(), DataType::Struct(fields), true))
    });
    Arc::new(Schema::new(columns(&ENVELOPE).chain(payloads).collect::<Fields>()))
});

static NARROW: LazyLock<[SchemaRef; PayloadCase::ALL.len()]> = LazyLock::new(|| {
    PayloadCase::ALL.map(|case| {
        let payload = columns(fields::payload(case));
        Arc::new(Schema::new(columns(&ENVELOPE).chain(payload).collect::<Fields>()))
    })
});

static LEVEL_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    ["price_str", "qty_str"]
        .map(|name| Field::new(name, DataType::Utf8, true))
        .into_iter()
        .collect()
});

static META_ENTRY_FIELDS: LazyLock<Fields> = LazyLock::new(|| {
    Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ])
});

/// The envelope's columns, then one nullable struct per payload case.
#[must_use]
pub fn wide_schema() -> SchemaRef {
    Arc::clone(&WIDE)
}

/// The envelope's columns, then those of one payload case.
#[must_use]
pub fn narrow_schema(case: PayloadCase) -> SchemaRef {
    Arc::clone(&NARROW[case as usize])
}

/// The fields of a level.
pub(super) fn level_fields() -> &'static Fields {
    &LEVEL_FIELDS
}

/// The fields of a pair in `meta`.
pub(super) fn meta_entry_fields() -> &'static Fields {
    &META_ENTRY_FIELDS
}

/// A list's items.
pub(super) fn element(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("element", data_type, true))
}

/// A map's entries.
pub(super) fn entries() -> FieldRef {
    Arc::new(Field::new("entries", DataType::Struct(META_ENTRY_FIELDS.clone()), false))
}

fn columns(message: &'static Message) -> impl Iterator<Item = FieldRef> {
    message.fields.iter().map(|field| Arc::new(Field::new(field.name, data_type(field.kind), true)))
}

fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Text | Kind::OptionalText | Kind::Enum(_) => DataType::Utf8,
        Kind::Bool => DataType::Boolean,
        Kind::Int32 => DataType::Int32,
        // Spark refuses unsigned integers.
        Kind::Int64 | Kind::Uint32 | Kind::Uint64 => DataType::Int64,
        Kind::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(time_zone())),
        Kind::Levels => DataType::List(element(DataType::Struct(LEVEL_FIELDS.clone()))),
        Kind::Meta => DataType::Map(entries(), false),
        Kind::SymbolList => DataType::List(element(DataType::Utf8)),
    }
}

/// The zone of all times.
pub(super) fn time_zone() -> Arc<str> {
    Arc::from("UTC")
}
