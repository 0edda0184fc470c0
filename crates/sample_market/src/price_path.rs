//! Prices as a function of time: the price of any moment is known without those before it.
//!
//! The path is a sum of waves with random corners, the slowest 48 days long, each twice as fast as
//! the one before and lower by the square root of two. That is how a random walk looks from near
//! and from far, and it never runs away.

use crate::decimal::number;
use crate::random::{hash, hash_signed, swing};

/// Steps of the path in a second, as a power of two.
const STEPS_PER_SECOND_BITS: u32 = 1;
/// Steps of the path in a minute.
pub(crate) const STEPS_PER_MINUTE: i64 = 60 << STEPS_PER_SECOND_BITS;
/// Waves, the fastest one second long.
const WAVES: u32 = 23;
const SQUARE_ROOT_OF_TWO: f64 = std::f64::consts::SQRT_2;

/// How far the fastest wave swings, as a share of the price.
const FASTEST_SWING: f64 = 0.000_03;

/// What moves from -1 to 1 or so in the course of weeks, and a little in the course of seconds.
pub(crate) fn wander(seed: u64, step: i64) -> f64 {
    let mut sum = 0.0;
    let mut height = FASTEST_SWING;
    for wave in 0..WAVES {
        let bits = wave + STEPS_PER_SECOND_BITS;
        let corner = step >> bits;
        let way = number(step - (corner << bits)) / number(1 << bits);
        let seed = hash(seed, u64::from(wave));
        let from = swing(hash_signed(seed, corner));
        let to = swing(hash_signed(seed, corner + 1));
        sum += height * (from + (to - from) * way);
        height *= SQUARE_ROOT_OF_TWO;
    }
    sum
}

/// The price at a step, which moves around `mean`.
pub(crate) fn price(seed: u64, mean: f64, step: i64) -> f64 {
    mean * exponential(wander(seed, step))
}

/// e^x for small x. Multiplications only: a library's function may differ by machine, and the same
/// seed must give the same lines everywhere.
pub(crate) fn exponential(x: f64) -> f64 {
    const SQUARINGS: u32 = 10;
    let start = 1.0 + (x / f64::from(1_u32 << SQUARINGS)).max(-1.0);
    (0..SQUARINGS).fold(start, |power, _| power * power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_near_the_true_ones() {
        for x in [-4.0, -0.3, 0.0, 0.2, 1.0] {
            assert!((exponential(x) / f64::exp(x) - 1.0).abs() < 0.01, "{x}");
        }
    }

    #[test]
    fn prices_walk_without_jumps_and_without_end() {
        let start = 3_000_000_000;
        let mut low = f64::MAX;
        let mut high: f64 = 0.0;
        let mut before = price(1, 30_000.0, start);
        for step in start + 1..start + 20_000 {
            let now = price(1, 30_000.0, step);
            assert!((now - before).abs() < 10.0, "a jump from {before} to {now}");
            low = low.min(now);
            high = high.max(now);
            before = now;
        }
        assert!(high - low > 30.0, "the price hardly moves: {low} to {high}");
        for day in -2_000..2_000 {
            let far = price(1, 30_000.0, day * STEPS_PER_MINUTE * 60 * 24);
            assert!((20_000.0..45_000.0).contains(&far), "{far}");
        }
    }
}
