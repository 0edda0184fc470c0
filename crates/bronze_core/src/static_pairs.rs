//! Pairs that the operator puts on every event: headers, attributes, `meta`.
//!
//! Keys are unique and not empty; the order is the operator's.

use crate::config_error::{ConfigError, ConfigFault};
use crate::config_list;

/// How pairs are written, for error texts.
const FORM: &str = "key:value,key:value";

/// Pairs of a key and a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticPairs {
    pairs: Vec<(String, String)>,
}

impl StaticPairs {
    /// Reads `key:value,key:value`, which `flag` gave. The first colon splits; a value may be empty.
    pub fn parse(flag: &str, text: &str) -> Result<Self, ConfigError> {
        let pairs = config_list::pairs(text, FORM).collect::<Result<Vec<_>, _>>();
        Self::of_pairs(flag, pairs.map_err(|fault| fault.of(flag))?)
    }

    /// Takes pairs as they are, which `flag` gave; so a value may have commas and outer spaces.
    pub fn of_pairs<K: Into<String>, V: Into<String>>(
        flag: &str,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, ConfigError> {
        let mut all = Self::default();
        for (key, value) in pairs {
            let (key, value) = (key.into(), value.into());
            if key.trim().is_empty() {
                return Err(ConfigFault::NoKey { value }.of(flag));
            }
            if all.get(&key).is_some() {
                return Err(ConfigFault::TwiceTheKey { key }.of(flag));
            }
            all.pairs.push((key, value));
        }
        Ok(all)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    /// The pairs in the order they were given.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Number of pairs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAG: &str = "--nats-static-headers";

    #[test]
    fn pairs_keep_their_order() {
        let pairs = StaticPairs::parse(FLAG, "team: data ,env:prod,url:http://h:1,none:").unwrap();
        let expected = [("team", "data"), ("env", "prod"), ("url", "http://h:1"), ("none", "")];
        assert!(pairs.iter().eq(expected));
        assert_eq!(StaticPairs::of_pairs(FLAG, expected), Ok(pairs.clone()));
        assert_eq!((pairs.get("env"), pairs.get("no")), (Some("prod"), None));
        assert_eq!(pairs.len(), 4);
        assert!(StaticPairs::parse(FLAG, " ").unwrap().is_empty());
    }

    #[test]
    fn pairs_from_a_map_are_taken_as_they_are() {
        let pairs = StaticPairs::of_pairs(FLAG, [("k", " a, b:c ")]).unwrap();
        assert_eq!(pairs.get("k"), Some(" a, b:c "));
    }

    #[test]
    fn refusals_name_flag_value_and_remedy() {
        for (text, refusal) in [
            ("env", "`env` has no colon; write key:value,key:value"),
            ("a:1, :prod", "`:prod` has no key before the colon; write key:value,key:value"),
            ("env:a,env:a", "the key `env` occurs twice; keep one of them"),
            ("env:a,,b:c", "`env:a,,b:c` has an empty entry; remove the extra comma"),
        ] {
            let error = StaticPairs::parse(FLAG, text).unwrap_err();
            assert_eq!(error.to_string(), format!("{FLAG}: {refusal}"));
        }
    }
}
