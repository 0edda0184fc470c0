//! A reader for JSON as exchanges write it.
//!
//! Reading takes most of a replay's time, and most of that goes into what these messages do not have.
//! So they are tried with this reader first. It gives up on everything unusual, which the general
//! reader then takes: it need not be complete, only right. What it reads, it reads as the other
//! does; `tests::both_readers_agree` holds them against each other.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::raw::cursor::{Cursor, Unusual};

/// Reads all of `json`.
#[inline]
pub(super) fn read<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, Unusual> {
    let mut reader = Cursor::new(json)?;
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

impl de::Error for Unusual {
    #[cold]
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Gives a number to `visitor`.
#[inline]
fn visit_number<'de, V: Visitor<'de>>(
    reader: &mut Cursor<'de>,
    visitor: V,
) -> Result<V::Value, Unusual> {
    let number = reader.decimal()?;
    if number.places > 0 {
        return visitor.visit_f64(number.value()?);
    }
    match i64::try_from(number.digits) {
        Ok(value) if number.is_negative => visitor.visit_i64(-value),
        Ok(_) => visitor.visit_u64(number.digits),
        Err(_) => Err(Unusual),
    }
}

impl<'de> Deserializer<'de> for &mut Cursor<'de> {
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
            _ => visit_number(self, visitor),
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
    reader: &'a mut Cursor<'de>,
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
        self.reader.skip_bytes(name.len() + 3);
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
