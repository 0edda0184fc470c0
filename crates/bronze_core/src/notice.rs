//! What operators are told: a bounded list of notices that somebody who can write logs takes away.
//!
//! Nothing here calls a logger: a broker's thread must never wait for one, nor for Python's lock.
//! Repeats are held back: of one bus and kind at most [`BURST`] go through in a [`WINDOW`]; how many did
//! not is said with the next that does. When nobody takes notices away, the oldest go.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Notices of one bus and kind that go through in a window.
const BURST: u32 = 3;
/// After how long a kind may be told again.
const WINDOW: Duration = Duration::from_secs(30);
/// Notices that are kept for whoever takes them away.
const KEPT: usize = 1_000;

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For those who look for a fault.
    Debug,
    /// Good to know.
    Info,
    /// Something does not work now.
    Warning,
    /// Something is lost to the broker unless somebody acts.
    Error,
}

/// Something an operator should know. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub level: Level,
    /// Of which bus.
    pub bus: &'static str,
    /// What kind of thing happened, one word: `connected`, `failing`, `dead_letter`.
    pub kind: &'static str,
    /// The sentence.
    pub message: String,
    /// Its figures, by name.
    pub fields: Vec<(&'static str, String)>,
    /// How many of the same kind were held back before it.
    pub held_back: u64,
}

/// Where notices go. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Notice>,
    told: HashMap<(&'static str, &'static str), Told>,
    is_closed: bool,
}

#[derive(Debug)]
struct Told {
    window_began: Instant,
    in_window: u32,
    held_back: u64,
}

impl Notices {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells something.
    pub fn tell(
        &self,
        level: Level,
        bus: &'static str,
        kind: &'static str,
        message: impl Into<String>,
        fields: Vec<(&'static str, String)>,
    ) {
        let message = message.into();
        let notice = Notice { level, bus, kind, message, fields, held_back: 0 };
        self.tell_at(notice, Instant::now());
    }

    fn tell_at(&self, mut notice: Notice, now: Instant) {
        let mut state = self.state();
        let told = state.told.entry((notice.bus, notice.kind)).or_insert(Told {
            window_began: now,
            in_window: 0,
            held_back: 0,
        });
        if now.saturating_duration_since(told.window_began) >= WINDOW {
            (told.window_began, told.in_window) = (now, 0);
        }
        if told.in_window == BURST {
            told.held_back += 1;
            return;
        }
        told.in_window += 1;
        notice.held_back = std::mem::take(&mut told.held_back);
        if state.waiting.len() == KEPT {
            state.waiting.pop_front();
        }
        state.waiting.push_back(notice);
        self.shared.arrived.notify_all();
    }

    /// Takes the notices away, waiting for one at most `patience`; `None` once closed and empty.
    #[must_use]
    pub fn take(&self, patience: Duration) -> Option<Vec<Notice>> {
        let deadline = Instant::now() + patience;
        let mut state = self.state();
        loop {
            if !state.waiting.is_empty() {
                return Some(state.waiting.drain(..).collect());
            }
            if state.is_closed {
                return None;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(Vec::new());
            }
            let waited = self.shared.arrived.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends the wait of those who take notices away.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.shared.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(kind: &'static str, message: &str) -> Notice {
        let (level, bus, message) = (Level::Warning, "kafka", message.to_owned());
        Notice { level, bus, kind, message, fields: Vec::new(), held_back: 0 }
    }

    #[test]
    fn repeats_are_held_back_and_counted() {
        let notices = Notices::default();
        let start = Instant::now();
        for number in 0..10 {
            notices.tell_at(notice("failing", &number.to_string()), start);
        }
        notices.tell_at(notice("connected", "other"), start);
        notices.tell_at(notice("failing", "later"), start + WINDOW);
        let taken = notices.take(Duration::ZERO).unwrap();
        let told: Vec<_> =
            taken.iter().map(|notice| (notice.message.as_str(), notice.held_back)).collect();
        assert_eq!(told, [("0", 0), ("1", 0), ("2", 0), ("other", 0), ("later", 7)]);
    }

    #[test]
    fn the_oldest_go_when_nobody_takes_them() {
        let notices = Notices::default();
        let mut now = Instant::now();
        for number in 0..KEPT + 5 {
            notices.tell_at(notice("failing", &number.to_string()), now);
            now += WINDOW;
        }
        let taken = notices.take(Duration::ZERO).unwrap();
        assert_eq!((taken.len(), taken[0].message.as_str()), (KEPT, "5"));
    }

    #[test]
    fn closing_lets_the_rest_out_and_ends_the_wait() {
        let notices = Notices::default();
        notices.tell(Level::Info, "redis", "connected", "here", vec![("peer", "x".to_owned())]);
        let taker = std::thread::spawn({
            let notices = notices.clone();
            move || {
                let first = notices.take(Duration::from_mins(1)).unwrap().len();
                (first, notices.take(Duration::from_mins(1)))
            }
        });
        notices.close();
        assert_eq!(taker.join().unwrap(), (1, None));
        assert_eq!(notices.take(Duration::from_mins(1)), None);
    }
}
