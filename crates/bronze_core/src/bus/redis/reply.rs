//! What Redis' replies say of the events: which errors pass, which stay, which need a new connection.

use super::resp::Reply;
use crate::bus::Answer;
use crate::retry::Outcome;

/// Errors that pass by themselves.
const TRANSIENT: [&str; 8] =
    ["OOM", "LOADING", "READONLY", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "NOREPLICAS"];
/// Those among them that another server may not have: the address may lead to a new master by now.
const RECONNECT: [&str; 3] = ["LOADING", "READONLY", "MASTERDOWN"];

/// Whether the same command may succeed later.
pub(super) fn is_transient(code: &str) -> bool {
    TRANSIENT.contains(&code)
}

/// Of commands that went without a transaction.
pub(super) fn of_commands(replies: &[Reply]) -> Answer {
    let errors = || replies.iter().filter_map(as_error);
    if let Some(error) = errors().find(|error| RECONNECT.contains(&code_of(error))) {
        return Answer::Disconnected(error.to_owned());
    }
    if errors().next().is_none() {
        return Answer::All(Outcome::Acknowledged);
    }
    let outcome = |reply| as_error(reply).map_or(Outcome::Acknowledged, outcome_of);
    Answer::Each(replies.iter().map(outcome).collect())
}

/// Of `MULTI`, commands, `EXEC`: the commands' own replies are in that of `EXEC`, unless one of them
/// was refused before, and none was done.
pub(super) fn of_transaction(mut replies: Vec<Reply>) -> Answer {
    match replies.pop() {
        Some(Reply::Many(results)) => of_commands(&results),
        Some(Reply::Error(exec)) => of_aborted(&replies, &exec),
        _ => Answer::Disconnected("an answer to EXEC that is none".to_owned()),
    }
}

/// `replies` are those of `MULTI` and the commands; those that were queued can be sent again.
fn of_aborted(replies: &[Reply], exec: &str) -> Answer {
    // `EXECABORT` says that there was a refusal before; without one the reason is that of `EXEC`.
    let errors = || replies.iter().filter_map(as_error);
    let first = errors().next().unwrap_or(exec);
    if errors().chain([exec]).any(|error| RECONNECT.contains(&code_of(error))) {
        return Answer::Disconnected(first.to_owned());
    }
    if errors().all(|error| is_transient(code_of(error))) {
        return Answer::All(outcome_of(first));
    }
    match replies {
        [Reply::Error(begin), ..] => Answer::All(outcome_of(begin)),
        [_, commands @ ..] => {
            let reason = format!("another event of its request: {first}");
            let kept_back = || Outcome::Transient(reason.clone());
            let outcome = |reply| as_error(reply).map_or_else(kept_back, outcome_of);
            Answer::Each(commands.iter().map(outcome).collect())
        }
        [] => Answer::All(outcome_of(exec)),
    }
}

/// Puts events that could not be read, and were not sent, among the others.
pub(super) fn with_unreadable(
    answer: Answer,
    unreadable: Vec<(usize, String)>,
    events: usize,
) -> Answer {
    if unreadable.is_empty() || matches!(answer, Answer::Disconnected(_)) {
        return answer;
    }
    let mut outcomes = match answer {
        Answer::Each(outcomes) => outcomes,
        Answer::All(outcome) => vec![outcome; events - unreadable.len()],
        Answer::Disconnected(_) => Vec::new(),
    };
    for (place, reason) in unreadable {
        outcomes.insert(place, Outcome::Permanent(reason));
    }
    Answer::Each(outcomes)
}

fn as_error(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(error) => Some(error),
        _ => None,
    }
}

/// The first word of an error.
fn code_of(error: &str) -> &str {
    error.split(' ').next().unwrap_or_default()
}

fn outcome_of(error: &str) -> Outcome {
    let reason = error.to_owned();
    if is_transient(code_of(error)) {
        Outcome::Transient(reason)
    } else {
        Outcome::Permanent(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::redis::resp;

    fn replies(texts: &[&str]) -> Vec<Reply> {
        let read = |text: &&str| {
            let (reply, _) = resp::read(format!("{text}\r\n").as_bytes()).unwrap().unwrap();
            reply
        };
        texts.iter().map(read).collect()
    }

    const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.";
    const ABORT: &str = "-EXECABORT Transaction discarded because of previous errors.";

    fn is_transient(outcome: &Outcome) -> bool {
        matches!(outcome, Outcome::Transient(_))
    }

    #[test]
    fn a_stream_of_another_kind_refuses_only_its_events() {
        let Answer::Each(outcomes) = of_commands(&replies(&["+1-0", WRONG, OOM])) else { panic!() };
        assert_eq!(outcomes[0], Outcome::Acknowledged);
        assert!(matches!(&outcomes[1], Outcome::Permanent(reason) if reason.contains("WRONGTYPE")));
        assert!(matches!(&outcomes[2], Outcome::Transient(reason) if reason.contains("OOM")));
        let results = Reply::Many(replies(&["+1-0", "+2-0"]));
        let transaction = [replies(&["+OK", "+QUEUED", "+QUEUED"]), vec![results]].concat();
        assert_eq!(of_transaction(transaction), Answer::All(Outcome::Acknowledged));
    }

    #[test]
    fn a_transaction_without_memory_did_nothing() {
        let answer = of_transaction(replies(&["+OK", "+QUEUED", OOM, "+QUEUED", ABORT]));
        assert!(matches!(answer, Answer::All(outcome) if is_transient(&outcome)));
        let answer = of_transaction(replies(&["+OK", "+QUEUED", OOM]));
        assert!(matches!(answer, Answer::All(outcome) if is_transient(&outcome)));
    }

    #[test]
    fn what_a_transaction_refuses_does_not_refuse_the_rest() {
        let denied = "-NOPERM this user has no permissions to access one of the keys";
        let answer = of_transaction(replies(&["+OK", "+QUEUED", denied, ABORT]));
        let Answer::Each(outcomes) = answer else { panic!() };
        assert!(is_transient(&outcomes[0]) && matches!(outcomes[1], Outcome::Permanent(_)));
        let denied = "-NOAUTH Authentication required.";
        let answer = of_transaction(replies(&[denied, denied, denied]));
        assert!(matches!(answer, Answer::All(Outcome::Permanent(_))));
    }

    #[test]
    fn a_replica_is_left_for_the_new_master() {
        let replica = "-READONLY You can't write against a read only replica.";
        for texts in [&["+OK", replica, ABORT][..], &["+OK", "+QUEUED", replica]] {
            assert!(matches!(of_transaction(replies(texts)), Answer::Disconnected(_)));
        }
        let loading = "-LOADING Redis is loading the dataset in memory";
        assert!(matches!(of_commands(&replies(&[loading])), Answer::Disconnected(_)));
    }

    #[test]
    fn unreadable_events_keep_their_places() {
        let unreadable = vec![(0, "a".to_owned()), (2, "b".to_owned())];
        let answer = with_unreadable(Answer::All(Outcome::Acknowledged), unreadable, 4);
        let permanent = |reason: &str| Outcome::Permanent(reason.to_owned());
        let taken = || Outcome::Acknowledged;
        assert_eq!(answer, Answer::Each(vec![permanent("a"), taken(), permanent("b"), taken()]));
    }
}
