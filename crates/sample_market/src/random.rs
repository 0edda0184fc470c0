//! Chance that is the same on every machine: integers only, and a size drawn from a table.

/// What the state of a generator grows by; odd, so that every state is reached.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scrambles a number so that every bit of it counts in every bit of the result.
const fn scramble(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ (value >> 32)
}

/// A number that only `seed` and `value` decide.
pub(crate) const fn hash(seed: u64, value: u64) -> u64 {
    scramble(scramble(value.wrapping_add(STEP)) ^ seed.wrapping_mul(STEP))
}

/// As [`hash`], of a number that may be negative.
pub(crate) const fn hash_signed(seed: u64, value: i64) -> u64 {
    hash(seed, value.cast_unsigned())
}

/// A number that only `seed` and `text` decide.
pub(crate) fn hash_text(seed: u64, text: &str) -> u64 {
    text.bytes().fold(hash(seed, 0), |so_far, byte| hash(so_far, u64::from(byte)))
}

/// The high half of a hash as a number from 0 to 1, exclusive.
pub(crate) fn share(hash: u64) -> f64 {
    f64::from(high(hash)) / 4_294_967_296.0
}

/// The high half of a hash as a number from -1 to 1.
pub(crate) fn swing(hash: u64) -> f64 {
    share(hash) * 2.0 - 1.0
}

const fn high(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A stream of numbers that only its seed decides.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        scramble(self.0)
    }

    /// A number below `limit`.
    pub(crate) const fn below(&mut self, limit: u32) -> u32 {
        high((self.next() >> 32) * limit as u64)
    }

    /// True once in `many` times.
    pub(crate) const fn once_in(&mut self, many: u32) -> bool {
        self.below(many) == 0
    }

    /// 0 in half of the cases, 1 in a quarter, and so on, at most `most`.
    pub(crate) fn halvings(&mut self, most: u32) -> u32 {
        self.next().trailing_zeros().min(most)
    }
}

/// Sizes rise by 5.76 % from one entry to the next, so that entries which are drawn from a bell
/// curve give log-normal sizes with a median of 100.
const SIZES: [u32; 256] = {
    let mut sizes = [0; 256];
    let mut place = 0;
    // A fixed point of 20 bits: 0.0857 is 100 / 1.0576^126.
    let mut size: u64 = 89_900;
    while place < 256 {
        sizes[place] = 1 + high(size << 12);
        size = (size * 1_108_974) >> 20;
        place += 1;
    }
    sizes
};

/// A log-normal size, from 1 to about 150,000, with a median of 100.
pub(crate) fn size(hash: u64) -> u32 {
    let [first, second, third, fourth, fifth, ..] = hash.to_be_bytes();
    let sum = u32::from(first) + u32::from(second) + u32::from(third) + u32::from(fourth);
    let entry = usize::try_from(sum / 4).ok().and_then(|place| SIZES.get(place));
    // The last part fills the gap to the next entry.
    entry.map_or(1, |entry| entry + entry * u32::from(fifth) / 4_450)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_log_normal_around_one_hundred() {
        let mut random = Random::new(1);
        let mut sizes: Vec<u32> = (0..10_001).map(|_| size(random.next())).collect();
        sizes.sort_unstable();
        assert!((80..125).contains(&sizes[5_000]), "median {}", sizes[5_000]);
        assert!(sizes[500] < 20 && sizes[9_500] > 500, "{} {}", sizes[500], sizes[9_500]);
        assert!(sizes[0] >= 1);
    }

    #[test]
    fn shares_fill_their_range_evenly() {
        let mut counts = [0_u32; 10];
        for value in 0..10_000 {
            let place = counts.iter().enumerate().rev().find(|(place, _)| {
                share(hash(7, value)) * 10.0 >= f64::from(u32::try_from(*place).unwrap())
            });
            let place = place.unwrap().0;
            counts[place] += 1;
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}
