//! What runs behind a session: makes chunks, has their events published, and tells how it fares.

use std::sync::{Arc, Mutex, PoisonError};

use bronze_core::{BronzeEncoder, NotAccepted, Publisher};
use tardis_feed::{
    Archive, Chunk, Framing, LiveEndpoints, LiveProgress, LiveRequest, LiveSession,
    NormalizedRequest, NormalizedSession, RawRequest, RawSession, SessionError, SessionProgress,
    SynchronisedSession,
};
use tokio::sync::mpsc;

/// A chunk, and which connection of a synchronised session it is for.
pub(crate) type Made = Result<(usize, Chunk), Failure>;

/// Why there are no more chunks.
pub(crate) enum Failure {
    Session(SessionError),
    /// The publisher did not take the events of a chunk.
    Publisher(NotAccepted),
}

pub(crate) enum Request {
    Raw(Archive, RawRequest),
    Normalized(Archive, Vec<NormalizedRequest>, Framing),
    Synchronised(Archive, Vec<RawRequest>),
    Live(Vec<LiveRequest>, Framing, Box<LiveEndpoints>),
}

/// What is to be run.
pub(crate) struct Plan {
    pub(crate) request: Request,
    pub(crate) progress: Progress,
    pub(crate) left: Arc<Mutex<Vec<usize>>>,
    pub(crate) encoder: Option<BronzeEncoder>,
    /// Who takes the events of each chunk before it is handed over.
    pub(crate) publisher: Option<Arc<Publisher>>,
}

/// How a session fares: one of the two, as its kind is.
#[derive(Clone)]
pub(crate) struct Progress {
    is_live: bool,
    replay: Arc<SessionProgress>,
    live: Arc<LiveProgress>,
}

impl Progress {
    pub(crate) fn of(request: &Request) -> Self {
        let is_live = matches!(request, Request::Live(..));
        Self { is_live, replay: Arc::default(), live: Arc::default() }
    }

    pub(crate) fn to_json(&self) -> String {
        if self.is_live { self.live.to_json() } else { self.replay.to_json() }
    }
}

/// Makes chunks until the end, a failure, or nobody reads any more.
pub(crate) async fn run(mut plan: Plan, out: mpsc::Sender<Made>) {
    let publisher = plan.publisher.take();
    let left = Arc::clone(&plan.left);
    let mut source = match Source::open(plan) {
        Ok(source) => source,
        Err(error) => {
            let _ = out.send(Err(Failure::Session(error))).await;
            return;
        }
    };
    loop {
        if let Source::Synchronised(session) = &mut source {
            for connection in left.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                session.leave(connection);
            }
        }
        let Some(made) = source.next_chunk().await.transpose() else { return };
        let made = match (made, &publisher) {
            (Ok((connection, chunk)), Some(publisher)) => {
                published(chunk, publisher).await.map(|chunk| (connection, chunk))
            }
            (made, _) => made.map_err(Failure::Session),
        };
        let is_last = made.is_err();
        // Where there is nothing but events, the client has nothing to be given.
        let is_told = made.as_ref().map_or(true, |(_, chunk)| chunk.messages > 0);
        if is_told && out.send(made).await.is_err() || is_last {
            return;
        }
    }
}

async fn published(mut chunk: Chunk, publisher: &Publisher) -> Result<Chunk, Failure> {
    if let Some(events) = chunk.events.take() {
        publisher.publish_async(&events).await.map_err(Failure::Publisher)?;
    }
    Ok(chunk)
}

enum Source {
    Raw(Box<RawSession>),
    Normalized(Box<NormalizedSession>),
    Synchronised(Box<SynchronisedSession>),
    Live(Box<LiveSession>),
}

impl Source {
    fn open(plan: Plan) -> Result<Self, SessionError> {
        let Plan { request, progress, encoder, .. } = plan;
        let Progress { replay, live, .. } = progress;
        Ok(match request {
            Request::Raw(archive, request) => {
                Self::Raw(Box::new(RawSession::open(&archive, request, &replay)?))
            }
            Request::Normalized(archive, requests, framing) => {
                let session =
                    NormalizedSession::open(&archive, requests, framing, encoder, &replay)?;
                Self::Normalized(Box::new(session))
            }
            Request::Synchronised(archive, requests) => {
                let session = SynchronisedSession::open(&archive, requests, &replay)?;
                Self::Synchronised(Box::new(session))
            }
            Request::Live(requests, framing, endpoints) => {
                let session = LiveSession::open(requests, framing, encoder, &endpoints, &live)?;
                Self::Live(Box::new(session))
            }
        })
    }

    async fn next_chunk(&mut self) -> Result<Option<(usize, Chunk)>, SessionError> {
        let of_one = |chunk: Option<Chunk>| chunk.map(|chunk| (0, chunk));
        match self {
            Self::Raw(session) => session.next_chunk().await.map(of_one),
            Self::Normalized(session) => session.next_chunk().await.map(of_one),
            Self::Synchronised(session) => session.next_chunk().await,
            Self::Live(session) => session.next_chunk().await.map(of_one),
        }
    }
}
