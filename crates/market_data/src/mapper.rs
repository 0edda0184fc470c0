//! From an exchange's own messages to normalized ones.

use thiserror::Error;

use crate::exchange::{Exchange, Kind, Kinds};
use crate::message::Message;
use crate::time::Timestamp;

/// Takes normalized messages, one after the other.
pub trait Sink {
    /// Takes one.
    fn take(&mut self, message: &Message<'_>);
}

impl<F: FnMut(&Message<'_>)> Sink for F {
    fn take(&mut self, message: &Message<'_>) {
        self(message);
    }
}

/// Makes normalized messages of one exchange's raw ones. It keeps state from message to message;
/// after a disconnect a new one starts.
pub trait Mapper: Send {
    /// Maps one raw message: none, one or several normalized messages, those of a kind earlier in
    /// [`Kind::ALL`] first. What is not of a kind asked for is passed over.
    fn map(
        &mut self,
        message: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError>;
}

/// Why a raw message could not be mapped.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MapError {
    /// It is not the JSON that this exchange sends.
    #[error("not a message of {exchange}: {reason}")]
    Unreadable {
        /// The exchange.
        exchange: &'static str,
        /// What the JSON reader says.
        reason: String,
    },
    /// It does not fit to what came before.
    #[error("{0}")]
    Inconsistent(String),
}

/// What a mapper is made for.
#[derive(Clone, Copy, Debug)]
pub struct MapperSetup {
    /// The exchange's name.
    pub exchange: &'static str,
    /// For each kind asked for, in the order of [`Kind::ALL`], which of its periods holds.
    periods: [Option<usize>; Kind::ALL.len()],
    /// Whether the messages come from the exchange as they happen.
    pub is_live: bool,
}

impl MapperSetup {
    /// Kinds that the exchange does not have are left out.
    pub(crate) fn new(exchange: &Exchange, kinds: Kinds, at: Option<Timestamp>) -> Self {
        let mut periods = [None; Kind::ALL.len()];
        for kind in kinds.iter() {
            periods[kind as usize] =
                exchange.normalizer(kind).map(|normalizer| normalizer.period_at(at));
        }
        Self { exchange: exchange.id, periods, is_live: at.is_none() }
    }

    /// Whether `kind` is asked for.
    #[must_use]
    pub fn wants(&self, kind: Kind) -> bool {
        self.period(kind).is_some()
    }

    /// Which of the periods of `kind` holds, if it is asked for.
    #[must_use]
    pub fn period(&self, kind: Kind) -> Option<usize> {
        self.periods[kind as usize]
    }
}
