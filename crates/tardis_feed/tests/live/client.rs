//! A client of a live session whose exchanges are stand-ins.

use std::sync::Arc;
use std::time::Duration;

use bronze_core::{BookChanges, BronzeEncoder, DecodedEvent, EncoderOptions, Origin, decode_event};
use serde_json::Value;
use tardis_feed::{
    Chunk, Framing, LiveEndpoints, LivePacing, LiveProgress, LiveRequest, LiveSession, SessionError,
};
use tokio::time::timeout;

use crate::stand_in::PATIENCE;

pub(crate) struct Client {
    pub(crate) session: LiveSession,
    progress: Arc<LiveProgress>,
    lines: Vec<String>,
    events: Vec<DecodedEvent>,
}

/// Waits that a test can afford.
pub(crate) fn brisk() -> LivePacing {
    LivePacing {
        first_retry: Duration::from_millis(1),
        retry: Duration::from_millis(1),
        longest_retry: Duration::from_millis(4),
        rate_limit_wait: Duration::from_millis(1),
        snapshot_delay: Duration::from_millis(1),
        rest_retry: Duration::from_millis(1),
        ..LivePacing::default()
    }
}

impl Client {
    /// A session whose every exchange is at `port`, with events.
    pub(crate) fn new(port: u16, options: &str) -> Self {
        Self::with_pacing(port, options, brisk())
    }

    pub(crate) fn with_pacing(port: u16, options: &str, pacing: LivePacing) -> Self {
        Self::with_variables(options, pacing, |name| match name {
            _ if name.starts_with("WSS_URL_") => Some(format!("ws://127.0.0.1:{port}")),
            _ if name.starts_with("REST_URL_") => Some(format!("http://127.0.0.1:{port}")),
            _ if name.ends_with("_OPEN_INTEREST_POLLING_INTERVAL_MS") => Some("1000".to_owned()),
            _ => None,
        })
    }

    /// A session in the environment that `variables` gives.
    pub(crate) fn with_variables(
        options: &str,
        pacing: LivePacing,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let mut endpoints = LiveEndpoints::from_variables(variables).unwrap();
        endpoints.pacing = pacing;
        let progress = Arc::new(LiveProgress::default());
        let encoder = BronzeEncoder::new(EncoderOptions {
            source: "test".to_owned(),
            origin: Origin::Realtime,
            book_changes: BookChanges::Message,
            ..EncoderOptions::default()
        });
        let requests = LiveRequest::parse(options).unwrap();
        let session = LiveSession::open(
            requests,
            Framing::Lines,
            Some(encoder.unwrap()),
            &endpoints,
            &progress,
        )
        .unwrap();
        Self { session, progress, lines: Vec::new(), events: Vec::new() }
    }

    /// The next chunk, as the session gives it.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Chunk>, SessionError> {
        timeout(PATIENCE, self.session.next_chunk()).await.expect("a chunk")
    }

    /// Takes chunks until there are `count` lines in all.
    pub(crate) async fn lines(&mut self, count: usize) -> &[String] {
        let taking = async {
            while self.lines.len() < count {
                self.more().await.expect("the session to go on");
            }
        };
        let is_done = timeout(PATIENCE, taking).await.is_ok();
        assert!(is_done, "{count} lines were expected, these came: {:#?}", self.lines);
        &self.lines
    }

    /// Takes chunks until there are `count` events of the kind that `is_it` tells.
    pub(crate) async fn events(
        &mut self,
        count: usize,
        is_it: impl Fn(&DecodedEvent) -> bool,
    ) -> Vec<&DecodedEvent> {
        let taking = async {
            while self.events.iter().filter(|event| is_it(event)).count() < count {
                self.more().await.expect("the session to go on");
            }
        };
        timeout(PATIENCE, taking).await.expect("the events");
        self.events.iter().filter(|event| is_it(event)).collect()
    }

    /// Takes chunks until the session ends with an error.
    pub(crate) async fn failure(&mut self) -> SessionError {
        loop {
            if let Err(error) = self.more().await {
                return error;
            }
        }
    }

    /// All lines so far.
    pub(crate) fn all_lines(&self) -> &[String] {
        &self.lines
    }

    pub(crate) fn progress(&self) -> Value {
        serde_json::from_str(&self.progress.to_json()).unwrap()
    }

    async fn more(&mut self) -> Result<(), SessionError> {
        let chunk = self.chunk().await?.expect("a session without an end");
        let text = String::from_utf8(chunk.lines).unwrap();
        assert_eq!(text.lines().count() as u64, chunk.messages);
        self.lines.extend(text.lines().map(timeless));
        let events = chunk.events.expect("events were asked for");
        self.events.extend(events.iter().map(|(_, event)| decode_event(event).unwrap()));
        Ok(())
    }
}

/// The line, with `now` where it says when it was received.
fn timeless(line: &str) -> String {
    const FIELD: &str = "\"localTimestamp\":\"";
    let start = line.find(FIELD).expect("a time of receipt") + FIELD.len();
    let end = start + line[start..].find('"').unwrap();
    line.replace(&line[start..end], "now")
}
