//! A place in JSON as exchanges write it: compact, without escapes, with numbers of a usual length.
//! All else is [`Unusual`], and left to readers that take more time.

use std::fmt;

use crate::eight_bytes::{digits, end_of_plain};
use crate::raw::numeric::exact_decimal;

/// How deeply values are nested that nobody asked for.
const MAX_SKIPPED_DEPTH: usize = 8;
/// Digits that surely fit into 64 bits.
const MAX_DIGITS: usize = 18;

/// The text is not as usual, or no JSON at all, or not what was asked for.
#[derive(Debug)]
pub(crate) struct Unusual;

impl fmt::Display for Unusual {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("not as usual")
    }
}

impl std::error::Error for Unusual {}

/// A number: `digits / 10^places`, and zero is not negative.
pub(super) struct Decimal {
    pub(super) is_negative: bool,
    pub(super) digits: u64,
    pub(super) places: usize,
}

impl Decimal {
    /// The double nearest to it, where that is certain.
    #[inline]
    pub(super) fn value(&self) -> Result<f64, Unusual> {
        let magnitude = exact_decimal(self.digits, self.places).ok_or(Unusual)?;
        Ok(if self.is_negative { -magnitude } else { magnitude })
    }
}

/// A text, read up to a place.
pub(crate) struct Cursor<'de> {
    text: &'de str,
    at: usize,
}

impl<'de> Cursor<'de> {
    /// At the beginning of `json`.
    #[inline]
    pub(crate) fn new(json: &'de [u8]) -> Result<Self, Unusual> {
        // Once for all of it is much less work than for each string.
        let text = simdutf8::basic::from_utf8(json).map_err(|_| Unusual)?;
        Ok(Self { text, at: 0 })
    }

    /// Whether all is read.
    #[inline]
    pub(crate) fn end(&self) -> Result<(), Unusual> {
        if self.at == self.text.len() { Ok(()) } else { Err(Unusual) }
    }

    #[inline]
    fn bytes(&self) -> &'de [u8] {
        self.text.as_bytes()
    }

    /// What is not read yet.
    #[inline]
    pub(super) fn rest(&self) -> &'de [u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    /// The next byte.
    #[inline]
    pub(super) fn first(&self) -> Result<u8, Unusual> {
        self.bytes().get(self.at).copied().ok_or(Unusual)
    }

    /// Passes so many bytes, which were looked at.
    #[inline]
    pub(super) fn skip_bytes(&mut self, count: usize) {
        self.at += count;
    }

    /// Passes `literal`, which must be next.
    #[inline]
    pub(crate) fn pass(&mut self, literal: &[u8]) -> Result<(), Unusual> {
        if self.passes_all(literal) { Ok(()) } else { Err(Unusual) }
    }

    /// Whether `literal` was next, which is passed then.
    #[inline]
    pub(crate) fn passes_all(&mut self, literal: &[u8]) -> bool {
        let is_next = self.rest().starts_with(literal);
        if is_next {
            self.at += literal.len();
        }
        is_next
    }

    /// Whether `byte` was next, which is passed then.
    #[inline]
    pub(crate) fn passes(&mut self, byte: u8) -> bool {
        let is_next = self.bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// A string without escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Result<&'de str, Unusual> {
        self.pass(b"\"")?;
        self.rest_of_string()
    }

    /// A string without escapes, of which the first quote is passed.
    #[inline]
    pub(crate) fn rest_of_string(&mut self) -> Result<&'de str, Unusual> {
        let end = end_of_plain(self.bytes(), self.at);
        let string = self.text.get(self.at..end).ok_or(Unusual)?;
        self.at = end;
        self.pass(b"\"")?;
        Ok(string)
    }

    /// The name of a field, with the colon behind it.
    #[inline]
    pub(super) fn name(&mut self) -> Result<&'de str, Unusual> {
        let name = self.string()?;
        self.pass(b":")?;
        Ok(name)
    }

    /// Passes digits, one at least, and returns their number and value.
    #[inline]
    fn digits(&mut self, before: u64) -> Result<(usize, u64), Unusual> {
        let (end, value) = digits(self.bytes(), self.at, before);
        let length = end - self.at;
        self.at = end;
        if length == 0 { Err(Unusual) } else { Ok((length, value)) }
    }

    /// Digits that are a number by themselves: of more than one, the first is not zero.
    #[inline]
    fn whole_digits(&mut self) -> Result<(usize, u64), Unusual> {
        let starts_with_zero = self.first()? == b'0';
        let (length, value) = self.digits(0)?;
        if starts_with_zero && length > 1 { Err(Unusual) } else { Ok((length, value)) }
    }

    /// A number without an exponent.
    #[inline]
    pub(super) fn decimal(&mut self) -> Result<Decimal, Unusual> {
        let is_negative = self.passes(b'-');
        let (whole, mut digits) = self.whole_digits()?;
        let mut places = 0;
        if self.passes(b'.') {
            (places, digits) = self.digits(digits)?;
        }
        if whole + places > MAX_DIGITS || matches!(self.first(), Ok(b'e' | b'E')) {
            return Err(Unusual);
        }
        // Readers differ in whether minus zero is zero.
        if is_negative && digits == 0 {
            return Err(Unusual);
        }
        Ok(Decimal { is_negative, digits, places })
    }

    /// The value of a number without an exponent.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<f64, Unusual> {
        self.decimal()?.value()
    }

    /// A number without sign, point and exponent.
    #[inline]
    pub(crate) fn whole_number(&mut self) -> Result<u64, Unusual> {
        let (length, value) = self.whole_digits()?;
        let goes_on = matches!(self.first(), Ok(b'.' | b'e' | b'E'));
        if length > MAX_DIGITS || goes_on { Err(Unusual) } else { Ok(value) }
    }

    /// Passes a value.
    pub(super) fn skip(&mut self, depth: usize) -> Result<(), Unusual> {
        match self.first()? {
            b'"' => self.string().map(drop),
            b'n' => self.pass(b"null"),
            b't' => self.pass(b"true"),
            b'f' => self.pass(b"false"),
            _ if depth == MAX_SKIPPED_DEPTH => Err(Unusual),
            b'{' => self.skip_items(b'}', depth, |reader| reader.name().map(drop)),
            b'[' => self.skip_items(b']', depth, |_| Ok(())),
            _ => self.skip_number(),
        }
    }

    fn skip_items(
        &mut self,
        end: u8,
        depth: usize,
        before: impl Fn(&mut Self) -> Result<(), Unusual>,
    ) -> Result<(), Unusual> {
        self.at += 1;
        if self.passes(end) {
            return Ok(());
        }
        loop {
            before(self)?;
            self.skip(depth + 1)?;
            if self.passes(end) {
                return Ok(());
            }
            self.pass(b",")?;
        }
    }

    /// Passes a number.
    #[inline]
    pub(crate) fn skip_number(&mut self) -> Result<(), Unusual> {
        self.passes(b'-');
        self.whole_digits()?;
        if self.passes(b'.') {
            self.digits(0)?;
        }
        if self.passes(b'e') || self.passes(b'E') {
            let _ = self.passes(b'+') || self.passes(b'-');
            self.digits(0)?;
        }
        Ok(())
    }
}
