//! A column of texts that grows by a row at a time.
//!
//! Arrow's own builder takes only `str`, and to make one from each text on the wire costs more than
//! all else that is done with it. Here the bytes are collected, and Arrow checks them once, when
//! the column is finished.

use arrow_array::StringArray;
use arrow_buffer::NullBufferBuilder;
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_schema::ArrowError;

/// Texts, each after the other, and where they begin.
#[derive(Debug)]
pub(super) struct TextBuilder {
    bytes: Vec<u8>,
    /// Where each text begins, and where the last one ends.
    offsets: Vec<i32>,
    validity: NullBufferBuilder,
}

impl TextBuilder {
    /// No rows yet, with room for some.
    pub(super) fn with_capacity(rows: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self { bytes: Vec::with_capacity(bytes), offsets, validity: NullBufferBuilder::new(rows) }
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Adds a text, or null.
    #[inline]
    pub(super) fn append(&mut self, text: &[u8], present: bool) {
        self.bytes.extend_from_slice(text);
        self.offsets.push(self.end());
        self.validity.append(present);
    }

    /// Adds a text; empty is null.
    #[inline]
    pub(super) fn append_unless_empty(&mut self, text: &[u8]) {
        self.append(text, !text.is_empty());
    }

    pub(super) fn append_nulls(&mut self, rows: usize) {
        let end = self.end();
        self.offsets.extend(std::iter::repeat_n(end, rows));
        self.validity.append_n_nulls(rows);
    }

    pub(super) fn finish(mut self) -> Result<StringArray, ArrowError> {
        let offsets = OffsetBuffer::new(self.offsets.into());
        StringArray::try_new(offsets, Buffer::from_vec(self.bytes), self.validity.finish())
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    // A batch's texts are bounded before its first row is read.
    fn end(&self) -> i32 {
        self.bytes.len() as i32
    }
}
