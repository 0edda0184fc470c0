//! Redis: events as entries of streams, many `XADD` in one pipeline.
//!
//! A pipeline is a transaction (`MULTI` … `EXEC`): a server that runs out of memory, or turns into a
//! replica, in the middle of it takes nothing, so a later event of a key never passes an earlier one.
//! Where the user may not use transactions the commands go without, and the operator is told so.
//!
//! An entry has the fields `data` (the event), `key`, `payloadCase`, `dataType`, then the static
//! headers. Stream names may have placeholders; a value that is empty, such as the symbol of a
//! disconnect, stands as `_`, so that a name is never empty and never ends in its separator.

mod entry;
mod options;
mod reply;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, Pipeline, RedisError, Value};

use super::{Address, Answer, BusClient, ConnectError, Connected, Request, RequestLimits};
use crate::config_error::ConfigError;
use crate::delivery::DeliveryOptions;
use crate::event_view::EventView;
use crate::notice::Notices;
use crate::payload_filter::PayloadFilter;
use entry::Entries;
pub use options::RedisOptions;
use options::Settings;

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
/// Requests in flight. While the server works on one, the next is made and sent; more than a few
/// only wait in buffers.
const LANES: usize = 4;

/// How long a connection may take, with TLS and login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to answer a request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Publishes to Redis streams.
#[derive(Debug)]
pub struct Redis {
    client: Client,
    /// Host and port, for people.
    peer: String,
    uses_tls: bool,
    entries: Entries,
    filter: PayloadFilter,
    limits: RequestLimits,
    /// The largest event, as the server said at the last connect.
    most_event_bytes: AtomicUsize,
    connection: Mutex<Option<Connection>>,
}

#[derive(Clone, Debug)]
struct Connection {
    redis: MultiplexedConnection,
    has_transactions: bool,
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
        let address = client.get_connection_info().addr();
        let peer = address.to_string();
        let uses_tls = matches!(address, redis::ConnectionAddr::TcpTls { .. });
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
            uses_tls,
            entries,
            filter,
            limits,
            most_event_bytes: AtomicUsize::new(MOST_EVENT_BYTES),
            connection: Mutex::new(None),
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
        self.hold(None);
        if self.uses_tls {
            // The crate asks the process for a provider; somebody else may have set one already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, self.open());
        let connection = connecting.await.map_err(|_| {
            let (peer, patience) = (&self.peer, CONNECT_TIMEOUT.as_secs());
            ConnectError::transient(format!("{peer} did not answer within {patience} s"))
        })??;
        let mut warnings = Vec::new();
        if !connection.has_transactions {
            warnings.push(
                "the server refuses MULTI, so a request is not taken as a whole: when memory runs \
                 out in the middle of one, later events may pass earlier ones of their key; allow \
                 +multi +exec"
                    .to_owned(),
            );
        }
        self.hold(Some(connection));
        Ok(Connected { peer: self.peer.clone(), warnings })
    }

    // Send.

    async fn send(self: Arc<Self>, request: Request) -> Answer {
        let Some(Connection { mut redis, has_transactions }) = self.connection() else {
            return Answer::Disconnected("not connected".to_owned());
        };
        let mut pipeline = Pipeline::with_capacity(request.events.len() + 2);
        let mut unreadable = Vec::new();
        if has_transactions {
            pipeline.cmd("MULTI");
        }
        for (place, (case, event)) in request.events.iter().enumerate() {
            // Asked again: events may have been taken in before the server said what it takes, and it
            // ends the connection of whoever sends more.
            let command = self.check_size(event).and_then(|()| {
                self.entries.command(*case, event).map_err(|error| error.to_string())
            });
            match command {
                Ok(command) => drop(pipeline.add_command(command)),
                Err(reason) => unreadable.push((place, reason)),
            }
        }
        if has_transactions {
            pipeline.cmd("EXEC");
        }
        let replies = match redis.send_packed_commands(&pipeline, 0, pipeline.len()).await {
            Ok(replies) => replies,
            Err(error) => return Answer::Disconnected(format!("{}: {error}", self.peer)),
        };
        let answer = if has_transactions {
            reply::of_transaction(replies)
        } else {
            reply::of_commands(&replies)
        };
        reply::with_unreadable(answer, unreadable, request.events.len())
    }

    async fn close(&self) {
        self.hold(None);
    }
}

impl Redis {
    fn connection(&self) -> Option<Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, connection: Option<Connection>) {
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = connection;
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

    async fn open(&self) -> Result<Connection, ConnectError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT))
            .set_pipeline_buffer_size(LANES);
        let connecting = self.client.get_multiplexed_async_connection_with_config(&config);
        let mut redis = connecting.await.map_err(|error| self.connect_error(&error))?;
        let ping = redis.send_packed_command(&redis::cmd("PING")).await;
        self.check(ping)?;
        let most =
            most_event_bytes(&mut redis).await.map_err(|error| self.connect_error(&error))?;
        self.most_event_bytes.store(most, Ordering::Relaxed);
        let has_transactions = has_transactions(&mut redis).await;
        let has_transactions = has_transactions.map_err(|error| self.connect_error(&error))?;
        Ok(Connection { redis, has_transactions })
    }

    fn check(&self, reply: Result<Value, RedisError>) -> Result<(), ConnectError> {
        match reply.and_then(Value::extract_error) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.connect_error(&error)),
        }
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
