//! The operator's options for NATS, and what is wrong with them.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::ServerAddr;
use serde::Deserialize;

use super::message::Messages;
use super::subject::Subjects;
use super::{EVENTS, LINGER, MOST_EVENTS};
use crate::bus::{BatchOptions, Names, Pairs, Secret};
use crate::config_error::{ConfigError, ConfigFault};
use crate::config_list;
use crate::payload_filter::PayloadFilter;
use crate::route::Route;

const SERVER: &str = "nats://127.0.0.1:4222";

/// The options that begin with `--nats`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsOptions {
    /// `host:port`, `nats://host:port` or `tls://host:port`; the local server if not given.
    pub servers: Servers,
    /// The subject of all events that have no route of their own.
    pub subject: Option<String>,
    /// Subjects by payload case; they go before the template.
    pub subject_routing: Pairs,
    /// The subject with placeholders; it goes before the plain subject.
    pub subject_template: Option<String>,
    /// The payload cases that are published; all if empty.
    pub include_payloads: Names,
    /// The user.
    pub user: Option<String>,
    /// The user's password.
    pub pass: Option<Secret>,
    /// A token instead of user and password.
    pub token: Option<Secret>,
    /// A file with a JWT and a seed instead of user and password.
    pub creds: Option<PathBuf>,
    /// Whether to insist on TLS.
    pub tls: bool,
    /// Headers on every message.
    pub static_headers: Pairs,
    /// The stream that takes the events; it is made if it is missing.
    pub stream: Option<String>,
    /// `jetstream`, or `core`, which is best effort.
    pub mode: Option<String>,
    /// Events in a request.
    pub max_batch_size: Option<u64>,
    /// Milliseconds an event waits for others.
    pub max_batch_delay_ms: Option<u64>,
}

/// Addresses of servers; not shown before they are checked, because somebody may have put a password
/// into one.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Servers(Names);

impl From<&str> for Servers {
    fn from(text: &str) -> Self {
        Self(Names::Text(text.to_owned()))
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("***")
    }
}

/// Options that were checked.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) servers: Vec<ServerAddr>,
    pub(super) login: Login,
    pub(super) tls: bool,
    pub(super) subjects: Subjects,
    pub(super) messages: Messages,
    pub(super) filter: PayloadFilter,
    /// Whether acknowledgements are asked for.
    pub(super) uses_jetstream: bool,
    pub(super) stream: Option<String>,
    pub(super) events: usize,
    pub(super) linger: Duration,
}

/// Who the client is.
#[derive(Clone, Debug)]
pub(super) enum Login {
    Nobody,
    User(String, Secret),
    Token(Secret),
    Credentials(PathBuf),
}

impl NatsOptions {
    pub(super) fn check(&self) -> Result<Settings, ConfigError> {
        let batch = BatchOptions {
            max_batch_size: self.max_batch_size,
            max_batch_delay_ms: self.max_batch_delay_ms,
        };
        let subjects = self.subjects()?;
        let uses_jetstream = self.uses_jetstream()?;
        Ok(Settings {
            servers: self.servers()?,
            login: self.login()?,
            tls: self.tls,
            stream: self.stream(uses_jetstream, &subjects)?,
            subjects,
            messages: Messages::new(&self.static_headers.static_pairs("--nats-static-headers")?)?,
            filter: self.include_payloads.payload_filter("--nats-include-payloads")?,
            uses_jetstream,
            events: batch.events("--nats", EVENTS, MOST_EVENTS)?,
            linger: batch.linger("--nats", LINGER)?,
        })
    }

    fn servers(&self) -> Result<Vec<ServerAddr>, ConfigError> {
        let of_flag = |fault: ConfigFault| fault.of("--nats-servers");
        let texts: Vec<&str> = match &self.servers.0 {
            Names::Text(text) => {
                let entries = config_list::entries(text).collect::<Result<_, _>>();
                // The whole list is in that error, and a password may be in the list.
                let remedy = "remove the extra comma";
                entries.map_err(|_| {
                    of_flag(ConfigFault::unusable("***", "has an empty entry", remedy))
                })?
            }
            Names::List(list) => list.iter().map(|text| text.trim()).collect(),
        };
        let read = |text: &str| {
            let unusable = |problem, remedy| of_flag(ConfigFault::unusable("***", problem, remedy));
            let server: ServerAddr = text.parse().map_err(|_| {
                unusable("is no address", "write host:port, nats://host:port or tls://host:port")
            })?;
            if server.has_user_pass() || server.password().is_some() {
                let remedy = "give them as --nats-user and --nats-pass, or --nats-token";
                return Err(unusable("has a user or password", remedy));
            }
            if server.host().is_empty() || !matches!(server.scheme(), "nats" | "tls") {
                let remedy = "write host:port, nats://host:port or tls://host:port";
                return Err(unusable("is no address", remedy));
            }
            Ok(server)
        };
        let texts = if texts.is_empty() { vec![SERVER] } else { texts };
        texts.into_iter().map(read).collect()
    }

    fn login(&self) -> Result<Login, ConfigError> {
        let given = [
            ("--nats-token", self.token.is_some()),
            ("--nats-creds", self.creds.is_some()),
            ("--nats-user", self.user.is_some()),
            ("--nats-pass", self.pass.is_some()),
        ];
        let mut ways = given.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag);
        if let (Some(first), Some(other)) = (ways.next(), ways.next())
            && first != "--nats-user"
        {
            let problem = "both say who the client is";
            let fault = ConfigFault::contradiction(other, problem, "keep one of them");
            return Err(fault.of(first));
        }
        let missing = |flag, remedy| Err(ConfigFault::missing(remedy).of(flag));
        match (&self.token, &self.creds, &self.user, &self.pass) {
            (Some(token), ..) if token.expose().is_empty() => {
                missing("--nats-token", "give the token, or leave it out")
            }
            (Some(token), ..) => Ok(Login::Token(token.clone())),
            (_, Some(path), ..) if path.as_os_str().is_empty() => {
                missing("--nats-creds", "name the file, or leave it out")
            }
            (_, Some(path), ..) => Ok(Login::Credentials(path.clone())),
            (_, _, Some(user), Some(pass)) if !user.is_empty() => {
                Ok(Login::User(user.clone(), pass.clone()))
            }
            (_, _, Some(_), None) => missing("--nats-pass", "a user needs one"),
            (_, _, _, Some(_)) => missing("--nats-user", "a password needs one"),
            _ => Ok(Login::Nobody),
        }
    }

    fn subjects(&self) -> Result<Subjects, ConfigError> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        if let Some(subject) = given(&self.subject) {
            // Also where the template goes before it: a fault in it is a fault.
            Subjects::new(Route::to("--nats-subject", &subject)?, "--nats-subject")?;
        }
        let (flag, base) = match (given(&self.subject_template), given(&self.subject)) {
            (Some(template), _) => ("--nats-subject-template", template),
            (None, Some(subject)) => ("--nats-subject", subject),
            (None, None) => {
                let remedy = "name a subject, or give --nats-subject-template";
                return Err(ConfigFault::missing(remedy).of("--nats-subject"));
            }
        };
        let route =
            self.subject_routing.add_to(Route::to(flag, &base)?, "--nats-subject-routing")?;
        Subjects::new(route, flag)
    }

    fn uses_jetstream(&self) -> Result<bool, ConfigError> {
        match self.mode.as_deref().map(str::trim) {
            None | Some("jetstream") => Ok(true),
            Some("core") => Ok(false),
            Some(other) => {
                let remedy = "give jetstream or core";
                Err(ConfigFault::unusable(other, "is no mode", remedy).of("--nats-mode"))
            }
        }
    }

    fn stream(
        &self,
        uses_jetstream: bool,
        subjects: &Subjects,
    ) -> Result<Option<String>, ConfigError> {
        let Some(name) = self.stream.as_deref().map(str::trim) else { return Ok(None) };
        let refuse = |fault: ConfigFault| Err(fault.of("--nats-stream"));
        if !uses_jetstream {
            let problem = "core mode knows no streams";
            let remedy = "leave out one of them";
            return refuse(ConfigFault::contradiction("--nats-mode core", problem, remedy));
        }
        let is_special = |c: char| c.is_whitespace() || c.is_control() || ".*>/\\".contains(c);
        if name.is_empty() || name.contains(is_special) {
            let remedy = "use letters, digits, - and _";
            return refuse(ConfigFault::unusable(name, "is no stream name", remedy));
        }
        if subjects.patterns().iter().any(|pattern| pattern == ">") {
            let problem = "the stream would have to take every subject, also the server's own";
            let remedy = "begin the template with a token without placeholder, such as market.";
            let other = "--nats-subject-template";
            return refuse(ConfigFault::contradiction(other, problem, remedy));
        }
        Ok(Some(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> NatsOptions {
        NatsOptions { subject: Some("bronze".to_owned()), ..NatsOptions::default() }
    }

    fn refusal(options: &NatsOptions) -> String {
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn a_subject_is_all_that_is_needed() {
        let settings = options().check().unwrap();
        assert_eq!((settings.servers[0].host(), settings.servers[0].port()), ("127.0.0.1", 4222));
        assert!(settings.uses_jetstream && matches!(settings.login, Login::Nobody));
        let refused = refusal(&NatsOptions::default());
        assert!(
            refused.starts_with("--nats-subject: it is missing; name a subject, or give --nats")
        );
        let template = NatsOptions {
            subject_template: Some("a.{{symbol}}".to_owned()),
            ..NatsOptions::default()
        };
        assert_eq!(template.check().unwrap().subjects.patterns(), ["a.>"]);
    }

    #[test]
    fn a_route_goes_before_the_template_and_that_before_the_subject() {
        let options = NatsOptions {
            subject_template: Some("t.{{symbol}}".to_owned()),
            subject_routing: Pairs::Text("trade:trades".to_owned()),
            ..options()
        };
        assert_eq!(options.check().unwrap().subjects.patterns(), ["t.>", "trades"]);
    }

    #[test]
    fn servers_with_passwords_are_refused_and_not_shown() {
        for text in [
            "nats://u:hunter2@h",
            "nats://:hunter2@h",
            "h,nats://hunter2@h",
            "http://hunter2",
            "hunter2,,",
        ] {
            let options = NatsOptions { servers: text.into(), ..options() };
            assert!(!format!("{options:?}").contains("hunter2"));
            let refused = refusal(&options);
            assert!(refused.starts_with("--nats-servers: `***` ") && !refused.contains("hunter2"));
        }
        let options = NatsOptions { servers: "a:1, tls://b".into(), ..options() };
        let ports: Vec<_> = options.check().unwrap().servers.iter().map(ServerAddr::port).collect();
        assert_eq!(ports, [1, 4222]);
    }

    #[test]
    fn contradictions_and_gaps_are_refused() {
        let secret = || Some(Secret::from("hunter2"));
        for (options, refused) in [
            (
                NatsOptions {
                    token: secret(),
                    user: Some("u".to_owned()),
                    pass: secret(),
                    ..options()
                },
                "--nats-token: it contradicts --nats-user: both say who the client is; keep one",
            ),
            (
                NatsOptions { token: secret(), creds: Some("f".into()), ..options() },
                "--nats-token: it contradicts --nats-creds",
            ),
            (
                NatsOptions { creds: Some("f".into()), pass: secret(), ..options() },
                "--nats-creds: it contradicts --nats-pass",
            ),
            (
                NatsOptions { user: Some("u".to_owned()), ..options() },
                "--nats-pass: it is missing; a user",
            ),
            (NatsOptions { pass: secret(), ..options() }, "--nats-user: it is missing; a password"),
            (
                NatsOptions { token: Some("".into()), ..options() },
                "--nats-token: it is missing; give the token",
            ),
            (
                NatsOptions {
                    stream: Some("S".to_owned()),
                    mode: Some("core".to_owned()),
                    ..options()
                },
                "--nats-stream: it contradicts --nats-mode core: core mode knows no streams",
            ),
            (
                NatsOptions { stream: Some("a.b".to_owned()), ..options() },
                "--nats-stream: `a.b` is no stream name; use letters",
            ),
            (
                NatsOptions {
                    stream: Some("S".to_owned()),
                    subject_template: Some("{{symbol}}".to_owned()),
                    ..options()
                },
                "--nats-stream: it contradicts --nats-subject-template: the stream would have to",
            ),
            (
                NatsOptions { mode: Some("x".to_owned()), ..options() },
                "--nats-mode: `x` is no mode; give",
            ),
            (
                NatsOptions {
                    subject: Some("a b".to_owned()),
                    subject_template: Some("c".to_owned()),
                    ..options()
                },
                "--nats-subject: `a b` has a space",
            ),
            (
                NatsOptions { subject_routing: Pairs::Text("x:y".to_owned()), ..options() },
                "--nats-subject-routing: unknown payload case `x`",
            ),
            (
                NatsOptions { max_batch_size: Some(0), ..options() },
                "--nats-max-batch-size: 0 is out of range; give 1 to",
            ),
        ] {
            let told = refusal(&options);
            assert!(told.starts_with(refused), "{told}");
        }
    }
}
