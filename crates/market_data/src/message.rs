//! The normalized messages.
//!
//! A message borrows what it can from the bytes it was made from. Numbers are doubles with
//! JavaScript's meaning: `None` is a value that is absent, NaN one that could not be read. The
//! derived equality is that of doubles, so a message that holds NaN does not equal itself.

use std::borrow::Cow;

use crate::time::Timestamp;

/// Any normalized message.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // messages are lent, one at a time, and never kept in lists
pub enum Message<'a> {
    /// A trade.
    Trade(Trade<'a>),
    /// A change of the order book.
    BookChange(BookChange<'a>),
    /// Prices and funding of a derivative.
    DerivativeTicker(DerivativeTicker<'a>),
    /// A forced trade, which has the fields of a trade.
    Liquidation(Trade<'a>),
    /// Prices, volatilities and greeks of an option.
    OptionSummary(OptionSummary<'a>),
    /// The best bid and ask as the exchange reports them.
    BookTicker(BookTicker<'a>),
    /// The top of the order book, grouped or not, and quotes.
    BookSnapshot(BookSnapshot<'a>),
    /// Trades summed up.
    TradeBar(TradeBar<'a>),
    /// A failure of a live source.
    Error(ErrorNotice<'a>),
    /// The connection to the source was lost.
    Disconnect(Disconnect<'a>),
}

impl Message<'_> {
    /// The message's `type` in JSON.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Trade(_) => "trade",
            Self::BookChange(_) => "book_change",
            Self::DerivativeTicker(_) => "derivative_ticker",
            Self::Liquidation(_) => "liquidation",
            Self::OptionSummary(_) => "option_summary",
            Self::BookTicker(_) => "book_ticker",
            Self::BookSnapshot(_) => "book_snapshot",
            Self::TradeBar(_) => "trade_bar",
            Self::Error(_) => "error",
            Self::Disconnect(_) => "disconnect",
        }
    }

    /// The exchange it comes from.
    #[must_use]
    pub fn exchange(&self) -> &str {
        match self {
            Self::Trade(message) | Self::Liquidation(message) => &message.exchange,
            Self::BookChange(message) => &message.exchange,
            Self::DerivativeTicker(message) => &message.exchange,
            Self::OptionSummary(message) => &message.exchange,
            Self::BookTicker(message) => &message.exchange,
            Self::BookSnapshot(message) => &message.exchange,
            Self::TradeBar(message) => &message.exchange,
            Self::Error(message) => &message.exchange,
            Self::Disconnect(message) => &message.exchange,
        }
    }

    /// The instrument it is about; empty for errors and disconnects.
    #[must_use]
    pub fn symbol(&self) -> &str {
        match self {
            Self::Trade(message) | Self::Liquidation(message) => &message.symbol,
            Self::BookChange(message) => &message.symbol,
            Self::DerivativeTicker(message) => &message.symbol,
            Self::OptionSummary(message) => &message.symbol,
            Self::BookTicker(message) => &message.symbol,
            Self::BookSnapshot(message) => &message.symbol,
            Self::TradeBar(message) => &message.symbol,
            Self::Error(_) | Self::Disconnect(_) => "",
        }
    }

    /// When it was received.
    #[must_use]
    pub fn local_timestamp(&self) -> Timestamp {
        match self {
            Self::Trade(message) | Self::Liquidation(message) => message.local_timestamp,
            Self::BookChange(message) => message.local_timestamp,
            Self::DerivativeTicker(message) => message.local_timestamp,
            Self::OptionSummary(message) => message.local_timestamp,
            Self::BookTicker(message) => message.local_timestamp,
            Self::BookSnapshot(message) => message.local_timestamp,
            Self::TradeBar(message) => message.local_timestamp,
            Self::Error(message) => message.local_timestamp,
            Self::Disconnect(message) => message.local_timestamp,
        }
    }
}

/// The taker's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The taker bought.
    Buy,
    /// The taker sold.
    Sell,
    /// The exchange does not say.
    Unknown,
}

/// A trade or a liquidation.
#[derive(Clone, Debug, PartialEq)]
pub struct Trade<'a> {
    /// The instrument.
    pub symbol: Cow<'a, str>,
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// The exchange's id of the trade, or of the liquidated order.
    pub id: Option<Cow<'a, str>>,
    /// Price.
    pub price: f64,
    /// Amount.
    pub amount: f64,
    /// The taker's side.
    pub side: Side,
    /// The exchange's time.
    pub timestamp: Timestamp,
    /// When it was received.
    pub local_timestamp: Timestamp,
}

/// One price level of a book.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BookLevel {
    /// Price.
    pub price: f64,
    /// Amount; in a change, 0 removes the level.
    pub amount: f64,
}

/// A change of the order book.
#[derive(Clone, Debug, PartialEq)]
pub struct BookChange<'a> {
    /// The instrument.
    pub symbol: Cow<'a, str>,
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// Whether the book starts afresh with this message.
    pub is_snapshot: bool,
    /// Changed bids, in the exchange's order.
    pub bids: Cow<'a, [BookLevel]>,
    /// Changed asks, in the exchange's order.
    pub asks: Cow<'a, [BookLevel]>,
    /// The exchange's time.
    pub timestamp: Timestamp,
    /// When it was received.
    pub local_timestamp: Timestamp,
}

/// Prices and funding of a derivative.
#[derive(Clone, Debug, PartialEq)]
pub struct DerivativeTicker<'a> {
    /// The instrument.
    pub symbol: Cow<'a, str>,
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// Price of the last trade.
    pub last_price: Option<f64>,
    /// Open interest.
    pub open_interest: Option<f64>,
    /// Funding rate.
    pub funding_rate: Option<f64>,
    /// When funding is paid next.
    pub funding_timestamp: Option<Timestamp>,
    /// Funding rate expected next.
    pub predicted_funding_rate: Option<f64>,
    /// Price of the index.
    pub index_price: Option<f64>,
    /// Mark price.
    pub mark_price: Option<f64>,
    /// The exchange's time.
    pub timestamp: Timestamp,
    /// When it was received.
    pub local_timestamp: Timestamp,
}

/// What an option gives the right to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OptionType {
    /// To buy.
    Call,
    /// To sell.
    Put,
}

/// Prices, volatilities and greeks of an option.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionSummary<'a> {
    /// The instrument.
    pub symbol: Cow<'a, str>,
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// Call or put.
    pub option_type: Option<OptionType>,
    /// Strike price.
    pub strike_price: Option<f64>,
    /// When it expires.
    pub expiration_date: Option<Timestamp>,
    /// Best bid price.
    pub best_bid_price: Option<f64>,
    /// Amount at the best bid.
    pub best_bid_amount: Option<f64>,
    /// Implied volatility of the best bid.
    pub best_bid_iv: Option<f64>,
    /// Best ask price.
    pub best_ask_price: Option<f64>,
    /// Amount at the best ask.
    pub best_ask_amount: Option<f64>,
    /// Implied volatility of the best ask.
    pub best_ask_iv: Option<f64>,
    /// Price of the last trade.
    pub last_price: Option<f64>,
    /// Open interest.
    pub open_interest: Option<f64>,
    /// Mark price.
    pub mark_price: Option<f64>,
    /// Implied volatility of the mark price.
    pub mark_iv: Option<f64>,
    /// Delta.
    pub delta: Option<f64>,
    /// Gamma.
    pub gamma: Option<f64>,
    /// Vega.
    pub vega: Option<f64>,
    /// Theta.
    pub theta: Option<f64>,
    /// Rho.
    pub rho: Option<f64>,
    /// Price of the underlying.
    pub underlying_price: Option<f64>,
    /// Name of the underlying index.
    pub underlying_index: Option<Cow<'a, str>>,
    /// The exchange's time.
    pub timestamp: Timestamp,
    /// When it was received.
    pub local_timestamp: Timestamp,
}

/// One of the four values of a book ticker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BookTickerField {
    /// Amount at the best ask.
    AskAmount,
    /// Best ask price.
    AskPrice,
    /// Best bid price.
    BidPrice,
    /// Amount at the best bid.
    BidAmount,
}

/// The order in which a book ticker's values stand in JSON: it differs between exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BookTickerOrder([BookTickerField; 4]);

impl BookTickerOrder {
    /// The usual order.
    pub const DEFAULT: Self = Self([
        BookTickerField::AskAmount,
        BookTickerField::AskPrice,
        BookTickerField::BidPrice,
        BookTickerField::BidAmount,
    ]);

    /// The order that begins with `seen`; fields not seen follow in the usual order. Fields that
    /// occur again are passed over. Returns the usual order if `seen` is in keeping with it.
    #[must_use]
    pub fn of(seen: &[BookTickerField]) -> Self {
        let mut usual = Self::DEFAULT.0.iter();
        if seen.iter().all(|field| usual.any(|candidate| candidate == field)) {
            return Self::DEFAULT;
        }
        let mut order = Self::DEFAULT.0;
        let mut length = 0;
        for field in seen.iter().chain(&Self::DEFAULT.0) {
            if !order[..length].contains(field) {
                order[length] = *field;
                length += 1;
            }
        }
        Self(order)
    }

    /// The four fields, first to last.
    #[must_use]
    pub const fn fields(self) -> [BookTickerField; 4] {
        self.0
    }
}

/// The best bid and ask as the exchange reports them.
#[derive(Clone, Debug, PartialEq)]
pub struct BookTicker<'a> {
    /// The instrument.
    pub symbol: Cow<'a, str>,
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// Amount at the best ask.
    pub ask_amount: Option<f64>,
    /// Best ask price.
    pub ask_price: Option<f64>,
    /// Best bid price.
    pub bid_price: Option<f64>,
    /// Amount at the best bid.
    pub bid_amount: Option<f64>,
    /// The order of the four in JSON.
    pub order: BookTickerOrder,
    /// The exchange's time.
    pub timestamp: Timestamp,
    /// When it was received.
    pub local_timestamp: Timestamp,
}

impl BookTicker<'_> {
    /// The value of a field.
    #[must_use]
    pub fn value(&self, field: BookTickerField) -> Option<f64> {
        match field {
            BookTickerField::AskAmount => self.ask_amount,
            BookTickerField::AskPrice => self.ask_price,
            BookTickerField::BidPrice => self.bid_price,
            BookTickerField::BidAmount => self.bid_amount,
        }
    }
}

/// The top of the order book at a moment: a snapshot, a grouped snapshot or a quote.
#[derive(Clone, Debug, PartialEq)]
pub struct BookSnapshot<'a> {
    /// The instrument.
    pub symbol: Cow<'a, str>,
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// The data type asked for, for example `book_snapshot_20_100ms` or `quote`.
    pub name: Cow<'a, str>,
    /// Levels asked for on each side.
    pub depth: u32,
    /// Interval in milliseconds, 0 = every change.
    pub interval: u64,
    /// Price bucket.
    pub grouping: Option<f64>,
    /// Bids, best first; `None` where the book is not that deep.
    pub bids: Cow<'a, [Option<BookLevel>]>,
    /// Asks, best first; `None` where the book is not that deep.
    pub asks: Cow<'a, [Option<BookLevel>]>,
    /// The time it stands for.
    pub timestamp: Timestamp,
    /// When the message that completed it was received.
    pub local_timestamp: Timestamp,
}

/// What closes a trade bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarKind {
    /// An interval of time.
    Time,
    /// A number of trades.
    Tick,
    /// A traded volume.
    Volume,
}

/// Trades summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct TradeBar<'a> {
    /// The instrument.
    pub symbol: Cow<'a, str>,
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// The data type asked for, for example `trade_bar_1m`.
    pub name: Cow<'a, str>,
    /// Its size: milliseconds, trades or volume.
    pub interval: u64,
    /// What closes it.
    pub kind: BarKind,
    /// Price of the first trade.
    pub open: f64,
    /// Highest price.
    pub high: f64,
    /// Lowest price.
    pub low: f64,
    /// Price of the last trade.
    pub close: f64,
    /// Traded amount.
    pub volume: f64,
    /// Amount bought by takers.
    pub buy_volume: f64,
    /// Amount sold by takers.
    pub sell_volume: f64,
    /// Number of trades.
    pub trades: u64,
    /// Price weighted by volume.
    pub vwap: f64,
    /// Time of the first trade.
    pub open_timestamp: Timestamp,
    /// Time of the last trade.
    pub close_timestamp: Timestamp,
    /// When the message that closed it was received.
    pub local_timestamp: Timestamp,
    /// The time it stands for: its end.
    pub timestamp: Timestamp,
}

/// What kind of failure an error reports; it is published, but not part of the JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// Not classified.
    #[default]
    Unspecified,
    /// The connection could not be made or broke.
    Connect,
    /// A message could not be sent.
    Send,
    /// The source refused the credentials.
    Auth,
    /// The source asked to slow down.
    RateLimit,
}

/// A failure of a live source.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorNotice<'a> {
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// When it happened.
    pub local_timestamp: Timestamp,
    /// What went wrong.
    pub details: Cow<'a, str>,
    /// How many errors came in a row, this one included.
    pub subsequent_errors: u32,
    /// What kind of failure it is.
    pub code: ErrorCode,
}

/// The connection to the source was lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Disconnect<'a> {
    /// The exchange.
    pub exchange: Cow<'a, str>,
    /// When it happened.
    pub local_timestamp: Timestamp,
    /// The session's symbols.
    pub symbols: Option<Vec<Cow<'a, str>>>,
    /// Why, where it is known; published, but not part of the JSON.
    pub reason: Cow<'a, str>,
    /// The WebSocket close code, 0 if there was none; published, but not part of the JSON.
    pub close_code: u32,
}
