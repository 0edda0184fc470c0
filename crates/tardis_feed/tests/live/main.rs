//! Live streams against stand-ins for exchanges on the loopback interface.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod binance;
mod client;
mod exchanges;
mod faults;
mod flow;
mod stand_in;
