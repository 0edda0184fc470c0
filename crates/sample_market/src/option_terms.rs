//! Options: which ones there are on a day, what they are worth and how that changes.

use market_data::Timestamp;

use crate::decimal::number;
use crate::instrument::Asset;
use crate::price_path::{STEPS_PER_MINUTE, exponential};

const STEPS_PER_DAY: i64 = STEPS_PER_MINUTE * 24 * 60;
const DAYS_PER_YEAR: f64 = 365.25;
/// Options end at eight o'clock.
const EXPIRY_STEP_OF_DAY: i64 = STEPS_PER_DAY / 3;
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

/// What is agreed on in an option.
#[derive(Clone, Debug)]
pub(crate) struct OptionTerms {
    pub(crate) is_call: bool,
    strike: i64,
    expiry_step: i64,
    /// The future that it is priced by, such as `BTC-27MAR20`.
    pub(crate) underlying: String,
}

/// What an option is worth at a moment, by the normal model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionValue {
    /// In coins.
    pub(crate) premium: f64,
    /// Per year, as a share of the price.
    pub(crate) volatility: f64,
    pub(crate) delta: f64,
    pub(crate) gamma: f64,
    /// Per percent of volatility, in dollars.
    pub(crate) vega: f64,
    /// Per day, in dollars.
    pub(crate) theta: f64,
    /// Per percent of interest, in dollars.
    pub(crate) rho: f64,
}

impl OptionTerms {
    /// Its name, such as `BTC-27MAR20-10000-C`.
    pub(crate) fn symbol(&self) -> String {
        let kind = if self.is_call { 'C' } else { 'P' };
        format!("{}-{}-{kind}", self.underlying, self.strike)
    }

    /// What it is worth when its asset costs `price`.
    pub(crate) fn value(&self, price: f64, step: i64) -> OptionValue {
        let days = number((self.expiry_step - step).max(1)) / number(STEPS_PER_DAY);
        let years = days / DAYS_PER_YEAR;
        let above = price - number(self.strike);
        let away = above / price;
        let volatility = 0.55 + 2.0 * away * away;
        let spread = price * volatility * years.sqrt();
        let distance = above / spread;
        let density = 0.398_942_28 * exponential(-distance * distance / 2.0);
        let call_delta = normal_share(distance, density);
        let call = spread * (distance * call_delta + density);
        let (worth, delta) =
            if self.is_call { (call, call_delta) } else { (call - above, call_delta - 1.0) };
        OptionValue {
            premium: worth.max(0.0) / price,
            volatility,
            delta,
            gamma: density / spread,
            vega: price * years.sqrt() * density / 100.0,
            theta: -price * volatility * density / (2.0 * years.sqrt() * DAYS_PER_YEAR),
            rho: delta * price * years / 100.0,
        }
    }
}

/// The share of a normal distribution below `distance`, where `density` is its density there; good
/// to five digits.
fn normal_share(distance: f64, density: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.332_67 * distance.abs());
    let tail = density * t * (0.436_183_6 + t * (-0.120_167_6 + t * 0.937_298));
    if distance > 0.0 { 1.0 - tail } else { tail }
}

/// The options on `asset` that are traded on `day`, counted from 1970. All end after it.
pub(crate) fn terms_of_day(asset: &Asset, seed: u64, day: i64) -> Vec<OptionTerms> {
    // 1970 began on a Thursday: day 1 was a Friday.
    let friday = day + 2 + (1 - (day + 2)).rem_euclid(7);
    let price = asset.price(seed, day * STEPS_PER_DAY);
    let steps = (price / number(asset.strike_step)).round();
    let nearest = crate::decimal::scaled(steps, 0) * asset.strike_step;
    let mut all = Vec::new();
    for expiry_day in [friday, friday + 28] {
        let underlying = format!("{}-{}", asset.name, date_name(expiry_day));
        for (is_call, strike) in
            [(true, nearest + asset.strike_step), (false, nearest - asset.strike_step)]
        {
            all.push(OptionTerms {
                is_call,
                strike,
                expiry_step: expiry_day * STEPS_PER_DAY + EXPIRY_STEP_OF_DAY,
                underlying: underlying.clone(),
            });
        }
    }
    all
}

/// A date as names of options have it, such as `8JUN20`.
fn date_name(day: i64) -> String {
    let text = Timestamp::from_millis(day.saturating_mul(86_400_000)).to_string();
    let date = text.split('T').next().unwrap_or_default();
    let mut parts = date.rsplit('-');
    let day = parts.next().unwrap_or_default().trim_start_matches('0');
    let month = parts.next().and_then(|month| month.parse::<usize>().ok()).unwrap_or(1);
    let year = parts.next().unwrap_or_default();
    let year = year.get(year.len().saturating_sub(2)..).unwrap_or_default();
    format!("{day}{}{year}", MONTHS.get(month.wrapping_sub(1)).unwrap_or(&MONTHS[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(is_call: bool) -> OptionTerms {
        OptionTerms {
            is_call,
            strike: 30_000,
            expiry_step: 30 * STEPS_PER_DAY,
            underlying: "BTC-31JAN70".to_owned(),
        }
    }

    #[test]
    fn dates_are_named_as_in_symbols() {
        assert_eq!(date_name(18_348), "27MAR20");
        assert_eq!(date_name(18_421), "8JUN20");
        assert_eq!(option(true).symbol(), "BTC-31JAN70-30000-C");
    }

    #[test]
    fn calls_and_puts_agree_and_lose_value_with_time() {
        for price in [25_000.0, 29_900.0, 30_000.0, 33_000.0] {
            let (call, put) = (option(true).value(price, 0), option(false).value(price, 0));
            let parity = (call.premium - put.premium) * price - (price - 30_000.0);
            assert!(parity.abs() < 0.01, "{parity}");
            assert!((call.delta - put.delta - 1.0).abs() < 1e-9);
            assert!(call.theta < 0.0 && call.gamma > 0.0 && call.vega > 0.0);
            let later = option(true).value(price, 20 * STEPS_PER_DAY);
            assert!(later.premium < call.premium);
        }
        let at_the_money = option(true).value(30_000.0, 0);
        assert!((0.45..0.55).contains(&at_the_money.delta));
        assert!((0.04..0.09).contains(&at_the_money.premium), "{}", at_the_money.premium);
    }
}
