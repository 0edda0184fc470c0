//! One stream of a request: raw messages of an exchange in, the messages asked for out.
//!
//! A raw message goes through the mapper, the filter of symbols, the computed types and the filter
//! of types, in this order. A disconnect starts the mapper afresh, and the computed types too if it
//! is told to the client.

use std::borrow::Cow;

use hashbrown::HashSet;

use crate::computed::Computing;
use crate::data_type::DataType;
use crate::exchange::{Exchange, Filter, Kinds};
use crate::mapper::{MapError, Mapper, Sink};
use crate::message::{Disconnect, Message};
use crate::time::Timestamp;

/// What a stream is made of.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// The exchange.
    pub exchange: &'static Exchange,
    /// The symbols asked for; `None` = all.
    pub symbols: Option<Vec<String>>,
    /// The data types asked for, in their order.
    pub data_types: Vec<DataType>,
    /// Whether disconnects are told.
    pub with_disconnects: bool,
    /// The types of messages that are sent: those of all streams of this exchange together.
    pub sent_types: SentTypes,
}

impl StreamPlan {
    /// What the exchange's messages are mapped to.
    #[must_use]
    pub fn kinds(&self) -> Kinds {
        self.data_types.iter().map(DataType::kind).collect()
    }

    /// What must be asked for to make the stream at a time; `None` = now.
    #[must_use]
    pub fn filters(&self, at: Option<Timestamp>) -> Vec<Filter> {
        self.exchange.filters(self.kinds(), at, self.symbols.as_deref())
    }
}

/// Types of messages, by their `type` in JSON.
#[derive(Clone, Debug, Default)]
pub struct SentTypes(Vec<&'static str>);

impl SentTypes {
    /// The types that make up `data_types`.
    pub fn of<'a>(data_types: impl IntoIterator<Item = &'a DataType>) -> Self {
        let mut types = Vec::new();
        for data_type in data_types {
            let name = data_type.message_type();
            if !types.contains(&name) {
                types.push(name);
            }
        }
        Self(types)
    }

    /// Disconnects are made only for streams that ask for them, so they always pass.
    fn has(&self, message: &Message<'_>) -> bool {
        matches!(message, Message::Disconnect(_)) || self.0.contains(&message.type_name())
    }
}

/// A stream at work.
pub struct Normalization {
    plan: StreamPlan,
    kinds: Kinds,
    /// `None` between a disconnect and the next message.
    mapper: Option<Box<dyn Mapper>>,
    is_live: bool,
    symbols: Option<HashSet<String>>,
    computing: Computing,
    previous: Option<Timestamp>,
}

impl Normalization {
    /// A stream of messages received from `at` on; `None` = live.
    #[must_use]
    pub fn new(plan: StreamPlan, at: Option<Timestamp>) -> Self {
        let mut normalization = Self {
            kinds: plan.kinds(),
            mapper: None,
            is_live: at.is_none(),
            symbols: None,
            computing: Computing::new(&plan.data_types),
            previous: None,
            plan,
        };
        normalization.begin_segment(at);
        normalization
    }

    /// Goes on with messages received from `at` on, for which other ways of mapping may hold.
    /// Computed types keep their state.
    pub fn begin_segment(&mut self, at: Option<Timestamp>) {
        self.mapper = Some(self.plan.exchange.mapper(self.kinds, at));
        self.symbols = self.plan.symbols.as_deref().map(|symbols| {
            let asked = symbols.iter().flat_map(|symbol| [symbol.clone(), symbol.to_uppercase()]);
            let filters = self.plan.filters(at);
            asked.chain(filters.into_iter().filter_map(|filter| filter.symbols).flatten()).collect()
        });
        self.previous = None;
    }

    /// Takes a raw message.
    pub fn message(
        &mut self,
        raw: &[u8],
        local_timestamp: Timestamp,
        out: &mut dyn Sink,
    ) -> Result<(), MapError> {
        let (exchange, kinds, is_live) = (self.plan.exchange, self.kinds, self.is_live);
        let mapper = self.mapper.get_or_insert_with(|| {
            exchange.mapper(kinds, if is_live { None } else { Some(local_timestamp) })
        });
        self.previous = Some(local_timestamp);
        let mut wanted = WantedSink {
            symbols: self.symbols.as_ref(),
            computing: &mut self.computing,
            sent: SentSink { types: &self.plan.sent_types, out },
        };
        mapper.map(raw, local_timestamp, &mut wanted)
    }

    /// Takes the news that the connection was lost; several in a row are one.
    pub fn disconnect(&mut self, out: &mut dyn Sink) {
        let was_connected = self.mapper.take().is_some();
        if let Some(previous) = self.previous
            && was_connected
            && self.plan.with_disconnects
        {
            let disconnect = Message::Disconnect(Disconnect {
                exchange: Cow::Borrowed(self.plan.exchange.id),
                local_timestamp: previous,
                symbols: None,
                reason: Cow::Borrowed(""),
                close_code: 0,
            });
            self.computing.take(&disconnect, out);
        }
    }
}

/// Passes on messages of the symbols asked for, and what is computed from them.
struct WantedSink<'a> {
    symbols: Option<&'a HashSet<String>>,
    computing: &'a mut Computing,
    sent: SentSink<'a>,
}

impl Sink for WantedSink<'_> {
    fn take(&mut self, message: &Message<'_>) {
        if self.symbols.is_none_or(|symbols| symbols.contains(message.symbol())) {
            self.computing.take(message, &mut self.sent);
        }
    }
}

/// Passes on messages of the types asked for.
struct SentSink<'a> {
    types: &'a SentTypes,
    out: &'a mut dyn Sink,
}

impl Sink for SentSink<'_> {
    fn take(&mut self, message: &Message<'_>) {
        if self.types.has(message) {
            self.out.take(message);
        }
    }
}
