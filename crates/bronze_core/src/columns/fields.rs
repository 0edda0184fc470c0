//! The schema's fields, one line each. Everything else in this module is driven from here: Arrow
//! schemas, decoding and encoding.
//!
//! Invariants: a message's fields stand in the order of their numbers, which is the order on the
//! wire; numbers are below [`NUMBERS`] (checked when compiled), so the envelope's come before every
//! payload's; no envelope field shares its name with a payload field or a payload case.

use crate::payload_case::PayloadCase;

/// One more than the largest field number of a message, payload cases aside.
const NUMBERS: usize = 32;

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A text; empty is the same as absent.
    Text,
    /// A text that may be present and empty.
    OptionalText,
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    /// An enum by its values' names, the name of value 0 first.
    Enum(&'static [&'static str]),
    /// A `google.protobuf.Timestamp`.
    Time,
    /// Repeated messages of price (1) and amount (2).
    Levels,
    /// A map from text to text.
    Meta,
    /// A message of repeated texts (1) that can be told from an absent one.
    SymbolList,
}

/// How a field is read from the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Text,
    Number,
    Time,
    Pair,
    Symbols,
    /// No field has the number.
    Unknown,
}

impl Kind {
    const fn reading(self) -> Reading {
        match self {
            Self::Text | Self::OptionalText => Reading::Text,
            Self::Bool
            | Self::Int32
            | Self::Int64
            | Self::Uint32
            | Self::Uint64
            | Self::Enum(_) => Reading::Number,
            Self::Time => Reading::Time,
            Self::Levels | Self::Meta => Reading::Pair,
            Self::SymbolList => Reading::Symbols,
        }
    }
}

/// The fields of one message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) fields: &'static [Field],
    /// How to read each number and where in `fields` it is, in one small table: it is looked up for
    /// every field of every event.
    numbers: [(Reading, u8); NUMBERS],
    /// Which payload it is; none for the envelope.
    case: Option<PayloadCase>,
}

impl Message {
    #[allow(clippy::cast_possible_truncation)] // fewer fields than numbers
    const fn new(case: Option<PayloadCase>, fields: &'static [Field]) -> Self {
        let mut numbers = [(Reading::Unknown, 0); NUMBERS];
        let mut position = 0;
        while position < fields.len() {
            let field = &fields[position];
            numbers[field.number as usize] = (field.kind.reading(), position as u8);
            position += 1;
        }
        Self { fields, numbers, case }
    }

    const fn payload(case: PayloadCase, fields: &'static [Field]) -> Self {
        Self::new(Some(case), fields)
    }

    /// How to read the field with a number, and where in `fields` it is.
    #[inline]
    pub(super) fn reading(&self, number: u32) -> (Reading, usize) {
        let (reading, position) =
            self.numbers.get(number as usize).copied().unwrap_or((Reading::Unknown, 0));
        (reading, usize::from(position))
    }

    /// The field with a name.
    pub(super) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A field's name for people: `symbol`, `trade.price_str`.
    pub(super) fn path(&self, field: &str) -> String {
        self.case.map_or_else(|| field.to_owned(), |case| format!("{}.{field}", case.field_name()))
    }

    /// The name for people of the field with a number; without a number, of the message.
    pub(super) fn place(&self, number: Option<u32>) -> String {
        let Some(number) = number else {
            return self.case.map_or("event", PayloadCase::field_name).to_owned();
        };
        match self.reading(number) {
            (Reading::Unknown, _) => self.path(&format!("field {number}")),
            (_, position) => self.path(self.fields[position].name),
        }
    }

    /// All names, for messages to people.
    pub(super) fn names(&self) -> String {
        self.fields.iter().map(|field| field.name).collect::<Vec<_>>().join(", ")
    }
}

/// The fields of a payload.
pub(super) const fn payload(case: PayloadCase) -> &'static Message {
    match case {
        PayloadCase::Trade => &TRADE,
        PayloadCase::BookChange => &BOOK_CHANGE,
        PayloadCase::BookSnapshot => &BOOK_SNAPSHOT,
        PayloadCase::Quote => &QUOTE,
        PayloadCase::DerivativeTicker => &DERIVATIVE_TICKER,
        PayloadCase::Liquidation => &LIQUIDATION,
        PayloadCase::OptionSummary => &OPTION_SUMMARY,
        PayloadCase::BookTicker => &BOOK_TICKER,
        PayloadCase::GroupedBookSnapshot => &GROUPED_BOOK_SNAPSHOT,
        PayloadCase::TradeBar => &TRADE_BAR,
        PayloadCase::Error => &ERROR,
        PayloadCase::Disconnect => &DISCONNECT,
    }
}

const ORIGIN: Kind =
    Kind::Enum(&["ORIGIN_UNSPECIFIED", "ORIGIN_REALTIME", "ORIGIN_REPLAY", "ORIGIN_ARCHIVE"]);
const SIDE: Kind = Kind::Enum(&["SIDE_UNSPECIFIED", "SIDE_BUY", "SIDE_SELL"]);
const ACTION: Kind = Kind::Enum(&["ACTION_UNSPECIFIED", "ACTION_UPSERT", "ACTION_DELETE"]);
const BAR_KIND: Kind =
    Kind::Enum(&["BAR_KIND_UNSPECIFIED", "BAR_KIND_TICK", "BAR_KIND_TIME", "BAR_KIND_VOLUME"]);
const ERROR_CODE: Kind = Kind::Enum(&[
    "ERROR_CODE_UNSPECIFIED",
    "ERROR_CODE_WS_CONNECT",
    "ERROR_CODE_WS_SEND",
    "ERROR_CODE_SOURCE_AUTH",
    "ERROR_CODE_SOURCE_RATE_LIMIT",
]);
const OPTION_TYPE: Kind =
    Kind::Enum(&["OPTION_TYPE_UNSPECIFIED", "OPTION_TYPE_CALL", "OPTION_TYPE_PUT"]);

/// The fields of a level, numbered from 1.
pub(super) const LEVEL: [&str; 2] = ["price_str", "qty_str"];

/// No enum's name or decimal number is longer.
pub(super) const LONGEST_ENUM_TEXT: usize = "ERROR_CODE_SOURCE_RATE_LIMIT".len();

const fn field(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind }
}

const fn text(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Text)
}

const fn flag(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Bool)
}

const fn time(number: u32, name: &'static str) -> Field {
    field(number, name, Kind::Time)
}

/// The envelope without its payload.
pub(super) static ENVELOPE: Message = Message::new(
    None,
    &[
        text(1, "source"),
        text(2, "exchange"),
        text(3, "symbol"),
        time(4, "local_ts"),
        time(5, "ingest_ts"),
        field(6, "origin", ORIGIN),
        field(7, "event_seq", Kind::Uint64),
        flag(8, "local_ts_millis_only"),
        field(10, "meta", Kind::Meta),
    ],
);

static TRADE: Message = Message::payload(
    PayloadCase::Trade,
    &[
        text(1, "trade_id"),
        text(2, "price_str"),
        text(3, "qty_str"),
        field(4, "side", SIDE),
        field(5, "sequence", Kind::Int64),
        time(10, "event_ts"),
        flag(11, "event_ts_has_micros"),
        flag(12, "trade_id_is_empty"),
    ],
);

static BOOK_CHANGE: Message = Message::payload(
    PayloadCase::BookChange,
    &[
        field(1, "side", SIDE),
        field(2, "action", ACTION),
        text(3, "price_str"),
        text(4, "qty_str"),
        field(5, "level", Kind::Int32),
        field(6, "sequence", Kind::Int64),
        time(10, "event_ts"),
        flag(11, "event_ts_has_micros"),
        flag(12, "is_snapshot"),
        field(13, "bids", Kind::Levels),
        field(14, "asks", Kind::Levels),
        field(15, "part", Kind::Uint32),
        field(16, "parts", Kind::Uint32),
    ],
);

/// Grouped or not, a snapshot has the same fields.
const SNAPSHOT: &[Field] = &[
    field(1, "depth", Kind::Uint32),
    field(2, "bids", Kind::Levels),
    field(3, "asks", Kind::Levels),
    time(10, "event_ts"),
    field(11, "grouping", Kind::Uint32),
    field(12, "interval_ms", Kind::Uint32),
    flag(13, "remove_crossed_levels"),
    field(14, "sequence", Kind::Int64),
    flag(15, "event_ts_has_micros"),
    text(16, "name"),
    text(17, "grouping_str"),
    field(18, "interval", Kind::Uint64),
];

static BOOK_SNAPSHOT: Message = Message::payload(PayloadCase::BookSnapshot, SNAPSHOT);

static GROUPED_BOOK_SNAPSHOT: Message =
    Message::payload(PayloadCase::GroupedBookSnapshot, SNAPSHOT);

static QUOTE: Message = Message::payload(
    PayloadCase::Quote,
    &[
        text(1, "bid_price_str"),
        text(2, "bid_qty_str"),
        text(3, "ask_price_str"),
        text(4, "ask_qty_str"),
        time(10, "event_ts"),
        flag(11, "event_ts_has_micros"),
        text(12, "name"),
        field(13, "interval", Kind::Uint64),
    ],
);

static DERIVATIVE_TICKER: Message = Message::payload(
    PayloadCase::DerivativeTicker,
    &[
        text(1, "mark_price_str"),
        text(2, "index_price_str"),
        text(3, "funding_rate_str"),
        time(10, "event_ts"),
        flag(11, "event_ts_has_micros"),
        text(12, "last_price_str"),
        text(13, "open_interest_str"),
        text(14, "predicted_funding_rate_str"),
        time(15, "funding_ts"),
        flag(16, "funding_ts_has_micros"),
        flag(17, "funding_ts_is_invalid"),
    ],
);

static LIQUIDATION: Message = Message::payload(
    PayloadCase::Liquidation,
    &[
        field(1, "side", SIDE),
        text(2, "price_str"),
        text(3, "qty_str"),
        text(4, "order_id"),
        time(10, "event_ts"),
        flag(11, "event_ts_has_micros"),
        flag(12, "order_id_is_empty"),
    ],
);

static OPTION_SUMMARY: Message = Message::payload(
    PayloadCase::OptionSummary,
    &[
        text(1, "iv_str"),
        text(2, "delta_str"),
        text(3, "gamma_str"),
        text(4, "theta_str"),
        text(5, "vega_str"),
        text(6, "oi_str"),
        time(10, "event_ts"),
        flag(11, "event_ts_has_micros"),
        field(12, "option_type", OPTION_TYPE),
        text(13, "strike_price_str"),
        time(14, "expiration_ts"),
        flag(15, "expiration_ts_has_micros"),
        flag(16, "expiration_ts_is_invalid"),
        text(17, "best_bid_price_str"),
        text(18, "best_bid_qty_str"),
        text(19, "best_bid_iv_str"),
        text(20, "best_ask_price_str"),
        text(21, "best_ask_qty_str"),
        text(22, "best_ask_iv_str"),
        text(23, "last_price_str"),
        text(24, "mark_price_str"),
        text(25, "rho_str"),
        text(26, "underlying_price_str"),
        field(27, "underlying_index", Kind::OptionalText),
    ],
);

static BOOK_TICKER: Message = Message::payload(
    PayloadCase::BookTicker,
    &[
        text(1, "best_bid_price_str"),
        text(2, "best_bid_qty_str"),
        text(3, "best_ask_price_str"),
        text(4, "best_ask_qty_str"),
        time(10, "event_ts"),
        flag(11, "event_ts_has_micros"),
        text(12, "field_order"),
    ],
);

static TRADE_BAR: Message = Message::payload(
    PayloadCase::TradeBar,
    &[
        field(1, "kind", BAR_KIND),
        field(2, "interval", Kind::Uint64),
        field(3, "interval_ms", Kind::Uint32),
        text(4, "open_str"),
        text(5, "high_str"),
        text(6, "low_str"),
        text(7, "close_str"),
        text(8, "volume_str"),
        field(9, "trade_count", Kind::Uint64),
        time(10, "event_ts"),
        time(11, "end_ts"),
        text(12, "name"),
        text(13, "buy_volume_str"),
        text(14, "sell_volume_str"),
        text(15, "vwap_str"),
        time(16, "open_ts"),
        time(17, "close_ts"),
        flag(18, "end_ts_has_micros"),
        flag(19, "open_ts_has_micros"),
        flag(20, "close_ts_has_micros"),
    ],
);

static ERROR: Message = Message::payload(
    PayloadCase::Error,
    &[
        text(1, "details"),
        field(2, "subsequent_errors", Kind::Uint32),
        field(3, "code", ERROR_CODE),
    ],
);

static DISCONNECT: Message = Message::payload(
    PayloadCase::Disconnect,
    &[
        text(1, "reason"),
        field(2, "close_code", Kind::Uint32),
        field(3, "symbols", Kind::SymbolList),
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_keeps_its_invariants() {
        let mut messages = PayloadCase::ALL.map(payload).to_vec();
        messages.push(&ENVELOPE);
        for message in &messages {
            assert!(message.fields.is_sorted_by(|one, next| one.number < next.number));
            for field in message.fields {
                assert_eq!(message.field(field.name).map(|found| found.number), Some(field.number));
                if let Kind::Enum(names) = field.kind {
                    assert!(names.iter().all(|name| name.len() <= LONGEST_ENUM_TEXT));
                }
            }
        }
        assert!(i32::MIN.to_string().len() <= LONGEST_ENUM_TEXT);
        for case in PayloadCase::ALL {
            assert_eq!(payload(case).place(None), case.field_name());
            for message in &messages {
                assert!(message.field(case.field_name()).is_none());
            }
            assert!(payload(case).fields.iter().all(|field| ENVELOPE.field(field.name).is_none()));
        }
    }
}
