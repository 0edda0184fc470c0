//! Filters as the archive is asked with them: one entry per channel, symbols merged and sorted, so
//! that the same wish has the same text, and with it the same place in the cache, however it is put.
//!
//! The text must be the one JavaScript writes, and the order its own (by UTF-16 units): caches that
//! others filled are found by its hash.

use std::cmp::Ordering;
use std::fmt::Write as _;

use market_data::Filter;
use sha2::{Digest as _, Sha256};

/// Filters that stand for the same wish as those they were made of, and for which there is one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptimisedFilters {
    json: String,
    empty: bool,
}

impl OptimisedFilters {
    pub(crate) fn new(filters: &[Filter]) -> Self {
        let merged = optimise(filters);
        // Strings in lists: there is nothing in them that could fail to be written.
        let json = serde_json::to_string(&merged).unwrap_or_default();
        Self { json, empty: merged.is_empty() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// The name of their folder in the cache.
    pub(crate) fn hash(&self) -> String {
        let mut name = String::with_capacity(64);
        for byte in Sha256::digest(self.json.as_bytes()) {
            let _ = write!(name, "{byte:02x}");
        }
        name
    }

    /// The text for a URL's query.
    pub(crate) fn url_encoded(&self) -> String {
        let mut encoded = String::with_capacity(self.json.len() * 2);
        for byte in self.json.bytes() {
            if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
                encoded.push(char::from(byte));
            } else {
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    }
}

fn by_utf16(left: &str, right: &str) -> Ordering {
    left.encode_utf16().cmp(right.encode_utf16())
}

/// One filter per channel, in order, with the symbols of each merged and in order.
pub(crate) fn optimise(filters: &[Filter]) -> Vec<Filter> {
    let mut merged: Vec<Filter> = Vec::with_capacity(filters.len());
    for filter in filters {
        let Some(known) = merged.iter_mut().find(|known| known.channel == filter.channel) else {
            merged.push(filter.clone());
            continue;
        };
        match (&mut known.symbols, &filter.symbols) {
            (Some(symbols), Some(more)) => symbols.extend_from_slice(more),
            // Named symbols win over all of them: that is how caches were always filled.
            (none @ None, Some(symbols)) => *none = Some(symbols.clone()),
            (_, None) => {}
        }
    }
    merged.sort_by(|left, right| by_utf16(&left.channel, &right.channel));
    for symbols in merged.iter_mut().filter_map(|filter| filter.symbols.as_mut()) {
        symbols.sort_by(|left, right| by_utf16(left, right));
        symbols.dedup();
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filter(channel: &str, symbols: Option<&[&str]>) -> Filter {
        let symbols = symbols.map(|symbols| symbols.iter().map(ToString::to_string).collect());
        Filter { channel: channel.to_owned(), symbols }
    }

    /// Text and hash of each were taken from a JavaScript engine.
    #[test]
    fn text_and_hash_are_those_of_javascript() {
        for (filters, json, hash) in [
            (vec![], "[]", "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"),
            (
                vec![filter("trade", None)],
                r#"[{"channel":"trade"}]"#,
                "822dcc1de83dad24dcdb9a2e3ff506afc20f27f9da1c21c39084cd8bf3e56a6b",
            ),
            (
                vec![
                    filter("trade", Some(&["XBTUSD", "ETHUSD", "XBTUSD"])),
                    filter("orderBookL2", Some(&["XBTUSD"])),
                    filter("trade", Some(&["ADAUSD"])),
                ],
                r#"[{"channel":"orderBookL2","symbols":["XBTUSD"]},{"channel":"trade","symbols":["ADAUSD","ETHUSD","XBTUSD"]}]"#,
                "8756908b9d9e91a51f4286e0e1202891c77046c9d8764263cb9fff3b50ea5a45",
            ),
            (
                vec![filter("b", Some(&[])), filter("a", Some(&["x"])), filter("a", None)],
                r#"[{"channel":"a","symbols":["x"]},{"channel":"b","symbols":[]}]"#,
                "006fb523a797572d7adf5aca8ea765f50c09834013d0a0fd884f5d0c2a617a4d",
            ),
            (
                vec![filter("a", None), filter("a", Some(&["z", "y"]))],
                r#"[{"channel":"a","symbols":["y","z"]}]"#,
                "c96415798d4997b7ec29509c1e519fb6a36191fad8c9000d3b315ff08bbb8117",
            ),
            (
                vec![filter(
                    "q\"\\/\u{1}\u{7f}\u{2028}\u{8}\u{c}\n\r\té",
                    Some(&["\u{1F600}", "\u{FF5E}", "a", "B"]),
                )],
                "[{\"channel\":\"q\\\"\\\\/\\u0001\u{7f}\u{2028}\\b\\f\\n\\r\\té\",\"symbols\":[\"B\",\"a\",\"\u{1F600}\",\"\u{FF5E}\"]}]",
                "1665758b18677bcb045cf4e39b7e0243467c375952432967090392c52509a7d1",
            ),
        ] {
            let optimised = OptimisedFilters::new(&filters);
            assert_eq!(optimised.json, json);
            assert_eq!(optimised.hash(), hash);
        }
    }

    #[test]
    fn the_query_is_encoded_as_a_browser_does() {
        let filters = [filter("t/é", Some(&["A'(1)"]))];
        assert_eq!(
            OptimisedFilters::new(&filters).url_encoded(),
            "%5B%7B%22channel%22%3A%22t%2F%C3%A9%22%2C%22symbols%22%3A%5B%22A'(1)%22%5D%7D%5D"
        );
    }

    proptest! {
        #[test]
        fn order_and_repetition_make_no_difference(
            wishes in prop::collection::vec(("[a-c]", prop::collection::vec("[A-D]", 1..4)), 0..6)
        ) {
            let filters: Vec<_> = wishes
                .iter()
                .map(|(channel, symbols)| Filter {
                    channel: channel.clone(),
                    symbols: Some(symbols.clone()),
                })
                .collect();
            let mut twice_reversed = filters.clone();
            twice_reversed.extend(filters.iter().rev().cloned());
            twice_reversed.reverse();
            prop_assert_eq!(
                OptimisedFilters::new(&filters),
                OptimisedFilters::new(&twice_reversed)
            );
        }
    }
}
