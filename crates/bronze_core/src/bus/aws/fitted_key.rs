//! Keys that AWS takes: not empty, not too long, of allowed characters, and different for different
//! keys, so that what AWS keeps in order is what the operator asked for.
//!
//! A key that fits stays as it is. One that does not is cut, its odd characters become `_`, and
//! `~` with the first half of the SHA-256 of the whole key follows. An empty one, as of a template
//! whose only `meta` key an event lacks, becomes the default key.

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::event_view::EventView;
use crate::template::Template;

/// How much of the digest is kept.
const DIGEST_CHARACTERS: usize = 32;

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Bytes::copy_from_slice(&Sha256::digest(bytes)))
}

/// A template for keys and what they must be like.
#[derive(Clone, Debug)]
pub(crate) struct FittedKey {
    template: Template,
    fallback: Template,
    most: usize,
    is_allowed: fn(char) -> bool,
}

impl FittedKey {
    /// Keys of `template` of at most `most` characters, all of them allowed.
    ///
    /// Characters are counted as UTF-16 does, which is never less than Unicode's count: servers
    /// differ in which they mean.
    pub(crate) fn new(template: Template, most: usize, is_allowed: fn(char) -> bool) -> Self {
        Self { template, fallback: Template::default_key(), most, is_allowed }
    }

    /// Writes an event's key to `key`, which comes empty.
    pub(crate) fn render(&self, event: &EventView<'_>, key: &mut String) {
        self.template.render(event, key);
        if key.is_empty() {
            self.fallback.render(event, key);
        }
        let fits = key.len() <= self.most || key.encode_utf16().count() <= self.most;
        if !fits || !key.chars().all(self.is_allowed) {
            *key = self.fitted(key);
        }
    }

    fn fitted(&self, key: &str) -> String {
        let mut room = self.most - DIGEST_CHARACTERS - 1;
        let mut fitted = String::with_capacity(self.most);
        for character in key.chars() {
            let character = if (self.is_allowed)(character) { character } else { '_' };
            let Some(left) = room.checked_sub(character.len_utf16()) else { break };
            room = left;
            fitted.push(character);
        }
        fitted.push('~');
        fitted.push_str(&sha256(key.as_bytes())[..DIGEST_CHARACTERS]);
        fitted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::generated::bronze::normalized_event::Payload;
    use crate::generated::bronze::{NormalizedEvent, Trade};
    use prost::Message;

    fn event(symbol: &str) -> Vec<u8> {
        let payload = Some(Payload::Trade(Trade::default()));
        let (exchange, symbol) = ("bitmex".to_owned(), symbol.to_owned());
        NormalizedEvent { exchange, symbol, payload, ..NormalizedEvent::default() }.encode_to_vec()
    }

    fn render(template: &str, most: usize, is_allowed: fn(char) -> bool, symbol: &str) -> String {
        let key = FittedKey::new(Template::compile(template).unwrap(), most, is_allowed);
        let mut out = String::new();
        key.render(&EventView::read(&event(symbol)).unwrap(), &mut out);
        out
    }

    #[test]
    fn the_digest_is_the_known_one() {
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), expected);
    }

    #[test]
    fn an_empty_key_becomes_the_default_key() {
        assert_eq!(render("{{meta.none}}", 256, |_| true, "XBT"), "bitmex|XBT|trade");
        assert_eq!(render("{{symbol}}", 256, |_| true, ""), "bitmex||trade");
    }

    #[test]
    fn a_key_that_fits_stays_and_others_stay_apart() {
        let at_most = "a".repeat(64);
        assert_eq!(render("{{symbol}}", 64, |_| true, &at_most), at_most);
        let cut = |last: char| render("{{symbol}}", 64, |_| true, &format!("{at_most}{last}"));
        assert_eq!(cut('x').len(), 64);
        assert!(cut('x').starts_with(&format!("{}~", "a".repeat(31))));
        assert_ne!(cut('x'), cut('y'));
        let clean = |symbol: &str| render("{{symbol}}", 64, |c| c.is_ascii_graphic(), symbol);
        assert!(clean("A B").starts_with("A_B~"));
        assert_ne!(clean("A B"), clean("A\tB"));
        assert_eq!(clean("A_B"), "A_B");
    }

    proptest! {
        #[test]
        fn every_key_is_taken(symbol in ".{0,200}") {
            let key = render("{{symbol}}", 128, |c| c.is_ascii_graphic(), &symbol);
            prop_assert!((1..=128).contains(&key.len()));
            prop_assert!(key.chars().all(|c| c.is_ascii_graphic()));
            let key = render("{{symbol}}{{symbol}}", 256, |_| true, &symbol);
            prop_assert!((1..=256).contains(&key.encode_utf16().count()));
        }
    }
}
