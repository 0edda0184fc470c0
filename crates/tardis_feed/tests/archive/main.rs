//! The archive through its API and cache, against an API on the loopback interface.
#![allow(clippy::unwrap_used, clippy::panic)] // in what the tests share, too

mod cache;
mod faults;
mod loopback;
#[cfg(unix)]
mod processes;
mod replay;
mod synchronised;
