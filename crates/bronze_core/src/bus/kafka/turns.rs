//! The order in which the requests of a topic go out, however their futures are run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::bus::Request;

/// Who comes after whom, by destination.
#[derive(Debug, Default)]
pub(super) struct Turns {
    last: Mutex<HashMap<usize, oneshot::Receiver<bool>>>,
}

/// A request's turn: it comes when the request before has passed its own on, or was given up.
#[derive(Debug)]
pub(super) struct Turn {
    before: Option<oneshot::Receiver<bool>>,
    after: oneshot::Sender<bool>,
}

impl Turns {
    /// The turn of a request for which sending is asked now.
    pub(super) fn take(&self, request: &Request) -> Turn {
        let (after, mine) = oneshot::channel();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.insert(request.destination, mine);
        // One that is alone comes after others that were answered already, well or not.
        Turn { before: before.filter(|_| !request.is_alone), after }
    }
}

impl Turn {
    /// Waits for the turn; says whether all went well before.
    pub(super) async fn come(&mut self) -> bool {
        match self.before.take() {
            Some(before) => before.await.unwrap_or(false),
            None => true,
        }
    }

    /// Lets the next one go, and says whether all went well.
    pub(super) fn pass(self, is_well: bool) {
        // There may be none.
        let _ = self.after.send(is_well);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    fn request(destination: usize, is_alone: bool) -> Request {
        Request { destination, is_alone, ..Request::default() }
    }

    async fn has_come(turn: &mut Turn) -> Option<bool> {
        let mut coming = std::pin::pin!(turn.come());
        std::future::poll_fn(|context| match coming.as_mut().poll(context) {
            Poll::Ready(is_well) => Poll::Ready(Some(is_well)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test]
    async fn requests_keep_their_turns_however_they_are_run() {
        let turns = Turns::default();
        let mut first = turns.take(&request(0, true));
        let mut second = turns.take(&request(0, false));
        let mut third = turns.take(&request(0, false));
        let mut other = turns.take(&request(1, false));
        assert_eq!(has_come(&mut first).await, Some(true));
        assert_eq!(has_come(&mut other).await, Some(true));
        first.pass(true);
        assert_eq!(has_come(&mut second).await, Some(true));
        // Given up.
        drop(second);
        assert_eq!(has_come(&mut third).await, Some(false));
        third.pass(false);
        assert_eq!(has_come(&mut turns.take(&request(0, false))).await, Some(false));
        assert_eq!(has_come(&mut turns.take(&request(0, true))).await, Some(true));
    }

    #[tokio::test]
    async fn a_turn_waits_for_the_one_before() {
        let turns = Turns::default();
        let first = turns.take(&request(0, true));
        let mut second = turns.take(&request(0, false));
        let coming = async { second.come().await };
        let passing = async { first.pass(true) };
        assert!(tokio::join!(coming, passing).0);
    }
}
