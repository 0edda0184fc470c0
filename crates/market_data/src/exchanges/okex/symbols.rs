//! What the name of a contract says: its pair, its index, and for an option what it gives the right
//! to. `BTC-USDT-SWAP`, `BTC-USD_UM_XPERP-310404`, `BTC-USD-220128-40000-C`.

use crate::message::OptionType;
use crate::raw::number_of_text;
use crate::time::Timestamp;

/// The hour, in UTC, at which options expire.
const EXPIRATION_HOUR: i64 = 8;

/// The index that a contract in USDC follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsdcIndex {
    /// That in USD.
    Usd,
    /// One of its own.
    Usdc,
}

/// Base and quote with whatever stands for the kind of margin: an option's family. `None` if the
/// name has no second part.
pub(super) fn pair_of(symbol: &str) -> Option<&str> {
    let quote = symbol.find('-')? + 1;
    let end = symbol[quote..].find('-').map_or(symbol.len(), |length| quote + length);
    Some(&symbol[..end])
}

/// The index that a contract follows, which its name always begins with. `None` if the name has no
/// second part.
pub(super) fn index_of(symbol: &str, usdc_index: UsdcIndex) -> Option<&str> {
    let pair = pair_of(symbol)?;
    let quote = pair.find('-')? + 1;
    let end = pair[quote..].find('_').map_or(pair.len(), |length| quote + length);
    let is_usdc = &pair[quote..end] == "USDC";
    let end = if is_usdc && usdc_index == UsdcIndex::Usd { end - 1 } else { end };
    Some(&pair[..end])
}

/// What the name of an option says.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionTerms {
    pub(super) option_type: OptionType,
    /// NaN if there is none.
    pub(super) strike_price: f64,
    pub(super) expiration_date: Option<Timestamp>,
}

impl OptionTerms {
    pub(super) fn of(symbol: &str) -> Self {
        let mut parts = symbol.split('-').skip(2);
        Self {
            expiration_date: parts.next().and_then(expiration),
            strike_price: parts.next().map_or(f64::NAN, number_of_text),
            option_type: if parts.next() == Some("P") { OptionType::Put } else { OptionType::Call },
        }
    }
}

/// The day in the first six digits, as `yymmdd`. Months and days that do not exist run over.
fn expiration(text: &str) -> Option<Timestamp> {
    let digits = text.as_bytes().windows(6).find(|six| six.iter().all(u8::is_ascii_digit))?;
    let number = |at: usize| i64::from(digits[at] - b'0') * 10 + i64::from(digits[at + 1] - b'0');
    let months = (2000 + number(0)) * 12 + number(2) - 1;
    Some(Timestamp::of_minute(months / 12, months % 12 + 1, number(4), EXPIRATION_HOUR, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_the_beginning_of_a_name() {
        for (symbol, pair, usdc, usd) in [
            ("BTC-USDT-SWAP", "BTC-USDT", "BTC-USDT", "BTC-USDT"),
            ("BTC-USD-220128", "BTC-USD", "BTC-USD", "BTC-USD"),
            ("BTC-USDC-SWAP", "BTC-USDC", "BTC-USDC", "BTC-USD"),
            ("BTC-USDC_UM-SWAP", "BTC-USDC_UM", "BTC-USDC", "BTC-USD"),
            ("BTC-USD_UM_XPERP-310404", "BTC-USD_UM_XPERP", "BTC-USD", "BTC-USD"),
            ("BTC-USD_UM-231229-40000-C", "BTC-USD_UM", "BTC-USD", "BTC-USD"),
            ("A_B-USDC", "A_B-USDC", "A_B-USDC", "A_B-USD"),
            ("BTC-", "BTC-", "BTC-", "BTC-"),
            ("-", "-", "-", "-"),
        ] {
            assert_eq!(pair_of(symbol), Some(pair));
            assert_eq!(index_of(symbol, UsdcIndex::Usdc), Some(usdc));
            assert_eq!(index_of(symbol, UsdcIndex::Usd), Some(usd));
        }
        for symbol in ["", "SYM", "B_C"] {
            assert_eq!(pair_of(symbol), None);
            assert_eq!(index_of(symbol, UsdcIndex::Usd), None);
        }
    }

    #[test]
    fn names_of_options_say_their_terms() {
        let put = OptionTerms::of("BTC-USD-220128-40000-P");
        assert_eq!(put.option_type, OptionType::Put);
        assert_eq!(put.strike_price.to_bits(), 40000f64.to_bits());
        assert_eq!(put.expiration_date, Some(Timestamp::of_minute(2022, 1, 28, 8, 0)));
        let past_december = OptionTerms::of("BTC-USD-212132-1e3-C");
        assert_eq!(past_december.option_type, OptionType::Call);
        assert_eq!(past_december.strike_price.to_bits(), 1000f64.to_bits());
        assert_eq!(past_december.expiration_date, Some(Timestamp::of_minute(2022, 10, 2, 8, 0)));
        for symbol in ["", "BTC", "BTC-USD", "BTC-USD-2201", "BTC-USD-é22012-x-y"] {
            let odd = OptionTerms::of(symbol);
            assert_eq!(odd.option_type, OptionType::Call, "{symbol}");
            assert!(odd.strike_price.is_nan(), "{symbol}");
            assert_eq!(odd.expiration_date, None, "{symbol}");
        }
    }
}
