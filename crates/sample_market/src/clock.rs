//! The times of one minute as text and as numbers.

use market_data::Timestamp;

/// Units of 100 ns, of which a local timestamp has seven digits in a second.
pub(crate) const SECOND: i64 = 10_000_000;
/// A minute in units of 100 ns.
pub(crate) const MINUTE: i64 = 60 * SECOND;
const MILLISECOND: i64 = SECOND / 1_000;
/// A message reaches the recorder after this time at least, and twenty milliseconds at most.
const LEAST_DELAY: i64 = 3 * MILLISECOND;
const MOST_DELAY: u32 = 170_000;
/// Minutes after which the numbers of messages start again, so that they stay below 2^53.
const SEQUENCE_MINUTES: i64 = 1 << 27;
const MINUTES_PER_DAY: i64 = 24 * 60;
/// Length of `yyyy-MM-ddTHH:mm:`.
const PREFIX_LENGTH: usize = 17;

/// The minute that is written, and the moment in it, counted from the minute's beginning.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// Minutes since 1970.
    pub(crate) minute: i64,
    /// When the message that is written now reached the recorder.
    pub(crate) local: i64,
    /// When the exchange sent it; never runs backwards.
    pub(crate) sent: i64,
    this_minute: [u8; PREFIX_LENGTH],
    /// The exchange may have sent the first messages in the minute before.
    minute_before: [u8; PREFIX_LENGTH],
}

impl Clock {
    /// The minute that holds `time`; `None` if its year has no four digits.
    pub(crate) fn new(time: Timestamp) -> Option<Self> {
        let minute = time.micros()?.div_euclid(60_000_000);
        let this_minute = prefix(minute)?;
        Some(Self {
            minute,
            local: 0,
            // What the minute before sent last is older, as it was on its way for longer.
            sent: -LEAST_DELAY,
            this_minute,
            minute_before: prefix(minute - 1).unwrap_or(this_minute),
        })
    }

    /// Goes on to a message that reached the recorder at `local`; `chance` says how fast.
    pub(crate) fn advance(&mut self, local: i64, chance: u64) {
        let delay = LEAST_DELAY + i64::from(crate::random::Random::new(chance).below(MOST_DELAY));
        self.local = local;
        self.sent = self.sent.max(local - delay);
    }

    /// Whether a day begins with this minute.
    pub(crate) fn is_first_of_day(&self) -> bool {
        self.minute.rem_euclid(MINUTES_PER_DAY) == 0
    }

    /// The day, counted from 1970.
    pub(crate) fn day(&self) -> i64 {
        self.minute.div_euclid(MINUTES_PER_DAY)
    }

    /// When the message reached the recorder, with seven digits.
    pub(crate) fn write_local(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.this_minute);
        let mut text = *b"00.0000000Z";
        let local = u32::try_from(self.local).unwrap_or(0);
        put_digits(&mut text[3..10], local % 10_000_000);
        put_digits(&mut text[..2], local / 10_000_000);
        out.extend_from_slice(&text);
    }

    /// When the exchange sent it, with three digits.
    pub(crate) fn write_sent(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.sent < 0 { &self.minute_before } else { &self.this_minute });
        let millis = u32::try_from(self.sent.rem_euclid(MINUTE) / MILLISECOND).unwrap_or(0);
        let mut text = *b"00.000Z";
        put_digits(&mut text[3..6], millis % 1_000);
        put_digits(&mut text[..2], millis / 1_000);
        out.extend_from_slice(&text);
    }

    /// When the exchange sent it, in milliseconds since 1970.
    pub(crate) fn sent_millis(&self) -> i64 {
        self.minute * 60_000 + self.sent.div_euclid(MILLISECOND)
    }

    /// When the recorder got it, in milliseconds since 1970.
    pub(crate) fn local_millis(&self) -> i64 {
        self.minute * 60_000 + self.local.div_euclid(MILLISECOND)
    }

    /// A number that grows by one in a microsecond: what numbers of messages are taken from.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence_at(self.local)
    }

    /// The number that the next minute begins with.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.sequence_at(MINUTE)
    }

    pub(crate) fn sequence_at(&self, local: i64) -> u64 {
        let micros = self.minute.rem_euclid(SEQUENCE_MINUTES) * 60_000_000 + local / 10;
        u64::try_from(micros).unwrap_or(0)
    }

    /// When funding is paid next, in milliseconds since 1970: every eight hours.
    pub(crate) fn next_funding_millis(&self) -> i64 {
        (self.minute.div_euclid(8 * 60) + 1) * 8 * 60 * 60_000
    }
}

fn prefix(minute: i64) -> Option<[u8; PREFIX_LENGTH]> {
    let mut text = Vec::new();
    Timestamp::from_millis(minute.checked_mul(60_000)?).write(&mut text);
    // Years of other than four digits begin with a sign.
    text.first().filter(|first| first.is_ascii_digit())?;
    text.first_chunk().copied()
}

fn put_digits(text: &mut [u8], value: u32) {
    let mut left = value;
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (left % 10).to_le_bytes()[0];
        left /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_minute_are_written_with_their_digits() {
        let mut clock = Clock::new(Timestamp::of_minute(2020, 2, 1, 0, 0)).unwrap();
        let mut out = Vec::new();
        clock.write_sent(&mut out);
        assert_eq!(out, b"2020-01-31T23:59:59.997Z");
        clock.advance(59 * SECOND + 1_234, 1);
        out.clear();
        clock.write_local(&mut out);
        assert_eq!(out, b"2020-02-01T00:00:59.0001234Z");
        assert_eq!(clock.local_millis(), 1_580_515_259_000);
        assert!(clock.sent_millis() < clock.local_millis() && clock.is_first_of_day());
    }

    #[test]
    fn years_without_four_digits_have_no_clock() {
        assert!(Clock::new(Timestamp::INVALID).is_none());
        assert!(Clock::new(Timestamp::of_day(10_000, 1, 1)).is_none());
        assert!(Clock::new(Timestamp::of_day(-1, 1, 1)).is_none());
        assert!(Clock::new(Timestamp::of_day(0, 1, 1)).is_some());
    }
}
