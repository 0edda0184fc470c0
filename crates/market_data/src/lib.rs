//! Normalized market data: the message types, their JSON text and their times and numbers.
//!
//! This crate knows what a message is. It knows neither where bytes come from nor where they go.

mod json_read;
mod json_write;
mod message;
mod number;
mod time;

pub use json_read::{ReadError, read_message};
pub use json_write::write_message;
pub use message::{
    BarKind, BookChange, BookLevel, BookSnapshot, BookTicker, BookTickerField, BookTickerOrder,
    DerivativeTicker, Disconnect, ErrorCode, ErrorNotice, Message, OptionSummary, OptionType, Side,
    Trade, TradeBar,
};
pub use number::{ShortDecimal, write_decimal, write_integer, write_number};
pub use time::{Precision, TimeError, Timestamp};
