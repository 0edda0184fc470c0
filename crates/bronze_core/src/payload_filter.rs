//! Which payload cases are published: an allow list, asked before an event is encoded.

use crate::config_error::{ConfigError, ConfigFault};
use crate::config_list;
use crate::payload_case::PayloadCase;

/// The payload cases that are published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadFilter {
    /// A bit per case.
    allowed: u16,
}

impl PayloadFilter {
    /// Every case.
    pub const ALL: Self = Self { allowed: (1 << PayloadCase::ALL.len()) - 1 };

    /// Reads names between commas, which `flag` gave; a blank text allows every case.
    pub fn parse(flag: &str, text: &str) -> Result<Self, ConfigError> {
        let names = config_list::entries(text).collect::<Result<Vec<_>, _>>();
        Self::of_names(flag, names.map_err(|fault| fault.of(flag))?)
    }

    /// Allows the cases of these names, which `flag` gave; no names allow every case.
    pub fn of_names<N: AsRef<str>>(
        flag: &str,
        names: impl IntoIterator<Item = N>,
    ) -> Result<Self, ConfigError> {
        let mut allowed = 0;
        for name in names {
            let case: PayloadCase =
                name.as_ref().trim().parse().map_err(|error| ConfigFault::from(error).of(flag))?;
            allowed |= bit(case);
        }
        Ok(if allowed == 0 { Self::ALL } else { Self { allowed } })
    }

    /// Whether events of a case are published.
    #[inline]
    #[must_use]
    pub const fn allows(self, case: PayloadCase) -> bool {
        self.allowed & bit(case) != 0
    }

    /// The cases that are published by this filter or the other.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self { allowed: self.allowed | other.allowed }
    }
}

impl Default for PayloadFilter {
    fn default() -> Self {
        Self::ALL
    }
}

const fn bit(case: PayloadCase) -> u16 {
    1 << case as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FLAG: &str = "--kafka-include-payloads";

    #[test]
    fn an_empty_list_allows_all() {
        assert_eq!(PayloadFilter::parse(FLAG, " "), Ok(PayloadFilter::ALL));
        assert_eq!(PayloadFilter::of_names(FLAG, [""; 0]), Ok(PayloadFilter::default()));
        assert!(PayloadCase::ALL.into_iter().all(|case| PayloadFilter::ALL.allows(case)));
    }

    #[test]
    fn refusals_name_flag_and_value() {
        let refusal = |text| PayloadFilter::parse(FLAG, text).unwrap_err().to_string();
        assert_eq!(
            refusal("trade,books"),
            "--kafka-include-payloads: unknown payload case `books`; valid are trade, bookChange, \
             bookSnapshot, quote, derivativeTicker, liquidation, optionSummary, bookTicker, \
             groupedBookSnapshot, tradeBar, error, disconnect"
        );
        assert_eq!(
            refusal("trade,"),
            "--kafka-include-payloads: `trade,` has an empty entry; remove the extra comma"
        );
    }

    proptest! {
        #[test]
        fn exactly_the_listed_cases_are_allowed(
            listed in prop::collection::vec(prop::sample::select(&PayloadCase::ALL[..]), 1..12),
            others in prop::collection::vec(prop::sample::select(&PayloadCase::ALL[..]), 1..12),
        ) {
            let read = |cases: &[PayloadCase]| {
                let names: Vec<_> = cases.iter().map(|case| case.field_name()).collect();
                PayloadFilter::parse(FLAG, &names.join(" , ")).unwrap()
            };
            let filter = read(&listed);
            let both = filter.union(read(&others));
            for case in PayloadCase::ALL {
                prop_assert_eq!(filter.allows(case), listed.contains(&case));
                let in_either = listed.contains(&case) || others.contains(&case);
                prop_assert_eq!(both.allows(case), in_either);
            }
        }
    }
}
