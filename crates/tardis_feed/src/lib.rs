//! Where market data comes from. So far: the lines of an archive slice.

mod line;

pub use line::{Line, LineError, Lines};
