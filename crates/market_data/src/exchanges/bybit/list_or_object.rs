//! A value whose shape differs from message to message.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// A value that is a list in some messages and an object in others.
pub(super) enum ListOrObject<L, O> {
    List(L),
    Object(O),
}

impl<'de, L: Deserialize<'de>, O: Deserialize<'de>> Deserialize<'de> for ListOrObject<L, O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListOrObjectVisitor(PhantomData))
    }
}

struct ListOrObjectVisitor<L, O>(PhantomData<(L, O)>);

impl<'de, L: Deserialize<'de>, O: Deserialize<'de>> Visitor<'de> for ListOrObjectVisitor<L, O> {
    type Value = ListOrObject<L, O>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        L::deserialize(SeqAccessDeserializer::new(items)).map(ListOrObject::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        O::deserialize(MapAccessDeserializer::new(fields)).map(ListOrObject::Object)
    }
}
