//! The market of now: what an exchange sends to whoever is connected.
//!
//! Its messages are those of the archive's minutes, given out when their time has come, except that
//! the connection is never lost.

use market_data::{Filter, Timestamp};

use crate::clock::MINUTE;
use crate::{SampleError, SampleMarket, clock_of, find, venue};

const MICROS_PER_MINUTE: i64 = MINUTE / 10;
/// Length of a line's time and the space behind it.
const TIME_LENGTH: usize = "2020-02-01T00:00:00.0000000Z ".len();

/// A connection to an exchange of the sample market.
#[derive(Clone, Debug)]
pub struct SampleStream {
    market: SampleMarket,
    exchange: &'static str,
    /// What was subscribed to, without what the exchange does not send.
    filters: Vec<Filter>,
    /// Messages before this moment were given out: microseconds since 1970.
    until: i64,
    /// What is left of the minute that holds `until`, if it was made already.
    lines: Option<(Vec<u8>, usize)>,
}

impl SampleMarket {
    /// Connects to an exchange at `now`.
    pub fn connect(&self, exchange: &str, now: Timestamp) -> Result<SampleStream, SampleError> {
        clock_of(now)?;
        Ok(SampleStream {
            market: self.without_losses(),
            exchange: find(exchange)?.id(),
            filters: Vec::new(),
            until: now.micros().ok_or(SampleError::TimeOutOfRange { time: now })?,
            lines: None,
        })
    }
}

impl SampleStream {
    /// Subscribes to `filters`, and gives `take` the snapshots that the exchange sends then.
    pub fn subscribe(
        &mut self,
        mut filters: Vec<Filter>,
        take: impl FnMut(&[u8]),
    ) -> Result<(), SampleError> {
        let fetched = venue(find(self.exchange)?).fetched_channels();
        filters.retain(|filter| !fetched.contains(&&*filter.channel));
        // No filters would mean everything.
        if filters.is_empty() {
            return Ok(());
        }
        let mut lines = Vec::new();
        let now = Timestamp::from_micros(self.until);
        self.market.state(self.exchange, now, &filters, &mut lines)?;
        messages(&lines).for_each(take);
        self.filters.append(&mut filters);
        self.lines = None;
        Ok(())
    }

    /// Gives `take` all messages since the last time, up to `now`.
    pub fn advance(
        &mut self,
        now: Timestamp,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), SampleError> {
        let now = now.micros().ok_or(SampleError::TimeOutOfRange { time: now })?;
        while self.until < now {
            let minute_end = (self.until.div_euclid(MICROS_PER_MINUTE) + 1) * MICROS_PER_MINUTE;
            let end = now.min(minute_end);
            if !self.filters.is_empty() {
                let (lines, from) = match self.lines.take() {
                    Some(left) => left,
                    None => self.rest_of_minute()?,
                };
                let to = if end == minute_end {
                    lines.len()
                } else {
                    from + length_before(&lines[from..], end)?
                };
                messages(&lines[from..to]).for_each(&mut take);
                self.lines = (end < minute_end).then_some((lines, to));
            }
            self.until = end;
        }
        Ok(())
    }

    /// The lines of the minute that holds `until`, and where those begin that were not given out.
    fn rest_of_minute(&self) -> Result<(Vec<u8>, usize), SampleError> {
        let mut lines = Vec::new();
        let minute = Timestamp::from_micros(self.until);
        self.market.minute(self.exchange, minute, &self.filters, &mut lines)?;
        let from = length_before(&lines, self.until)?;
        Ok((lines, from))
    }
}

/// How long the lines are that are before a moment of their minute.
fn length_before(lines: &[u8], micros: i64) -> Result<usize, SampleError> {
    let mut clock = clock_of(Timestamp::from_micros(micros))?;
    clock.local = micros.rem_euclid(MICROS_PER_MINUTE) * 10;
    let mut moment = Vec::new();
    clock.write_local(&mut moment);
    let before = lines.split_inclusive(|byte| *byte == b'\n');
    Ok(before.take_while(|line| **line < *moment).map(<[u8]>::len).sum())
}

/// Lines without their times.
fn messages(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split(|byte| *byte == b'\n').filter_map(|line| line.get(TIME_LENGTH..))
}
