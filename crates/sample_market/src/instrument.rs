//! What is traded: the symbols of each exchange, their prices, ticks and sizes.

use crate::decimal::{number, power_of_ten, scaled};
use crate::option_terms::{OptionTerms, terms_of_day};
use crate::price_path::price;
use crate::random::{hash_signed, hash_text};

/// Levels of an option's book on one side, at most.
const OPTION_LEVELS: i64 = 20;

/// What stands behind a symbol. Its price is the same on all exchanges.
#[derive(Debug)]
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    /// What its price in dollars moves around.
    mean: f64,
    /// Distance of its options' strikes.
    pub(crate) strike_step: i64,
}

const BTC: Asset = Asset { name: "BTC", mean: 30_000.0, strike_step: 1_000 };
const ETH: Asset = Asset { name: "ETH", mean: 1_800.0, strike_step: 50 };
const SOL: Asset = Asset { name: "SOL", mean: 60.0, strike_step: 5 };
const XRP: Asset = Asset { name: "XRP", mean: 0.55, strike_step: 1 };

impl Asset {
    pub(crate) fn price(&self, seed: u64, step: i64) -> f64 {
        price(hash_text(seed, self.name), self.mean, step)
    }
}

/// A row of an exchange's list of perpetuals.
struct Listed {
    symbol: &'static str,
    asset: &'static Asset,
    price_decimals: usize,
    tick: i64,
    ticks_per_cell: i64,
    size_decimals: usize,
    lot: u32,
}

/// One instrument of one exchange.
///
/// Its book has a level at most in each cell of a grid of prices. The level's place in its cell is
/// always the same, so that a cell stands for one price.
#[derive(Clone, Debug)]
pub(crate) struct Instrument {
    pub(crate) symbol: String,
    /// The symbol in small letters.
    pub(crate) stream: String,
    pub(crate) asset: &'static Asset,
    pub(crate) price_decimals: usize,
    /// The smallest step of a price, in units of its last decimal.
    pub(crate) tick: i64,
    ticks_per_cell: i64,
    pub(crate) size_decimals: usize,
    /// What all sizes are multiples of, in units of their last decimal.
    pub(crate) lot: u32,
    /// Levels of one side, at most.
    pub(crate) levels: i64,
    pub(crate) option: Option<OptionTerms>,
    /// Its own chance, that no other instrument has.
    pub(crate) seed: u64,
    /// The chance of the whole market.
    pub(crate) market_seed: u64,
}

impl Instrument {
    /// The price at a step of the path: dollars, or coins for an option.
    pub(crate) fn price_at(&self, step: i64) -> f64 {
        self.price_of_underlying(self.underlying_at(step), step)
    }

    /// The price of the asset behind it, in dollars.
    pub(crate) fn underlying_at(&self, step: i64) -> f64 {
        self.asset.price(self.market_seed, step)
    }

    /// The price at a step when the asset behind it costs `underlying`.
    pub(crate) fn price_of_underlying(&self, underlying: f64, step: i64) -> f64 {
        self.option.as_ref().map_or(underlying, |terms| terms.value(underlying, step).premium)
    }

    /// The cell that a price lies in. The lowest bid and ask need one each.
    pub(crate) fn cell_of(&self, price: f64) -> i64 {
        let units = scaled(price, self.price_decimals);
        (units / (self.tick * self.ticks_per_cell)).max(2)
    }

    /// The price of a cell, in units of its last decimal.
    pub(crate) fn price_of(&self, cell: i64) -> u64 {
        let place = if self.ticks_per_cell == 1 {
            0
        } else {
            let chance = i64::try_from(hash_signed(self.seed, cell) >> 33).unwrap_or(0);
            chance % self.ticks_per_cell
        };
        u64::try_from((cell * self.ticks_per_cell + place) * self.tick).unwrap_or(0)
    }

    /// The price of a cell in ticks.
    pub(crate) fn ticks_of(&self, cell: i64) -> u64 {
        self.price_of(cell) / self.tick.unsigned_abs().max(1)
    }

    /// The price of a cell as a number.
    pub(crate) fn price_number(&self, cell: i64) -> f64 {
        let units = i64::try_from(self.price_of(cell)).unwrap_or(0);
        number(units) / power_of_ten(self.price_decimals)
    }

    /// A size as a number.
    pub(crate) fn size_number(&self, size: u32) -> f64 {
        f64::from(size) / power_of_ten(self.size_decimals)
    }
}

/// The exchanges that the sample market has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exchange {
    Bitmex,
    BinanceFutures,
    Deribit,
}

impl Exchange {
    pub(crate) const ALL: [Self; 3] = [Self::Bitmex, Self::BinanceFutures, Self::Deribit];

    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Bitmex => "bitmex",
            Self::BinanceFutures => "binance-futures",
            Self::Deribit => "deribit",
        }
    }

    const fn listed(self) -> &'static [Listed] {
        match self {
            Self::Bitmex => BITMEX,
            Self::BinanceFutures => BINANCE_FUTURES,
            Self::Deribit => DERIBIT,
        }
    }

    /// What is traded on `day`, the most active first. It stays the same for the whole day.
    pub(crate) fn instruments(self, seed: u64, day: i64, levels: u32) -> Vec<Instrument> {
        let own_seed = |symbol: &str| hash_text(hash_text(seed, self.id()), symbol);
        let levels = i64::from(levels);
        let perpetual = |listed: &Listed| Instrument {
            symbol: listed.symbol.to_owned(),
            stream: listed.symbol.to_lowercase(),
            asset: listed.asset,
            price_decimals: listed.price_decimals,
            tick: listed.tick,
            ticks_per_cell: listed.ticks_per_cell,
            size_decimals: listed.size_decimals,
            lot: listed.lot,
            levels,
            option: None,
            seed: own_seed(listed.symbol),
            market_seed: seed,
        };
        let option = |terms: OptionTerms, asset: &'static Asset| {
            let symbol = terms.symbol();
            Instrument {
                stream: symbol.to_lowercase(),
                asset,
                price_decimals: 4,
                tick: 5,
                ticks_per_cell: 1,
                size_decimals: 1,
                lot: 1,
                levels: levels.min(OPTION_LEVELS),
                option: Some(terms),
                seed: own_seed(&symbol),
                market_seed: seed,
                symbol,
            }
        };
        let mut instruments: Vec<Instrument> = self.listed().iter().map(perpetual).collect();
        if self == Self::Deribit {
            for asset in [&BTC, &ETH] {
                let terms = terms_of_day(asset, seed, day);
                instruments.extend(terms.into_iter().map(|terms| option(terms, asset)));
            }
        }
        instruments
    }
}

#[rustfmt::skip]
const BITMEX: &[Listed] = &[
    Listed { symbol: "XBTUSD", asset: &BTC, price_decimals: 1, tick: 5, ticks_per_cell: 1, size_decimals: 0, lot: 100 },
    Listed { symbol: "ETHUSD", asset: &ETH, price_decimals: 2, tick: 5, ticks_per_cell: 1, size_decimals: 0, lot: 10 },
    Listed { symbol: "SOLUSD", asset: &SOL, price_decimals: 2, tick: 1, ticks_per_cell: 1, size_decimals: 0, lot: 5 },
    Listed { symbol: "XRPUSD", asset: &XRP, price_decimals: 4, tick: 1, ticks_per_cell: 1, size_decimals: 0, lot: 1 },
];

#[rustfmt::skip]
const BINANCE_FUTURES: &[Listed] = &[
    Listed { symbol: "BTCUSDT", asset: &BTC, price_decimals: 2, tick: 10, ticks_per_cell: 5, size_decimals: 3, lot: 5 },
    Listed { symbol: "ETHUSDT", asset: &ETH, price_decimals: 2, tick: 1, ticks_per_cell: 5, size_decimals: 3, lot: 50 },
    Listed { symbol: "XRPUSDT", asset: &XRP, price_decimals: 4, tick: 1, ticks_per_cell: 1, size_decimals: 1, lot: 100 },
    Listed { symbol: "SOLUSDT", asset: &SOL, price_decimals: 4, tick: 10, ticks_per_cell: 2, size_decimals: 0, lot: 1 },
];

#[rustfmt::skip]
const DERIBIT: &[Listed] = &[
    Listed { symbol: "BTC-PERPETUAL", asset: &BTC, price_decimals: 1, tick: 5, ticks_per_cell: 1, size_decimals: 0, lot: 10 },
    Listed { symbol: "ETH-PERPETUAL", asset: &ETH, price_decimals: 2, tick: 5, ticks_per_cell: 1, size_decimals: 0, lot: 10 },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_one_price_and_higher_cells_higher_ones() {
        for exchange in Exchange::ALL {
            for instrument in exchange.instruments(1, 18_000, 100) {
                let middle = instrument.cell_of(instrument.price_at(3_000_000));
                let mut before = instrument.price_of(middle - 1);
                for cell in middle..middle + 200 {
                    let price = instrument.price_of(cell);
                    assert!(price > before, "{}: {price} after {before}", instrument.symbol);
                    assert_eq!(price, instrument.ticks_of(cell) * instrument.tick.unsigned_abs());
                    assert_eq!(instrument.cell_of(instrument.price_number(cell)), cell);
                    before = price;
                }
            }
        }
    }
}
