//! Redis: events as entries of streams, many `XADD` in one pipeline.
//!
//! A pipeline is a transaction (`MULTI` … `EXEC`): a server that runs out of memory, or turns into a
//! replica, in the middle of it takes nothing, so a later event of a key never passes an earlier one.
//! Where the user may not use transactions the commands go without, and the operator is told so. Where
//! the user may use `CLIENT REPLY`, transactions are quiet, which takes less of the server's time.
//!
//! An entry has the fields `data` (the event), `key`, `payloadCase`, `dataType`, then the static
//! headers. Stream names may have placeholders; a value that is empty, such as the symbol of a
//! disconnect, stands as `_`, so that a name is never empty and never ends in its separator.

mod commands;
mod connection;
mod entry;
mod options;
mod reply;
mod resp;
mod stream;

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, Value};
use tokio::sync::Semaphore;

use super::{Address, Answer, BusClient, ConnectError, Connected, Request, RequestLimits};
use crate::config_error::ConfigError;
use crate::delivery::DeliveryOptions;
use crate::event_view::EventView;
use crate::notice::Notices;
use crate::payload_filter::PayloadFilter;
use commands::Commands;
use connection::{Connection, Quiet};
use entry::Entries;
pub use options::RedisOptions;
use options::Settings;
use stream::Door;

// Limits.

/// The largest value that a server takes unless it is told otherwise (`proto-max-bulk-len`).
const MOST_EVENT_BYTES: usize = 512 * 1024 * 1024;
/// Events in a request, unless the operator says otherwise.
const EVENTS: usize = 500;
/// The most that the operator may ask for: the server does nothing else during a transaction.
const MOST_EVENTS: usize = 10_000;
/// Bytes in a request, so that what is in flight stays small beside the queue.
const REQUEST_BYTES: usize = 4 * 1024 * 1024;
/// How long an event waits for others, unless the operator says otherwise.
const LINGER: Duration = Duration::from_millis(5);
/// Requests in flight. More than there are connections, so that one whose keys are many more than those
/// of the others does not leave the connections idle.
const LANES: usize = 16;
/// Connections, each with one request at a time. While the server works on one, the others are sent; it
/// turns from one to the next every few events, so that they end about together, and with few of them it
/// would have nothing to do until the next requests are there.
const CONNECTIONS: usize = 8;

/// How long a connection may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to answer a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to show that it knows quiet transactions.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Publishes to Redis streams.
#[derive(Debug)]
pub struct Redis {
    client: Client,
    /// Host and port, for people.
    peer: String,
    entries: Entries,
    filter: PayloadFilter,
    limits: RequestLimits,
    /// The largest event, as the server said at the last connect.
    most_event_bytes: AtomicUsize,
    link: Mutex<Link>,
    /// As many as there are connections: a request waits for one.
    turns: Semaphore,
    /// Room for commands that no request uses.
    spare: Mutex<Vec<Commands>>,
}

/// The connections to the server.
#[derive(Debug, Default)]
struct Link {
    form: Form,
    /// Those that no request uses; none at all while there is no link.
    idle: Vec<Connection>,
}

/// How the commands of a request are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    /// One by one.
    #[default]
    Commands,
    /// As a transaction.
    Transaction,
    /// As a transaction that is not answered before its end.
    QuietTransaction,
}

impl BusClient for Redis {
    const NAME: &'static str = "redis";
    type Options = RedisOptions;

    fn validate(
        options: RedisOptions,
        _: &DeliveryOptions,
        _: &Notices,
    ) -> Result<Self, ConfigError> {
        let Settings { client, entries, filter, events, linger } = options.check()?;
        let peer = client.get_connection_info().addr().to_string();
        let limits = RequestLimits {
            events,
            bytes: REQUEST_BYTES,
            linger,
            lanes: LANES,
            pipelined: 1,
            one_event_per_key: false,
        };
        Ok(Self {
            client,
            peer,
            entries,
            filter,
            limits,
            most_event_bytes: AtomicUsize::new(MOST_EVENT_BYTES),
            link: Mutex::default(),
            turns: Semaphore::new(CONNECTIONS),
            spare: Mutex::default(),
        })
    }

    fn filter(&self) -> PayloadFilter {
        self.filter
    }

    fn limits(&self) -> RequestLimits {
        self.limits
    }

    // Every command names its stream, so a request may hold events of all of them: one destination.
    fn address(
        &self,
        event: &EventView<'_>,
        bytes: &[u8],
        wants_key: bool,
        address: &mut Address,
    ) -> Result<(), String> {
        self.check_size(bytes)?;
        address.size = bytes.len() + self.entries.overhead();
        if wants_key {
            self.entries.put_key(event, &mut address.key);
        }
        Ok(())
    }

    // Connect.

    async fn connect(&self) -> Result<Connected, ConnectError> {
        // The old one ends here, before anything is sent on the new.
        self.hold(Link::default());
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, self.open());
        let link = connecting.await.map_err(|_| {
            let (peer, patience) = (&self.peer, CONNECT_TIMEOUT.as_secs());
            ConnectError::transient(format!("{peer} did not answer within {patience} s"))
        })?;
        let link = link.map_err(|error| self.connect_error(&error))?;
        let mut warnings = Vec::new();
        if link.form == Form::Commands {
            warnings.push(
                "the server refuses MULTI, so a request is not taken as a whole: when memory runs \
                 out in the middle of one, later events may pass earlier ones of their key; allow \
                 +multi +exec"
                    .to_owned(),
            );
        }
        self.hold(link);
        Ok(Connected { peer: self.peer.clone(), warnings })
    }

    // Send.

    async fn send(self: Arc<Self>, request: Request) -> Answer {
        let mut commands = self.spare().pop().unwrap_or_default();
        let mut unreadable = Vec::new();
        let mut text = String::new();
        for (place, (case, event)) in request.events.iter().enumerate() {
            // Asked again: events may have been taken in before the server said what it takes, and it
            // ends the connection of whoever sends more.
            let put = self.check_size(event).and_then(|()| {
                let put =
                    commands.push(|bytes| self.entries.put_command(case, event, &mut text, bytes));
                put.map_err(|error| error.to_string())
            });
            if let Err(reason) = put {
                unreadable.push((place, reason));
            }
        }
        let answer = self.exchange(&mut commands).await;
        self.spare().extend(commands.emptied());
        reply::with_unreadable(answer, unreadable, request.events.len())
    }

    async fn close(&self) {
        self.hold(Link::default());
    }
}

impl Redis {
    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, link: Link) {
        *self.link() = link;
    }

    fn take(&self) -> Option<(Connection, Form)> {
        let mut link = self.link();
        let connection = link.idle.pop()?;
        Some((connection, link.form))
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Commands>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a connection and sends commands on it.
    async fn exchange(&self, commands: &mut Commands) -> Answer {
        let _turn = self.turns.acquire().await;
        let Some((mut connection, form)) = self.take() else {
            return Answer::Disconnected("not connected".to_owned());
        };
        let sending = exchange(&mut connection, form, commands);
        let sent = tokio::time::timeout(RESPONSE_TIMEOUT, sending).await;
        match sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(answer) => {
                self.link().idle.push(connection);
                answer
            }
            Err(error) => Answer::Disconnected(format!("{}: {error}", self.peer)),
        }
    }

    fn check_size(&self, event: &[u8]) -> Result<(), String> {
        let (size, most) = (event.len(), self.most_event_bytes.load(Ordering::Relaxed));
        if size > most {
            return Err(format!(
                "the event has {size} bytes; the server takes at most {most} in a value \
                 (proto-max-bulk-len)"
            ));
        }
        Ok(())
    }

    async fn open(&self) -> Result<Link, RedisError> {
        let server = self.client.get_connection_info();
        let door = Door::new(server.addr())?;
        let login = server.redis_settings();
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let (first, (most, has_transactions)) =
            Connection::open(&door, login, &config, async |redis| {
                redis.send_packed_command(&redis::cmd("PING")).await?.extract_error()?;
                let most = most_event_bytes(redis).await?;
                Ok((most, has_transactions(redis).await?))
            })
            .await?;
        self.most_event_bytes.store(most, Ordering::Relaxed);
        let more = || Connection::open(&door, login, &config, async |_| Ok(()));
        let mut idle = vec![first];
        let mut form = Form::Commands;
        if has_transactions {
            form = Form::Transaction;
            let (mut second, ()) = more().await?;
            let mut nothing = Commands::default();
            let probe = tokio::time::timeout(PROBE_TIMEOUT, second.send_quietly(&mut nothing));
            // One that answers in any other way is not used any more.
            if let Ok(Ok(Quiet::Done(_))) = probe.await {
                form = Form::QuietTransaction;
                idle.push(second);
            }
        }
        let others = (idle.len()..CONNECTIONS).map(|_| more());
        idle.extend(try_join_all(others).await?.into_iter().map(|(connection, ())| connection));
        Ok(Link { form, idle })
    }

    /// The server never repeats a password, and neither does the crate.
    fn connect_error(&self, error: &RedisError) -> ConnectError {
        let is_permanent = match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => true,
            ErrorKind::Server(_) | ErrorKind::Extension => {
                !error.code().is_some_and(reply::is_transient)
            }
            _ => false,
        };
        let reason = format!("{}: {error}", self.peer);
        ConnectError { is_permanent, reason }
    }
}

/// Sends commands, and says what became of them.
async fn exchange(
    connection: &mut Connection,
    form: Form,
    commands: &mut Commands,
) -> io::Result<Answer> {
    match form {
        Form::Commands => Ok(reply::of_commands(&connection.send(commands).await?)),
        Form::Transaction => Ok(reply::of_transaction(connection.send_aloud(commands).await?)),
        Form::QuietTransaction => match connection.send_quietly(commands).await? {
            Quiet::Done(replies) => Ok(reply::of_commands(&replies)),
            Quiet::Refused => Ok(reply::of_transaction(connection.send_aloud(commands).await?)),
            Quiet::Loud(reason) => Err(io::Error::other(reason)),
        },
    }
}

/// The largest value that the server takes; where the user may not ask, what servers take unless they
/// are told otherwise.
async fn most_event_bytes(redis: &mut MultiplexedConnection) -> Result<usize, RedisError> {
    let mut ask = redis::cmd("CONFIG");
    ask.arg("GET").arg("proto-max-bulk-len");
    let limit = match redis.send_packed_command(&ask).await? {
        Value::Array(pair) => pair.into_iter().nth(1),
        Value::Map(pairs) => pairs.into_iter().next().map(|(_, value)| value),
        _ => None,
    };
    let limit = limit.and_then(|limit| redis::from_redis_value::<usize>(limit).ok());
    Ok(limit.unwrap_or(MOST_EVENT_BYTES))
}

/// Whether the user may use transactions; an empty one does no harm.
async fn has_transactions(redis: &mut MultiplexedConnection) -> Result<bool, RedisError> {
    let mut pipeline = Pipeline::with_capacity(2);
    pipeline.add_command(Cmd::new().arg("MULTI").take()).add_command(Cmd::new().arg("EXEC").take());
    let replies = redis.send_packed_commands(&pipeline, 0, 2).await?;
    Ok(!replies.iter().any(|reply| matches!(reply, Value::ServerError(_))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(options: RedisOptions) -> Redis {
        Redis::validate(options, &DeliveryOptions::default(), &Notices::default()).unwrap()
    }

    #[test]
    fn no_secret_is_shown() {
        let url = "redis://alice:hunter2@redis.example:7000/3".into();
        let options =
            RedisOptions { url: Some(url), stream: "s".to_owned(), ..RedisOptions::default() };
        assert!(!format!("{options:?}").contains("hunter2"));
        let client = client(options);
        assert_eq!(client.peer, "redis.example:7000");
        assert!(!format!("{client:?}").contains("hunter2"));
    }

    #[test]
    fn lost_connections_pass_and_refusals_stay() {
        let client = client(RedisOptions { stream: "s".to_owned(), ..RedisOptions::default() });
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = client.connect_error(&RedisError::from(refused));
        assert_eq!(error, ConnectError::transient("127.0.0.1:6379: connection refused"));
        let refused = RedisError::from((ErrorKind::AuthenticationFailed, "no such user"));
        assert!(client.connect_error(&refused).is_permanent);
    }
}
