//! One event taken apart: a slot for each field, filled from the wire and emptied into columns.
//!
//! Invariants: slots follow Protobuf's rules for repeated fields (the last scalar wins, messages
//! merge, the last payload case wins) however odd the order on the wire; slots lend from the
//! event's bytes; a slot that the event does not fill holds the field's default.

use super::error::Fault;
use super::fields::{self, ENVELOPE, Field, Message, Reading};
use crate::payload_case::PayloadCase;
use crate::wire::{Key, WireError, WireReader};

/// Two texts in UTF-8.
pub(super) type Pair<'a> = (&'a [u8], &'a [u8]);

/// A field's value, in the member that its kind uses.
#[derive(Debug, Default)]
pub(super) struct Slot<'a> {
    pub(super) present: bool,
    /// Nanoseconds of a time.
    pub(super) nanos: i32,
    /// Numbers, flags, enums, and seconds of a time, as their bits are on the wire.
    pub(super) number: u64,
    /// UTF-8.
    pub(super) text: &'a [u8],
    /// Levels, pairs of a map, or symbols with nothing beside them.
    pub(super) pairs: Vec<Pair<'a>>,
}

impl Slot<'_> {
    #[inline]
    pub(super) fn clear(&mut self) {
        if self.present {
            self.present = false;
            self.nanos = 0;
            self.number = 0;
            self.text = &[];
            self.pairs.clear();
        }
    }
}

/// The slots of one message.
#[derive(Debug)]
pub(super) struct MessageSlots<'a> {
    message: &'static Message,
    slots: Vec<Slot<'a>>,
}

impl<'a> MessageSlots<'a> {
    fn new(message: &'static Message) -> Self {
        Self { message, slots: message.fields.iter().map(|_| Slot::default()).collect() }
    }

    /// The slots in the order of the message's fields; whoever takes a value clears its slot.
    #[inline]
    pub(super) fn slots(&mut self) -> &mut [Slot<'a>] {
        &mut self.slots
    }

    /// Merges a message's bytes into the slots.
    #[inline]
    fn read(&mut self, bytes: &'a [u8]) -> Result<(), Fault> {
        let message = self.message;
        let mut reader = WireReader::new(bytes);
        while let Some(key) = reader.next_key().map_err(|error| Fault::new(message, None, error))? {
            self.read_field(key, &mut reader)
                .map_err(|error| Fault::new(message, key.field, error))?;
        }
        Ok(())
    }

    #[inline]
    fn read_field(&mut self, key: Key, reader: &mut WireReader<'a>) -> Result<(), WireError> {
        let (reading, position) = self.message.reading(key.field);
        let slot = &mut self.slots[position];
        match reading {
            Reading::Text => slot.text = reader.text(key)?,
            Reading::Number => slot.number = reader.varint(key)?,
            Reading::Time => read_time(reader.message(key)?, slot)?,
            Reading::Pair => slot.pairs.push(read_pair(reader.message(key)?)?),
            Reading::Symbols => read_symbols(reader.message(key)?, &mut slot.pairs)?,
            Reading::Unknown => return reader.skip(key),
        }
        slot.present = true;
        Ok(())
    }

    /// The fields with what is in their slots.
    pub(super) fn filled(&self) -> impl Iterator<Item = (&'static Field, &Slot<'a>)> {
        self.message.fields.iter().zip(&self.slots)
    }

    /// The message whose slots these are.
    pub(super) fn message(&self) -> &'static Message {
        self.message
    }

    fn clear(&mut self) {
        self.slots.iter_mut().for_each(Slot::clear);
    }
}

/// The slots of an event: its envelope's, and those of every payload it might carry.
#[derive(Debug)]
pub(super) struct EventSlots<'a> {
    pub(super) envelope: MessageSlots<'a>,
    payloads: [MessageSlots<'a>; PayloadCase::ALL.len()],
}

impl<'a> EventSlots<'a> {
    pub(super) fn new() -> Self {
        Self {
            envelope: MessageSlots::new(&ENVELOPE),
            payloads: PayloadCase::ALL.map(|case| MessageSlots::new(fields::payload(case))),
        }
    }

    /// Reads an event; the payload of the case it answers is filled, all others are empty.
    pub(super) fn read(&mut self, event: &'a [u8]) -> Result<Option<PayloadCase>, Fault> {
        let mut case = None;
        let mut reader = WireReader::new(event);
        while let Some(key) =
            reader.next_key().map_err(|error| Fault::new(&ENVELOPE, None, error))?
        {
            if let Some(found) = PayloadCase::of_field_number(key.field) {
                let bytes = reader
                    .message(key)
                    .map_err(|error| Fault::new(fields::payload(found), None, error))?;
                if let Some(overruled) = case.replace(found).filter(|&before| before != found) {
                    self.payload(overruled).clear();
                }
                self.payload(found).read(bytes)?;
            } else {
                self.envelope
                    .read_field(key, &mut reader)
                    .map_err(|error| Fault::new(&ENVELOPE, key.field, error))?;
            }
        }
        Ok(case)
    }

    /// Empties all slots, also after an event that could only be read in part.
    pub(super) fn clear(&mut self) {
        self.envelope.clear();
        self.payloads.iter_mut().for_each(MessageSlots::clear);
    }

    #[inline]
    pub(super) fn payload(&mut self, case: PayloadCase) -> &mut MessageSlots<'a> {
        &mut self.payloads[case as usize]
    }
}

/// Reads seconds (1) and nanoseconds (2).
#[inline]
#[allow(clippy::cast_possible_truncation)] // an int32 is cut to its lower half, as Protobuf says
fn read_time(bytes: &[u8], slot: &mut Slot<'_>) -> Result<(), WireError> {
    let mut reader = WireReader::new(bytes);
    while let Some(key) = reader.next_key()? {
        match key.field {
            1 => slot.number = reader.varint(key)?,
            2 => slot.nanos = reader.varint(key)? as i32,
            _ => reader.skip(key)?,
        }
    }
    Ok(())
}

/// Reads two texts: a level's price and amount, or a pair of a map.
#[inline]
fn read_pair(bytes: &[u8]) -> Result<Pair<'_>, WireError> {
    let mut pair: Pair<'_> = (&[], &[]);
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

fn read_symbols<'a>(bytes: &'a [u8], symbols: &mut Vec<Pair<'a>>) -> Result<(), WireError> {
    let mut reader = WireReader::new(bytes);
    while let Some(key) = reader.next_key()? {
        match key.field {
            1 => symbols.push((reader.text(key)?, &[])),
            _ => reader.skip(key)?,
        }
    }
    Ok(())
}
