//! The lines of a minute, as far as somebody asked for them.

use market_data::Filter;

use crate::clock::Clock;
use crate::instrument::Instrument;

/// Writes lines. A line that nobody asked for costs nothing.
pub(crate) struct Lines<'a> {
    out: &'a mut Vec<u8>,
    pub(crate) clock: Clock,
    /// For each channel, one after the other, whether each instrument is asked for.
    wanted: Vec<bool>,
    instruments: usize,
    /// Nothing is written while this holds.
    is_silent: bool,
    /// Nothing is written from here on.
    end: i64,
}

impl<'a> Lines<'a> {
    /// Lines of those `channels` and `instruments` that pass `filters`; all without filters.
    pub(crate) fn new(
        out: &'a mut Vec<u8>,
        clock: Clock,
        channels: &[&str],
        instruments: &[Instrument],
        filters: &[Filter],
    ) -> Self {
        let passes = |channel: &str, instrument: &Instrument| {
            filters.is_empty()
                || filters.iter().any(|filter| {
                    filter.channel == channel && holds(filter.symbols.as_deref(), instrument)
                })
        };
        let wanted = channels
            .iter()
            .flat_map(|channel| instruments.iter().map(move |instrument| (channel, instrument)))
            .map(|(channel, instrument)| passes(channel, instrument))
            .collect();
        let instruments = instruments.len();
        Self { out, clock, wanted, instruments, is_silent: false, end: i64::MAX }
    }

    /// The same, but silent until [`Self::open`], and from `end` on.
    pub(crate) fn silent_until_opened(self, end: i64) -> Self {
        Self { is_silent: true, end, ..self }
    }

    /// Ends the silence at the beginning.
    pub(crate) fn open(&mut self) {
        self.is_silent = false;
    }

    /// Whether nothing more will be written.
    pub(crate) fn are_over(&self) -> bool {
        self.clock.local >= self.end
    }

    /// Goes on to a message that reached the recorder at `local`; `chance` says how fast.
    pub(crate) fn advance(&mut self, local: i64, chance: u64) {
        self.clock.advance(local, chance);
        self.is_silent |= self.are_over();
    }

    /// Writes a line of a channel and an instrument, each by its number.
    pub(crate) fn write(
        &mut self,
        channel: usize,
        instrument: usize,
        message: impl FnOnce(&mut Vec<u8>, &Clock),
    ) {
        let place = channel * self.instruments + instrument;
        if !self.is_silent && self.wanted.get(place).copied().unwrap_or(false) {
            self.clock.write_local(self.out);
            self.out.push(b' ');
            message(self.out, &self.clock);
            self.out.push(b'\n');
        }
    }

    /// Writes the line that says that the connection was lost.
    pub(crate) fn disconnect(&mut self) {
        self.out.push(b'\n');
    }
}

/// Whether `symbols` name the instrument. Letters' case does not count, and no symbols are all.
fn holds(symbols: Option<&[String]>, instrument: &Instrument) -> bool {
    symbols.is_none_or(|symbols| {
        symbols.is_empty()
            || symbols.iter().any(|symbol| symbol.eq_ignore_ascii_case(&instrument.symbol))
    })
}
