//! What the arrays of each channel hold.

use serde::de::{Deserialize, Error, SeqAccess};
use smallvec::SmallVec;

use super::cells::{Cells, FromCells, Other, cell, pass};
use crate::message::BookLevel;
use crate::raw::{Numeric, Rows, Text};

const HEARTBEAT: &str = "hb";
const EXECUTED: &str = "te";

/// A message of any channel but that of trades: the id, the values, a sequence number, the time.
pub(super) struct Data<T> {
    pub(super) values: T,
    pub(super) time: Numeric,
}

impl<'de, T: Deserialize<'de>> FromCells<'de> for Data<T> {
    const EXPECTED: &'static str = "an array of a channel's id, values, number and time";

    #[inline]
    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        pass(cells, 1)?;
        let values = cells.next_element()?.ok_or_else(|| Error::custom("there are no values"))?;
        pass(cells, 1)?;
        Ok(Self { values, time: cell(cells)? })
    }
}

/// A message of the channel of trades; `None` unless it is a trade just executed.
pub(super) struct TradeMessage<'a>(pub(super) Option<RawTrade<'a>>);

impl<'de> FromCells<'de> for TradeMessage<'de> {
    const EXPECTED: &'static str = "an array of a channel's id, a tag and a trade";

    #[inline]
    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        pass(cells, 1)?;
        let Cells(Tag { is_executed }) = cell(cells)?;
        if !is_executed {
            return Ok(Self(None));
        }
        match cells.next_element()? {
            Some(Cells(trade)) => Ok(Self(Some(trade))),
            None => Err(Error::custom("there is no trade")),
        }
    }
}

#[derive(Default)]
struct Tag {
    is_executed: bool,
}

impl<'de> FromCells<'de> for Tag {
    const EXPECTED: &'static str = "a tag";

    fn from_cells<A: SeqAccess<'de>>(_: &mut A) -> Result<Self, A::Error> {
        Ok(Self::default())
    }

    fn from_other(other: Other<'_>) -> Option<Self> {
        Some(Self { is_executed: matches!(other, Other::Text(EXECUTED)) })
    }
}

pub(super) struct RawTrade<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) time: Numeric,
    pub(super) amount: Numeric,
    pub(super) price: Numeric,
}

impl<'de> FromCells<'de> for RawTrade<'de> {
    const EXPECTED: &'static str = "an array of a trade's id, time, amount and price";

    #[inline]
    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        Ok(Self { id: cell(cells)?, time: cell(cells)?, amount: cell(cells)?, price: cell(cells)? })
    }
}

/// A snapshot is an array of levels, a change is one level. An empty array is a change of nothing,
/// as is a note such as a checksum.
#[derive(Default)]
pub(super) struct Book {
    pub(super) is_heartbeat: bool,
    pub(super) is_snapshot: bool,
    pub(super) bids: SmallVec<[BookLevel; 4]>,
    pub(super) asks: SmallVec<[BookLevel; 4]>,
}

impl Book {
    /// The sign of an amount is the side; without orders, the level is gone.
    #[inline]
    fn add(&mut self, price: f64, orders: Numeric, amount: Numeric) {
        let amount = amount.number();
        let left = if orders == Numeric::Value(0.0) { 0.0 } else { amount.abs() };
        let level = BookLevel { price, amount: left };
        if amount > 0.0 {
            self.bids.push(level);
        } else if amount < 0.0 {
            self.asks.push(level);
        }
    }
}

impl<'de> FromCells<'de> for Book {
    const EXPECTED: &'static str = "levels of a book";

    #[inline]
    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        let mut book = Self::default();
        match cells.next_element()? {
            None => {}
            Some(Cells(LevelOrPrice::Price(price))) => {
                book.add(price, cell(cells)?, cell(cells)?);
            }
            Some(first) => {
                book.is_snapshot = true;
                let mut next = Some(first);
                while let Some(Cells(row)) = next {
                    if let LevelOrPrice::Level { price, orders, amount } = row {
                        book.add(price, orders, amount);
                    }
                    next = cells.next_element()?;
                }
            }
        }
        Ok(book)
    }

    fn from_other(other: Other<'_>) -> Option<Self> {
        let is_heartbeat = matches!(other, Other::Text(HEARTBEAT));
        (!matches!(other, Other::Null)).then(|| Self { is_heartbeat, ..Self::default() })
    }
}

/// What a book's array begins with.
enum LevelOrPrice {
    Level { price: f64, orders: Numeric, amount: Numeric },
    Price(f64),
}

impl<'de> FromCells<'de> for LevelOrPrice {
    const EXPECTED: &'static str = "a level of a book";

    #[inline]
    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        let price: Numeric = cell(cells)?;
        Ok(Self::Level { price: price.as_given(), orders: cell(cells)?, amount: cell(cells)? })
    }

    #[inline]
    fn from_other(other: Other<'_>) -> Option<Self> {
        Some(Self::Price(match other {
            Other::Number(price) => price,
            _ => f64::NAN,
        }))
    }
}

/// Numbers by their places.
#[derive(Default)]
pub(super) struct Row {
    /// Whether it is a text, such as a heartbeat.
    pub(super) is_note: bool,
    cells: SmallVec<[Numeric; 24]>,
}

impl Row {
    pub(super) fn at(&self, place: usize) -> Numeric {
        self.cells.get(place).copied().unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }
}

impl<'de> FromCells<'de> for Row {
    const EXPECTED: &'static str = "an array of numbers";

    #[inline]
    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        let mut row = Self::default();
        while let Some(value) = cells.next_element()? {
            row.cells.push(value);
        }
        Ok(row)
    }

    fn from_other(other: Other<'_>) -> Option<Self> {
        matches!(other, Other::Text(_)).then(|| Self { is_note: true, ..Self::default() })
    }
}

/// Liquidations; a heartbeat or `null` has none.
#[derive(Default)]
pub(super) struct Liquidations<'a>(pub(super) Rows<Cells<RawLiquidation<'a>>>);

impl<'de> FromCells<'de> for Liquidations<'de> {
    const EXPECTED: &'static str = "an array of liquidations";

    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        let mut rows = Rows::new();
        while let Some(row) = cells.next_element()? {
            rows.push(row);
        }
        Ok(Self(rows))
    }

    fn from_other(other: Other<'_>) -> Option<Self> {
        matches!(other, Other::Text(_) | Other::Null).then(Self::default)
    }
}

pub(super) struct RawLiquidation<'a> {
    pub(super) id: Option<Text<'a>>,
    pub(super) time: Numeric,
    pub(super) symbol: Option<Text<'a>>,
    pub(super) amount: Numeric,
    pub(super) price: Numeric,
    pub(super) is_match: Numeric,
}

impl<'de> FromCells<'de> for RawLiquidation<'de> {
    const EXPECTED: &'static str = "an array of a liquidation's values";

    fn from_cells<A: SeqAccess<'de>>(cells: &mut A) -> Result<Self, A::Error> {
        pass(cells, 1)?;
        let id = cell(cells)?;
        let time = cell(cells)?;
        pass(cells, 1)?;
        let symbol = cell(cells)?;
        let amount = cell(cells)?;
        let price = cell(cells)?;
        pass(cells, 1)?;
        Ok(Self { id, time, symbol, amount, price, is_match: cell(cells)? })
    }
}
