//! Columns that grow by a row at a time.
//!
//! Invariants: the builders of a message all have the same length; appending never overflows
//! 32-bit offsets, because [`super::decode`] bounds the bytes and rows of a batch beforehand.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, TimestampMicrosecondBuilder,
};
use arrow_array::{Array, ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::NullBufferBuilder;
use arrow_buffer::OffsetBuffer;
use arrow_schema::ArrowError;
use arrow_schema::Fields;

use super::error::{Fault, FieldProblem};
use super::fields::{Kind, Message};
use super::schema::{element, entries, level_fields, meta_entry_fields, time_zone};
use super::slots::{MessageSlots, Pair, Slot};
use super::texts::TextBuilder;

/// Columns for the fields of one message.
#[derive(Debug)]
pub(super) struct MessageBuilder {
    message: &'static Message,
    columns: Vec<ColumnBuilder>,
}

impl MessageBuilder {
    /// No rows yet, with room for `rows`.
    pub(super) fn new(message: &'static Message, rows: usize) -> Self {
        let columns =
            message.fields.iter().map(|field| ColumnBuilder::new(field.kind, rows)).collect();
        Self { message, columns }
    }

    /// Empties the slots into a new row.
    #[inline]
    pub(super) fn append(&mut self, slots: &mut MessageSlots<'_>) -> Result<(), Fault> {
        for (position, (column, slot)) in self.columns.iter_mut().zip(slots.slots()).enumerate() {
            column.append(slot).map_err(|problem| {
                Fault::new(self.message, self.message.fields[position].number, problem)
            })?;
            slot.clear();
        }
        Ok(())
    }

    /// Adds rows in which the whole message is absent.
    pub(super) fn append_nulls(&mut self, rows: usize) {
        for column in &mut self.columns {
            column.append_nulls(rows);
        }
    }

    pub(super) fn finish(self) -> Result<Vec<ArrayRef>, ArrowError> {
        self.columns.into_iter().map(ColumnBuilder::finish).collect()
    }
}

#[derive(Debug)]
enum ColumnBuilder {
    Text(TextBuilder),
    OptionalText(TextBuilder),
    Bool(BooleanBuilder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Uint32(Int64Builder),
    Uint64(Int64Builder),
    Enum(TextBuilder, &'static [&'static str]),
    Time(TimestampMicrosecondBuilder),
    Levels(PairsBuilder),
    Meta(PairsBuilder),
    SymbolList(PairsBuilder),
}

impl ColumnBuilder {
    fn new(kind: Kind, rows: usize) -> Self {
        let texts = || TextBuilder::with_capacity(rows, rows.saturating_mul(8));
        match kind {
            Kind::Text => Self::Text(texts()),
            Kind::OptionalText => Self::OptionalText(texts()),
            Kind::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            Kind::Int32 => Self::Int32(Int32Builder::with_capacity(rows)),
            Kind::Int64 => Self::Int64(Int64Builder::with_capacity(rows)),
            Kind::Uint32 => Self::Uint32(Int64Builder::with_capacity(rows)),
            Kind::Uint64 => Self::Uint64(Int64Builder::with_capacity(rows)),
            Kind::Enum(names) => Self::Enum(texts(), names),
            Kind::Time => Self::Time(TimestampMicrosecondBuilder::with_capacity(rows)),
            Kind::Levels => Self::Levels(PairsBuilder::new(rows)),
            Kind::Meta => Self::Meta(PairsBuilder::new(rows)),
            Kind::SymbolList => Self::SymbolList(PairsBuilder::new(rows)),
        }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // narrow integers are cut, as Protobuf says
    #[allow(clippy::cast_possible_wrap)] // negative numbers are on the wire as two's complement
    fn append(&mut self, slot: &mut Slot<'_>) -> Result<(), FieldProblem> {
        match self {
            Self::Text(texts) => texts.append_unless_empty(slot.text),
            Self::OptionalText(texts) => texts.append(slot.text, slot.present),
            Self::Bool(flags) => flags.append_value(slot.number != 0),
            Self::Int32(numbers) => numbers.append_value(slot.number as i32),
            Self::Int64(numbers) => numbers.append_value(slot.number as i64),
            Self::Uint32(numbers) => numbers.append_value(i64::from(slot.number as u32)),
            Self::Uint64(numbers) => numbers.append_value(
                i64::try_from(slot.number).map_err(|_| FieldProblem::Unsigned(slot.number))?,
            ),
            Self::Enum(texts, names) => append_enum(texts, names, slot.number as i32),
            Self::Time(times) => {
                let micros = slot.present.then(|| micros(slot.number as i64, slot.nanos));
                times.append_option(micros.transpose()?);
            }
            Self::Levels(levels) => {
                for (price, amount) in &slot.pairs {
                    levels.left.append_unless_empty(price);
                    levels.right.append_unless_empty(amount);
                }
                levels.finish_row(true);
            }
            Self::Meta(pairs) => {
                sort_by_key(&mut slot.pairs);
                for (key, value) in &slot.pairs {
                    pairs.left.append(key, true);
                    pairs.right.append(value, true);
                }
                pairs.finish_row(true);
            }
            Self::SymbolList(symbols) => {
                for (symbol, _) in &slot.pairs {
                    symbols.left.append(symbol, true);
                }
                symbols.finish_row(slot.present);
            }
        }
        Ok(())
    }

    fn append_nulls(&mut self, rows: usize) {
        match self {
            Self::Text(column) | Self::OptionalText(column) | Self::Enum(column, _) => {
                column.append_nulls(rows);
            }
            Self::Bool(column) => column.append_nulls(rows),
            Self::Int32(column) => column.append_nulls(rows),
            Self::Int64(column) | Self::Uint32(column) | Self::Uint64(column) => {
                column.append_nulls(rows);
            }
            Self::Time(column) => column.append_nulls(rows),
            Self::Levels(column) | Self::Meta(column) | Self::SymbolList(column) => {
                column.append_nulls(rows);
            }
        }
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Text(column) | Self::OptionalText(column) | Self::Enum(column, _) => {
                Arc::new(column.finish()?)
            }
            Self::Bool(mut column) => Arc::new(column.finish()),
            Self::Int32(mut column) => Arc::new(column.finish()),
            Self::Int64(mut column) | Self::Uint32(mut column) | Self::Uint64(mut column) => {
                Arc::new(column.finish())
            }
            Self::Time(mut column) => Arc::new(column.finish().with_timezone(time_zone())),
            Self::Levels(column) => Arc::new(column.finish_levels()?),
            Self::Meta(column) => Arc::new(column.finish_map()?),
            Self::SymbolList(column) => Arc::new(column.finish_list()?),
        })
    }
}

/// Rows of pairs of texts; a list of single texts leaves `right` empty.
#[derive(Debug)]
struct PairsBuilder {
    /// Where each row's pairs begin, and after the last row's.
    offsets: Vec<i32>,
    validity: NullBufferBuilder,
    left: TextBuilder,
    right: TextBuilder,
}

impl PairsBuilder {
    fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            offsets,
            validity: NullBufferBuilder::new(rows),
            left: TextBuilder::with_capacity(0, 0),
            right: TextBuilder::with_capacity(0, 0),
        }
    }

    /// Makes the pairs appended since the last row a row.
    #[inline]
    fn finish_row(&mut self, present: bool) {
        self.offsets.push(self.pairs());
        self.validity.append(present);
    }

    fn append_nulls(&mut self, rows: usize) {
        let pairs = self.pairs();
        self.offsets.extend(std::iter::repeat_n(pairs, rows));
        self.validity.append_n_nulls(rows);
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    // A pair takes two bytes or more of a batch that has fewer than 2^31.
    fn pairs(&self) -> i32 {
        self.left.len() as i32
    }

    fn finish_levels(mut self) -> Result<ListArray, ArrowError> {
        let levels = structs(self.left, self.right, level_fields())?;
        let item = element(levels.data_type().clone());
        let offsets = OffsetBuffer::new(self.offsets.into());
        ListArray::try_new(item, offsets, Arc::new(levels), self.validity.finish())
    }

    fn finish_map(mut self) -> Result<MapArray, ArrowError> {
        let pairs = structs(self.left, self.right, meta_entry_fields())?;
        let offsets = OffsetBuffer::new(self.offsets.into());
        MapArray::try_new(entries(), offsets, pairs, self.validity.finish(), false)
    }

    fn finish_list(mut self) -> Result<ListArray, ArrowError> {
        let texts = Arc::new(self.left.finish()?);
        let item = element(texts.data_type().clone());
        let offsets = OffsetBuffer::new(self.offsets.into());
        ListArray::try_new(item, offsets, texts, self.validity.finish())
    }
}

fn structs(
    left: TextBuilder,
    right: TextBuilder,
    fields: &Fields,
) -> Result<StructArray, ArrowError> {
    let columns: Vec<ArrayRef> = vec![Arc::new(left.finish()?), Arc::new(right.finish()?)];
    StructArray::try_new(fields.clone(), columns, None)
}

#[inline]
fn append_enum(texts: &mut TextBuilder, names: &[&str], number: i32) {
    match usize::try_from(number).ok().and_then(|number| names.get(number)) {
        Some(name) => texts.append(name.as_bytes(), true),
        None => texts.append(number.to_string().as_bytes(), true),
    }
}

/// Microseconds since 1970; digits below are cut, towards the past.
#[inline]
pub(super) fn micros(seconds: i64, nanos: i32) -> Result<i64, FieldProblem> {
    let micros = i128::from(seconds) * 1_000_000 + i128::from(nanos.div_euclid(1_000));
    i64::try_from(micros).map_err(|_| FieldProblem::Time { seconds, nanos })
}

/// Brings a map's pairs into the order of their keys; of equal keys the last one stays.
#[inline]
fn sort_by_key(pairs: &mut Vec<Pair<'_>>) {
    if pairs.is_sorted_by(|one, next| one.0 < next.0) {
        return;
    }
    pairs.sort_by_key(|pair| pair.0);
    pairs.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            *kept = *later;
        }
        same
    });
}
