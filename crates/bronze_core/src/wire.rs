//! The Protobuf wire format, as far as the schema uses it.
//!
//! Writers append to a `Vec<u8>` and leave out fields that hold their default, as proto3 asks for,
//! so that their bytes are those of any other encoder that writes fields in order of number.
//!
//! The reader lends texts and messages from the bytes it reads. It never reads past its slice and
//! never panics: whatever the bytes are, the answer is a value or a [`WireError`].

use thiserror::Error;

/// Wire types of the schema's fields.
pub(crate) const VARINT: u32 = 0;
/// Texts, maps and messages.
pub(crate) const LENGTH_DELIMITED: u32 = 2;

/// Eight bytes, in no field of the schema: only skipped.
const FIXED_64: u32 = 1;
/// Begins a group, in no field of the schema: only skipped.
const GROUP_START: u32 = 3;
/// Ends a group.
const GROUP_END: u32 = 4;
/// Four bytes, in no field of the schema: only skipped.
const FIXED_32: u32 = 5;

/// How deep unknown groups may nest; bounds the stack that hostile bytes can make us use.
const GROUP_DEPTH: u32 = 100;

/// Appends a variable-length integer.
#[inline]
#[allow(clippy::cast_possible_truncation)] // below 128
pub(crate) fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else {
        put_long_varint(out, value);
    }
}

/// Appends ten bytes and takes back those not needed: a copy of fixed length costs a few
/// instructions, one of variable length a call.
fn put_long_varint(out: &mut Vec<u8>, value: u64) {
    let mut bytes = [0u8; 10];
    let length = varint(&mut bytes, value);
    let start = out.len();
    out.extend_from_slice(&bytes);
    out.truncate(start + length);
}

/// Writes a variable-length integer to the beginning of `bytes` and returns its length.
#[inline]
#[allow(clippy::cast_possible_truncation)] // seven bits at a time
fn varint(bytes: &mut [u8], mut value: u64) -> usize {
    let mut length = 0;
    while value >= 0x80 {
        bytes[length] = value as u8 | 0x80;
        value >>= 7;
        length += 1;
    }
    bytes[length] = value as u8;
    length + 1
}

/// Appends a field's key.
#[inline]
pub(crate) fn put_key(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    put_varint(out, u64::from(field << 3 | wire_type));
}

/// Appends an unsigned integer unless it is 0.
#[inline]
pub(crate) fn put_unsigned(out: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        put_key(out, field, VARINT);
        put_varint(out, value);
    }
}

/// Appends a signed integer or an enum's value unless it is 0.
#[inline]
#[allow(clippy::cast_sign_loss)] // negative numbers are written as their two's complement
pub(crate) fn put_signed(out: &mut Vec<u8>, field: u32, value: i64) {
    put_unsigned(out, field, value as u64);
}

/// Appends a flag unless it is false.
#[inline]
pub(crate) fn put_bool(out: &mut Vec<u8>, field: u32, value: bool) {
    put_unsigned(out, field, u64::from(value));
}

/// Appends a text unless it is empty.
#[inline]
pub(crate) fn put_text(out: &mut Vec<u8>, field: u32, text: &str) {
    if !text.is_empty() {
        put_present_text(out, field, text);
    }
}

/// Appends a text even if it is empty.
#[inline]
pub(crate) fn put_present_text(out: &mut Vec<u8>, field: u32, text: &str) {
    put_key(out, field, LENGTH_DELIMITED);
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends a message, a text or anything else that has a length, as `write` writes it.
///
/// One byte is kept free for the length; what was written moves up in the rare case that its length
/// takes more.
#[inline]
#[allow(clippy::cast_possible_truncation)] // below 128
pub(crate) fn put_nested(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    put_key(out, field, LENGTH_DELIMITED);
    let start = out.len();
    out.push(0);
    write(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
    } else {
        insert_long_length(out, start, length);
    }
}

#[cold]
fn insert_long_length(out: &mut Vec<u8>, start: usize, length: usize) {
    let mut prefix = Vec::with_capacity(10);
    put_varint(&mut prefix, length as u64);
    out.splice(start..=start, prefix);
}

/// Appends a `google.protobuf.Timestamp`.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most 18 bytes; two's complement
pub(crate) fn put_time(out: &mut Vec<u8>, field: u32, micros: i64) {
    let seconds = micros.div_euclid(1_000_000);
    let nanos = micros.rem_euclid(1_000_000) * 1_000;
    let mut bytes = [0u8; 24];
    let mut end = 1;
    for (number, value) in [(1, seconds), (2, nanos)] {
        if value != 0 {
            bytes[end] = (number << 3 | VARINT) as u8;
            end += 1 + varint(&mut bytes[end + 1..], value as u64);
        }
    }
    bytes[0] = end as u8 - 1;
    put_key(out, field, LENGTH_DELIMITED);
    let start = out.len();
    out.extend_from_slice(&bytes);
    out.truncate(start + end);
}

/// Why bytes are no Protobuf message of the schema.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WireError {
    /// The bytes end in the middle of a field.
    #[error("the bytes end in the middle of a field")]
    Truncated,
    /// An integer does not fit 64 bits.
    #[error("an integer is longer than 64 bits")]
    LongInteger,
    /// A key names field 0, an unknown wire type or a field number past 32 bits.
    #[error("{0} is no key of a field")]
    Key(u64),
    /// A known field has another wire type than the schema gives it.
    #[error("wire type {found} where {expected} is expected")]
    WireType {
        /// The schema's.
        expected: u32,
        /// The bytes'.
        found: u32,
    },
    /// A text is not UTF-8.
    #[error("the text is not UTF-8")]
    Text,
    /// Groups of an unknown field end in the wrong place or nest too deep.
    #[error("a group does not end where it should")]
    Group,
}

/// A field's number and wire type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) field: u32,
    wire_type: u32,
}

impl Key {
    #[inline]
    fn expect(self, wire_type: u32) -> Result<(), WireError> {
        if self.wire_type == wire_type {
            Ok(())
        } else {
            Err(WireError::WireType { expected: wire_type, found: self.wire_type })
        }
    }
}

/// Reads one message's fields in the order of its bytes.
#[derive(Debug)]
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    #[inline]
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// What is still to be read.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next field's key, or none at the message's end.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // checked to fit
    pub(crate) fn next_key(&mut self) -> Result<Option<Key>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.integer()?;
        let (field, wire_type) = (key >> 3, key as u32 & 7);
        if field == 0 || key > u64::from(u32::MAX) || wire_type > FIXED_32 {
            return Err(WireError::Key(key));
        }
        Ok(Some(Key { field: field as u32, wire_type }))
    }

    /// The value of a field that holds an integer, a flag or an enum.
    #[inline]
    pub(crate) fn varint(&mut self, key: Key) -> Result<u64, WireError> {
        key.expect(VARINT)?;
        self.integer()
    }

    /// The value of a field that holds a message.
    #[inline]
    pub(crate) fn message(&mut self, key: Key) -> Result<&'a [u8], WireError> {
        key.expect(LENGTH_DELIMITED)?;
        self.delimited()
    }

    /// The value of a field that holds a text, checked to be UTF-8.
    #[inline]
    pub(crate) fn text(&mut self, key: Key) -> Result<&'a [u8], WireError> {
        let text = self.message(key)?;
        // Nearly all texts are short and plain, and for those this check is the quicker one.
        if text.is_ascii() || std::str::from_utf8(text).is_ok() {
            Ok(text)
        } else {
            Err(WireError::Text)
        }
    }

    /// Passes over the value of a field that the schema does not know.
    #[cold]
    pub(crate) fn skip(&mut self, key: Key) -> Result<(), WireError> {
        self.skip_nested(key, GROUP_DEPTH)
    }

    fn skip_nested(&mut self, key: Key, depth: u32) -> Result<(), WireError> {
        match key.wire_type {
            VARINT => self.integer().map(drop),
            FIXED_64 => self.take(8).map(drop),
            FIXED_32 => self.take(4).map(drop),
            LENGTH_DELIMITED => self.delimited().map(drop),
            GROUP_START => loop {
                let inner = self.next_key()?.ok_or(WireError::Truncated)?;
                match inner.wire_type {
                    GROUP_END if inner.field == key.field => return Ok(()),
                    _ => self.skip_nested(inner, depth.checked_sub(1).ok_or(WireError::Group)?)?,
                }
            },
            _ => Err(WireError::Group),
        }
    }

    #[inline]
    fn delimited(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.integer()?).map_err(|_| WireError::Truncated)?;
        self.take(length)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn integer(&mut self) -> Result<u64, WireError> {
        if let [byte @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        self.long_integer()
    }

    fn long_integer(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.rest = &self.rest[index + 1..];
                // Of the tenth byte only one bit fits.
                return if index == 9 && *byte > 1 {
                    Err(WireError::LongInteger)
                } else {
                    Ok(value)
                };
            }
        }
        Err(if self.rest.len() < 10 { WireError::Truncated } else { WireError::LongInteger })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_prost_writes_them() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX / 2, u64::MAX] {
            let mut ours = Vec::new();
            put_varint(&mut ours, value);
            let mut expected = Vec::new();
            prost::encoding::encode_varint(value, &mut expected);
            assert_eq!(ours, expected);
        }
    }

    #[test]
    fn long_contents_get_a_long_length() {
        for length in [0, 1, 127, 128, 16_383, 16_384] {
            let text = "x".repeat(length);
            let mut nested = Vec::new();
            put_nested(&mut nested, 7, |out| out.extend_from_slice(text.as_bytes()));
            let mut plain = Vec::new();
            put_present_text(&mut plain, 7, &text);
            assert_eq!(nested, plain);
        }
    }

    #[test]
    fn integers_are_read_back() {
        let edges = (0..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, u64::MAX >> bit]);
        for value in edges.filter(|&value| value != 0) {
            let mut bytes = Vec::new();
            put_unsigned(&mut bytes, 3, value);
            // Whatever follows must not change it.
            for rest in [&[][..], &[0xff], &[0x80; 3], &[0; 5], &[0xff; 16], &[0; 16]] {
                let bytes = [&bytes, rest].concat();
                let mut reader = WireReader::new(&bytes);
                let key = reader.next_key().unwrap().unwrap();
                assert_eq!((key.field, reader.varint(key)), (3, Ok(value)));
                assert_eq!(reader.rest, rest);
            }
        }
        for length in 0..10 {
            let bytes = vec![0x80; length];
            assert_eq!(WireReader::new(&bytes).integer(), Err(WireError::Truncated));
        }
        assert_eq!(WireReader::new(&[0x80; 10]).integer(), Err(WireError::LongInteger));
        let past_64_bits = [[0xff; 9].as_slice(), &[2]].concat();
        assert_eq!(WireReader::new(&past_64_bits).integer(), Err(WireError::LongInteger));
    }

    #[test]
    fn unknown_fields_of_every_wire_type_are_passed_over() {
        let bytes = [
            &[0x08, 0x96, 0x01][..],                        // 1: integer
            &[0x11, 1, 2, 3, 4, 5, 6, 7, 8],                // 2: eight bytes
            &[0x1a, 2, b'h', b'i'],                         // 3: text
            &[0x23, 0x2b, 0x08, 0x01, 0x2c, 0x10, 1, 0x24], // 4: group with a group in it
            &[0x35, 1, 2, 3, 4],                            // 6: four bytes
        ]
        .concat();
        let mut reader = WireReader::new(&bytes);
        let mut fields = Vec::new();
        while let Some(key) = reader.next_key().unwrap() {
            fields.push(key.field);
            reader.skip(key).unwrap();
        }
        assert_eq!(fields, [1, 2, 3, 4, 6]);
    }

    #[test]
    fn groups_that_end_wrongly_or_never_are_refused() {
        let skipped = |bytes: &[u8]| {
            let mut reader = WireReader::new(bytes);
            let key = reader.next_key().unwrap().unwrap();
            reader.skip(key)
        };
        assert_eq!(skipped(&[0x23, 0x2c]), Err(WireError::Group));
        assert_eq!(skipped(&[0x24]), Err(WireError::Group));
        assert_eq!(skipped(&[0x23]), Err(WireError::Truncated));
        assert_eq!(skipped(&vec![0x23; 100_000]), Err(WireError::Group));
    }

    #[test]
    fn keys_that_name_no_field_are_refused() {
        for key in [0_u64, 2, 0x0e, 0x0f, 1 << 35] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, key);
            let read = WireReader::new(&bytes).next_key();
            assert_eq!(read.map(|key| key.is_some()), Err(WireError::Key(key)));
        }
    }
}
