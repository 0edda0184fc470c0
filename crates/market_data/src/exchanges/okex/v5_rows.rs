//! What the fifth version's channels send, row by row.

use std::ops::Deref;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Levels, Numeric, Rows, Text};

/// The beginning of a message, for those that do not begin with the channel.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    pub(super) event: Option<IgnoredAny>,
    #[serde(borrow, default)]
    pub(super) arg: Subject<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subject<'a> {
    #[serde(borrow, default)]
    pub(super) channel: Text<'a>,
    #[serde(default)]
    pub(super) inst_id: Text<'a>,
}

#[derive(Deserialize)]
pub(super) struct Pushed<'a, D> {
    /// Answers to a subscription have it.
    pub(super) event: Option<IgnoredAny>,
    #[serde(borrow, default)]
    pub(super) arg: Subject<'a>,
    #[serde(default)]
    pub(super) action: Text<'a>,
    pub(super) data: Option<D>,
}

impl<T, D: Deref<Target = [T]>> Pushed<'_, D> {
    /// The rows; none if it is only an answer.
    pub(super) fn rows(&self) -> &[T] {
        self.data.as_deref().filter(|_| self.event.is_none()).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawTrade<'a> {
    #[serde(borrow)]
    pub(super) inst_id: Text<'a>,
    pub(super) trade_id: Option<Text<'a>>,
    #[serde(default)]
    pub(super) px: Numeric,
    #[serde(default)]
    pub(super) sz: Numeric,
    #[serde(default)]
    pub(super) side: Text<'a>,
    #[serde(default)]
    pub(super) ts: Numeric,
}

/// A book, or its top.
#[derive(Deserialize)]
pub(super) struct RawBook {
    #[serde(default)]
    pub(super) asks: Levels,
    #[serde(default)]
    pub(super) bids: Levels,
    #[serde(default)]
    pub(super) ts: Numeric,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawTicker<'a> {
    #[serde(borrow)]
    pub(super) inst_id: Text<'a>,
    #[serde(default)]
    pub(super) last: Numeric,
    #[serde(default)]
    pub(super) ask_px: Numeric,
    #[serde(default)]
    pub(super) ask_sz: Numeric,
    #[serde(default)]
    pub(super) bid_px: Numeric,
    #[serde(default)]
    pub(super) bid_sz: Numeric,
    #[serde(default)]
    pub(super) ts: Numeric,
}

/// A row of a channel that has one figure: an index, a mark price or open interest.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawFigures<'a> {
    #[serde(borrow)]
    pub(super) inst_id: Text<'a>,
    #[serde(default)]
    pub(super) idx_px: Numeric,
    #[serde(default)]
    pub(super) mark_px: Numeric,
    #[serde(default)]
    pub(super) oi: Numeric,
    #[serde(default)]
    pub(super) ts: Numeric,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawFunding<'a> {
    #[serde(borrow)]
    pub(super) inst_id: Text<'a>,
    #[serde(default)]
    pub(super) funding_rate: Numeric,
    #[serde(default)]
    pub(super) funding_time: Numeric,
    #[serde(default)]
    pub(super) next_funding_rate: Numeric,
    #[serde(default)]
    pub(super) ts: Numeric,
}

/// The forced orders of an instrument.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawForcedOrders<'a> {
    #[serde(borrow)]
    pub(super) inst_id: Text<'a>,
    #[serde(default)]
    pub(super) details: Rows<RawLiquidation<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawLiquidation<'a> {
    #[serde(default)]
    pub(super) bk_px: Numeric,
    #[serde(default)]
    pub(super) sz: Numeric,
    #[serde(borrow, default)]
    pub(super) side: Text<'a>,
    #[serde(default)]
    pub(super) ts: Numeric,
}
