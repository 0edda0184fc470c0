//! One minute of one exchange: what happens when, whatever the exchange's own format.
//!
//! The minute has three parts. For 59 seconds messages come at random. In the last second all books
//! become what the next minute begins with, while other messages go on. A connection may be lost
//! once, and is made anew within two seconds.

use std::ops::Range;

use crate::book::{Row, draw_rows, messages_of};
use crate::clock::{MINUTE, SECOND};
use crate::lines::Lines;
use crate::market::Market;
use crate::random::{Random, hash_signed, hash_text};

const SETTLING: i64 = MINUTE - SECOND;
/// From here on only what is left of the settlement is sent.
const LAST: i64 = MINUTE - SECOND / 10;
/// Messages are a microsecond apart at least, as their numbers count microseconds.
const LEAST_GAP: i64 = 10;
/// How many moves of the price that leave old levels for the next message to delete are one such.
const CROSSED_ONCE_IN: u32 = 6;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Book,
    Trade,
    Quote,
    Ticker,
    MarkPrice,
    OpenInterest,
    Liquidation,
}

/// An exchange's own format.
pub(crate) trait Venue {
    /// Its channels; a line is written for one of them, by its number.
    fn channels(&self) -> &'static [&'static str];

    /// What it sends how often, in parts of 1,000.
    fn mix(&self) -> &'static [(Event, u32)];

    /// How many levels change in a usual message.
    fn usual_rows(&self) -> u32;

    /// Whether changes of a book come before its snapshot, which the recorder has to ask for.
    fn sends_changes_before_snapshot(&self) -> bool {
        false
    }

    /// What follows a new connection.
    fn snapshot(&self, market: &Market<'_>, lines: &mut Lines<'_>);

    /// Channels that the exchange does not send: a recorder asks for them over HTTP.
    fn fetched_channels(&self) -> &'static [&'static str] {
        &[]
    }

    /// What a recorder asks for over HTTP again and again.
    fn polled(&self, _market: &Market<'_>, _lines: &mut Lines<'_>) {}

    /// Changes of a book.
    fn book(&self, market: &Market<'_>, rows: &[Row], lines: &mut Lines<'_>);

    /// Anything else.
    fn event(
        &self,
        event: Event,
        market: &mut Market<'_>,
        random: &mut Random,
        lines: &mut Lines<'_>,
    );
}

/// How a minute runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Mean time between messages, in units of 100 ns.
    pub(crate) gap: u64,
    /// The chance that the connection is lost, in parts of 2^32.
    pub(crate) disconnect_chance: u64,
}

/// A part of the settlement that is one message.
struct Settlement {
    market: usize,
    rows: Range<usize>,
    is_last: bool,
}

/// The minute while it is written.
pub(crate) struct Minute<'a> {
    venue: &'a dyn Venue,
    markets: Vec<Market<'a>>,
    lines: Lines<'a>,
    random: Random,
    pace: Pace,
    rows: Vec<Row>,
    /// When somebody connects who gets snapshots and what follows.
    joined_at: Option<i64>,
}

impl<'a> Minute<'a> {
    pub(crate) fn new(
        venue: &'a dyn Venue,
        seed: u64,
        markets: Vec<Market<'a>>,
        lines: Lines<'a>,
        pace: Pace,
    ) -> Self {
        let random = Random::new(hash_signed(seed, lines.clock.minute));
        Self { venue, markets, lines, random, pace, rows: Vec::new(), joined_at: None }
    }

    /// Writes what somebody gets who connects at `at`: snapshots as of then, and what happened since
    /// they were made. They may be up to a second old: books that settle cannot be had halfway.
    pub(crate) fn write_joined(mut self, at: i64) {
        self.lines = self.lines.silent_until_opened(at);
        self.joined_at = Some(at);
        self.write();
    }

    /// Writes all lines of the minute.
    pub(crate) fn write(mut self) {
        let mut lost_at = self.draw_disconnect();
        let mut now = 0;
        if self.lines.clock.is_first_of_day() {
            now = LEAST_GAP;
            self.join_before(now);
            self.connect(now);
        }
        loop {
            now += self.draw_gap();
            self.join_before(now);
            if self.lines.are_over() {
                return;
            }
            if let Some(at) = lost_at.take_if(|at| *at <= now) {
                self.lines.disconnect();
                now = at + SECOND / 5 + i64::from(self.random.below(18_000_000));
                self.miss_changes(now);
                self.connect(now);
            } else if now >= SETTLING {
                break;
            } else {
                self.message(now, |_| false);
            }
        }
        self.join_before(MINUTE);
        self.settle(now);
    }

    /// Snapshots for whoever connects up to `now`. Nothing else depends on them.
    fn join_before(&mut self, now: i64) {
        let Some(at) = self.joined_at.take_if(|at| *at <= now) else { return };
        let clock = self.lines.clock.clone();
        self.lines.open();
        self.lines.clock.advance(at.min(SETTLING), 0);
        for market in &self.markets {
            self.venue.snapshot(market, &mut self.lines);
            self.venue.polled(market, &mut self.lines);
        }
        self.lines.clock = clock;
    }

    /// Whether the connection is lost is decided apart from all else, so that asking for more
    /// messages does not move it.
    fn draw_disconnect(&self) -> Option<i64> {
        let seed = hash_text(self.random.clone().next(), "disconnect");
        let mut random = Random::new(seed);
        let is_lost = random.next() >> 32 < self.pace.disconnect_chance;
        is_lost.then(|| SECOND * 5 + i64::from(random.below(500_000_000)))
    }

    /// Half of the messages follow the one before closely.
    fn draw_gap(&mut self) -> i64 {
        let chance = self.random.next();
        let share = chance >> 32;
        let mean = if chance & 1 == 0 { self.pace.gap / 10 } else { self.pace.gap * 19 / 10 };
        // Three times the square of an even share has the mean 1 and is mostly small.
        let gap = (3 * mean * ((share * share) >> 32)) >> 32;
        i64::try_from(gap).unwrap_or(MINUTE).clamp(LEAST_GAP, MINUTE)
    }

    /// Snapshots of all that has some.
    fn connect(&mut self, now: i64) {
        let chance = self.random.next();
        self.lines.advance(now, chance);
        for index in 0..self.markets.len() {
            if self.venue.sends_changes_before_snapshot() {
                for _ in 0..2 {
                    self.change_book(
                        index,
                        &mut Random::new(chance ^ self.markets[index].sequence),
                    );
                }
            }
            self.venue.snapshot(&self.markets[index], &mut self.lines);
        }
    }

    /// Lets books move while nobody is connected.
    fn miss_changes(&mut self, now: i64) {
        for market in &mut self.markets {
            self.rows.clear();
            let middle = market.middle_at(now);
            let mut random = Random::new(self.random.next());
            market.book.step_to(middle, &mut random, &mut self.rows);
            market.book.touch(8, &mut random, &mut self.rows);
            market.number_change(self.lines.clock.sequence_at(now));
        }
    }

    /// One message, whatever it is. `instead_of_book` may send something instead of changes of a
    /// book, and says whether it did.
    fn message(&mut self, now: i64, mut instead_of_book: impl FnMut(&mut Self) -> bool) {
        // All that the message is made of comes from one draw, so that the next message does not
        // depend on whether somebody asked for this one.
        let mut random = Random::new(self.random.next());
        self.lines.advance(now, random.next());
        let event = self.draw_event(&mut random);
        let index = self.draw_market(&mut random);
        if event == Event::Book {
            if !instead_of_book(self) {
                self.change_book(index, &mut random);
            }
        } else if let Some(market) = self.markets.get_mut(index) {
            self.venue.event(event, market, &mut random, &mut self.lines);
        }
    }

    fn draw_event(&self, random: &mut Random) -> Event {
        let mut left = random.below(1_000);
        for (event, share) in self.venue.mix() {
            if left < *share {
                return *event;
            }
            left -= share;
        }
        Event::Book
    }

    /// The first market is twice as active as the second, and so on, down to a floor.
    fn draw_market(&self, random: &mut Random) -> usize {
        let count = self.markets.len();
        let halvings = usize::try_from(random.halvings(63)).unwrap_or(0);
        if halvings < count && !random.once_in(8) {
            halvings
        } else {
            let count = u32::try_from(count).unwrap_or(1);
            usize::try_from(random.below(count)).unwrap_or(0)
        }
    }

    /// Moves the price if it is time for that, else changes some levels.
    fn change_book(&mut self, index: usize, random: &mut Random) {
        let Some(market) = self.markets.get_mut(index) else { return };
        self.rows.clear();
        let middle = market.middle_at(self.lines.clock.local);
        let first_part = if middle == market.book.middle {
            let count = draw_rows(random, self.venue.usual_rows());
            market.book.touch(count, random, &mut self.rows);
            self.rows.len()
        } else {
            market.is_rising = middle > market.book.middle;
            let first_part = market.book.step_to(middle, random, &mut self.rows);
            if random.once_in(CROSSED_ONCE_IN) { first_part } else { self.rows.len() }
        };
        let (first, rest) = self.rows.split_at(first_part);
        for rows in [first, rest].into_iter().filter(|rows| !rows.is_empty()) {
            market.number_change(self.lines.clock.sequence());
            self.venue.book(market, rows, &mut self.lines);
        }
    }

    /// Makes every book the one that the next minute begins with.
    fn settle(&mut self, mut now: i64) {
        let mut rows = Vec::new();
        let mut parts = Vec::new();
        for index in 0..self.markets.len() {
            self.plan_settlement(index, &mut rows, &mut parts);
        }
        let mut parts = parts.into_iter();
        while now < LAST {
            self.message(now, |minute| {
                if let Some(part) = parts.next() {
                    minute.send(&part, &rows);
                }
                true
            });
            now += self.draw_gap();
        }
        let left = i64::try_from(parts.len()).unwrap_or(0);
        let gap = (MINUTE - 1 - LAST) / (left + 1);
        let mut now = LAST;
        for part in parts {
            now += gap;
            let chance = self.random.next();
            self.lines.advance(now, chance);
            self.send(&part, &rows);
        }
    }

    fn plan_settlement(&mut self, index: usize, rows: &mut Vec<Row>, parts: &mut Vec<Settlement>) {
        let Some(market) = self.markets.get_mut(index) else { return };
        let start = rows.len();
        let middle = market.middle_at(MINUTE);
        let mut random = Random::new(self.random.next());
        market.book.step_to(middle, &mut random, rows);
        // A move of the price is one message, else the book would be crossed for several.
        let moved = rows.len();
        if moved > start {
            parts.push(Settlement { market: index, rows: start..moved, is_last: false });
        }
        market.book.settle(self.lines.clock.minute + 1, rows);
        let whole = messages_of(rows.len() - moved)
            .map(|part| moved + part.start..moved + part.end)
            .map(|rows| Settlement { market: index, rows, is_last: false });
        parts.extend(whole);
        if rows.len() == start {
            // The last message must be there, as its number is what the next minute begins with.
            let (cell, size) = (market.book.middle, market.book.size(market.book.middle));
            rows.push(Row { is_bid: true, change: crate::book::Change::Update, cell, size });
            parts.push(Settlement { market: index, rows: start..rows.len(), is_last: false });
        }
        if let Some(last) = parts.last_mut() {
            last.is_last = true;
        }
    }

    fn send(&mut self, part: &Settlement, rows: &[Row]) {
        let Some(market) = self.markets.get_mut(part.market) else { return };
        let clock = &self.lines.clock;
        let sequence = if part.is_last { clock.last_sequence() } else { clock.sequence() };
        market.number_change(sequence);
        self.venue.book(market, rows.get(part.rows.clone()).unwrap_or_default(), &mut self.lines);
    }
}
