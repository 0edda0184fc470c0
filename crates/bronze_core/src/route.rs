//! Where an event goes: one base destination, and another for the payload cases that have their own.
//!
//! Every case has a destination, so looking one up cannot fail. A destination is plain text (topic,
//! stream, queue URL, subject); each different one is kept once and has an index, by which a bus can
//! group a batch without comparing texts.

use crate::config_error::{ConfigError, ConfigFault};
use crate::config_list;
use crate::payload_case::PayloadCase;

/// How routes are written, for error texts.
const FORM: &str = "case:destination,case:destination";

/// Destinations by payload case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The base destination, then the others in the order they were given.
    destinations: Vec<String>,
    /// For each case the place of its destination; 0 for those without their own.
    by_case: [usize; PayloadCase::ALL.len()],
}

impl Route {
    /// Sends all events to `base`, which `flag` gave.
    pub fn to(flag: &str, base: &str) -> Result<Self, ConfigError> {
        let base = base.trim();
        if base.is_empty() {
            return Err(ConfigFault::NoBaseDestination.of(flag));
        }
        Ok(Self { destinations: vec![base.to_owned()], by_case: [0; PayloadCase::ALL.len()] })
    }

    /// Adds routes as `case:destination,case:destination`, which `flag` gave; a blank text adds none.
    /// The first colon splits, so a destination may be a URL.
    pub fn with_routes(self, flag: &str, text: &str) -> Result<Self, ConfigError> {
        let pairs = config_list::pairs(text, FORM).collect::<Result<Vec<_>, _>>();
        self.with_pairs(flag, pairs.map_err(|fault| fault.of(flag))?)
    }

    /// Adds routes as pairs of a payload case's name and a destination, which `flag` gave.
    /// They replace routes of an earlier call.
    pub fn with_pairs<C: AsRef<str>, D: AsRef<str>>(
        mut self,
        flag: &str,
        pairs: impl IntoIterator<Item = (C, D)>,
    ) -> Result<Self, ConfigError> {
        let mut given = [false; PayloadCase::ALL.len()];
        for (case, destination) in pairs {
            self.add(&mut given, case.as_ref(), destination.as_ref())
                .map_err(|fault| fault.of(flag))?;
        }
        Ok(self)
    }

    fn add(
        &mut self,
        given: &mut [bool; PayloadCase::ALL.len()],
        case: &str,
        destination: &str,
    ) -> Result<(), ConfigFault> {
        let case: PayloadCase = case.trim().parse()?;
        let destination = destination.trim();
        if destination.is_empty() {
            return Err(ConfigFault::NoDestination { case });
        }
        // `book_change` and `bookChange` are one case: which of two destinations is meant is a guess.
        if given[case as usize] && self.destination(case) != destination {
            return Err(ConfigFault::TwoDestinations {
                case,
                first: self.destination(case).to_owned(),
                second: destination.to_owned(),
            });
        }
        given[case as usize] = true;
        let known = self.destinations.iter().position(|known| known == destination);
        self.by_case[case as usize] = known.unwrap_or_else(|| {
            self.destinations.push(destination.to_owned());
            self.destinations.len() - 1
        });
        Ok(())
    }

    /// Where events of a case go.
    #[must_use]
    pub fn destination(&self, case: PayloadCase) -> &str {
        &self.destinations[self.index(case)]
    }

    /// The place of a case's destination in [`Self::destinations`].
    #[must_use]
    pub fn index(&self, case: PayloadCase) -> usize {
        self.by_case[case as usize]
    }

    /// All different destinations, the base first; it is there even if every case has its own.
    #[must_use]
    pub fn destinations(&self) -> &[String] {
        &self.destinations
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn kafka(routes: &str) -> Result<Route, String> {
        Route::to("--kafka-topic", "bronze")
            .and_then(|route| route.with_routes("--kafka-topic-routing", routes))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn cases_without_a_route_go_to_the_base() {
        let route = kafka(" trade : trades ,book_change:books, QUOTE:bronze").unwrap();
        assert_eq!(route.destination(PayloadCase::Trade), "trades");
        assert_eq!(route.destination(PayloadCase::BookChange), "books");
        assert_eq!(route.destination(PayloadCase::Quote), "bronze");
        assert_eq!(route.destination(PayloadCase::Error), "bronze");
        assert_eq!(route.destinations(), ["bronze", "trades", "books"]);
        assert_eq!(kafka("  "), Ok(Route::to("--kafka-topic", " bronze ").unwrap()));
    }

    #[test]
    fn the_first_colon_splits() {
        let route = kafka("trade:https://sqs.eu-west-1.amazonaws.com:443/1/trades").unwrap();
        let url = "https://sqs.eu-west-1.amazonaws.com:443/1/trades";
        assert_eq!(route.destination(PayloadCase::Trade), url);
    }

    #[test]
    fn the_same_route_twice_is_one() {
        assert_eq!(kafka("bookChange:books,book_change:books"), kafka("bookChange:books"));
    }

    #[test]
    fn refusals_name_flag_value_and_remedy() {
        assert_eq!(
            Route::to("--kafka-topic", " ").unwrap_err().to_string(),
            "--kafka-topic: it is empty; name the destination of all events that have no route of \
             their own"
        );
        let refusals = [
            (
                "trades:t",
                "unknown payload case `trades`; valid are trade, bookChange, bookSnapshot, quote, \
                 derivativeTicker, liquidation, optionSummary, bookTicker, groupedBookSnapshot, \
                 tradeBar, error, disconnect",
            ),
            ("trade", "`trade` has no colon; write case:destination,case:destination"),
            (
                "trade:",
                "the destination of `trade` is empty; name one, or leave `trade` out so that it \
                 goes to the base destination",
            ),
            (
                "book_change:a,bookChange:b",
                "`bookChange` is routed to both `a` and `b`; keep one of them",
            ),
            // The base destination counts as well.
            (
                "trade:bronze,trade:b",
                "`trade` is routed to both `bronze` and `b`; keep one of them",
            ),
            ("trade:a,", "`trade:a,` has an empty entry; remove the extra comma"),
        ];
        for (routes, refusal) in refusals {
            assert_eq!(kafka(routes), Err(format!("--kafka-topic-routing: {refusal}")));
        }
    }

    proptest! {
        #[test]
        fn lookups_are_those_of_a_map(
            routes in prop::collection::btree_map(0..12_usize, "[a-d:/]{1,2}", 0..12),
        ) {
            let routes: BTreeMap<_, _> =
                routes.into_iter().map(|(case, to)| (PayloadCase::ALL[case], to)).collect();
            let pairs = routes.iter().map(|(case, to)| (case.field_name(), to));
            let base = Route::to("--base", "a").unwrap();
            let route = base.clone().with_pairs("--routing", pairs).unwrap();
            for case in PayloadCase::ALL {
                let expected = routes.get(&case).map_or("a", String::as_str);
                prop_assert_eq!(route.destination(case), expected);
                prop_assert_eq!(&route.destinations()[route.index(case)], expected);
            }
            let text: Vec<_> = routes.iter().map(|(case, to)| format!("{case}:{to}")).collect();
            prop_assert_eq!(base.with_routes("--routing", &text.join(",")), Ok(route));
        }

        #[test]
        fn no_text_panics(text in "[a-z:, ]{0,20}|trade:.*|.*") {
            let _ = kafka(&text);
        }
    }
}
