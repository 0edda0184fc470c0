//! Where the values of a JSON text stand.

use std::ops::Range;

/// A value with what names it.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// The key with its quotes, if it is a field of an object.
    pub(crate) key: Option<Range<usize>>,
    /// The value.
    pub(crate) value: Range<usize>,
}

impl Span {
    /// The field with its key, or the element.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.key.as_ref().map_or(self.value.start, |key| key.start)..self.value.end
    }
}

/// All values of `json` but itself, outer before inner; as far as it is valid.
pub(crate) fn spans(json: &[u8]) -> Vec<Span> {
    let mut reader = Reader { json, at: 0, found: Vec::new() };
    reader.value(0);
    reader.found
}

struct Reader<'a> {
    json: &'a [u8],
    at: usize,
    found: Vec<Span>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    /// Passes over a value, and returns whether all is well so far.
    fn value(&mut self, depth: usize) -> bool {
        const DEEPEST: usize = 30;
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'[' | b'{') if depth > DEEPEST => false,
            Some(b'[') => self.items(depth, b']', false),
            Some(b'{') => self.items(depth, b'}', true),
            _ => {
                let rest = &self.json[self.at..];
                let length = rest.iter().take_while(|byte| !b",]} ".contains(byte)).count();
                self.at += length;
                length > 0
            }
        }
    }

    fn string(&mut self) -> bool {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return true;
            }
        }
        false
    }

    fn items(&mut self, depth: usize, end: u8, has_keys: bool) -> bool {
        self.at += 1;
        loop {
            if self.peek() == Some(end) {
                self.at += 1;
                return true;
            }
            let mut key = None;
            if has_keys {
                let start = self.at;
                if self.peek() != Some(b'"') || !self.string() || self.peek() != Some(b':') {
                    return false;
                }
                key = Some(start..self.at);
                self.at += 1;
            }
            let start = self.at;
            let place = self.found.len();
            self.found.push(Span { key, value: start..start });
            if !self.value(depth + 1) || self.at > self.json.len() {
                self.found.truncate(place);
                return false;
            }
            self.found[place].value.end = self.at;
            if self.peek() == Some(b',') {
                self.at += 1;
            } else if self.peek() != Some(end) {
                return false;
            }
        }
    }
}

#[test]
fn every_value_is_found() {
    let json = br#"{"a":[1,"x\"]"],"b":{"c":null}}"#;
    let found: Vec<&str> =
        spans(json).iter().map(|span| std::str::from_utf8(&json[span.whole()]).unwrap()).collect();
    assert_eq!(found, [r#""a":[1,"x\"]"]"#, "1", r#""x\"]""#, r#""b":{"c":null}"#, r#""c":null"#]);
}
