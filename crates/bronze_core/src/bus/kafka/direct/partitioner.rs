//! Which partition a key goes to: the one that Kafka's Java client, and librdkafka's
//! `murmur2_random`, put it in.

/// The partition of a key among `partitions`.
pub(super) fn partition_of(key: &[u8], partitions: usize) -> usize {
    let positive = murmur2(key) & 0x7fff_ffff;
    positive as usize % partitions.max(1)
}

/// `MurmurHash2` with 32 bits, with the seed that all Kafka clients share.
fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;
    #[allow(clippy::cast_possible_truncation)] // longer keys than 4 GiB fit into no record
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut word = [0; 4];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(word)).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of Kafka's own tests of its `Utils.murmur2`.
    #[test]
    fn the_hash_is_that_of_kafka() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            #[allow(clippy::cast_possible_wrap)] // Java's integers have a sign
            let found = murmur2(key.as_bytes()) as i32;
            assert_eq!(found, hash, "{key}");
        }
    }

    #[test]
    fn every_partition_is_in_range() {
        for partitions in [1, 3, 4, 100] {
            let keys = (0..1_000).map(|number| format!("bitmex|SYMBOL{number}|trade"));
            let mut found: Vec<_> =
                keys.map(|key| partition_of(key.as_bytes(), partitions)).collect();
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, (0..partitions).collect::<Vec<_>>());
        }
    }
}
