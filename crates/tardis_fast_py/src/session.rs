//! `Session`: replays and live streams for Python, chunk by chunk.
//!
//! A task of the runtime makes chunks, a few ahead of the reader. Who waits for a chunk waits
//! without Python's lock, or is woken by a bell: asyncio needs no thread.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use arrow_array::Array;
use arrow_pyarrow::ToPyArrow;
use bronze_core::{EventBatch, columns};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tardis_feed::{
    Framing, LiveEndpoints, LiveRequest, NormalizedRequest, RawRequest, can_subscribe,
    read_filters, subscribed_filters,
};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::archive::Archive;
use crate::bell::Bell;
use crate::encoder::BronzeEncoder;
use crate::errors::{bad_events, bad_option, bad_request, no_runtime, not_accepted, not_replayed};
use crate::publisher::Publisher;
use crate::source::{Failure, Made, Plan, Progress, Request, run};

/// Chunks that are made ahead of the reader.
const CHUNKS_AHEAD: usize = 2;
/// How often a waiting reader looks for signals.
const SIGNAL_CHECK: Duration = Duration::from_millis(100);

/// A replay or a live stream.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Session {
    state: Mutex<State>,
    progress: Progress,
    /// Connections of a synchronised replay whose clients are gone.
    left: Arc<Mutex<Vec<usize>>>,
    runtime: Handle,
}

enum State {
    /// Nothing runs before the first chunk is asked for.
    Planned(Box<Plan>),
    Running(mpsc::Receiver<Made>, AbortHandle),
    Ended,
}

#[pymethods]
impl Session {
    /// A replay of an exchange's own messages.
    #[staticmethod]
    fn raw(options: &str, archive: &Archive) -> PyResult<Self> {
        let request = RawRequest::parse(options).map_err(bad_request)?;
        let request = Request::Raw(archive.archive.clone(), request);
        Ok(Self::planned(request, archive.runtime.clone()))
    }

    /// A replay of normalized messages, as lines or as WebSocket frames.
    #[staticmethod]
    #[pyo3(signature = (options, archive, *, frames=false))]
    fn normalized(options: &str, archive: &Archive, frames: bool) -> PyResult<Self> {
        let requests = NormalizedRequest::parse(options).map_err(bad_request)?;
        let request = Request::Normalized(archive.archive.clone(), requests, framing(frames));
        Ok(Self::planned(request, archive.runtime.clone()))
    }

    /// A replay of exchanges' own messages to several connections in step. Each is an exchange, a
    /// beginning, an end and filters as JSON; chunks are WebSocket frames for one of them.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value)] // as Python gives it
    fn synchronised(
        connections: Vec<(String, String, String, String)>,
        archive: &Archive,
    ) -> PyResult<Self> {
        let request = |(exchange, from, to, filters): &(String, String, String, String)| {
            RawRequest::of_parts(exchange, from, to, read_filters(filters)?)
        };
        let requests = connections.iter().map(request).collect::<Result<_, _>>();
        let requests = requests.map_err(bad_request)?;
        let request = Request::Synchronised(archive.archive.clone(), requests);
        Ok(Self::planned(request, archive.runtime.clone()))
    }

    /// Normalized messages as exchanges send them. Variables such as `WSS_URL_BITMEX` beat those of
    /// the environment.
    #[staticmethod]
    #[pyo3(signature = (options, *, frames=false, variables=None))]
    #[allow(clippy::needless_pass_by_value)] // as Python gives it
    fn live(
        options: &str,
        frames: bool,
        variables: Option<HashMap<String, String>>,
    ) -> PyResult<Self> {
        let requests = LiveRequest::parse(options).map_err(bad_request)?;
        let variable = |name: &str| {
            let own = variables.as_ref().and_then(|variables| variables.get(name).cloned());
            own.or_else(|| std::env::var(name).ok())
        };
        let endpoints = LiveEndpoints::from_variables(variable).map_err(bad_option)?;
        let request = Request::Live(requests, framing(frames), Box::new(endpoints));
        Ok(Self::planned(request, bronze_core::runtime().map_err(no_runtime)?))
    }

    /// Goes on without a connection of a synchronised replay.
    fn leave(&self, connection: usize) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
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

    /// Whether a chunk, or the end, is there, and the chunk. If not, `bell` is rung with `number`,
    /// once, when it is worth asking again.
    fn try_chunk(
        &self,
        py: Python<'_>,
        bell: &Bell,
        number: u64,
    ) -> PyResult<(bool, Option<Chunk>)> {
        let polled = py.detach(|| match &mut *self.begun() {
            State::Running(chunks, _) => {
                chunks.poll_recv(&mut Context::from_waker(&bell.waker(number)))
            }
            _ => Poll::Ready(None),
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

impl Session {
    fn planned(request: Request, runtime: Handle) -> Self {
        let (progress, left) = (Progress::of(&request), Arc::default());
        let plan = Plan {
            request,
            progress: progress.clone(),
            left: Arc::clone(&left),
            encoder: None,
            publisher: None,
        };
        Self { state: Mutex::new(State::Planned(Box::new(plan))), progress, left, runtime }
    }

    fn change_plan(&self, change: impl FnOnce(&mut Plan)) -> PyResult<()> {
        match &mut *self.lock() {
            State::Planned(plan) => {
                change(plan);
                Ok(())
            }
            _ => Err(bad_option("the session has begun; ask for events before its first chunk")),
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
            let task = self.runtime.spawn(run(*plan, sender));
            *state = State::Running(chunks, task.abort_handle());
        }
        state
    }

    fn handed_over(&self, py: Python<'_>, made: Option<Made>) -> PyResult<Option<Chunk>> {
        match made {
            None => Ok(None),
            Some(Ok((connection, chunk))) => Ok(Some(Chunk {
                connection,
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

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

fn framing(frames: bool) -> Framing {
    if frames { Framing::Frames } else { Framing::Lines }
}

/// What a client's subscription asks for, as JSON filters; `None` if it is no subscription.
#[pyfunction(name = "subscribed_filters")]
pub(crate) fn filters_of_subscription(exchange: &str, message: &str) -> PyResult<Option<String>> {
    let filters = subscribed_filters(exchange, message).map_err(bad_option)?;
    filters.map(|filters| serde_json::to_string(&filters).map_err(bad_option)).transpose()
}

/// Whether subscriptions to an exchange are understood.
#[pyfunction(name = "can_subscribe")]
pub(crate) fn is_subscribable(exchange: &str) -> bool {
    can_subscribe(exchange)
}

/// A piece of a session's output.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Chunk {
    /// Whole lines, each with its newline, or whole frames.
    #[pyo3(get)]
    lines: Py<PyBytes>,
    /// How many there are.
    #[pyo3(get)]
    messages: u64,
    /// Which connection of a synchronised replay it is for.
    #[pyo3(get)]
    connection: usize,
    events: Option<EventBatch>,
}

#[pymethods]
impl Chunk {
    /// The events of the same messages, as a `pyarrow.BinaryArray`.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let events = self.events.as_ref().ok_or_else(|| {
            bad_option("the session makes no events; call make_events before its first chunk")
        })?;
        let events = columns::event_batch_to_events(events).map_err(bad_events)?;
        events.to_data().to_pyarrow(py)
    }
}
