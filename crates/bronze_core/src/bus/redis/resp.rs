//! What a server writes (RESP2), as far as it matters here: whether a command went well.
//!
//! A reply is read from the bytes that are there so far; nothing is kept between two attempts. The
//! texts of good replies are passed over, since nobody asks for them.

use thiserror::Error;

/// How deep lists may nest; `EXEC` answers with one of texts.
const DEPTH: u32 = 4;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// Any that is no error and no list.
    Good,
    /// That of `PING`.
    Pong,
    /// An error as the server wrote it; its first word is its code.
    Error(String),
    /// A list.
    Many(Vec<Reply>),
}

/// Bytes that are no reply.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the server does not speak as Redis does")]
pub(super) struct Malformed;

/// The reply that `bytes` begin with, and its length; nothing if it is not there in whole.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let mut place = 0;
    let reply = read_nested(bytes, &mut place, DEPTH)?;
    Ok(reply.map(|reply| (reply, place)))
}

fn read_nested(bytes: &[u8], place: &mut usize, depth: u32) -> Result<Option<Reply>, Malformed> {
    let Some(line) = line(bytes, place)? else { return Ok(None) };
    let (kind, text) = line.split_first().ok_or(Malformed)?;
    match kind {
        b'+' => Ok(Some(if text == b"PONG" { Reply::Pong } else { Reply::Good })),
        b':' => Ok(Some(Reply::Good)),
        b'-' => Ok(Some(Reply::Error(String::from_utf8_lossy(text).into_owned()))),
        b'$' => {
            let Some(length) = length(text)? else { return Ok(Some(Reply::Good)) };
            *place = place.checked_add(length + 2).ok_or(Malformed)?;
            Ok((*place <= bytes.len()).then_some(Reply::Good))
        }
        b'*' => {
            let Some(count) = length(text)? else { return Ok(Some(Reply::Good)) };
            let depth = depth.checked_sub(1).ok_or(Malformed)?;
            // Each takes three bytes at least, so hostile numbers make no large room.
            let mut replies = Vec::with_capacity(count.min(bytes.len() / 3));
            for _ in 0..count {
                let Some(reply) = read_nested(bytes, place, depth)? else { return Ok(None) };
                replies.push(reply);
            }
            Ok(Some(Reply::Many(replies)))
        }
        _ => Err(Malformed),
    }
}

/// The next line without its end; nothing if it is not there in whole.
#[inline]
fn line<'a>(bytes: &'a [u8], place: &mut usize) -> Result<Option<&'a [u8]>, Malformed> {
    let rest = bytes.get(*place..).unwrap_or_default();
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    *place += end + 1;
    rest[..end].strip_suffix(b"\r").map(Some).ok_or(Malformed)
}

/// The length of a text or list; nothing if it is null.
#[inline]
fn length(digits: &[u8]) -> Result<Option<usize>, Malformed> {
    /// Far more than a server sends, and far from where a place overflows.
    const MOST: usize = 1 << 40;
    if digits == b"-1" {
        return Ok(None);
    }
    let mut length = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 || length > MOST {
            return Err(Malformed);
        }
        length = length * 10 + usize::from(digit);
    }
    if digits.is_empty() { Err(Malformed) } else { Ok(Some(length)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reply() -> impl Strategy<Value = (Reply, Vec<u8>)> {
        let bulk = "[a-z0-9\r\n-]{0,30}"
            .prop_map(|text| (Reply::Good, format!("${}\r\n{text}\r\n", text.len()).into_bytes()));
        let one = prop_oneof![
            Just((Reply::Good, b"+QUEUED\r\n".to_vec())),
            Just((Reply::Pong, b"+PONG\r\n".to_vec())),
            Just((Reply::Good, b":12\r\n".to_vec())),
            Just((Reply::Good, b"$-1\r\n".to_vec())),
            Just((Reply::Good, b"*-1\r\n".to_vec())),
            "[A-Z]{3} [a-z ]{0,9}"
                .prop_map(|text| (Reply::Error(text.clone()), format!("-{text}\r\n").into_bytes())),
            bulk,
        ];
        one.prop_recursive(2, 20, 5, |inner| {
            prop::collection::vec(inner, 0..5).prop_map(|parts| {
                let (replies, texts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let head = format!("*{}\r\n", replies.len()).into_bytes();
                (Reply::Many(replies), [head, texts.concat()].concat())
            })
        })
    }

    proptest! {
        #[test]
        fn a_reply_is_read_when_it_is_whole((reply, bytes) in reply(), more: Vec<u8>) {
            for cut in 0..bytes.len() {
                prop_assert_eq!(read(&bytes[..cut]), Ok(None));
            }
            let all = [&bytes[..], &more].concat();
            prop_assert_eq!(read(&all), Ok(Some((reply, bytes.len()))));
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, numbers in "[*$+:-]-?[0-9]{0,30}\r\n.{0,9}") {
            let _ = read(&bytes);
            let _ = read(numbers.as_bytes());
        }
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bytes in [&b"?\r\n"[..], b"\r\n", b"+OK\n", b"$x\r\n", b"$\r\n", b"*1-\r\n"] {
            assert_eq!(read(bytes), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(read(&b"*1\r\n".repeat(9)), Err(Malformed));
    }
}
