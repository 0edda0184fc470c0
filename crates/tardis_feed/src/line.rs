//! The lines of a slice: a timestamp of 28 characters, a space, the exchange's own message; an empty
//! line is a disconnect. Nothing here looks inside of a message.

use memchr::memchr;
use thiserror::Error;

/// Length of `yyyy-MM-ddTHH:mm:ss.fffffffZ`.
const TIMESTAMP_LENGTH: usize = 28;
/// What stands at the timestamp's fixed places.
const TIMESTAMP_MARKS: [(usize, u8); 7] =
    [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (27, b'Z')];

/// One line of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A message of the exchange.
    Message {
        /// When it was received, with seven digits of a second.
        timestamp: &'a str,
        /// The message, untouched.
        message: &'a [u8],
    },
    /// The recorder's connection was lost here.
    Disconnect,
}

/// Why a line is neither.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {number} of the slice does not begin with a timestamp and a space: `{excerpt}`")]
pub struct LineError {
    /// The line's number, from 1.
    pub number: usize,
    /// How the line begins.
    pub excerpt: String,
}

/// Splits the text of a slice into its lines; after an error it goes on with the next one.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    /// The lines of `text`. A last line needs no newline.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self { rest: text, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<Line<'a>, LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let line = match memchr(b'\n', self.rest) {
            Some(end) => {
                let line = &self.rest[..end];
                self.rest = &self.rest[end + 1..];
                line
            }
            None => std::mem::take(&mut self.rest),
        };
        self.number += 1;
        if line.is_empty() {
            return Some(Ok(Line::Disconnect));
        }
        Some(split(line).ok_or_else(|| LineError {
            number: self.number,
            excerpt: String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned(),
        }))
    }
}

fn split(line: &[u8]) -> Option<Line<'_>> {
    let (timestamp, rest) = line.split_at_checked(TIMESTAMP_LENGTH)?;
    let message = rest.strip_prefix(b" ")?;
    let well_formed = timestamp.iter().enumerate().all(|(at, byte)| {
        let mark = TIMESTAMP_MARKS.iter().find(|(place, _)| *place == at);
        mark.map_or(byte.is_ascii_digit(), |(_, mark)| mark == byte)
    });
    if !well_formed {
        return None;
    }
    Some(Line::Message { timestamp: std::str::from_utf8(timestamp).ok()?, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIME: &str = "2020-02-01T00:00:00.0001234Z";

    #[test]
    fn messages_and_disconnects_are_told_apart() {
        let text = format!("{TIME} {{\"a\":1}}\n\n{TIME} [2]\n{TIME} ");
        let lines: Vec<_> = Lines::new(text.as_bytes()).map(Result::unwrap).collect();
        let message =
            |message: &'static str| Line::Message { timestamp: TIME, message: message.as_bytes() };
        assert_eq!(lines, [message("{\"a\":1}"), Line::Disconnect, message("[2]"), message("")]);
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_one_read() {
        let text = format!("{TIME} 1\n2020-02-01 nonsense\n{TIME} 2");
        let lines: Vec<_> = Lines::new(text.as_bytes()).collect();
        assert!(lines[0].is_ok() && lines[2].is_ok());
        assert_eq!(
            lines[1].as_ref().unwrap_err().to_string(),
            "line 2 of the slice does not begin with a timestamp and a space: `2020-02-01 nonsense`"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_as_many_lines_as_they_have(bytes: Vec<u8>) {
            let newlines = memchr::memchr_iter(b'\n', &bytes).count();
            let unfinished = usize::from(bytes.last().is_some_and(|byte| *byte != b'\n'));
            prop_assert_eq!(Lines::new(&bytes).count(), newlines + unfinished);
        }
    }
}
