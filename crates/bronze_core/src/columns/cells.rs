//! Columns read a cell at a time and written to the wire.
//!
//! Invariants: columns are brought to one type each before the first row, so that reading a cell is
//! a match and an index; a null cell is the field's default and leaves nothing on the wire; what is
//! written equals what any Protobuf encoder writes that goes by field number and sorts maps by key.

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, LargeStringArray, ListArray, MapArray, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::DataType;

use super::error::{ColumnsError, Fault, FieldProblem};
use super::fields::{Field, Kind, LEVEL, Message};
use super::names::check_names;
use crate::wire;

/// The columns of one message, in the order of its fields.
#[derive(Debug)]
pub(super) struct MessageCells {
    message: &'static Message,
    /// Field numbers with their columns; fields without a column are always absent.
    cells: Vec<(u32, Cells)>,
}

impl MessageCells {
    /// Takes the message's fields from columns found by name.
    pub(super) fn new<'a>(
        message: &'static Message,
        column: impl Fn(&str) -> Option<&'a ArrayRef>,
    ) -> Result<Self, ColumnsError> {
        let mut cells = Vec::with_capacity(message.fields.len());
        for field in message.fields {
            let Some(column) = column(field.name) else { continue };
            // A column that holds nothing but nulls may come without a type.
            if *column.data_type() == DataType::Null {
                continue;
            }
            let read = Cells::new(field.kind, column, || message.path(field.name))?;
            if column.null_count() < column.len() {
                cells.push((field.number, read));
            }
        }
        Ok(Self { message, cells })
    }

    /// The columns that are there, with their fields.
    pub(super) fn by_field(&self) -> impl Iterator<Item = (&'static Field, &Cells)> {
        self.cells.iter().map(|(number, cells)| {
            let (_, position) = self.message.reading(*number);
            (&self.message.fields[position], cells)
        })
    }

    /// The column of the field with a name; none if it is null in all rows.
    pub(super) fn of_field(&self, name: &str) -> Option<&Cells> {
        self.by_field().find(|(field, _)| field.name == name).map(|(_, cells)| cells)
    }

    /// Appends a row's fields.
    #[inline]
    pub(super) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), Fault> {
        for (number, cells) in &self.cells {
            cells
                .write(*number, row, out)
                .map_err(|problem| Fault::new(self.message, *number, problem))?;
        }
        Ok(())
    }
}

/// A column by what its field holds.
#[derive(Debug)]
pub(super) enum Cells {
    Text(StringArray),
    OptionalText(StringArray),
    Bool(BooleanArray),
    Number(Int64Array, RangeInclusive<i64>),
    Enum(StringArray, &'static [&'static str]),
    Time(TimestampMicrosecondArray),
    Levels { list: ListArray, prices: Option<StringArray>, amounts: Option<StringArray> },
    Meta { map: MapArray, keys: StringArray, values: StringArray, last: RefCell<LastMeta> },
    SymbolList { list: ListArray, symbols: StringArray },
}

impl Cells {
    fn new(kind: Kind, column: &ArrayRef, path: impl Fn() -> String) -> Result<Self, ColumnsError> {
        let number = |least, most| Ok(Self::Number(numbers(column, &path)?, least..=most));
        match kind {
            Kind::Text => Ok(Self::Text(texts(column, &path)?)),
            Kind::OptionalText => Ok(Self::OptionalText(texts(column, &path)?)),
            Kind::Enum(names) => Ok(Self::Enum(texts(column, &path)?, names)),
            Kind::Bool => column
                .as_boolean_opt()
                .map(|flags| Self::Bool(flags.clone()))
                .ok_or_else(|| mistyped(column, &path, "Boolean")),
            Kind::Int32 => number(i64::from(i32::MIN), i64::from(i32::MAX)),
            Kind::Int64 => number(i64::MIN, i64::MAX),
            Kind::Uint32 => number(0, i64::from(u32::MAX)),
            Kind::Uint64 => number(0, i64::MAX),
            // Whatever its zone, Arrow counts a time from 1970 in UTC.
            Kind::Time => column
                .as_primitive_opt::<TimestampMicrosecondType>()
                .map(|times| Self::Time(times.clone()))
                .ok_or_else(|| mistyped(column, &path, "Timestamp in microseconds")),
            Kind::Levels => Self::levels(column, &path),
            Kind::Meta => Self::meta(column, &path),
            Kind::SymbolList => {
                let list = list(column, &path, "List of Utf8")?;
                let symbols = texts(list.values(), || format!("{}.element", path()))?;
                Ok(Self::SymbolList { list, symbols })
            }
        }
    }

    fn levels(column: &ArrayRef, path: impl Fn() -> String) -> Result<Self, ColumnsError> {
        const EXPECTED: &str = "List of Struct of price_str and qty_str";
        let list = list(column, &path, EXPECTED)?;
        let levels =
            list.values().as_struct_opt().ok_or_else(|| mistyped(column, &path, EXPECTED))?;
        check_names(
            &levels.column_names(),
            |name| LEVEL.contains(&name),
            || LEVEL.join(", "),
            |name| format!("{}.{name}", path()),
        )?;
        let child = |name: &str| {
            levels
                .column_by_name(name)
                .map(|texts_of| texts(texts_of, || format!("{}.{name}", path())))
                .transpose()
        };
        Ok(Self::Levels { prices: child(LEVEL[0])?, amounts: child(LEVEL[1])?, list })
    }

    fn meta(column: &ArrayRef, path: impl Fn() -> String) -> Result<Self, ColumnsError> {
        let map = column
            .as_map_opt()
            .ok_or_else(|| mistyped(column, &path, "Map of Utf8 to Utf8"))?
            .clone();
        let keys = texts(map.keys(), || format!("{}.key", path()))?;
        let values = texts(map.values(), || format!("{}.value", path()))?;
        Ok(Self::Meta { map, keys, values, last: RefCell::default() })
    }

    #[inline]
    fn write(&self, number: u32, row: usize, out: &mut Vec<u8>) -> Result<(), FieldProblem> {
        match self {
            Self::Text(texts) => wire::put_text(out, number, text(texts, row)),
            Self::OptionalText(texts) => {
                if texts.is_valid(row) {
                    wire::put_present_text(out, number, texts.value(row));
                }
            }
            Self::Bool(flags) => {
                wire::put_bool(out, number, flags.is_valid(row) && flags.value(row));
            }
            Self::Number(numbers, range) => {
                if numbers.is_valid(row) {
                    let value = numbers.value(row);
                    if !range.contains(&value) {
                        let (least, most) = (*range.start(), *range.end());
                        return Err(FieldProblem::Range { value, least, most });
                    }
                    wire::put_signed(out, number, value);
                }
            }
            Self::Enum(texts, names) => {
                if texts.is_valid(row) {
                    wire::put_signed(out, number, enum_number(texts.value(row), names)?);
                }
            }
            Self::Time(times) => {
                if times.is_valid(row) {
                    wire::put_time(out, number, times.value(row));
                }
            }
            Self::Levels { list, prices, amounts } => {
                for level in items(list, list.value_offsets(), row) {
                    wire::put_nested(out, number, |out| {
                        wire::put_text(out, 1, prices.as_ref().map_or("", |of| text(of, level)));
                        wire::put_text(out, 2, amounts.as_ref().map_or("", |of| text(of, level)));
                    });
                }
            }
            Self::Meta { map, keys, values, last } => {
                let pairs = items(map, map.value_offsets(), row);
                last.borrow_mut().write(number, pairs, keys, values, out);
            }
            Self::SymbolList { list, symbols } => {
                if list.is_valid(row) {
                    wire::put_nested(out, number, |out| {
                        for symbol in items(list, list.value_offsets(), row) {
                            wire::put_present_text(out, 1, text(symbols, symbol));
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

/// What was written last: a row's pairs are mostly those of the row before.
#[derive(Debug, Default)]
pub(super) struct LastMeta {
    pairs: Range<usize>,
    bytes: Vec<u8>,
}

impl LastMeta {
    /// Writes a map's pairs.
    #[inline]
    fn write(
        &mut self,
        number: u32,
        pairs: Range<usize>,
        keys: &StringArray,
        values: &StringArray,
        out: &mut Vec<u8>,
    ) {
        if are_same(keys, &self.pairs, &pairs) && are_same(values, &self.pairs, &pairs) {
            out.extend_from_slice(&self.bytes);
            return;
        }
        let start = out.len();
        write_meta(number, pairs.clone(), keys, values, out);
        self.pairs = pairs;
        self.bytes.clear();
        self.bytes.extend_from_slice(&out[start..]);
    }
}

/// Whether two ranges of a column without nulls hold the same texts.
#[inline]
#[allow(clippy::cast_sign_loss)] // offsets are never negative
fn are_same(texts: &StringArray, one: &Range<usize>, other: &Range<usize>) -> bool {
    let offsets = texts.value_offsets();
    let (one, other) = (&offsets[one.start..=one.end], &offsets[other.start..=other.end]);
    let bytes = |of: &[i32]| &texts.value_data()[of[0] as usize..of[of.len() - 1] as usize];
    texts.null_count() == 0
        && one.len() == other.len()
        && one.iter().zip(other).all(|(end, same)| end - one[0] == same - other[0])
        && bytes(one) == bytes(other)
}

/// Writes a map's pairs in the order of their keys; of equal keys the last one stays.
#[inline]
fn write_meta(
    number: u32,
    pairs: Range<usize>,
    keys: &StringArray,
    values: &StringArray,
    out: &mut Vec<u8>,
) {
    let mut write = |pair| {
        wire::put_nested(out, number, |out| {
            wire::put_text(out, 1, text(keys, pair));
            wire::put_text(out, 2, text(values, pair));
        });
    };
    if pairs.clone().is_sorted_by(|&one, &next| text(keys, one) < text(keys, next)) {
        pairs.for_each(write);
    } else {
        let mut sorted = pairs.collect::<Vec<_>>();
        sorted.sort_by_key(|&pair| text(keys, pair));
        for same_key in sorted.chunk_by(|&one, &next| text(keys, one) == text(keys, next)) {
            same_key.last().copied().into_iter().for_each(&mut write);
        }
    }
}

/// A cell's text; null is empty.
#[inline]
pub(super) fn text(texts: &StringArray, row: usize) -> &str {
    if texts.is_valid(row) { texts.value(row) } else { "" }
}

/// Where a row's items are; null has none.
#[inline]
#[allow(clippy::cast_sign_loss)] // offsets are never negative
pub(super) fn items(column: &impl Array, offsets: &[i32], row: usize) -> Range<usize> {
    if column.is_valid(row) { offsets[row] as usize..offsets[row + 1] as usize } else { 0..0 }
}

/// The number of an enum's value, given by name or as a number.
#[inline]
#[allow(clippy::cast_possible_wrap)] // a handful of names
fn enum_number(text: &str, names: &'static [&'static str]) -> Result<i64, FieldProblem> {
    match names.iter().position(|name| *name == text) {
        Some(number) => Ok(number as i64),
        None => text
            .parse::<i32>()
            .map(i64::from)
            .map_err(|_| FieldProblem::EnumName { found: text.to_owned(), expected: names }),
    }
}

fn texts(column: &ArrayRef, path: impl Fn() -> String) -> Result<StringArray, ColumnsError> {
    match column.data_type() {
        DataType::Utf8 => Ok(column.as_string::<i32>().clone()),
        DataType::LargeUtf8 => {
            let large = column.as_string::<i64>();
            Ok(narrowed(large).unwrap_or_else(|| large.iter().collect()))
        }
        DataType::Utf8View => Ok(column.as_string_view().iter().collect()),
        DataType::Null => Ok(StringArray::new_null(column.len())),
        _ => Err(mistyped(column, path, "Utf8, LargeUtf8 or Utf8View")),
    }
}

/// The same texts with offsets of 32 bits, if these reach and Arrow finds nothing wrong with the texts.
fn narrowed(large: &LargeStringArray) -> Option<StringArray> {
    let offsets = large.offsets().iter().map(|offset| i32::try_from(*offset).ok());
    let offsets = OffsetBuffer::new(offsets.collect::<Option<Vec<_>>>()?.into());
    StringArray::try_new(offsets, large.values().clone(), large.nulls().cloned()).ok()
}

fn numbers(column: &ArrayRef, path: impl Fn() -> String) -> Result<Int64Array, ColumnsError> {
    match column.data_type() {
        DataType::Int64 => Ok(column.as_primitive::<Int64Type>().clone()),
        DataType::Int32 => {
            let narrow = column.as_primitive::<Int32Type>();
            Ok(narrow.unary::<_, Int64Type>(i64::from))
        }
        _ => Err(mistyped(column, path, "Int32 or Int64")),
    }
}

fn list(
    column: &ArrayRef,
    path: impl Fn() -> String,
    expected: &'static str,
) -> Result<ListArray, ColumnsError> {
    match column.data_type() {
        DataType::List(_) => Ok(column.as_list::<i32>().clone()),
        DataType::LargeList(item) => {
            let large = column.as_list::<i64>();
            let offsets = large
                .value_offsets()
                .iter()
                .map(|offset| i32::try_from(*offset))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|_| ColumnsError::TooLarge { rows: column.len() })?;
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
            let values = large.values().clone();
            Ok(ListArray::try_new(item.clone(), offsets, values, large.nulls().cloned())?)
        }
        _ => Err(mistyped(column, path, expected)),
    }
}

#[cold]
fn mistyped(column: &ArrayRef, path: impl Fn() -> String, expected: &'static str) -> ColumnsError {
    ColumnsError::ColumnType { column: path(), expected, found: column.data_type().clone() }
}
