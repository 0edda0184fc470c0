//! The lines of a slice: a timestamp of 28 characters, a space, the exchange's own message; an empty
//! line is a disconnect. Nothing here looks inside of a message.
//!
//! This runs for every message of a replay. Most lines fall into the second of the line before them,
//! so a timestamp's first 20 characters are read only when they differ from the last ones; the rest,
//! seven digits and a `Z`, is checked and read as one number of 64 bits.

use market_data::Timestamp;
use memchr::memchr;
use thiserror::Error;

/// Length of `yyyy-MM-ddTHH:mm:ss.fffffffZ`.
const TIMESTAMP_LENGTH: usize = 28;
/// Length of `yyyy-MM-ddTHH:mm:ss.`.
const SECOND_LENGTH: usize = 20;
/// How much of a bad line an error shows.
const EXCERPT_LENGTH: usize = 60;

/// One line of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A message of the exchange.
    Message {
        /// When it was received, as the recorder wrote it: ASCII, seven digits of a second.
        timestamp: &'a [u8; TIMESTAMP_LENGTH],
        /// The same in microseconds; the seventh digit is cut.
        time: Timestamp,
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
    second: Second,
}

/// The second that was read last.
#[derive(Clone, Debug)]
struct Second {
    text: [u8; SECOND_LENGTH],
    micros: i64,
}

impl<'a> Lines<'a> {
    /// The lines of `text`. A last line needs no newline.
    #[must_use]
    pub fn new(text: &'a [u8]) -> Self {
        Self::numbered(text, 1)
    }

    /// The lines of a part of a slice, of which the first has the number `first_line`.
    #[must_use]
    pub fn numbered(text: &'a [u8], first_line: usize) -> Self {
        let second = Second { text: [0; SECOND_LENGTH], micros: 0 };
        Self { rest: text, number: first_line.saturating_sub(1), second }
    }

    /// The number of the line given last.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// The text that is not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Result<Line<'a>, LineError>;

    #[inline]
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
        Some(self.second.split(line).ok_or_else(|| bad_line(self.number, line)))
    }
}

#[cold]
fn bad_line(number: usize, line: &[u8]) -> LineError {
    let start = &line[..line.len().min(EXCERPT_LENGTH)];
    LineError { number, excerpt: String::from_utf8_lossy(start).into_owned() }
}

impl Second {
    #[inline]
    fn split<'a>(&mut self, line: &'a [u8]) -> Option<Line<'a>> {
        let (timestamp, rest) = line.split_first_chunk::<TIMESTAMP_LENGTH>()?;
        let (b' ', message) = rest.split_first()? else { return None };
        let (second, fraction) = timestamp.split_first_chunk::<SECOND_LENGTH>()?;
        let fraction = read_fraction(*fraction.first_chunk()?)?;
        if *second != self.text {
            self.micros = read_second(second)?;
            self.text = *second;
        }
        let time = Timestamp::from_micros(self.micros + fraction);
        Some(Line::Message { timestamp, time, message })
    }
}

/// The microseconds since 1970 of `yyyy-MM-ddTHH:mm:ss.`.
#[cold]
fn read_second(text: &[u8; SECOND_LENGTH]) -> Option<i64> {
    let [year_and_time @ .., b'.'] = text else { return None };
    // Years of six digits begin with a sign, and this has none.
    let (b'0'..=b'9', b'-') = (year_and_time[0], year_and_time[4]) else { return None };
    let text = std::str::from_utf8(year_and_time).ok()?;
    Timestamp::parse(&format!("{text}Z")).ok()?.micros()
}

/// The microseconds of `fffffffZ`, of which the last digit is cut.
#[inline]
fn read_fraction(text: [u8; 8]) -> Option<i64> {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    const HIGH_HALVES: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    if text[7] != b'Z' {
        return None;
    }
    // With a zero in place of the `Z` these are eight digits, the first in the lowest byte.
    let digits = u64::from_le_bytes(text) ^ (u64::from(b'Z' ^ b'0') << 56);
    let below_colon = digits.wrapping_add(0x0606_0606_0606_0606);
    if (digits & HIGH_HALVES) != ZEROS || (below_colon & HIGH_HALVES) != ZEROS {
        return None;
    }
    // Neighbours are joined: eight numbers of one digit become four of two, two of four, one of eight.
    let ones = digits - ZEROS;
    let twos = ((ones * 10) + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = ((twos * 100) + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    let eights = ((fours * 10_000) + (fours >> 32)) & 0xffff_ffff;
    i64::try_from(eights / 100).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TIME: &str = "2020-02-01T00:00:00.0001234Z";

    fn message<'a>(timestamp: &'a str, message: &'a str) -> Line<'a> {
        Line::Message {
            timestamp: timestamp.as_bytes().try_into().unwrap(),
            time: Timestamp::parse(timestamp).unwrap(),
            message: message.as_bytes(),
        }
    }

    #[test]
    fn messages_and_disconnects_are_told_apart() {
        let text = format!("{TIME} {{\"a\":1}}\n\n{TIME} [2]\n{TIME} ");
        let lines: Vec<_> = Lines::new(text.as_bytes()).map(Result::unwrap).collect();
        let expected =
            [message(TIME, "{\"a\":1}"), Line::Disconnect, message(TIME, "[2]"), message(TIME, "")];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_one_read() {
        let text = format!("{TIME} 1\n2020-02-01 nonsense\n{TIME} 2");
        let lines: Vec<_> = Lines::numbered(text.as_bytes(), 41).collect();
        assert!(lines[0].is_ok() && lines[2].is_ok());
        assert_eq!(
            lines[1].as_ref().unwrap_err().to_string(),
            "line 42 of the slice does not begin with a timestamp and a space: `2020-02-01 nonsense`"
        );
    }

    #[test]
    fn seconds_change_and_come_back() {
        let times = [
            "2019-12-31T23:59:59.9999999Z",
            "2020-01-01T00:00:00.0000000Z",
            "2020-01-01T00:00:00.6194819Z",
            "2019-12-31T23:59:59.9999990Z",
        ];
        let text = times.map(|time| format!("{time} x\n")).concat();
        let lines: Vec<_> = Lines::new(text.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(lines, times.map(|time| message(time, "x")));
    }

    #[test]
    fn what_is_no_date_is_no_timestamp() {
        for bad in [
            "2020-13-01T00:00:00.0000000Z",
            "2020-02-30T00:00:00.0000000Z",
            "2020-02-01T24:00:00.0000000Z",
            "2020-02-01T00:00:00.0000000z",
            "2020-02-01T00:00:00.000000 Z",
            "2020-02-01T00:00:00.00000:0Z",
            "2020-02-01T00:00:00,0000000Z",
            "2020-02-01 00:00:00.0000000Z",
            "+02020-02-01T00:00:00.00000Z",
            "2020-02-01T00:00:00.0000000",
        ] {
            let text = format!("{bad} {{}}");
            assert!(Lines::new(text.as_bytes()).next().unwrap().is_err(), "{bad}");
        }
        assert!(Lines::new(TIME.as_bytes()).next().unwrap().is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_give_as_many_lines_as_they_have(bytes: Vec<u8>) {
            let newlines = memchr::memchr_iter(b'\n', &bytes).count();
            let unfinished = usize::from(bytes.last().is_some_and(|byte| *byte != b'\n'));
            prop_assert_eq!(Lines::new(&bytes).count(), newlines + unfinished);
        }

        #[test]
        fn times_are_those_the_slow_reader_reads(
            seconds in prop::collection::vec((0i64..4_000_000_000, 0i64..10_000_000), 1..20)
        ) {
            let mut text = Vec::new();
            for (second, fraction) in &seconds {
                let start = Timestamp::from_millis(second * 1_000).to_string();
                text.extend_from_slice(format!("{}.{fraction:07}Z m\n", &start[..19]).as_bytes());
            }
            let times: Vec<_> = Lines::new(&text).map(|line| match line {
                Ok(Line::Message { time, .. }) => time,
                other => panic!("{other:?}"),
            }).collect();
            let expected: Vec<_> = seconds.iter().map(|(second, fraction)| {
                Timestamp::from_micros(second * 1_000_000 + fraction / 10)
            }).collect();
            prop_assert_eq!(times, expected);
        }

        #[test]
        fn a_changed_byte_is_a_bad_line_or_another_time(at in 0usize..29, byte: u8) {
            let mut text = format!("{TIME} m").into_bytes();
            text[at] = byte;
            let valid = text[28] == b' '
                && text[..28].iter().zip("dddd-dd-ddTdd:dd:dd.dddddddZ".bytes()).all(|(is, shape)| {
                    if shape == b'd' { is.is_ascii_digit() } else { *is == shape }
                })
                && std::str::from_utf8(&text[..28]).is_ok_and(|time| Timestamp::parse(time).is_ok());
            let line = Lines::new(&text).next().unwrap();
            // A newline makes two lines, and an empty one is a disconnect.
            let read = matches!(line, Ok(Line::Message { .. }));
            prop_assert_eq!(read, valid, "{:?}", line);
        }
    }
}
