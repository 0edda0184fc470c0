//! What the name of an instrument says. An option's is `BTC-8JUN20-8750-P`: underlying, day of
//! expiry, strike, put or call. A `d` in the strike is a decimal point: `MATIC_USDC-9MAR24-1d02-C`.

use std::borrow::Cow;

use crate::message::OptionType;
use crate::raw::number_of_text;
use crate::time::Timestamp;

/// Options expire at this hour.
const EXPIRY_HOUR: i64 = 8;

/// `name` in capitals, which most are.
#[inline]
pub(super) fn in_capitals(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_lowercase() || !byte.is_ascii()) {
        Cow::Owned(name.to_uppercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// The name as channels want it: in capitals but for the `d` of a strike.
pub(super) fn as_in_channels(name: &str) -> String {
    let strike = name.split('-').nth(2).filter(|_| is_option(name));
    let Some(strike) = strike.filter(|strike| strike.contains(['d', 'D'])) else {
        return name.to_uppercase();
    };
    let with_point = strike.replacen('D', "d", 1);
    let parts = name.split('-').enumerate();
    let parts: Vec<&str> =
        parts.map(|(place, part)| if place == 2 { with_point.as_str() } else { part }).collect();
    parts.join("-")
}

pub(super) fn is_option(name: &str) -> bool {
    name.ends_with("-C") || name.ends_with("-P")
}

/// What an option's name says about it.
#[derive(Debug, PartialEq)]
pub(super) struct OptionTerms {
    pub(super) option_type: OptionType,
    /// NaN if it is no number.
    pub(super) strike: f64,
    pub(super) expiry: Timestamp,
}

impl OptionTerms {
    /// `None` if the name has too few parts.
    pub(super) fn of(name: &str) -> Option<Self> {
        let mut parts = name.split('-').skip(1);
        let (day, strike, option_type) = (parts.next()?, parts.next()?, parts.next());
        let strike = match strike.split_once('d') {
            Some((whole, rest)) => number_of_text(&format!("{whole}.{rest}")),
            None => number_of_text(strike),
        };
        let option_type = if option_type == Some("P") { OptionType::Put } else { OptionType::Call };
        Some(Self { option_type, strike, expiry: expiry(day).unwrap_or(Timestamp::INVALID) })
    }
}

/// Reads a day such as `8JUN20`. A day past the end of its month counts on into the next.
fn expiry(text: &str) -> Option<Timestamp> {
    let (day, rest) = text.split_at_checked(text.bytes().take_while(u8::is_ascii_digit).count())?;
    let (month, year) = rest.split_at_checked(3)?;
    let is_year = year.len() == 2 && year.bytes().all(|digit| digit.is_ascii_digit());
    let day: i64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let year: i64 = year.parse().ok().filter(|_| is_year)?;
    let month = match month.to_ascii_uppercase().as_str() {
        "JAN" => 1,
        "FEB" => 2,
        "MAR" => 3,
        "APR" => 4,
        "MAY" => 5,
        "JUN" => 6,
        "JUL" => 7,
        "AUG" => 8,
        "SEP" => 9,
        "OCT" => 10,
        "NOV" => 11,
        "DEC" => 12,
        _ => return None,
    };
    let year = if year < 50 { 2000 + year } else { 1900 + year };
    Some(Timestamp::of_minute(year, month, day, EXPIRY_HOUR, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_terms() {
        let of = |name| OptionTerms::of(name).unwrap();
        let put = of("BTC-8JUN20-8750-P");
        assert_eq!((put.option_type, put.strike), (OptionType::Put, 8_750.0));
        assert_eq!(put.expiry, Timestamp::of_minute(2020, 6, 8, 8, 0));
        let call = of("XRP_USDC-26DEC25-0d525-C");
        assert_eq!((call.option_type, call.strike), (OptionType::Call, 0.525));
        assert_eq!(call.expiry, Timestamp::of_minute(2025, 12, 26, 8, 0));
        assert!(of("MATIC_USDC-9MAR24-1D02-C").strike.is_nan());
        assert_eq!(OptionTerms::of("BTC-C"), None);
    }

    #[test]
    fn days_are_read_as_javascript_reads_them() {
        let of = |text| expiry(text).unwrap_or(Timestamp::INVALID).to_string();
        assert_eq!(of("1JAN49"), "2049-01-01T08:00:00.000Z");
        assert_eq!(of("1JAN50"), "1950-01-01T08:00:00.000Z");
        assert_eq!(of("31jun20"), "2020-07-01T08:00:00.000Z");
        for text in ["STRD", "", "JUN20", "8JUX20", "8JUN", "8JUN2", "8\u{e4}UN20"] {
            assert_eq!(expiry(text), None, "{text}");
        }
    }

    #[test]
    fn channels_want_capitals_but_for_the_point_of_a_strike() {
        assert_eq!(as_in_channels("btc-perpetual"), "BTC-PERPETUAL");
        assert_eq!(as_in_channels("btc-8jun20-8750-P"), "BTC-8JUN20-8750-P");
        assert_eq!(as_in_channels("MATIC_USDC-9MAR24-1D02-C"), "MATIC_USDC-9MAR24-1d02-C");
        assert_eq!(as_in_channels("MATIC_USDC-9MAR24-1d02-C"), "MATIC_USDC-9MAR24-1d02-C");
        assert_eq!(as_in_channels("BTC-C"), "BTC-C");
    }

    #[test]
    fn names_in_capitals_are_lent() {
        assert!(matches!(in_capitals("BTC-PERPETUAL"), Cow::Borrowed(_)));
        assert_eq!(in_capitals("MATIC_USDC-9MAR24-1d02-C"), "MATIC_USDC-9MAR24-1D02-C");
    }
}
