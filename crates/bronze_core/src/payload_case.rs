//! The twelve kinds of payload and their names.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Which payload an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PayloadCase {
    /// A trade.
    Trade,
    /// A change of the order book, or one level of it.
    BookChange,
    /// The top of the order book.
    BookSnapshot,
    /// The best bid and ask computed from the order book.
    Quote,
    /// Prices and funding of a derivative.
    DerivativeTicker,
    /// A forced trade.
    Liquidation,
    /// Prices, volatilities and greeks of an option.
    OptionSummary,
    /// The best bid and ask as the exchange reports them.
    BookTicker,
    /// The top of the order book in price buckets.
    GroupedBookSnapshot,
    /// Trades summed up.
    TradeBar,
    /// A failure at the source.
    Error,
    /// A lost connection to the source.
    Disconnect,
}

/// A name that is no payload case.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown payload case `{found}`; valid are {}", PayloadCase::names())]
pub struct UnknownPayloadCase {
    /// The name as it was given.
    pub found: String,
}

impl PayloadCase {
    /// All cases, in the order of their field numbers.
    pub const ALL: [Self; 12] = [
        Self::Trade,
        Self::BookChange,
        Self::BookSnapshot,
        Self::Quote,
        Self::DerivativeTicker,
        Self::Liquidation,
        Self::OptionSummary,
        Self::BookTicker,
        Self::GroupedBookSnapshot,
        Self::TradeBar,
        Self::Error,
        Self::Disconnect,
    ];

    /// The name in configuration, in headers and in templates.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trade => "trade",
            Self::BookChange => "bookChange",
            Self::BookSnapshot => "bookSnapshot",
            Self::Quote => "quote",
            Self::DerivativeTicker => "derivativeTicker",
            Self::Liquidation => "liquidation",
            Self::OptionSummary => "optionSummary",
            Self::BookTicker => "bookTicker",
            Self::GroupedBookSnapshot => "groupedBookSnapshot",
            Self::TradeBar => "tradeBar",
            Self::Error => "error",
            Self::Disconnect => "disconnect",
        }
    }

    /// The field's name in the schema, and the column's in Arrow.
    #[must_use]
    pub const fn field_name(self) -> &'static str {
        match self {
            Self::Trade => "trade",
            Self::BookChange => "book_change",
            Self::BookSnapshot => "book_snapshot",
            Self::Quote => "quote",
            Self::DerivativeTicker => "derivative_ticker",
            Self::Liquidation => "liquidation",
            Self::OptionSummary => "option_summary",
            Self::BookTicker => "book_ticker",
            Self::GroupedBookSnapshot => "grouped_book_snapshot",
            Self::TradeBar => "trade_bar",
            Self::Error => "error",
            Self::Disconnect => "disconnect",
        }
    }

    /// The field's number in the schema.
    #[must_use]
    pub const fn field_number(self) -> u32 {
        match self {
            Self::Error => 150,
            Self::Disconnect => 151,
            payload => 100 + payload as u32,
        }
    }

    /// The case of a field number of the schema.
    #[must_use]
    pub const fn of_field_number(number: u32) -> Option<Self> {
        match number {
            100..=109 => Some(Self::ALL[(number - 100) as usize]),
            150 => Some(Self::Error),
            151 => Some(Self::Disconnect),
            _ => None,
        }
    }

    /// All names, for messages to people.
    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl fmt::Display for PayloadCase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for PayloadCase {
    type Err = UnknownPayloadCase;

    /// Reads a name; case and punctuation do not matter, so `book_change` is `bookChange`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let letters = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        let well_formed = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-. ".contains(c));
        Self::ALL
            .into_iter()
            .find(|case| well_formed && case.name().eq_ignore_ascii_case(&letters))
            .ok_or_else(|| UnknownPayloadCase { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_whatever_their_case_and_punctuation() {
        for case in PayloadCase::ALL {
            assert_eq!(case.name().parse(), Ok(case));
            assert_eq!(case.field_name().parse(), Ok(case));
            assert_eq!(case.field_name().to_uppercase().replace('_', "-").parse(), Ok(case));
            assert_eq!(PayloadCase::of_field_number(case.field_number()), Some(case));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_valid_ones() {
        let error = "trades".parse::<PayloadCase>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown payload case `trades`; valid are trade, bookChange, bookSnapshot, quote, \
             derivativeTicker, liquidation, optionSummary, bookTicker, groupedBookSnapshot, \
             tradeBar, error, disconnect"
        );
        assert!("".parse::<PayloadCase>().is_err());
        assert!("trade:".parse::<PayloadCase>().is_err());
    }
}
