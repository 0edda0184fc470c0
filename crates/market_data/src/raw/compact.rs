//! A reader for JSON as exchanges write it: compact, without escapes, with numbers of a usual length.
//!
//! Reading takes most of a replay's time, and most of that goes into what these messages do not have.
//! So they are tried with this reader first. It gives up on everything unusual, which the general
//! reader then takes: it need not be complete, only right. What it reads, it reads as the other
//! does; `tests::both_readers_agree` holds them against each other.

use std::fmt;
use std::str;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::eight_bytes::{digits, end_of_plain};
use crate::raw::numeric::exact_decimal;

/// How deeply values are nested that nobody asked for.
const MAX_SKIPPED_DEPTH: usize = 8;
/// Digits that surely fit into 64 bits.
const MAX_DIGITS: usize = 18;

/// Reads all of `json`.
#[inline]
pub(super) fn read<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, Unusual> {
    // Once for all of it is much less work than for each string.
    let text = str::from_utf8(json).map_err(|_| Unusual)?;
    let mut reader = Compact { text, at: 0 };
    let value = T::deserialize(&mut reader)?;
    if reader.at == text.len() { Ok(value) } else { Err(Unusual) }
}

/// The text is not as usual, or no JSON at all, or not what was asked for.
#[derive(Debug)]
pub(super) struct Unusual;

impl fmt::Display for Unusual {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not as usual")
    }
}

impl std::error::Error for Unusual {}

impl de::Error for Unusual {
    #[cold]
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// A text, read up to a place.
struct Compact<'de> {
    text: &'de str,
    at: usize,
}

impl<'de> Compact<'de> {
    #[inline]
    fn bytes(&self) -> &'de [u8] {
        self.text.as_bytes()
    }

    #[inline]
    fn rest(&self) -> &'de [u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    #[inline]
    fn first(&self) -> Result<u8, Unusual> {
        self.bytes().get(self.at).copied().ok_or(Unusual)
    }

    #[inline]
    fn pass(&mut self, literal: &[u8]) -> Result<(), Unusual> {
        if !self.rest().starts_with(literal) {
            return Err(Unusual);
        }
        self.at += literal.len();
        Ok(())
    }

    /// Whether `byte` was next, which is passed then.
    #[inline]
    fn passes(&mut self, byte: u8) -> bool {
        let is_next = self.bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// A string without escapes.
    #[inline]
    fn string(&mut self) -> Result<&'de str, Unusual> {
        self.pass(b"\"")?;
        let end = end_of_plain(self.bytes(), self.at);
        let string = self.text.get(self.at..end).ok_or(Unusual)?;
        self.at = end;
        self.pass(b"\"")?;
        Ok(string)
    }

    /// The name of a field, with the colon behind it.
    #[inline]
    fn name(&mut self) -> Result<&'de str, Unusual> {
        let name = self.string()?;
        self.pass(b":")?;
        Ok(name)
    }

    /// Passes digits, one at least, and returns their number and value.
    #[inline]
    fn digits(&mut self, before: u64) -> Result<(usize, u64), Unusual> {
        let (end, value) = digits(self.bytes(), self.at, before);
        let length = end - self.at;
        self.at = end;
        if length == 0 { Err(Unusual) } else { Ok((length, value)) }
    }

    #[inline]
    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unusual> {
        let is_negative = self.passes(b'-');
        let starts_with_zero = self.first()? == b'0';
        let (whole, mut digits) = self.digits(0)?;
        if starts_with_zero && whole > 1 {
            return Err(Unusual);
        }
        let mut places = 0;
        if self.passes(b'.') {
            (places, digits) = self.digits(digits)?;
        }
        if whole + places > MAX_DIGITS || matches!(self.first(), Ok(b'e' | b'E')) {
            return Err(Unusual);
        }
        // Readers differ in whether minus zero is zero.
        if is_negative && digits == 0 {
            return Err(Unusual);
        }
        if places > 0 {
            let value = exact_decimal(digits, places).ok_or(Unusual)?;
            return visitor.visit_f64(if is_negative { -value } else { value });
        }
        match i64::try_from(digits) {
            Ok(value) if is_negative => visitor.visit_i64(-value),
            Ok(_) => visitor.visit_u64(digits),
            Err(_) => Err(Unusual),
        }
    }

    fn skip(&mut self, depth: usize) -> Result<(), Unusual> {
        match self.first()? {
            b'"' => self.string().map(drop),
            b'n' => self.pass(b"null"),
            b't' => self.pass(b"true"),
            b'f' => self.pass(b"false"),
            _ if depth == MAX_SKIPPED_DEPTH => Err(Unusual),
            b'{' => self.skip_items(b'}', depth, |reader| reader.name().map(drop)),
            b'[' => self.skip_items(b']', depth, |_| Ok(())),
            _ => self.skip_number(),
        }
    }

    fn skip_items(
        &mut self,
        end: u8,
        depth: usize,
        before: impl Fn(&mut Self) -> Result<(), Unusual>,
    ) -> Result<(), Unusual> {
        self.at += 1;
        if self.passes(end) {
            return Ok(());
        }
        loop {
            before(self)?;
            self.skip(depth + 1)?;
            if self.passes(end) {
                return Ok(());
            }
            self.pass(b",")?;
        }
    }

    fn skip_number(&mut self) -> Result<(), Unusual> {
        self.passes(b'-');
        let starts_with_zero = self.first()? == b'0';
        let (length, _) = self.digits(0)?;
        if starts_with_zero && length > 1 {
            return Err(Unusual);
        }
        if self.passes(b'.') {
            self.digits(0)?;
        }
        if self.passes(b'e') || self.passes(b'E') {
            let _ = self.passes(b'+') || self.passes(b'-');
            self.digits(0)?;
        }
        Ok(())
    }
}

impl<'de> Deserializer<'de> for &mut Compact<'de> {
    type Error = Unusual;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        match self.first()? {
            b'"' => visitor.visit_borrowed_str(self.string()?),
            b'{' => self.deserialize_map(visitor),
            b'[' => self.deserialize_seq(visitor),
            b'n' => {
                self.pass(b"null")?;
                visitor.visit_unit()
            }
            b't' => {
                self.pass(b"true")?;
                visitor.visit_bool(true)
            }
            b'f' => {
                self.pass(b"false")?;
                visitor.visit_bool(false)
            }
            _ => self.number(visitor),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        if self.first()? == b'n' {
            self.pass(b"null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unusual> {
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        self.pass(b"[")?;
        let mut items = Items { reader: self, is_first: true, expected: &[] };
        let value = visitor.visit_seq(&mut items)?;
        // What the visitor did not take must not be passed over in silence.
        let Items { reader, .. } = items;
        reader.pass(b"]")?;
        Ok(value)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Unusual> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        self.deserialize_struct("", &[], visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        expected: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unusual> {
        self.pass(b"{")?;
        let mut fields = Items { reader: self, is_first: true, expected };
        let value = visitor.visit_map(&mut fields)?;
        let Items { reader, .. } = fields;
        reader.pass(b"}")?;
        Ok(value)
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unusual> {
        self.skip(0)?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct tuple_struct enum identifier
    }
}

/// The items of an array or the fields of an object.
struct Items<'a, 'de> {
    reader: &'a mut Compact<'de>,
    is_first: bool,
    /// Names of fields that are still to come if they come in the order in which they are declared.
    expected: &'static [&'static str],
}

impl Items<'_, '_> {
    /// Whether there is another one, of which the reader is at the beginning then.
    #[inline]
    fn has_next(&mut self, end: u8) -> Result<bool, Unusual> {
        if self.reader.first()? == end {
            return Ok(false);
        }
        if !std::mem::take(&mut self.is_first) {
            self.reader.pass(b",")?;
        }
        Ok(true)
    }

    /// Passes the name of a field and its colon if it is the next one expected, or the one after:
    /// to compare a name is less work than to find out where it ends and then which one it is.
    #[inline]
    fn pass_expected(&mut self) -> Option<&'static str> {
        let rest = self.reader.rest().strip_prefix(b"\"")?;
        let (name, passed) = match self.expected {
            [next, ..] if is_named(rest, next) => (*next, 1),
            [_, next, ..] if is_named(rest, next) => (*next, 2),
            _ => return None,
        };
        self.expected = &self.expected[passed..];
        self.reader.at += name.len() + 3;
        Some(name)
    }
}

/// Whether a field, of which the first quote is passed, has this name.
#[inline]
fn is_named(rest: &[u8], name: &str) -> bool {
    // Most names that differ do so in their first letter.
    rest.first() == name.as_bytes().first()
        && matches!(rest.strip_prefix(name.as_bytes()), Some([b'"', b':', ..]))
}

impl<'de> SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Unusual;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Unusual> {
        if !self.has_next(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = Unusual;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Unusual> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        let name = match self.pass_expected() {
            Some(name) => name,
            None => self.reader.name()?,
        };
        seed.deserialize(de::value::BorrowedStrDeserializer::new(name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Unusual> {
        seed.deserialize(&mut *self.reader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{Levels, Numeric, Rows, Text};
    use proptest::prelude::*;
    use serde_json::Value;

    /// Every kind of field that mappers have.
    #[derive(Debug, Deserialize)]
    #[allow(dead_code)] // compared by their text
    struct Sample<'a> {
        #[serde(borrow)]
        a: Option<Text<'a>>,
        #[serde(default)]
        b: Numeric,
        #[serde(default)]
        c: Levels,
        d: Option<u64>,
        #[serde(default)]
        e: Rows<Text<'a>>,
        f: Option<Box<Sample<'a>>>,
        #[serde(default)]
        g: Option<(f64, bool)>,
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1_000_000_000i64..1_000_000_000, 0..8i32).prop_map(|(digits, places)| {
                #[allow(clippy::cast_precision_loss)]
                Value::from(digits as f64 / 10f64.powi(places))
            }),
            any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
            "[0-9.]{0,6}|[a-zA-Z é€\"\\\\\n]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::hash_map("[a-h\"]{1,2}", inner, 0..6)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    /// Where both read something, they must read the same; where only the general one fails, this
    /// one must fail too.
    fn both_agree(json: &[u8]) {
        let text = |sample: &Sample<'_>| format!("{sample:?}");
        let general = sonic_rs::from_slice::<Sample<'_>>(json);
        if let Ok(found) = read::<Sample<'_>>(json) {
            let expected = general.expect("the general reader reads it as well");
            assert_eq!(text(&found), text(&expected), "{}", String::from_utf8_lossy(json));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3_000), ..ProptestConfig::default() })]

        #[test]
        fn both_readers_agree(
            fields in prop::collection::hash_map("[a-h]", values(), 0..8),
            change in prop::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        ) {
            let object: serde_json::Map<String, Value> = fields.into_iter().collect();
            let mut json = Value::from(object).to_string().into_bytes();
            both_agree(&json);
            if let Some((at, byte)) = change {
                const BYTES: &[u8] = b"{}[],:\"\\0 9.-eEtnu\x01";
                let at = at.index(json.len());
                json[at] = BYTES[byte.index(BYTES.len())];
                both_agree(&json);
            }
        }
    }

    #[test]
    fn usual_messages_are_read() {
        let json = br#"{"a":"x","b":"1.50","c":[["1",2,"x"],[3.5,"4"]],"d":7,"e":["y",2],"z":{"n":[1e5,{}]},"g":[0.5,true]}"#;
        let sample: Sample<'_> = read(json).unwrap();
        assert_eq!(sample.a.as_deref(), Some("x"));
        assert_eq!(sample.b, Numeric::Value(1.5));
        assert_eq!(sample.c.0.len(), 2);
        assert_eq!((sample.d, sample.e.len(), sample.g), (Some(7), 2, Some((0.5, true))));
    }

    #[test]
    fn unusual_ones_are_left_to_the_general_reader() {
        for json in [
            r#"{"a": "x"}"#,
            r#"{"a":"\u0078"}"#,
            r#"{"b":1e5}"#,
            r#"{"b":-0}"#,
            r#"{"b":-0.0}"#,
            r#"{"b":01}"#,
            r#"{"b":0.12345678901234567890}"#,
            r#"{"b":12345678901234567890}"#,
            r#"{"a":"x"} "#,
            r#"{"a":"x","#,
            r#"{"a":"x",}"#,
            r#"{,"a":"x"}"#,
            r#"{"z":[[[[[[[[[]]]]]]]]]}"#,
            "",
        ] {
            assert!(read::<Sample<'_>>(json.as_bytes()).is_err(), "{json}");
        }
    }
}
