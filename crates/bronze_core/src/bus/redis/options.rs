//! The operator's options for Redis, and what is wrong with them.

use std::time::Duration;

use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    RedisConnectionInfo,
};
use serde::Deserialize;

use super::entry::{Entries, FIELDS};
use super::{EVENTS, LINGER, MOST_EVENTS};
use crate::bus::{BatchOptions, Names, Pairs, Secret};
use crate::config_error::{ConfigError, ConfigFault};
use crate::payload_filter::PayloadFilter;
use crate::route::Route;
use crate::template::Template;

const HOST: &str = "127.0.0.1";
const PORT: u16 = 6379;
/// Databases are counted by a C `int`.
const MOST_DB: u64 = i32::MAX as u64;

/// The options that begin with `--redis`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedisOptions {
    /// `redis://[user:password@]host[:port][/db]`, or `rediss://` for TLS; instead of the next six.
    pub url: Option<Secret>,
    /// The server; 127.0.0.1 if not given.
    pub host: Option<String>,
    /// Its port; 6379 if not given.
    pub port: Option<u16>,
    /// The user's password, or that of all users.
    pub password: Option<Secret>,
    /// The user, where the server knows several.
    pub username: Option<String>,
    /// The number of the database; 0 if not given.
    pub db: Option<u64>,
    /// Whether to encrypt.
    pub tls: Option<bool>,
    /// The stream of all events that have no route of their own; may have placeholders.
    pub stream: String,
    /// Streams by payload case; may have placeholders.
    pub stream_routing: Pairs,
    /// The text of the field `key`.
    pub key_template: Option<String>,
    /// The payload cases that are published; all if empty.
    pub include_payloads: Names,
    /// Fields on every entry.
    pub static_headers: Pairs,
    /// About how many entries a stream keeps; all if not given.
    pub max_len: Option<u64>,
    /// Events in a request.
    pub max_batch_size: Option<u64>,
    /// Milliseconds an event waits for others.
    pub max_batch_delay_ms: Option<u64>,
}

/// Options that were checked.
pub(super) struct Settings {
    pub(super) client: Client,
    pub(super) entries: Entries,
    pub(super) filter: PayloadFilter,
    pub(super) events: usize,
    pub(super) linger: Duration,
}

impl RedisOptions {
    pub(super) fn check(&self) -> Result<Settings, ConfigError> {
        let batch = BatchOptions {
            max_batch_size: self.max_batch_size,
            max_batch_delay_ms: self.max_batch_delay_ms,
        };
        Ok(Settings {
            client: self.client()?,
            entries: self.entries()?,
            filter: self.include_payloads.payload_filter("--redis-include-payloads")?,
            events: batch.events("--redis", EVENTS, MOST_EVENTS)?,
            linger: batch.linger("--redis", LINGER)?,
        })
    }

    fn client(&self) -> Result<Client, ConfigError> {
        let (flag, server) = match &self.url {
            Some(url) => ("--redis-url", self.server_of_url(url)?),
            None => ("--redis-host", self.server_of_parts()?),
        };
        let login = server
            .redis_settings()
            .clone()
            .set_lib_name("tardis-fast", env!("CARGO_PKG_VERSION"))
            // What is answered is read by `resp`.
            .set_protocol(ProtocolVersion::RESP2);
        Client::open(server.set_redis_settings(login)).map_err(|_| unusable_server(flag))
    }

    fn server_of_url(&self, url: &Secret) -> Result<ConnectionInfo, ConfigError> {
        let others = [
            ("--redis-host", self.host.is_some()),
            ("--redis-port", self.port.is_some()),
            ("--redis-password", self.password.is_some()),
            ("--redis-username", self.username.is_some()),
            ("--redis-db", self.db.is_some()),
            ("--redis-tls", self.tls.is_some()),
        ];
        if let Some((other, _)) = others.into_iter().find(|(_, is_given)| *is_given) {
            let problem = "both say which server to use, and how";
            let remedy = "put it into the URL (redis://user:password@host:port/db, rediss:// for \
                          TLS), or leave the URL out";
            return Err(ConfigFault::contradiction(other, problem, remedy).of("--redis-url"));
        }
        url.expose().trim().into_connection_info().map_err(|_| unusable_server("--redis-url"))
    }

    fn server_of_parts(&self) -> Result<ConnectionInfo, ConfigError> {
        let host = self.host.as_deref().unwrap_or(HOST).trim().to_owned();
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || "/@".contains(c)) {
            let remedy = "give a name or an address alone; a URL goes to --redis-url";
            return Err(ConfigFault::unusable(host, "is no host", remedy).of("--redis-host"));
        }
        let port = self.port.unwrap_or(PORT);
        if port == 0 {
            return Err(ConfigFault::out_of_range(0, 1, u16::MAX.into()).of("--redis-port"));
        }
        let address = if self.tls == Some(true) {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        };
        let login = self.login()?;
        let server = address.into_connection_info().map_err(|_| unusable_server("--redis-host"))?;
        Ok(server.set_redis_settings(login))
    }

    fn login(&self) -> Result<RedisConnectionInfo, ConfigError> {
        let mut login = RedisConnectionInfo::default();
        match (&self.username, &self.password) {
            (Some(name), _) if name.is_empty() => {
                let remedy = "name the user, or leave it out";
                return Err(ConfigFault::missing(remedy).of("--redis-username"));
            }
            (Some(_), None) => {
                let remedy = "a user needs one";
                return Err(ConfigFault::missing(remedy).of("--redis-password"));
            }
            (Some(name), Some(_)) => login = login.set_username(name),
            (None, _) => {}
        }
        if let Some(password) = &self.password {
            if password.expose().is_empty() {
                let remedy = "give the password, or leave it out";
                return Err(ConfigFault::missing(remedy).of("--redis-password"));
            }
            login = login.set_password(password.expose());
        }
        let db = self.db.unwrap_or(0);
        match i64::try_from(db) {
            Ok(number) if db <= MOST_DB => Ok(login.set_db(number)),
            _ => Err(ConfigFault::out_of_range(db, 0, MOST_DB).of("--redis-db")),
        }
    }

    fn entries(&self) -> Result<Entries, ConfigError> {
        let route = Route::to("--redis-stream", &self.stream)?;
        let route = self.stream_routing.add_to(route, "--redis-stream-routing")?;
        let mut streams = Vec::new();
        for (place, stream) in route.destinations().iter().enumerate() {
            let flag = if place == 0 { "--redis-stream" } else { "--redis-stream-routing" };
            streams.push(Template::of_flag(flag, stream)?);
        }
        let key = match self.key_template.as_deref() {
            None => Template::default_key(),
            Some(text) if text.trim().is_empty() => {
                let remedy = "write a template, or leave it out for exchange|symbol|payloadCase";
                return Err(ConfigFault::missing(remedy).of("--redis-key-template"));
            }
            Some(text) => Template::of_flag("--redis-key-template", text)?,
        };
        let headers = self.static_headers.static_pairs("--redis-static-headers")?;
        if let Some((name, _)) = headers.iter().find(|(name, _)| FIELDS.contains(name)) {
            let remedy = "choose another; every entry has data, key, payloadCase and dataType";
            let fault = ConfigFault::unusable(name, "is a field of its own", remedy);
            return Err(fault.of("--redis-static-headers"));
        }
        if self.max_len == Some(0) {
            let most = i64::MAX.unsigned_abs();
            return Err(ConfigFault::out_of_range(0, 1, most).of("--redis-max-len"));
        }
        Ok(Entries::new(route, streams, key, &headers, self.max_len))
    }
}

/// Without the value, which may hold a password.
fn unusable_server(flag: &str) -> ConfigError {
    let problem = "cannot be read";
    let remedy = "write redis://user:password@host:port/db, or rediss:// for TLS";
    ConfigFault::unusable("***", problem, remedy).of(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> RedisOptions {
        RedisOptions { stream: "bronze".to_owned(), ..RedisOptions::default() }
    }

    fn pairs(text: &str) -> Pairs {
        Pairs::Text(text.to_owned())
    }

    fn refusal(options: &RedisOptions) -> String {
        options.check().err().unwrap().to_string()
    }

    #[test]
    fn a_stream_is_all_that_is_needed() {
        let settings = options().check().unwrap();
        assert_eq!(settings.client.get_connection_info().addr().to_string(), "127.0.0.1:6379");
        assert_eq!((settings.events, settings.linger), (EVENTS, LINGER));
        assert!(refusal(&RedisOptions::default()).starts_with("--redis-stream: it is empty"));
    }

    #[test]
    fn parts_and_url_mean_the_same() {
        let parts = RedisOptions {
            host: Some("h".to_owned()),
            port: Some(7),
            username: Some("u".to_owned()),
            password: Some("p".into()),
            db: Some(3),
            tls: Some(true),
            ..options()
        };
        let url = RedisOptions { url: Some("rediss://u:p@h:7/3".into()), ..options() };
        let [parts, url] = [parts, url].map(|options| options.check().unwrap().client);
        let [parts, url] = [&parts, &url].map(Client::get_connection_info);
        assert_eq!(parts.addr(), url.addr());
        let login = |server: &ConnectionInfo| {
            let login = server.redis_settings();
            let text = |text: Option<&str>| text.map(str::to_owned);
            (text(login.username()), text(login.password()), login.db())
        };
        assert_eq!(login(parts), login(url));
    }

    #[test]
    fn contradictions_name_both_and_no_secret() {
        let url = || Some("redis://:hunter2@h".into());
        let refused = refusal(&RedisOptions { url: url(), port: Some(1), ..options() });
        assert!(refused.starts_with("--redis-url: it contradicts --redis-port: both say which"));
        let refused = refusal(&RedisOptions { url: url(), password: url(), ..options() });
        assert!(refused.contains("--redis-password") && !refused.contains("hunter2"));
        let url = Some("http://:hunter2@h".into());
        let refused = refusal(&RedisOptions { url, ..options() });
        assert!(refused.starts_with("--redis-url: `***` cannot be read; write redis://"));
    }

    #[test]
    fn refusals_name_flag_value_and_remedy() {
        let named = |name: &str| Some(name.to_owned());
        for (options, refused) in [
            (RedisOptions { username: named("u"), ..options() }, "--redis-password: it is missing"),
            (
                RedisOptions { username: named(""), password: Some("p".into()), ..options() },
                "--redis-username: it is missing",
            ),
            (
                RedisOptions { password: Some("".into()), ..options() },
                "--redis-password: it is missing",
            ),
            (
                RedisOptions { host: named("redis://h"), ..options() },
                "--redis-host: `redis://h` is no host; give a name or an address alone",
            ),
            (RedisOptions { port: Some(0), ..options() }, "--redis-port: 0 is out of range"),
            (RedisOptions { db: Some(1 << 31), ..options() }, "--redis-db: 2147483648 is out of"),
            (RedisOptions { max_len: Some(0), ..options() }, "--redis-max-len: 0 is out of range"),
            (
                RedisOptions { max_batch_size: Some(10_001), ..options() },
                "--redis-max-batch-size: 10001 is out of range; give 1 to 10000",
            ),
            (
                RedisOptions { static_headers: pairs("env:a,dataType:b"), ..options() },
                "--redis-static-headers: `dataType` is a field of its own; choose another",
            ),
            (
                RedisOptions { key_template: named(" "), ..options() },
                "--redis-key-template: it is missing; write a template",
            ),
            (
                RedisOptions { key_template: named("{{sybol}}"), ..options() },
                "--redis-key-template: unknown placeholder `{{sybol}}`",
            ),
            (
                RedisOptions { stream: "a:{{}}".to_owned(), ..options() },
                "--redis-stream: empty placeholder `{{}}`",
            ),
            (
                RedisOptions { stream_routing: pairs("trade:{{x}}"), ..options() },
                "--redis-stream-routing: unknown placeholder `{{x}}`",
            ),
            (
                RedisOptions { stream_routing: pairs("trades:x"), ..options() },
                "--redis-stream-routing: unknown payload case `trades`",
            ),
            (
                RedisOptions { include_payloads: Names::Text("x".to_owned()), ..options() },
                "--redis-include-payloads: unknown payload case `x`",
            ),
        ] {
            let told = refusal(&options);
            assert!(told.starts_with(refused), "{told}");
        }
    }
}
