//! What routes and templates need of an encoded event, lent from its bytes.
//!
//! An event that comes back from a spill or a dead-letter file is nothing but bytes; everything that
//! decides where it goes is read from them here, so it needs no record beside it.
//!
//! Invariants: Protobuf's rules hold however odd the order of the fields (the last scalar, the last
//! of equal keys and the last payload win); all texts are checked when the view is made, those of
//! `meta` too, so asking for one cannot fail; the payload is passed over, not checked; nothing is
//! allocated. Views are made several times of every event and few of their texts are asked for, so a
//! text is checked as bytes, which is quick, and becomes a `str` when it is asked for, which is not;
//! and it is checked once only: who has an event that was viewed before reads it again with `reread`.

use std::borrow::Cow;

use thiserror::Error;

use crate::generated::bronze::Origin;
use crate::payload_case::PayloadCase;
use crate::wire::{Key, WireError, WireReader};

/// The envelope's field that holds `meta`.
pub(crate) const META: u32 = 10;

/// An encoded event's envelope.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a> {
    source: &'a [u8],
    exchange: &'a [u8],
    symbol: &'a [u8],
    origin: i32,
    event_seq: u64,
    case: PayloadCase,
    data_type: &'a [u8],
    /// The event's bytes from the first pair of `meta` on.
    from_meta: &'a [u8],
}

/// Why bytes cannot be routed as a Bronze event.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EventViewError {
    /// The envelope does not follow the schema.
    #[error("not a Bronze event: the field at byte {position}: {error}")]
    NotBronze {
        /// Where the field begins.
        position: usize,
        /// What is wrong with it.
        error: WireError,
    },
    /// The event has no payload that this version knows.
    #[error("the event of `{exchange}` `{symbol}` has no known payload")]
    NoPayload {
        /// The event's exchange.
        exchange: String,
        /// The event's symbol.
        symbol: String,
    },
}

impl<'a> EventView<'a> {
    /// Reads the envelope of one encoded event.
    pub fn read(event: &'a [u8]) -> Result<Self, EventViewError> {
        Self::read_fields::<true>(event)
    }

    /// Reads the envelope of an event that [`Self::read`] has read before: its texts are not checked
    /// again. Of other events, texts that are none read as empty.
    pub fn reread(event: &'a [u8]) -> Result<Self, EventViewError> {
        Self::read_fields::<false>(event)
    }

    #[inline]
    fn read_fields<const CHECKS: bool>(event: &'a [u8]) -> Result<Self, EventViewError> {
        let mut envelope = Envelope::default();
        let mut reader = WireReader::new(event);
        loop {
            let field = reader.rest();
            match envelope.read_field::<CHECKS>(&mut reader) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    let position = event.len() - field.len();
                    return Err(EventViewError::NotBronze { position, error });
                }
            }
        }
        envelope.into_view()
    }

    /// The producer.
    #[must_use]
    pub fn source(&self) -> &'a str {
        checked(self.source)
    }

    /// The exchange id.
    #[must_use]
    pub fn exchange(&self) -> &'a str {
        checked(self.exchange)
    }

    /// The instrument; empty for most control events.
    #[must_use]
    pub fn symbol(&self) -> &'a str {
        checked(self.symbol)
    }

    /// How the event came to be: `unspecified`, `realtime`, `replay`, `archive`, or the number that a
    /// newer producer wrote.
    #[must_use]
    pub fn origin(&self) -> Cow<'static, str> {
        match Origin::try_from(self.origin) {
            Ok(Origin::Unspecified) => "unspecified".into(),
            Ok(Origin::Realtime) => "realtime".into(),
            Ok(Origin::Replay) => "replay".into(),
            Ok(Origin::Archive) => "archive".into(),
            Err(_) => self.origin.to_string().into(),
        }
    }

    /// Position of the event in its session; 0 if the producer does not count.
    #[must_use]
    pub fn event_seq(&self) -> u64 {
        self.event_seq
    }

    /// Which payload the event carries.
    #[must_use]
    pub fn case(&self) -> PayloadCase {
        self.case
    }

    /// `meta` of `data_type`; empty if there is none.
    #[must_use]
    pub fn data_type(&self) -> &'a str {
        checked(self.data_type)
    }

    /// The value of a key of `meta`.
    #[must_use]
    pub fn meta(&self, key: &str) -> Option<&'a str> {
        self.meta_pairs().filter(|(found, _)| *found == key).map(|(_, value)| value).last()
    }

    /// The pairs of `meta` in the order of the bytes, which for our encoder is that of the keys. A key
    /// that was written twice comes twice; the later value is the valid one.
    pub fn meta_pairs(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let mut reader = WireReader::new(self.from_meta);
        // Every field was read without an error before, so an error here is never more than the end.
        std::iter::from_fn(move || {
            while let Some(key) = reader.next_key().ok()? {
                if key.field == META {
                    let (key, value) = read_pair(reader.message(key).ok()?).ok()?;
                    return Some((checked(key), checked(value)));
                }
                reader.skip(key).ok()?;
            }
            None
        })
    }
}

/// The fields met so far.
#[derive(Default)]
struct Envelope<'a> {
    source: &'a [u8],
    exchange: &'a [u8],
    symbol: &'a [u8],
    origin: i32,
    event_seq: u64,
    case: Option<PayloadCase>,
    data_type: &'a [u8],
    from_meta: Option<&'a [u8]>,
}

impl<'a> Envelope<'a> {
    /// Takes in the next field; false if there is none.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // an enum is cut to its lower half, as Protobuf says
    fn read_field<const CHECKS: bool>(
        &mut self,
        reader: &mut WireReader<'a>,
    ) -> Result<bool, WireError> {
        let field = reader.rest();
        let Some(key) = reader.next_key()? else { return Ok(false) };
        match key.field {
            1 => self.source = read_text::<CHECKS>(reader, key)?,
            2 => self.exchange = read_text::<CHECKS>(reader, key)?,
            3 => self.symbol = read_text::<CHECKS>(reader, key)?,
            4 | 5 => drop(reader.message(key)?),
            6 => self.origin = reader.varint(key)? as i32,
            7 => self.event_seq = reader.varint(key)?,
            8 => drop(reader.varint(key)?),
            META => {
                self.from_meta.get_or_insert(field);
                let pair = reader.message(key)?;
                let known = usual_pair(pair).filter(|_| !CHECKS || pair.is_ascii());
                if let (b"data_type", value) = known.map_or_else(|| read_pair(pair), Ok)? {
                    self.data_type = value;
                }
            }
            number => self.read_payload(number, key, reader)?,
        }
        Ok(true)
    }

    #[inline]
    fn read_payload(
        &mut self,
        number: u32,
        key: Key,
        reader: &mut WireReader<'a>,
    ) -> Result<(), WireError> {
        let Some(case) = PayloadCase::of_field_number(number) else { return reader.skip(key) };
        self.case = Some(case);
        reader.message(key).map(drop)
    }

    fn into_view(self) -> Result<EventView<'a>, EventViewError> {
        let Self { source, exchange, symbol, origin, event_seq, case, data_type, from_meta } = self;
        let case = case.ok_or_else(|| EventViewError::NoPayload {
            exchange: checked(exchange).to_owned(),
            symbol: checked(symbol).to_owned(),
        })?;
        let from_meta = from_meta.unwrap_or_default();
        Ok(EventView { source, exchange, symbol, origin, event_seq, case, data_type, from_meta })
    }
}

#[inline]
fn read_text<'a, const CHECKS: bool>(
    reader: &mut WireReader<'a>,
    key: Key,
) -> Result<&'a [u8], WireError> {
    if CHECKS { reader.text(key) } else { reader.message(key) }
}

/// A pair as all encoders write it: a short key, then a short value. Its texts are not checked.
#[inline]
fn usual_pair(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [0x0a, length @ ..0x80, rest @ ..] = bytes else { return None };
    let (key, rest) = rest.split_at_checked(usize::from(*length))?;
    let [0x12, length @ ..0x80, value @ ..] = rest else { return None };
    (value.len() == usize::from(*length)).then_some((key, value))
}

fn read_pair(bytes: &[u8]) -> Result<(&[u8], &[u8]), WireError> {
    let mut pair: (&[u8], &[u8]) = (b"", b"");
    let mut reader = WireReader::new(bytes);
    while let Some(key) = reader.next_key()? {
        match key.field {
            1 => pair.0 = reader.text(key)?,
            2 => pair.1 = reader.text(key)?,
            _ => reader.skip(key)?,
        }
    }
    Ok(pair)
}

/// A text that was checked when the view was made.
#[inline]
fn checked(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use market_data::{Message, Timestamp};
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::generated::bronze::{NormalizedEvent, Trade, normalized_event::Payload};
    use crate::wire::{put_nested, put_text, put_unsigned};
    use crate::{BookChanges, BronzeEncoder, EncoderOptions, EventBuffer};

    fn encode(message: &Message<'_>, options: EncoderOptions) -> EventBuffer {
        let mut events = EventBuffer::default();
        let mut encoder = BronzeEncoder::new(options).unwrap();
        encoder.encode(message, Timestamp::from_micros(1_700_000_000_000_000), &mut events);
        events
    }

    fn put_pair(bytes: &mut Vec<u8>, key: &str, value: &str) {
        put_nested(bytes, META, |bytes| {
            put_text(bytes, 1, key);
            put_text(bytes, 2, value);
        });
    }

    /// The case that prost found.
    fn case_of(payload: &Payload) -> Option<PayloadCase> {
        let mut bytes = Vec::new();
        payload.encode(&mut bytes);
        PayloadCase::of_field_number(WireReader::new(&bytes).next_key().unwrap()?.field)
    }

    fn check(bytes: &[u8]) {
        let expected = NormalizedEvent::decode(bytes).unwrap();
        check_view(EventView::read(bytes).unwrap(), &expected);
        check_view(EventView::reread(bytes).unwrap(), &expected);
    }

    fn check_view(view: EventView<'_>, expected: &NormalizedEvent) {
        assert_eq!(view.source(), expected.source);
        assert_eq!(view.exchange(), expected.exchange);
        assert_eq!(view.symbol(), expected.symbol);
        let origin = expected.origin().as_str_name().trim_start_matches("ORIGIN_");
        assert_eq!(view.origin(), origin.to_lowercase());
        assert_eq!(view.event_seq(), expected.event_seq);
        assert_eq!(Some(view.case()), expected.payload.as_ref().and_then(case_of));
        let data_type = expected.meta.get("data_type").map_or("", String::as_str);
        assert_eq!(view.data_type(), data_type);
        for (key, value) in &expected.meta {
            assert_eq!(view.meta(key), Some(value.as_str()));
        }
        let pairs = view.meta_pairs().map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(pairs.collect::<BTreeMap<_, _>>(), expected.meta);
        assert_eq!(view.meta("no such key"), None);
    }

    proptest! {
        #[test]
        fn the_view_is_what_prost_decodes(
            message in test_messages::any_message(),
            source in ".{0,8}",
            origin in 0..4_i32,
            meta in prop::collection::btree_map("[a-zé ]{0,4}", ".{0,8}", 0..4),
            first_seq in 0..u64::MAX / 2,
            by_level: bool,
        ) {
            let origin = Origin::try_from(origin).unwrap();
            let book_changes = if by_level { BookChanges::Level } else { BookChanges::Message };
            let options = EncoderOptions { source, origin, meta, book_changes, first_seq };
            for (case, bytes) in encode(&message, options).iter() {
                check(bytes);
                prop_assert_eq!(EventView::read(bytes).unwrap().case(), case);
            }
        }

        #[test]
        fn no_bytes_panic_and_a_cut_event_is_refused(
            message in test_messages::any_message(), cut: usize, garbage: Vec<u8>,
        ) {
            for view in [EventView::read(&garbage), EventView::reread(&garbage)] {
                let _ = view.map(|view| view.meta_pairs().count());
            }
            let options =
                EncoderOptions { book_changes: BookChanges::Message, ..EncoderOptions::default() };
            let (bytes, _) = encode(&message, options).into_parts();
            prop_assert!(EventView::read(&bytes[..cut % bytes.len()]).is_err());
        }

        #[test]
        fn a_changed_byte_never_panics(
            message in test_messages::any_message(), place: usize, byte: u8,
        ) {
            let (mut bytes, _) = encode(&message, EncoderOptions::default()).into_parts();
            let place = place % bytes.len();
            bytes[place] = byte;
            for view in [EventView::read(&bytes), EventView::reread(&bytes)] {
                let _ = view.map(|view| (view.origin(), view.meta_pairs().count()));
            }
            let read = EventView::read(&bytes).is_ok();
            prop_assert!(!read || EventView::reread(&bytes).is_ok());
        }
    }

    #[test]
    fn the_last_of_everything_wins_in_any_order() {
        let mut bytes = Vec::new();
        put_nested(&mut bytes, PayloadCase::Quote.field_number(), |_| {});
        put_pair(&mut bytes, "data_type", "first");
        put_text(&mut bytes, 2, "ftx");
        put_pair(&mut bytes, "data_type", "second");
        put_text(&mut bytes, 99, "a field of a later version");
        put_nested(&mut bytes, PayloadCase::Disconnect.field_number(), |_| {});
        put_text(&mut bytes, 2, "bitmex");
        put_pair(&mut bytes, "", "");
        check(&bytes);
        assert_eq!(EventView::read(&bytes).unwrap().data_type(), "second");
    }

    #[test]
    fn an_unknown_origin_is_its_number() {
        for (number, text) in [(7, "7"), (-1, "-1"), (2, "replay")] {
            let payload = Some(Payload::Trade(Trade::default()));
            let event = NormalizedEvent { origin: number, payload, ..NormalizedEvent::default() };
            assert_eq!(EventView::read(&event.encode_to_vec()).unwrap().origin(), text);
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        let mut bytes = Vec::new();
        put_text(&mut bytes, 2, "bitmex");
        put_text(&mut bytes, 3, "XBTUSD");
        let error = EventView::read(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "the event of `bitmex` `XBTUSD` has no known payload");
        put_unsigned(&mut bytes, META, 5);
        let error = EventView::read(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not a Bronze event: the field at byte 16: wire type 0 where 2 is expected"
        );
    }
}
