//! The client of a service once it is made, and the end of its requests when it is let go.
//!
//! HTTP has no lasting connection: a client that was made once stays good, and a request that finds
//! nobody is a transient failure like others.

use std::future::Future;
use std::sync::{PoisonError, RwLock};

use tokio::sync::Notify;

use crate::bus::Answer;
use crate::retry::Outcome;

/// A client, or none yet, or none any more.
#[derive(Debug)]
pub(crate) struct Connection<C> {
    client: RwLock<Option<C>>,
    closing: Notify,
}

impl<C> Default for Connection<C> {
    fn default() -> Self {
        Self { client: RwLock::new(None), closing: Notify::new() }
    }
}

impl<C: Clone> Connection<C> {
    /// Keeps the client for the requests to come.
    pub(crate) fn open(&self, client: C) {
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }

    /// Lets the client go and ends the requests in flight.
    pub(crate) fn close(&self) {
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.closing.notify_waiters();
    }

    /// Makes a request, until it is answered or the client is let go.
    pub(crate) async fn send<F>(&self, request: impl FnOnce(C) -> F) -> Answer
    where
        F: Future<Output = Answer>,
    {
        let closing = self.closing.notified();
        let client = self.client.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(client) = client else {
            return Answer::Disconnected("there is no connection".to_owned());
        };
        tokio::select! {
            answer = request(client) => answer,
            () = closing => Answer::All(Outcome::Transient("the connection was closed".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_in_flight_end_when_the_client_is_let_go() {
        let connection = Connection::default();
        let done = |()| std::future::ready(Answer::All(Outcome::Acknowledged));
        assert!(matches!(connection.send(done).await, Answer::Disconnected(_)));
        connection.open(());
        assert_eq!(connection.send(done).await, Answer::All(Outcome::Acknowledged));
        let endless = connection.send(|()| std::future::pending());
        let (answer, ()) = tokio::join!(endless, async { connection.close() });
        assert!(matches!(answer, Answer::All(Outcome::Transient(_))));
        assert!(matches!(connection.send(done).await, Answer::Disconnected(_)));
    }
}
