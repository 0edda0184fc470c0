//! The downloadable datasets: which columns each has, and the message of a row.
//!
//! A row of `incremental_book_L2` is one level; [`super::RowReader`] puts the rows of a message
//! together. Snapshots and quotes are those of every change.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use arrow_array::RecordBatch;
use market_data::{
    BookChange, BookLevel, BookSnapshot, BookTicker, BookTickerOrder, DerivativeTicker, Message,
    OptionSummary, OptionType, Side, Timestamp, Trade,
};
use thiserror::Error;

use super::RowsError;
use super::dataset_columns::{CellProblem, Column, LevelColumns, whole_level};

/// A downloadable dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // their names are those of the files
pub enum Dataset {
    Trades,
    IncrementalBookL2,
    BookSnapshot5,
    BookSnapshot25,
    Quotes,
    BookTicker,
    DerivativeTicker,
    Liquidations,
    OptionsChain,
}

/// A name that no dataset has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{name}` is no dataset; use {}", Dataset::ALL.map(Dataset::name).join(", "))]
pub struct UnknownDataset {
    /// The name.
    pub name: String,
}

const HEAD: [&str; 4] = ["exchange", "symbol", "timestamp", "local_timestamp"];

impl Dataset {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Trades,
        Self::IncrementalBookL2,
        Self::BookSnapshot5,
        Self::BookSnapshot25,
        Self::Quotes,
        Self::BookTicker,
        Self::DerivativeTicker,
        Self::Liquidations,
        Self::OptionsChain,
    ];

    /// The name of its files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trades => "trades",
            Self::IncrementalBookL2 => "incremental_book_L2",
            Self::BookSnapshot5 => "book_snapshot_5",
            Self::BookSnapshot25 => "book_snapshot_25",
            Self::Quotes => "quotes",
            Self::BookTicker => "book_ticker",
            Self::DerivativeTicker => "derivative_ticker",
            Self::Liquidations => "liquidations",
            Self::OptionsChain => "options_chain",
        }
    }

    /// Its columns, in the order of the files.
    #[must_use]
    pub fn columns(self) -> Vec<String> {
        let own: &[&str] = match self {
            Self::Trades | Self::Liquidations => &["id", "side", "price", "amount"],
            Self::IncrementalBookL2 => &["is_snapshot", "side", "price", "amount"],
            Self::BookSnapshot5 => return snapshot_columns(5),
            Self::BookSnapshot25 => return snapshot_columns(25),
            Self::Quotes | Self::BookTicker => {
                &["ask_amount", "ask_price", "bid_price", "bid_amount"]
            }
            Self::DerivativeTicker => &[
                "funding_timestamp",
                "funding_rate",
                "predicted_funding_rate",
                "open_interest",
                "last_price",
                "index_price",
                "mark_price",
            ],
            Self::OptionsChain => &[
                "type",
                "strike_price",
                "expiration",
                "open_interest",
                "last_price",
                "bid_price",
                "bid_amount",
                "bid_iv",
                "ask_price",
                "ask_amount",
                "ask_iv",
                "mark_price",
                "mark_iv",
                "underlying_index",
                "underlying_price",
                "delta",
                "gamma",
                "vega",
                "theta",
                "rho",
            ],
        };
        HEAD.iter().chain(own).map(|name| (*name).to_owned()).collect()
    }
}

fn snapshot_columns(depth: u32) -> Vec<String> {
    let head = HEAD.iter().map(|name| (*name).to_owned());
    let levels = (0..depth).flat_map(|level| {
        [("asks", "price"), ("asks", "amount"), ("bids", "price"), ("bids", "amount")]
            .map(|(side, value)| format!("{side}[{level}].{value}"))
    });
    head.chain(levels).collect()
}

impl fmt::Display for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dataset {
    type Err = UnknownDataset;

    fn from_str(name: &str) -> Result<Self, UnknownDataset> {
        let known = Self::ALL.into_iter().find(|dataset| dataset.name() == name);
        known.ok_or_else(|| UnknownDataset { name: name.to_owned() })
    }
}

/// The rows of a dataset.
pub(super) struct DatasetRows<'a> {
    dataset: Dataset,
    exchange: Column<'a>,
    symbol: Column<'a>,
    timestamp: Column<'a>,
    local_timestamp: Column<'a>,
    /// The columns after those, in the order of the dataset.
    own: Vec<Column<'a>>,
    bids: Vec<LevelColumns<'a>>,
    asks: Vec<LevelColumns<'a>>,
}

/// What every row has.
struct Head<'a> {
    exchange: Cow<'a, str>,
    symbol: Cow<'a, str>,
    timestamp: Timestamp,
    local_timestamp: Timestamp,
}

impl<'a> DatasetRows<'a> {
    pub(super) fn new(dataset: Dataset, batch: &'a RecordBatch) -> Result<Self, RowsError> {
        let column = |name: String| Column::new(dataset, name, batch);
        let side = |name: &str, depth: u32| {
            (0..depth)
                .map(|level| {
                    let price = column(format!("{name}[{level}].price"))?;
                    let amount = column(format!("{name}[{level}].amount"))?;
                    Ok(LevelColumns { price, amount })
                })
                .collect::<Result<Vec<_>, RowsError>>()
        };
        let depth = snapshot_depth(dataset);
        let own = match depth {
            0 => dataset.columns().split_off(HEAD.len()),
            _ => Vec::new(),
        };
        Ok(Self {
            dataset,
            exchange: column("exchange".to_owned())?,
            symbol: column("symbol".to_owned())?,
            timestamp: column("timestamp".to_owned())?,
            local_timestamp: column("local_timestamp".to_owned())?,
            own: own.into_iter().map(column).collect::<Result<_, _>>()?,
            bids: side("bids", depth)?,
            asks: side("asks", depth)?,
        })
    }

    /// The message of a row.
    pub(super) fn message(&self, row: usize) -> Result<Message<'a>, CellProblem> {
        let local_timestamp = self.local_timestamp.needed_time(row)?.micros();
        let head = Head {
            exchange: self.exchange.needed_text(row)?,
            symbol: self.symbol.needed_text(row)?,
            timestamp: self.timestamp.needed_time(row)?,
            // Receipt is always known to the microsecond.
            local_timestamp: local_timestamp.map_or(Timestamp::INVALID, Timestamp::from_micros),
        };
        match self.dataset {
            Dataset::Trades => Ok(Message::Trade(self.trade(row, head)?)),
            Dataset::Liquidations => Ok(Message::Liquidation(self.trade(row, head)?)),
            Dataset::IncrementalBookL2 => self.book_change(row, head),
            Dataset::BookSnapshot5 => self.snapshot(row, head, "book_snapshot_5_0ms"),
            Dataset::BookSnapshot25 => self.snapshot(row, head, "book_snapshot_25_0ms"),
            Dataset::Quotes => self.quote(row, head),
            Dataset::BookTicker => self.book_ticker(row, head),
            Dataset::DerivativeTicker => self.derivative_ticker(row, head),
            Dataset::OptionsChain => self.option_summary(row, head),
        }
    }

    fn number(&self, own: usize, row: usize) -> Result<Option<f64>, CellProblem> {
        self.own[own].number(row)
    }

    fn trade(&self, row: usize, head: Head<'a>) -> Result<Trade<'a>, CellProblem> {
        let sides = [("buy", Side::Buy), ("sell", Side::Sell), ("unknown", Side::Unknown)];
        Ok(Trade {
            id: self.own[0].text(row).map(Cow::Borrowed),
            side: self.own[1].word(row, &sides, "buy, sell or unknown")?.unwrap_or(Side::Unknown),
            price: self.own[2].needed_number(row)?,
            amount: self.own[3].needed_number(row)?,
            exchange: head.exchange,
            symbol: head.symbol,
            timestamp: head.timestamp,
            local_timestamp: head.local_timestamp,
        })
    }

    fn book_change(&self, row: usize, head: Head<'a>) -> Result<Message<'a>, CellProblem> {
        let truths = [("true", true), ("false", false)];
        let is_snapshot = self.own[0].word(row, &truths, "true or false")?;
        let is_bid = self.own[1].word(row, &[("bid", true), ("ask", false)], "bid or ask")?;
        let level = BookLevel {
            price: self.own[2].needed_number(row)?,
            amount: self.own[3].needed_number(row)?,
        };
        let missing = |column: &str| CellProblem::Missing(column.to_owned());
        let is_bid = is_bid.ok_or_else(|| missing("side"))?;
        let (bids, asks) = if is_bid { (vec![level], vec![]) } else { (vec![], vec![level]) };
        Ok(Message::BookChange(BookChange {
            is_snapshot: is_snapshot.ok_or_else(|| missing("is_snapshot"))?,
            bids: bids.into(),
            asks: asks.into(),
            exchange: head.exchange,
            symbol: head.symbol,
            timestamp: head.timestamp,
            local_timestamp: head.local_timestamp,
        }))
    }

    fn snapshot(
        &self,
        row: usize,
        head: Head<'a>,
        name: &'static str,
    ) -> Result<Message<'a>, CellProblem> {
        let levels = |side: &[LevelColumns<'_>]| {
            side.iter().map(|columns| columns.level(row)).collect::<Result<Vec<_>, _>>()
        };
        Ok(snapshot(head, name, levels(&self.bids)?, levels(&self.asks)?))
    }

    fn quote(&self, row: usize, head: Head<'a>) -> Result<Message<'a>, CellProblem> {
        let level =
            |price: usize, amount: usize| whole_level(&self.own[price], &self.own[amount], row);
        Ok(snapshot(head, "quote", vec![level(2, 3)?], vec![level(1, 0)?]))
    }

    fn book_ticker(&self, row: usize, head: Head<'a>) -> Result<Message<'a>, CellProblem> {
        Ok(Message::BookTicker(BookTicker {
            ask_amount: self.number(0, row)?,
            ask_price: self.number(1, row)?,
            bid_price: self.number(2, row)?,
            bid_amount: self.number(3, row)?,
            order: BookTickerOrder::DEFAULT,
            exchange: head.exchange,
            symbol: head.symbol,
            timestamp: head.timestamp,
            local_timestamp: head.local_timestamp,
        }))
    }

    fn derivative_ticker(&self, row: usize, head: Head<'a>) -> Result<Message<'a>, CellProblem> {
        Ok(Message::DerivativeTicker(DerivativeTicker {
            funding_timestamp: self.own[0].time(row)?,
            funding_rate: self.number(1, row)?,
            predicted_funding_rate: self.number(2, row)?,
            open_interest: self.number(3, row)?,
            last_price: self.number(4, row)?,
            index_price: self.number(5, row)?,
            mark_price: self.number(6, row)?,
            exchange: head.exchange,
            symbol: head.symbol,
            timestamp: head.timestamp,
            local_timestamp: head.local_timestamp,
        }))
    }

    fn option_summary(&self, row: usize, head: Head<'a>) -> Result<Message<'a>, CellProblem> {
        let types = [("call", OptionType::Call), ("put", OptionType::Put)];
        Ok(Message::OptionSummary(OptionSummary {
            option_type: self.own[0].word(row, &types, "call or put")?,
            strike_price: self.number(1, row)?,
            expiration_date: self.own[2].time(row)?,
            open_interest: self.number(3, row)?,
            last_price: self.number(4, row)?,
            best_bid_price: self.number(5, row)?,
            best_bid_amount: self.number(6, row)?,
            best_bid_iv: self.number(7, row)?,
            best_ask_price: self.number(8, row)?,
            best_ask_amount: self.number(9, row)?,
            best_ask_iv: self.number(10, row)?,
            mark_price: self.number(11, row)?,
            mark_iv: self.number(12, row)?,
            underlying_index: self.own[13].text(row).map(Cow::Borrowed),
            underlying_price: self.number(14, row)?,
            delta: self.number(15, row)?,
            gamma: self.number(16, row)?,
            vega: self.number(17, row)?,
            theta: self.number(18, row)?,
            rho: self.number(19, row)?,
            exchange: head.exchange,
            symbol: head.symbol,
            timestamp: head.timestamp,
            local_timestamp: head.local_timestamp,
        }))
    }
}

fn snapshot_depth(dataset: Dataset) -> u32 {
    match dataset {
        Dataset::BookSnapshot5 => 5,
        Dataset::BookSnapshot25 => 25,
        _ => 0,
    }
}

#[allow(clippy::cast_possible_truncation)] // 25 at most
fn snapshot<'a>(
    head: Head<'a>,
    name: &'static str,
    bids: Vec<Option<BookLevel>>,
    asks: Vec<Option<BookLevel>>,
) -> Message<'a> {
    Message::BookSnapshot(BookSnapshot {
        name: name.into(),
        depth: bids.len() as u32,
        interval: 0,
        grouping: None,
        bids: bids.into(),
        asks: asks.into(),
        exchange: head.exchange,
        symbol: head.symbol,
        timestamp: head.timestamp,
        local_timestamp: head.local_timestamp,
    })
}
