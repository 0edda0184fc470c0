//! `ReplaySession`: replays for Python, chunk by chunk.
//!
//! A task of the runtime makes chunks, a few ahead of the reader. Who waits for a chunk waits
//! without Python's lock, or is woken by a callable: asyncio needs no thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use arrow_array::Array;
use arrow_pyarrow::ToPyArrow;
use bronze_core::{EventBatch, NotAccepted, columns};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tardis_feed::{
    CachePart, FeedOptions, Framing, NormalizedRequest, NormalizedSession, RawRequest, RawSession,
    SessionError, SessionProgress,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::encoder::BronzeEncoder;
use crate::errors::{bad_events, bad_option, bad_request, no_runtime, not_accepted, not_replayed};
use crate::publisher::Publisher;

/// Chunks that are made ahead of the reader.
const CHUNKS_AHEAD: usize = 2;
/// How often a waiting reader looks for signals.
const SIGNAL_CHECK: Duration = Duration::from_millis(100);

type Made = Result<tardis_feed::Chunk, Failure>;

/// Why there are no more chunks.
enum Failure {
    Session(SessionError),
    /// The publisher did not take the events of a chunk.
    Publisher(NotAccepted),
}

/// The archive: where replays get their data. Replays of one archive share their connections.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Archive {
    archive: tardis_feed::Archive,
    runtime: Handle,
}

#[pymethods]
impl Archive {
    #[new]
    fn new(options: &str) -> PyResult<Self> {
        let options = Arc::new(FeedOptions::from_json(options).map_err(bad_option)?);
        let runtime = bronze_core::runtime().map_err(no_runtime)?;
        let archive = tardis_feed::Archive::new(options, &runtime).map_err(bad_option)?;
        Ok(Self { archive, runtime })
    }

    /// Removes a part of the cache, or all of it; filters are JSON, and each part needs those before
    /// it.
    #[pyo3(signature = (exchange=None, filters=None, year=None, month=None, day=None))]
    fn clear_cache(
        &self,
        py: Python<'_>,
        exchange: Option<&str>,
        filters: Option<&str>,
        year: Option<u16>,
        month: Option<u8>,
        day: Option<u8>,
    ) -> PyResult<()> {
        let filters = filters.map(tardis_feed::read_filters).transpose().map_err(bad_option)?;
        let part = CachePart { exchange, filters: filters.as_deref(), year, month, day };
        let cache_dir = self.archive.cache_dir();
        py.detach(|| tardis_feed::clear_cache(cache_dir, &part)).map_err(bad_option)
    }
}

/// A replay.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct ReplaySession {
    state: Mutex<State>,
    progress: Arc<SessionProgress>,
    runtime: Handle,
}

enum State {
    /// Nothing runs before the first chunk is asked for.
    Planned(Box<Plan>),
    Running(mpsc::Receiver<Made>, AbortHandle),
    Ended,
}

struct Plan {
    archive: tardis_feed::Archive,
    request: Request,
    encoder: Option<bronze_core::BronzeEncoder>,
    /// Who takes the events of each chunk before it is handed over.
    publisher: Option<Arc<bronze_core::Publisher>>,
}

enum Request {
    Raw(RawRequest),
    Normalized(Vec<NormalizedRequest>, Framing),
}

#[pymethods]
impl ReplaySession {
    /// A replay of an exchange's own messages.
    #[staticmethod]
    fn raw(options: &str, archive: &Archive) -> PyResult<Self> {
        let request = RawRequest::parse(options).map_err(bad_request)?;
        Ok(Self::planned(Request::Raw(request), archive))
    }

    /// A replay of normalized messages, as lines or as WebSocket frames.
    #[staticmethod]
    #[pyo3(signature = (options, archive, *, frames=false))]
    fn normalized(options: &str, archive: &Archive, frames: bool) -> PyResult<Self> {
        let requests = NormalizedRequest::parse(options).map_err(bad_request)?;
        let framing = if frames { Framing::Frames } else { Framing::Lines };
        Ok(Self::planned(Request::Normalized(requests, framing), archive))
    }

    /// Has chunks hold events too, made as `encoder` makes them; before the first chunk only.
    fn make_events(&self, encoder: &BronzeEncoder) -> PyResult<()> {
        self.change_plan(|plan| plan.encoder = Some(encoder.lock().clone()))
    }

    /// Has the events of each chunk published before it is handed over, made as `encoder` makes
    /// them; before the first chunk only.
    fn publish_to(&self, publisher: &Publisher, encoder: &BronzeEncoder) -> PyResult<()> {
        let publisher = Arc::clone(&publisher.publisher);
        let encoder = encoder.lock().clone().only(publisher.filter());
        self.change_plan(|plan| {
            plan.encoder = Some(encoder);
            plan.publisher = Some(publisher);
        })
    }

    /// Waits for the next chunk; `None` at the end.
    fn next_chunk(&self, py: Python<'_>) -> PyResult<Option<Chunk>> {
        loop {
            let waited = py.detach(|| {
                let mut state = self.begun();
                let State::Running(chunks, _) = &mut *state else { return Ok(None) };
                self.runtime.block_on(async { timeout(SIGNAL_CHECK, chunks.recv()).await })
            });
            match waited {
                Ok(made) => return self.handed_over(py, made),
                Err(_) => py.check_signals()?,
            }
        }
    }

    /// Whether a chunk, or the end, is there, and the chunk. If not, `wake` is called, once and from
    /// any thread, when it is worth asking again.
    fn try_chunk(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<(bool, Option<Chunk>)> {
        let polled = py.detach(|| {
            let waker = Waker::from(Arc::new(PythonWaker(wake)));
            match &mut *self.begun() {
                State::Running(chunks, _) => chunks.poll_recv(&mut Context::from_waker(&waker)),
                _ => Poll::Ready(None),
            }
        });
        match polled {
            Poll::Pending => Ok((false, None)),
            Poll::Ready(made) => self.handed_over(py, made).map(|chunk| (true, chunk)),
        }
    }

    /// How far it is, as JSON.
    fn progress(&self) -> String {
        self.progress.to_json()
    }

    /// Ends its work; what is not read yet is given up.
    fn close(&self) {
        let state = std::mem::replace(&mut *self.lock(), State::Ended);
        if let State::Running(_, task) = state {
            task.abort();
        }
    }
}

impl ReplaySession {
    fn planned(request: Request, archive: &Archive) -> Self {
        let archive_of_plan = archive.archive.clone();
        let plan = Plan { archive: archive_of_plan, request, encoder: None, publisher: None };
        Self {
            state: Mutex::new(State::Planned(Box::new(plan))),
            progress: Arc::default(),
            runtime: archive.runtime.clone(),
        }
    }

    fn change_plan(&self, change: impl FnOnce(&mut Plan)) -> PyResult<()> {
        match &mut *self.lock() {
            State::Planned(plan) => {
                change(plan);
                Ok(())
            }
            _ => Err(bad_option("the replay has begun; ask for events before its first chunk")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, with the work begun.
    fn begun(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if let State::Planned(_) = &*state
            && let State::Planned(plan) = std::mem::replace(&mut *state, State::Ended)
        {
            let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
            let task = self.runtime.spawn(run(*plan, Arc::clone(&self.progress), sender));
            *state = State::Running(chunks, task.abort_handle());
        }
        state
    }

    fn handed_over(&self, py: Python<'_>, made: Option<Made>) -> PyResult<Option<Chunk>> {
        match made {
            None => Ok(None),
            Some(Ok(chunk)) => Ok(Some(Chunk {
                lines: PyBytes::new(py, &chunk.lines).unbind(),
                messages: chunk.messages,
                events: chunk.events,
            })),
            Some(Err(failure)) => {
                self.close();
                Err(match failure {
                    Failure::Session(error) => not_replayed(py, error),
                    Failure::Publisher(error) => not_accepted(error),
                })
            }
        }
    }
}

impl Drop for ReplaySession {
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes chunks until the end, a failure, or nobody reads any more.
async fn run(mut plan: Plan, progress: Arc<SessionProgress>, out: mpsc::Sender<Made>) {
    let publisher = plan.publisher.take();
    let mut session = match Session::open(plan, &progress) {
        Ok(session) => session,
        Err(error) => {
            let _ = out.send(Err(Failure::Session(error))).await;
            return;
        }
    };
    while let Some(made) = session.next_chunk().await.transpose() {
        let made = match (made, &publisher) {
            (Ok(chunk), Some(publisher)) => published(chunk, publisher).await,
            (made, _) => made.map_err(Failure::Session),
        };
        let is_last = made.is_err();
        if out.send(made).await.is_err() || is_last {
            return;
        }
    }
}

async fn published(mut chunk: tardis_feed::Chunk, publisher: &bronze_core::Publisher) -> Made {
    if let Some(events) = chunk.events.take() {
        publisher.publish_async(&events).await.map_err(Failure::Publisher)?;
    }
    Ok(chunk)
}

enum Session {
    Raw(Box<RawSession>),
    Normalized(Box<NormalizedSession>),
}

impl Session {
    fn open(plan: Plan, progress: &Arc<SessionProgress>) -> Result<Self, SessionError> {
        let Plan { archive, request, encoder, .. } = plan;
        Ok(match request {
            Request::Raw(request) => {
                Self::Raw(Box::new(RawSession::open(&archive, request, progress)?))
            }
            Request::Normalized(requests, framing) => Self::Normalized(Box::new(
                NormalizedSession::open(&archive, requests, framing, encoder, progress)?,
            )),
        })
    }

    async fn next_chunk(&mut self) -> Result<Option<tardis_feed::Chunk>, SessionError> {
        match self {
            Self::Raw(session) => session.next_chunk().await,
            Self::Normalized(session) => session.next_chunk().await,
        }
    }
}

/// Calls a callable when woken.
struct PythonWaker(Py<PyAny>);

impl Wake for PythonWaker {
    fn wake(self: Arc<Self>) {
        Python::attach(|py| {
            if let Err(error) = self.0.call0(py) {
                error.write_unraisable(py, Some(self.0.bind(py)));
            }
        });
    }
}

/// A piece of a replay's output.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Chunk {
    /// Whole lines, each with its newline, or whole frames.
    #[pyo3(get)]
    lines: Py<PyBytes>,
    /// How many there are.
    #[pyo3(get)]
    messages: u64,
    events: Option<EventBatch>,
}

#[pymethods]
impl Chunk {
    /// The events of the same messages, as a `pyarrow.BinaryArray`.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let events = self.events.as_ref().ok_or_else(|| {
            bad_option("the replay makes no events; call make_events before its first chunk")
        })?;
        let events = columns::event_batch_to_events(events).map_err(bad_events)?;
        events.to_data().to_pyarrow(py)
    }
}
