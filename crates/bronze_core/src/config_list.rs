//! Lists as flags and environment variables write them: commas between entries, and in an entry that
//! is a pair the first colon splits, so that a value may be a URL. Spaces around each part are dropped.

use crate::config_error::ConfigFault;

/// The entries of a list; none if the text is blank.
pub(crate) fn entries(text: &str) -> impl Iterator<Item = Result<&str, ConfigFault>> {
    let list = text.trim();
    let entries = (!list.is_empty()).then(|| list.split(','));
    entries.into_iter().flatten().map(move |entry| match entry.trim() {
        "" => Err(ConfigFault::EmptyEntry { list: list.to_owned() }),
        entry => Ok(entry),
    })
}

/// The pairs of a list; `form` says how they are written, for the error.
pub(crate) fn pairs<'a>(
    text: &'a str,
    form: &'static str,
) -> impl Iterator<Item = Result<(&'a str, &'a str), ConfigFault>> {
    entries(text).map(move |entry| {
        let entry = entry?;
        let (left, right) = entry
            .split_once(':')
            .ok_or_else(|| ConfigFault::NoColon { entry: entry.to_owned(), form })?;
        Ok((left.trim(), right.trim()))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_blank_text_is_an_empty_list() {
        assert_eq!(entries("").count() + entries("  \n").count(), 0);
    }

    #[test]
    fn spaces_around_entries_are_dropped_and_those_inside_kept() {
        let read: Result<Vec<_>, _> = entries(" a b ,c ").collect();
        assert_eq!(read, Ok(vec!["a b", "c"]));
        let read: Result<Vec<_>, _> = pairs(" k : v w ,url:http://host:80/q, e:", "").collect();
        assert_eq!(read, Ok(vec![("k", "v w"), ("url", "http://host:80/q"), ("e", "")]));
    }

    #[test]
    fn an_extra_comma_is_refused() {
        for text in [",", "a,", ",a", "a, ,b"] {
            let read: Result<Vec<_>, _> = entries(text).collect();
            assert_eq!(read, Err(ConfigFault::EmptyEntry { list: text.to_owned() }));
        }
    }

    proptest! {
        #[test]
        fn what_was_joined_is_split(
            written in prop::collection::vec(("[a-z.]{1,4}", "[a-z:/]{0,6}"), 0..6),
        ) {
            let text: Vec<String> = written.iter().map(|(k, v)| format!("{k}:{v}")).collect();
            let read: Vec<_> = pairs(&text.join(","), "").map(Result::unwrap)
                .map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            prop_assert_eq!(read, written);
        }
    }
}
