//! `Bell`: how threads of the core wake tasks of an event loop.
//!
//! Ringing writes a byte to a pipe that the loop watches. It takes no Python lock, which the loop's
//! thread would have to give up first, and makes no Python thread of the one that rings.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use pyo3::prelude::*;

/// What sessions ring when it is worth asking them again.
#[pyclass(frozen, module = "tardis_fast._core")]
pub(crate) struct Bell {
    reader: PipeReader,
    rung: Arc<Rung>,
}

/// The numbers that rang since they were last taken. There is a byte in the pipe while there are any,
/// and just one, so that neither end ever waits.
struct Rung {
    numbers: Mutex<Vec<u64>>,
    writer: PipeWriter,
}

#[pymethods]
impl Bell {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = pipe()?;
        Ok(Self { reader, rung: Arc::new(Rung { numbers: Mutex::default(), writer }) })
    }

    /// What an event loop watches: it can be read once the bell was rung.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// The numbers that rang since the last call.
    fn take(&self) -> PyResult<Vec<u64>> {
        let mut numbers = self.rung.lock();
        if !numbers.is_empty() {
            (&self.reader).read_exact(&mut [0])?;
        }
        Ok(std::mem::take(&mut *numbers))
    }
}

impl Bell {
    /// Rings with a number.
    pub(crate) fn waker(&self, number: u64) -> Waker {
        Waker::from(Arc::new(Ringer { rung: Arc::clone(&self.rung), number }))
    }
}

impl Rung {
    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Ringer {
    rung: Arc<Rung>,
    number: u64,
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        let mut numbers = self.rung.lock();
        // The pipe can only fail once the bell is gone, and with it everybody who would listen.
        if !numbers.is_empty() || (&self.rung.writer).write_all(&[0]).is_ok() {
            numbers.push(self.number);
        }
    }
}
