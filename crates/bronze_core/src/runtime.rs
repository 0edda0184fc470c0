//! The Tokio runtime under buses and replays: made when it is first needed, once per process.
//!
//! A forked child has none of its parent's threads, so a runtime from before the fork is not used in
//! it (nor dropped: that would wait for threads that are not there).

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads for work that waits for a disk or keeps a core busy for long: decompressing, writing files.
/// More would only take turns.
const BLOCKING_THREADS: usize = 16;

static RUNTIME: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// The runtime of this process, made if need be.
pub fn runtime() -> io::Result<Handle> {
    let mut made = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = made.as_ref().filter(|(maker, _)| *maker == process) {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(workers())
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("tardis-fast")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    if let Some((_, parents)) = made.replace((process, runtime)) {
        std::mem::forget(parents);
    }
    Ok(handle)
}

/// Mapping and compressing keep a core busy; two workers at least, so that one of them can wait.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2))
}
