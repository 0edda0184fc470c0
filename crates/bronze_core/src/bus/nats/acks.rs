//! Which messages the server has answered for.
//!
//! All answers come to one subscription; the last two tokens of their subject are the request and the
//! place of the event in it. An answer that nobody waits for is passed over. When the connection ends,
//! all who wait are told so, and those who come later as well.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_nats::jetstream::response::Response;
use async_nats::{Message, StatusCode, Subject};
use serde::Deserialize;
use tokio::sync::oneshot;

use crate::retry::Outcome;

/// What became of a message that was not simply taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// As the server said.
    Outcome(Outcome),
    /// No stream takes its subject, now.
    NoStream,
}

/// An answer that says that a message was taken.
pub(super) const TAKEN: &str = "{\"stream\":\"\",\"seq\":0}";

/// Failures by place.
pub(super) type Failures = Vec<(usize, Failure)>;

#[derive(Debug, Default)]
pub(super) struct Acks {
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    requests: HashMap<u64, Waiting>,
    next: u64,
    /// Why there will be no answers any more.
    ended: Option<String>,
    /// What the server said when it refused to tell of streams.
    api_denial: Option<String>,
}

#[derive(Debug)]
struct Waiting {
    subjects: Vec<Subject>,
    is_answered: Vec<bool>,
    left: usize,
    failures: Failures,
    done: Option<oneshot::Sender<Failures>>,
}

/// A request that waits; dropped, nobody waits for it any more.
#[derive(Debug)]
pub(super) struct Ticket<'a> {
    acks: &'a Acks,
    pub(super) number: u64,
    pub(super) done: oneshot::Receiver<Failures>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.acks.table().requests.remove(&self.number);
    }
}

impl Acks {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for answers to messages to these subjects; an error says why there will be none.
    pub(super) fn wait_for(&self, subjects: Vec<Subject>) -> Result<Ticket<'_>, String> {
        let (sender, done) = oneshot::channel();
        let mut table = self.table();
        if let Some(reason) = &table.ended {
            return Err(reason.clone());
        }
        let number = table.next;
        table.next += 1;
        let (left, is_answered) = (subjects.len(), vec![false; subjects.len()]);
        let done_sender = Some(sender);
        let failures = Vec::new();
        let waiting = Waiting { subjects, is_answered, left, failures, done: done_sender };
        table.requests.insert(number, waiting);
        Ok(Ticket { acks: self, number, done })
    }

    /// Takes in what came to the subscription.
    pub(super) fn take(&self, message: &Message) {
        self.answer(&message.subject, failure_of(message));
    }

    fn answer(&self, subject: &str, failure: Option<Failure>) {
        let mut tokens = subject.rsplit('.');
        let place = tokens.next().and_then(|token| token.parse().ok());
        let number = tokens.next().and_then(|token| token.parse().ok());
        if let (Some(number), Some(place)) = (number, place)
            && let Some(waiting) = self.table().requests.get_mut(&number)
        {
            waiting.answer(place, failure);
        }
    }

    /// A message to the client itself will not come back; the server has read it all the same.
    pub(super) fn deny_answer(&self, subject: &str) {
        self.answer(subject, None);
    }

    /// The server will not take messages to a subject, and does not answer them.
    pub(super) fn deny(&self, subject: &str, reason: &str) {
        for waiting in self.table().requests.values_mut() {
            for place in 0..waiting.subjects.len() {
                if &*waiting.subjects[place] == subject {
                    let outcome = Outcome::Permanent(reason.to_owned());
                    waiting.answer(place, Some(Failure::Outcome(outcome)));
                }
            }
        }
    }

    /// The server will not tell of streams.
    pub(super) fn deny_api(&self, reason: &str) {
        self.table().api_denial.get_or_insert_with(|| reason.to_owned());
    }

    /// What the server said when it refused to tell of streams.
    pub(super) fn api_denial(&self) -> Option<String> {
        self.table().api_denial.clone()
    }

    /// No more answers will come.
    pub(super) fn end(&self, reason: &str) {
        let mut table = self.table();
        table.ended.get_or_insert_with(|| reason.to_owned());
        table.requests.clear();
    }

    /// Why no more answers will come, if it is so.
    pub(super) fn ended(&self) -> Option<String> {
        self.table().ended.clone()
    }
}

impl Waiting {
    fn answer(&mut self, place: usize, failure: Option<Failure>) {
        let Some(is_answered) = self.is_answered.get_mut(place) else { return };
        if std::mem::replace(is_answered, true) {
            return;
        }
        self.failures.extend(failure.map(|failure| (place, failure)));
        self.left -= 1;
        if self.left == 0
            && let Some(done) = self.done.take()
        {
            let _ = done.send(std::mem::take(&mut self.failures));
        }
    }
}

/// An acknowledgement, of which nothing is needed but that it is one.
#[derive(Deserialize)]
struct Taken {
    #[serde(rename = "seq")]
    _sequence: u64,
}

fn failure_of(message: &Message) -> Option<Failure> {
    if message.status == Some(StatusCode::NO_RESPONDERS) {
        return Some(Failure::NoStream);
    }
    // Nearly all answers begin so; reading them as JSON would cost more than all the rest here. An
    // error comes before the stream's name.
    if message.payload.starts_with(b"{\"stream\":") {
        return None;
    }
    let outcome = match serde_json::from_slice::<Response<Taken>>(&message.payload) {
        Ok(Response::Ok(_)) => return None,
        Ok(Response::Err { error }) if is_transient(error.code()) => {
            Outcome::Transient(error.to_string())
        }
        Ok(Response::Err { error }) => Outcome::Permanent(error.to_string()),
        Err(error) => Outcome::Transient(format!("an answer that is none: {error}")),
    };
    Some(Failure::Outcome(outcome))
}

/// `JetStream` uses HTTP's numbers: what lacks a leader, room or time may go later.
pub(super) fn is_transient(code: usize) -> bool {
    code >= 500 || matches!(code, 408 | 429)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str, payload: &str, status: Option<StatusCode>) -> Message {
        Message {
            subject: subject.into(),
            reply: None,
            payload: payload.to_owned().into(),
            headers: None,
            status,
            description: None,
            length: 0,
        }
    }

    fn failure(payload: &str) -> Option<Failure> {
        failure_of(&message("i.0.0", payload, None))
    }

    #[test]
    fn answers_are_told_apart() {
        assert_eq!(failure(r#"{"stream":"S","seq":7}"#), None);
        assert_eq!(failure(r#"{"seq":7,"stream":"S","duplicate":true}"#), None);
        let error = |code: u32| {
            failure(&format!(
                r#"{{"error":{{"code":{code},"err_code":10077,"description":"no room"}},"stream":"S","seq":0}}"#
            ))
        };
        let is_transient =
            |failure| matches!(failure, Some(Failure::Outcome(Outcome::Transient(_))));
        assert!(is_transient(error(503)) && is_transient(failure("what?")));
        assert!(matches!(error(400), Some(Failure::Outcome(Outcome::Permanent(_)))));
        let none = message("i.0.0", "", Some(StatusCode::NO_RESPONDERS));
        assert_eq!(failure_of(&none), Some(Failure::NoStream));
    }

    #[test]
    fn a_request_is_done_when_each_message_was_answered_once() {
        let acks = Acks::default();
        let mut ticket = acks.wait_for(vec!["a".into(), "b".into(), "a".into()]).unwrap();
        let taken = r#"{"stream":"S","seq":7}"#;
        for subject in ["i.0.1", "i.0.1", "i.0.9", "i.5.0", "i.x.y", "i"] {
            acks.take(&message(subject, taken, None));
        }
        assert!(ticket.done.try_recv().is_err());
        acks.deny("a", "denied");
        let denied = || Failure::Outcome(Outcome::Permanent("denied".to_owned()));
        assert_eq!(ticket.done.try_recv(), Ok(vec![(0, denied()), (2, denied())]));
        drop(ticket);
        assert!(acks.table().requests.is_empty());
    }

    #[test]
    fn the_end_is_told_to_all() {
        let acks = Acks::default();
        let mut ticket = acks.wait_for(vec!["a".into()]).unwrap();
        acks.end("lost");
        assert_eq!(ticket.done.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(acks.wait_for(vec!["a".into()]).unwrap_err(), "lost");
    }
}
