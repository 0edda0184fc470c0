//! How far a request has come: which of its batches are still to be sent, and what became of the
//! others.

use super::batch::{Batch, Batches};
use crate::bus::Answer;
use crate::retry::Outcome;

/// See the module.
#[derive(Debug)]
pub(super) struct Progress {
    events: usize,
    /// Of each event; none at all while nothing went wrong.
    outcomes: Vec<Outcome>,
    /// By partition and then in order.
    waiting: Vec<Batch>,
}

impl Progress {
    /// A request of so many events, of which nothing is sent yet.
    pub(super) fn new(events: usize, batches: Batches) -> Self {
        let mut progress = Self { events, outcomes: Vec::new(), waiting: batches.all };
        for (place, reason) in batches.unreadable {
            progress.note(&[place], &Outcome::Permanent(reason));
        }
        progress
    }

    /// The next batch of each partition; none at the end.
    pub(super) fn next_round(&mut self) -> Vec<Batch> {
        let mut round: Vec<Batch> = Vec::new();
        let mut later = Vec::new();
        for batch in self.waiting.drain(..) {
            match round.last() {
                Some(before) if before.partition == batch.partition => later.push(batch),
                _ => round.push(batch),
            }
        }
        self.waiting = later;
        round
    }

    /// Notes what became of a batch that did not arrive. What follows it in its partition must not
    /// overtake it where it goes again.
    pub(super) fn fail(&mut self, batch: &Batch, outcome: &Outcome) {
        self.note(&batch.events, outcome);
        if matches!(outcome, Outcome::Transient(_)) {
            let waiting = std::mem::take(&mut self.waiting);
            let (behind, others): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|other| other.partition == batch.partition);
            self.waiting = others;
            for batch in behind {
                self.note(&batch.events, outcome);
            }
        }
    }

    /// Puts batches of one partition before those of it that wait.
    pub(super) fn put_first(&mut self, batches: [Batch; 2]) {
        let partition = batches[0].partition;
        let place = self.waiting.partition_point(|other| other.partition < partition);
        self.waiting.splice(place..place, batches);
    }

    pub(super) fn answer(self) -> Answer {
        if self.outcomes.is_empty() {
            return Answer::All(Outcome::Acknowledged);
        }
        Answer::Each(self.outcomes)
    }

    fn note(&mut self, events: &[usize], outcome: &Outcome) {
        self.outcomes.resize(self.events, Outcome::Acknowledged);
        for place in events {
            self.outcomes[*place] = outcome.clone();
        }
    }
}
