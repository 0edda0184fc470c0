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

use super::resp::{self, Reply};
use super::stream::{Door, Lent, Stream};

/// Room for replies that is asked for at a time.
const READ_BYTES: usize = 16 * 1024;
/// Buffers larger than this are not kept for the next request.
const KEPT_BYTES: usize = 8 * 1024 * 1024;

/// What comes before the commands of a quiet transaction, and after them.
const QUIET: (&[u8], &[u8]) = (
    b"*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n*1\r\n$5\r\nMULTI\r\n\
      *3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n",
    b"*1\r\n$4\r\nEXEC\r\n*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n*1\r\n$4\r\nPING\r\n",
);
/// The same of one that is answered aloud.
const ALOUD: (&[u8], &[u8]) = (b"*1\r\n$5\r\nMULTI\r\n", b"*1\r\n$4\r\nEXEC\r\n");

/// See the module.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// Commands that wait to be sent.
    commands: Vec<u8>,
    /// How many.
    count: usize,
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
        let mut connection = Self { stream, commands: Vec::new(), count: 0, received: Vec::new() };
        connection.begin();
        Ok((connection, asked))
    }

    /// Makes room for the commands of the next request.
    pub(super) fn begin(&mut self) {
        self.count = 0;
        self.commands.clear();
        if self.commands.capacity() > KEPT_BYTES {
            self.commands = Vec::new();
        }
        // Commands stand behind the longer of the two beginnings, so that either can be put before.
        self.commands.extend_from_slice(QUIET.0);
    }

    /// Adds the command that `write` writes, unless that fails.
    pub(super) fn push<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.commands.len();
        let written = write(&mut self.commands);
        match &written {
            Ok(()) => self.count += 1,
            Err(_) => self.commands.truncate(start),
        }
        written
    }

    /// Sends the commands as they are, and waits for what became of each.
    pub(super) async fn send(&mut self) -> io::Result<Vec<Reply>> {
        self.stream.write_all(&self.commands[QUIET.0.len()..]).await?;
        self.stream.flush().await?;
        self.replies(self.count).await
    }

    /// Sends the commands as a transaction, and waits for the replies to `MULTI`, to each command and
    /// to `EXEC`.
    pub(super) async fn send_aloud(&mut self) -> io::Result<Vec<Reply>> {
        let end = self.commands.len();
        let start = QUIET.0.len() - ALOUD.0.len();
        self.commands[start..QUIET.0.len()].copy_from_slice(ALOUD.0);
        self.commands.extend_from_slice(ALOUD.1);
        self.stream.write_all(&self.commands[start..]).await?;
        self.stream.flush().await?;
        self.commands.truncate(end);
        self.replies(self.count + 2).await
    }

    /// Sends the commands as a quiet transaction. If it was refused, they still wait to be sent.
    pub(super) async fn send_quietly(&mut self) -> io::Result<Quiet> {
        let end = self.commands.len();
        self.commands[..QUIET.0.len()].copy_from_slice(QUIET.0);
        self.commands.extend_from_slice(QUIET.1);
        self.stream.write_all(&self.commands).await?;
        self.stream.flush().await?;
        self.commands.truncate(end);
        self.quiet_replies().await
    }

    async fn quiet_replies(&mut self) -> io::Result<Quiet> {
        self.received.clear();
        let mut place = 0;
        if let Reply::Error(error) = self.next_reply(&mut place).await? {
            // It did not heed `OFF`, so it answers every command.
            for _ in 0..self.count + 5 {
                self.next_reply(&mut place).await?;
            }
            return Ok(Quiet::Loud(error));
        }
        // That was the first `ON`; if there is nothing but `PONG` behind, it was the last one.
        let mut replies = Vec::with_capacity(self.count + 1);
        loop {
            match self.next_reply(&mut place).await? {
                Reply::Pong => break,
                reply => replies.push(reply),
            }
        }
        if replies.is_empty() {
            return Ok(Quiet::Refused);
        }
        if replies.len() != self.count + 1 || replies.pop() != Some(Reply::Good) {
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
