//! The Tokio runtime under all buses: made when the first is started, once per process.
//!
//! A forked child has none of its parent's threads, so a runtime from before the fork is not used in
//! it (nor dropped: that would wait for threads that are not there).

use std::io;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};

static RUNTIME: Mutex<Option<(u32, Runtime)>> = Mutex::new(None);

/// The runtime of this process.
pub(crate) fn handle() -> io::Result<Handle> {
    let mut made = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, runtime)) = made.as_ref().filter(|(maker, _)| *maker == process) {
        return Ok(runtime.handle().clone());
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("tardis-fast")
        .enable_all()
        .build()?;
    let handle = runtime.handle().clone();
    if let Some((_, parents)) = made.replace((process, runtime)) {
        std::mem::forget(parents);
    }
    Ok(handle)
}
