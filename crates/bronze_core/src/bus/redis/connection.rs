//! A connection that is logged in, with one request on its way at a time.
//!
//! The client crate opens nothing and sends no event: it packs a command from parts that are allocated
//! one by one and makes a value of every reply, which takes longer than all else that is done with an
//! event. It logs in, and asks what is to be known beforehand.
//!
//! Quiet transactions: a server answers every command of a transaction with `QUEUED`, in a packet for
//! every few of them, and wakes us for each. Told `CLIENT REPLY OFF` before, and `ON` by the first
//! command inside, it says nothing until all of it is done, then only what became of the events. A
//! transaction that was refused is seen by their absence; its reason is learned by sending it again,
//! aloud.

use std::fmt;
use std::io;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisConnectionInfo, RedisError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::commands::Commands;
use super::resp::{self, Reply};
use super::stream::{Door, Lent, Stream};

/// Room for replies that is asked for at a time.
const READ_BYTES: usize = 16 * 1024;
/// See the module.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
}

/// What became of a quiet transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Quiet {
    /// What became of each command.
    Done(Vec<Reply>),
    /// It was refused, and none of its commands was done.
    Refused,
    /// It was not quiet, so that nothing is known.
    Loud(String),
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Opens a stream and logs in, then lets `ask` ask.
    pub(super) async fn open<T>(
        door: &Door<'_>,
        login: &RedisConnectionInfo,
        config: &AsyncConnectionConfig,
        ask: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<(Self, T), RedisError> {
        let lent = Lent::new(door.open().await?);
        let borrower = lent.clone();
        let opening = MultiplexedConnection::new_with_config(login, borrower, config.clone());
        let (mut redis, driver) = opening.await?;
        let asked = tokio::select! {
            asked = ask(&mut redis) => asked?,
            () = driver => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        };
        let taken_back = lent.take_back();
        let stream = taken_back.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        Ok((Self { stream, received: Vec::new() }, asked))
    }

    /// Sends the commands as they are, and waits for what became of each.
    pub(super) async fn send(&mut self, commands: &Commands) -> io::Result<Vec<Reply>> {
        self.write(commands.alone()).await?;
        self.replies(commands.count()).await
    }

    /// Sends the commands as a transaction, and waits for the replies to `MULTI`, to each command and
    /// to `EXEC`.
    pub(super) async fn send_aloud(&mut self, commands: &mut Commands) -> io::Result<Vec<Reply>> {
        self.write(commands.aloud()).await?;
        self.replies(commands.count() + 2).await
    }

    /// Sends the commands as a quiet transaction.
    pub(super) async fn send_quietly(&mut self, commands: &mut Commands) -> io::Result<Quiet> {
        self.write(commands.quiet()).await?;
        self.quiet_replies(commands.count()).await
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn quiet_replies(&mut self, count: usize) -> io::Result<Quiet> {
        self.received.clear();
        let mut place = 0;
        if let Reply::Error(error) = self.next_reply(&mut place).await? {
            // It did not heed `OFF`, so it answers every command.
            for _ in 0..count + 5 {
                self.next_reply(&mut place).await?;
            }
            return Ok(Quiet::Loud(error));
        }
        // That was the first `ON`; if there is nothing but `PONG` behind, it was the last one.
        let mut replies = Vec::with_capacity(count + 1);
        loop {
            match self.next_reply(&mut place).await? {
                Reply::Pong => break,
                reply => replies.push(reply),
            }
        }
        if replies.is_empty() {
            return Ok(Quiet::Refused);
        }
        if replies.len() != count + 1 || replies.pop() != Some(Reply::Good) {
            let reason = "the server answers a transaction in a way of its own";
            return Ok(Quiet::Loud(reason.to_owned()));
        }
        Ok(Quiet::Done(replies))
    }

    async fn replies(&mut self, count: usize) -> io::Result<Vec<Reply>> {
        let mut replies = Vec::with_capacity(count);
        let mut place = 0;
        self.received.clear();
        while replies.len() < count {
            replies.push(self.next_reply(&mut place).await?);
        }
        Ok(replies)
    }

    /// The reply at `place` of what was received.
    async fn next_reply(&mut self, place: &mut usize) -> io::Result<Reply> {
        loop {
            let read = resp::read(&self.received[*place..]).map_err(io::Error::other)?;
            if let Some((reply, length)) = read {
                *place += length;
                return Ok(reply);
            }
            self.received.drain(..*place);
            *place = 0;
            self.received.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made of a server's answers to a quiet transaction of `count` commands, and of those to
    /// the transaction after it.
    async fn quiet(count: usize, answers: &str) -> io::Result<(Quiet, Vec<Reply>)> {
        let (stream, mut server) = tokio::io::duplex(1 << 20);
        let mut connection = Connection { stream: Box::new(stream), received: Vec::new() };
        let mut commands = Commands::default();
        for _ in 0..count {
            let _ = commands.push(|_| Ok::<_, ()>(()));
        }
        server.write_all(answers.as_bytes()).await?;
        let first = connection.send_quietly(&mut commands).await?;
        server.write_all(b"+OK\r\n*0\r\n").await?;
        Ok((first, connection.send_aloud(&mut Commands::default()).await?))
    }

    #[tokio::test]
    async fn quiet_transactions_tell_what_became_of_them() {
        let good = || Reply::Good;
        let wrong = || Reply::Error("WRONGTYPE x".to_owned());
        let own = || Quiet::Loud("the server answers a transaction in a way of its own".to_owned());
        for (count, answers, expected) in [
            (0, "+OK +OK +PONG", Quiet::Done(vec![])),
            (2, "+OK $3_1-0 $3_1-1 +OK +PONG", Quiet::Done(vec![good(), good()])),
            (2, "+OK -WRONGTYPE_x $3_1-1 +OK +PONG", Quiet::Done(vec![wrong(), good()])),
            (2, "+OK +PONG", Quiet::Refused),
            // It may not use MULTI, so the commands were done one by one.
            (1, "+OK $3_1-0 -ERR_x +OK +PONG", own()),
            // It takes OFF, and does not heed it.
            (1, "+OK +OK +QUEUED +QUEUED *2 +OK $3_1-0 +OK +PONG", own()),
            (
                1,
                "-NOPERM_x +OK -NOPERM_x +QUEUED -EXECABORT_x -NOPERM_x +PONG",
                Quiet::Loud("NOPERM x".to_owned()),
            ),
        ] {
            let answers = answers.split(' ').map(|answer| match answer.split_once('_') {
                Some((length, text)) if length.starts_with('$') => {
                    format!("{length}\r\n{text}\r\n")
                }
                _ => format!("{}\r\n", answer.replace('_', " ")),
            });
            let (first, next) = quiet(count, &answers.collect::<String>()).await.unwrap();
            assert_eq!(first, expected);
            // Whatever it was, the next request has its own answers.
            assert_eq!(next, [Reply::Good, Reply::Many(vec![])]);
        }
    }
}
