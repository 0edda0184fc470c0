//! Kafka's record batches (magic 2), written straight from the events' bytes.
//!
//! Layout: a header of 61 bytes (offset, length, leader epoch, magic, CRC-32C of all that follows it,
//! attributes, last offset, first and last time, producer, first sequence, records), then the records,
//! compressed together. All records of a batch have the time at which it is made, so that a record's
//! bytes depend on its event and its place alone: a batch that is sent again is known by them.

use bytes::{BufMut as _, Bytes};

use super::lz4_frame::Lz4Writer;
use crate::wire;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Codec {
    None,
    Lz4,
    Zstd,
}

impl Codec {
    /// The codec of a name, if it is one of these.
    pub(in super::super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "none" => Self::None,
            "lz4" => Self::Lz4,
            "zstd" => Self::Zstd,
            _ => return None,
        })
    }

    fn attributes(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }
}

/// Who sends a batch, so that the broker knows it again; -1 each where nobody is to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Producer {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

impl Producer {
    pub(super) const NOBODY: Self = Self { id: -1, epoch: -1 };
}

/// The records of one batch, not compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Records {
    bytes: Vec<u8>,
    count: i32,
}

impl Records {
    /// No records yet, in room that was used for others before.
    pub(super) fn within(mut room: Vec<u8>) -> Self {
        room.clear();
        Self { bytes: room, count: 0 }
    }

    /// The room that they took.
    pub(super) fn into_room(self) -> Vec<u8> {
        self.bytes
    }

    /// Bytes of all.
    pub(super) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a record; `headers` are as [`HeaderWriter`] writes them, with their number before.
    pub(super) fn push(&mut self, key: Option<&[u8]>, value: &[u8], headers: &[u8]) {
        let delta = i64::from(self.count);
        let key_size = key.map_or(1, |key| sized(key.len()));
        // Attributes and the difference in time are a byte each.
        let size = 2 + varint_size(delta) + key_size + sized(value.len()) + headers.len();
        self.bytes.reserve(size + MOST_VARINT_BYTES);
        put_length(&mut self.bytes, size);
        self.bytes.extend_from_slice(&[0, 0]);
        put_varint(&mut self.bytes, delta);
        match key {
            Some(key) => put_sized(&mut self.bytes, key),
            None => put_varint(&mut self.bytes, -1),
        }
        put_sized(&mut self.bytes, value);
        self.bytes.extend_from_slice(headers);
        self.count += 1;
    }

    /// Compresses them into a batch that is not addressed yet.
    pub(super) fn pack(&self, codec: Codec, lz4: &mut Lz4Writer) -> std::io::Result<Packed> {
        let mut batch = Vec::with_capacity(HEADER_BYTES + self.bytes.len() / 2);
        batch.extend_from_slice(&[0; HEADER_BYTES]);
        match codec {
            Codec::None => batch.extend_from_slice(&self.bytes),
            Codec::Lz4 => lz4.append(&self.bytes, &mut batch)?,
            Codec::Zstd => {
                zstd::stream::copy_encode(&self.bytes[..], &mut batch, ZSTD_LEVEL)?;
            }
        }
        let fingerprint = Fingerprint {
            count: self.count,
            bytes: self.bytes.len(),
            checksum: crc32c::crc32c(&self.bytes),
        };
        Ok(Packed { batch, codec, fingerprint })
    }
}

/// A batch without a sender, with room for its header.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    batch: Vec<u8>,
    codec: Codec,
    fingerprint: Fingerprint,
}

impl Packed {
    /// What tells its records from others.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The batch as a producer sends it, which it does once.
    pub(super) fn stamp(
        &mut self,
        producer: Producer,
        sequence: i32,
        now_ms: i64,
    ) -> std::io::Result<Bytes> {
        let sequence = if producer == Producer::NOBODY { -1 } else { sequence };
        let mut batch = std::mem::take(&mut self.batch);
        let length = i32::try_from(batch.len() - LENGTH_AT - 4).map_err(std::io::Error::other)?;
        let mut header = &mut batch[LENGTH_AT..HEADER_BYTES];
        header.put_i32(length);
        header.put_i32(NO_LEADER_EPOCH);
        header.put_u8(MAGIC);
        header.put_u32(0);
        header.put_i16(self.codec.attributes());
        header.put_i32(self.fingerprint.count - 1);
        header.put_i64(now_ms);
        header.put_i64(now_ms);
        header.put_i64(producer.id);
        header.put_i16(producer.epoch);
        header.put_i32(sequence);
        header.put_i32(self.fingerprint.count);
        let checksum = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
        batch[CHECKSUM_AT..ATTRIBUTES_AT].copy_from_slice(&checksum.to_be_bytes());
        Ok(batch.into())
    }
}

const MAGIC: u8 = 2;
const NO_LEADER_EPOCH: i32 = -1;
const HEADER_BYTES: usize = 61;
const LENGTH_AT: usize = 8;
const CHECKSUM_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
/// What librdkafka and the Java client take.
const ZSTD_LEVEL: i32 = 3;
const MOST_VARINT_BYTES: usize = 10;

/// What tells the records of a batch from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) count: i32,
    bytes: usize,
    checksum: u32,
}

/// Writes the headers of a record.
#[derive(Clone, Debug, Default)]
pub(super) struct HeaderWriter {
    pairs: Vec<u8>,
    count: i64,
}

impl HeaderWriter {
    /// Removes all headers.
    pub(super) fn clear(&mut self) {
        self.pairs.clear();
        self.count = 0;
    }

    /// Adds one.
    pub(super) fn push(&mut self, name: &str, value: &str) {
        put_sized(&mut self.pairs, name.as_bytes());
        put_sized(&mut self.pairs, value.as_bytes());
        self.count += 1;
    }

    /// Puts the headers behind their number into `headers`.
    pub(super) fn finish(&self, headers: &mut Vec<u8>) {
        headers.clear();
        put_varint(headers, self.count);
        headers.extend_from_slice(&self.pairs);
    }
}

fn put_sized(buffer: &mut Vec<u8>, bytes: &[u8]) {
    put_length(buffer, bytes.len());
    buffer.extend_from_slice(bytes);
}

fn put_length(buffer: &mut Vec<u8>, length: usize) {
    // A request is far smaller than what does not fit.
    put_varint(buffer, i64::try_from(length).unwrap_or(i64::MAX));
}

/// Kafka's signed varint: zigzag, then as Protobuf's.
fn put_varint(buffer: &mut Vec<u8>, value: i64) {
    wire::put_varint(buffer, zigzag(value));
}

/// Bytes of a value with its length before it.
fn sized(length: usize) -> usize {
    varint_size(i64::try_from(length).unwrap_or(i64::MAX)) + length
}

fn varint_size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

#[allow(clippy::cast_sign_loss)] // the sign goes to the lowest bit
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use kafka_protocol::records::{Compression, RecordBatchDecoder};
    use proptest::prelude::*;

    type Event = (Option<Vec<u8>>, Vec<u8>, Vec<(String, String)>);

    fn records_of(events: &[Event]) -> Records {
        let mut records = Records::within(b"left over".to_vec());
        let (mut writer, mut headers) = (HeaderWriter::default(), Vec::new());
        for (key, value, pairs) in events {
            writer.clear();
            for (name, value) in pairs {
                writer.push(name, value);
            }
            writer.finish(&mut headers);
            records.push(key.as_deref(), value, &headers);
        }
        records
    }

    /// Reads a batch with the library's own reader, which checks its checksum.
    fn read(mut batch: Bytes, codec: Codec) -> Vec<kafka_protocol::records::Record> {
        let decompress = move |bytes: &mut Bytes, compression: Compression| {
            let bytes = std::mem::take(bytes);
            let mut plain = Vec::new();
            match codec {
                Codec::None => {
                    assert_eq!(compression, Compression::None);
                    plain = bytes.to_vec();
                }
                Codec::Lz4 => {
                    assert_eq!(compression, Compression::Lz4);
                    let mut decoder = lz4_flex::frame::FrameDecoder::new(&bytes[..]);
                    std::io::copy(&mut decoder, &mut plain)?;
                }
                Codec::Zstd => {
                    assert_eq!(compression, Compression::Zstd);
                    zstd::stream::copy_decode(&bytes[..], &mut plain)?;
                }
            }
            Ok(Bytes::from(plain))
        };
        let decoded =
            RecordBatchDecoder::decode_with_custom_compression(&mut batch, Some(decompress));
        assert!(batch.is_empty());
        decoded.unwrap().records
    }

    fn any_event() -> impl Strategy<Value = Event> {
        let pairs = prop::collection::btree_map("[a-z]{0,9}", ".{0,20}", 0..4);
        (
            prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
            prop::collection::vec(any::<u8>(), 0..400),
            pairs.prop_map(|pairs| pairs.into_iter().collect()),
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_kafka_reads(
            events in prop::collection::vec(any_event(), 1..200),
            codec in prop::sample::select(vec![Codec::None, Codec::Lz4, Codec::Zstd]),
            (id, epoch, sequence) in (0..i64::MAX, 0..i16::MAX, 0..i32::MAX - 1_000),
            now in 0..4_000_000_000_000_i64,
        ) {
            let records = records_of(&events);
            let mut packed = records.pack(codec, &mut Lz4Writer::default()).unwrap();
            let batch = packed.stamp(Producer { id, epoch }, sequence, now).unwrap();
            let found = read(batch, codec);
            prop_assert_eq!(found.len(), events.len());
            for (place, (record, (key, value, pairs))) in found.into_iter().zip(events).enumerate() {
                let place = i32::try_from(place).unwrap();
                prop_assert_eq!(record.offset, i64::from(place));
                prop_assert_eq!(record.sequence, sequence + place);
                prop_assert_eq!((record.producer_id, record.producer_epoch), (id, epoch));
                prop_assert_eq!(record.timestamp, now);
                prop_assert_eq!(record.key.map(|key| key.to_vec()), key);
                prop_assert_eq!(record.value.unwrap().to_vec(), value);
                let headers: Vec<_> = record
                    .headers
                    .into_iter()
                    .map(|(name, value)| {
                        let value = String::from_utf8(value.unwrap().to_vec()).unwrap();
                        (name.to_string(), value)
                    })
                    .collect();
                prop_assert_eq!(headers, pairs);
            }
        }
    }

    #[test]
    fn a_batch_of_nobody_has_no_sequence() {
        let records = records_of(&[(None, b"event".to_vec(), Vec::new())]);
        let batch = records
            .pack(Codec::None, &mut Lz4Writer::default())
            .unwrap()
            .stamp(Producer::NOBODY, 7, 1)
            .unwrap();
        let [record] = &read(batch, Codec::None)[..] else { panic!("one record") };
        assert_eq!((record.producer_id, record.producer_epoch, record.sequence), (-1, -1, -1));
    }

    #[test]
    fn fingerprints_tell_records_apart() {
        let event = |text: &str| (None, text.as_bytes().to_vec(), Vec::new());
        let print = |events: &[Event]| {
            records_of(events).pack(Codec::Lz4, &mut Lz4Writer::default()).unwrap().fingerprint()
        };
        let (one, two) = (event("one"), event("two"));
        assert_eq!(print(&[one.clone(), two.clone()]), print(&[one.clone(), two.clone()]));
        assert_ne!(print(&[one.clone(), two.clone()]), print(&[two.clone(), one.clone()]));
        assert_ne!(print(std::slice::from_ref(&one)), print(&[one, two]));
    }
}
