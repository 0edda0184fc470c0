//! One instrument in the course of a minute: its book, its prices and its counters.

use crate::book::Book;
use crate::clock::{Clock, MINUTE};
use crate::decimal::scaled;
use crate::instrument::Instrument;
use crate::option_terms::OptionValue;
use crate::price_path::{STEPS_PER_MINUTE, wander};
use crate::random::{Random, hash, hash_signed, share, swing};

const STEPS_PER_HOUR: i64 = STEPS_PER_MINUTE * 60;
/// What tells the chance of one figure from that of another.
const OPEN_INTEREST: u64 = 1;
const FUNDING: u64 = 2;

/// An instrument's prices of the last 24 hours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DayFigures {
    pub(crate) open: f64,
    pub(crate) high: f64,
    pub(crate) low: f64,
}

/// A trade at the best price of the other side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    pub(crate) is_buy: bool,
    pub(crate) cell: i64,
}

/// The state of an instrument.
pub(crate) struct Market<'a> {
    pub(crate) instrument: &'a Instrument,
    /// Its number among the exchange's instruments.
    pub(crate) index: usize,
    pub(crate) book: Book,
    /// Number of the last change of the book, and of the one before.
    pub(crate) sequence: u64,
    pub(crate) sequence_before: u64,
    pub(crate) last_trade_id: u64,
    /// The cell of the last trade.
    pub(crate) last_cell: i64,
    pub(crate) is_rising: bool,
    pub(crate) day: DayFigures,
    first_step: i64,
    /// The price at each step of the minute, and at the beginning of the next.
    prices: Vec<f64>,
    underlyings: Vec<f64>,
    middles: Vec<i64>,
    /// At the minute's beginning and end.
    open_interest: (i64, i64),
}

impl<'a> Market<'a> {
    pub(crate) fn new(instrument: &'a Instrument, index: usize, clock: &Clock) -> Self {
        let first_step = clock.minute * STEPS_PER_MINUTE;
        let steps = first_step..=first_step + STEPS_PER_MINUTE;
        let underlyings: Vec<f64> =
            steps.clone().map(|step| instrument.underlying_at(step)).collect();
        let prices: Vec<f64> = steps
            .zip(&underlyings)
            .map(|(step, underlying)| instrument.price_of_underlying(*underlying, step))
            .collect();
        let middles: Vec<i64> = prices.iter().map(|price| instrument.cell_of(*price)).collect();
        let book = Book::at_start(instrument, clock.minute, &middles);
        let sequence = clock.sequence_at(0);
        Self {
            index,
            sequence,
            sequence_before: sequence,
            // A tenth leaves room for six million trades in a minute.
            last_trade_id: sequence / 10,
            last_cell: book.middle,
            is_rising: false,
            day: day_figures(instrument, first_step),
            first_step,
            open_interest: (
                open_interest(instrument, first_step),
                open_interest(instrument, first_step + STEPS_PER_MINUTE),
            ),
            instrument,
            book,
            prices,
            underlyings,
            middles,
        }
    }

    /// The price that the market is drawn to: dollars, or coins for an option.
    pub(crate) fn price(&self, clock: &Clock) -> f64 {
        self.prices.get(step_of(clock.local)).copied().unwrap_or(0.0)
    }

    /// The price of the asset behind it.
    pub(crate) fn underlying(&self, clock: &Clock) -> f64 {
        self.underlyings.get(step_of(clock.local)).copied().unwrap_or(0.0)
    }

    /// What an option is worth.
    pub(crate) fn option_value(&self, clock: &Clock) -> Option<OptionValue> {
        let terms = self.instrument.option.as_ref()?;
        Some(terms.value(self.underlying(clock), self.step(clock)))
    }

    fn step(&self, clock: &Clock) -> i64 {
        self.first_step + i64::try_from(step_of(clock.local)).unwrap_or(0)
    }

    /// The cell where the best bid should be.
    pub(crate) fn middle_at(&self, local: i64) -> i64 {
        self.middles.get(step_of(local)).copied().unwrap_or(self.book.middle)
    }

    /// The number of a change of the book that is sent now.
    pub(crate) fn number_change(&mut self, sequence: u64) {
        self.sequence_before = self.sequence;
        self.sequence = sequence.max(self.sequence + 1);
    }

    /// A trade now, which takes what the market's direction offers more often.
    pub(crate) fn deal(&mut self, random: &mut Random) -> Deal {
        let is_buy = (random.below(8) < 5) == self.is_rising;
        let cell = if is_buy { self.book.middle + 1 } else { self.book.middle };
        self.last_cell = cell;
        Deal { is_buy, cell }
    }

    pub(crate) fn next_trade_id(&mut self) -> u64 {
        self.last_trade_id += 1;
        self.last_trade_id
    }

    /// A size of a trade, in units of its last decimal.
    pub(crate) fn draw_size(&self, random: &mut Random) -> u32 {
        crate::random::size(random.next()) * self.instrument.lot
    }

    /// Contracts that are open, in units of their last decimal.
    pub(crate) fn open_interest(&self, clock: &Clock) -> u64 {
        let (from, to) = self.open_interest;
        u64::try_from(from + (to - from) * clock.local / MINUTE).unwrap_or(0)
    }

    /// What is paid every eight hours, and what is expected to be paid next, in units of 10^-6.
    pub(crate) fn funding(&self, clock: &Clock) -> (i64, i64) {
        let seed = hash(self.instrument.seed, FUNDING);
        let period = clock.next_funding_millis() / 28_800_000;
        let rate = |period| scaled(100.0 + 150.0 * swing(hash_signed(seed, period)), 0);
        let expected = rate(period + 1) + scaled(20.0 * swing(hash_signed(seed, clock.minute)), 0);
        (rate(period), expected)
    }
}

fn step_of(local: i64) -> usize {
    usize::try_from(local * STEPS_PER_MINUTE / MINUTE).unwrap_or(0)
}

fn open_interest(instrument: &Instrument, step: i64) -> i64 {
    let seed = hash(instrument.seed, OPEN_INTEREST);
    let size = 1_000_000.0 * f64::from(instrument.lot) * (0.5 + share(seed));
    scaled(size * (1.0 + wander(seed, step)), 0)
}

fn day_figures(instrument: &Instrument, step: i64) -> DayFigures {
    let price_before = |hours: i64| instrument.price_at(step - hours * STEPS_PER_HOUR);
    let open = price_before(24);
    let figures = DayFigures { open, high: open, low: open };
    (0..24).map(price_before).fold(figures, |so_far, price| DayFigures {
        open,
        high: so_far.high.max(price),
        low: so_far.low.min(price),
    })
}
