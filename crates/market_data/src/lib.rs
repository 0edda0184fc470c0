//! Normalized market data: the message types, their JSON text, their times and numbers,
//! and how exchanges' own messages become them.
//!
//! This crate knows what a message is. It knows neither where bytes come from nor where they go.

mod book_snapshot;
mod computed;
mod computed_lines;
mod data_type;
mod eight_bytes;
mod exchange;
mod exchanges;
mod json_read;
mod json_write;
mod mapper;
mod message;
mod normalization;
mod null_number;
mod number;
mod order_book;
mod pending_tickers;
mod price_levels;
mod raw;
mod recent_numbers;
mod time;
mod time_bucket;
mod trade_bar;

pub use computed::Computing;
pub use computed_lines::{ComputedLineError, ComputedLines};
pub use data_type::{DataForm, DataType, DataTypeError};
pub use exchange::{Exchange, Filter, Kind, Kinds, Normalizer, Period, SymbolCase, Wanted};
pub use exchanges::{exchange, exchange_channels, exchange_ids, normalized_exchanges};
pub use json_read::{ReadError, read_message};
pub use json_write::write_message;
pub use mapper::{MapError, Mapper, MapperSetup, Sink};
pub use message::{
    BarKind, BookChange, BookLevel, BookSnapshot, BookTicker, BookTickerField, BookTickerOrder,
    DerivativeTicker, Disconnect, ErrorCode, ErrorNotice, Message, OptionSummary, OptionType, Side,
    Trade, TradeBar,
};
pub use normalization::{Normalization, SentTypes, StreamPlan};
pub use null_number::NULL_NUMBER;
pub use number::{ShortDecimal, write_decimal, write_integer, write_number};
pub use order_book::OrderBook;
pub use raw::parse_date;
pub use time::{Precision, TimeError, Timestamp};
