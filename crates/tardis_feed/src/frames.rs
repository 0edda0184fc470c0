//! WebSocket text frames, as a server sends them: final, unmasked, several one after the other in
//! one buffer.
//!
//! How long a message is shows only when it is written, and the header before it is longer for
//! longer messages. So room is left for the usual header, which fits messages of 126 to 65,535
//! bytes, and only others are moved when they end.

/// Final frame, text.
const FINAL_TEXT: u8 = 0x81;
/// The header of a message of 126 to 65,535 bytes.
const USUAL_HEADER: usize = 4;
/// The header of a shorter one.
const SHORT_HEADER: usize = 2;
/// The header of a longer one.
const LONG_HEADER: usize = 10;
/// Longest message whose length is told in the header's second byte.
const SHORT: usize = 125;
/// Says that the length follows in two bytes.
const IN_TWO_BYTES: u8 = 126;
/// Says that the length follows in eight bytes.
const IN_EIGHT_BYTES: u8 = 127;

/// Where a frame was begun.
#[derive(Debug)]
#[must_use = "a frame that is begun must be ended"]
pub struct FrameStart(usize);

/// Begins a frame behind what `out` holds. The message is to be written behind it, as UTF-8; then
/// [`end`] is to be called.
#[inline]
pub fn begin(out: &mut Vec<u8>) -> FrameStart {
    let start = out.len();
    out.extend_from_slice(&[0; USUAL_HEADER]);
    FrameStart(start)
}

/// Ends the frame that was begun at `start`: everything written to `out` since is its message.
#[inline]
#[allow(clippy::needless_pass_by_value)] // a frame ends once
pub fn end(out: &mut Vec<u8>, start: FrameStart) {
    let FrameStart(start) = start;
    let length = out.len() - start - USUAL_HEADER;
    match u16::try_from(length) {
        Ok(two_bytes) if length > SHORT => {
            let [high, low] = two_bytes.to_be_bytes();
            out[start..start + USUAL_HEADER].copy_from_slice(&[
                FINAL_TEXT,
                IN_TWO_BYTES,
                high,
                low,
            ]);
        }
        Ok(short) => end_short(out, start, short.to_be_bytes()[1]),
        Err(_) => end_long(out, start, length),
    }
}

fn end_short(out: &mut Vec<u8>, start: usize, length: u8) {
    out.copy_within(start + USUAL_HEADER.., start + SHORT_HEADER);
    out.truncate(out.len() - (USUAL_HEADER - SHORT_HEADER));
    out[start..start + SHORT_HEADER].copy_from_slice(&[FINAL_TEXT, length]);
}

#[cold]
fn end_long(out: &mut Vec<u8>, start: usize, length: usize) {
    let end = out.len();
    out.resize(end + LONG_HEADER - USUAL_HEADER, 0);
    out.copy_within(start + USUAL_HEADER..end, start + LONG_HEADER);
    out[start..start + 2].copy_from_slice(&[FINAL_TEXT, IN_EIGHT_BYTES]);
    out[start + 2..start + LONG_HEADER].copy_from_slice(&(length as u64).to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The messages of some frames, read as RFC 6455 describes them.
    pub(crate) fn messages_of(mut frames: &[u8]) -> Vec<&[u8]> {
        let mut messages = Vec::new();
        while let [first, second, rest @ ..] = frames {
            assert_eq!(first & 0b1000_0000, 0b1000_0000, "FIN");
            assert_eq!(first & 0b0111_0000, 0, "RSV");
            assert_eq!(first & 0b0000_1111, 1, "opcode text");
            assert_eq!(second & 0b1000_0000, 0, "MASK");
            let (length, rest) = match second & 0b0111_1111 {
                127 => {
                    let (length, rest) = rest.split_first_chunk::<8>().unwrap();
                    let length = usize::try_from(u64::from_be_bytes(*length)).unwrap();
                    assert!(length > 0xffff, "a shorter form exists for {length}");
                    (length, rest)
                }
                126 => {
                    let (length, rest) = rest.split_first_chunk::<2>().unwrap();
                    let length = usize::from(u16::from_be_bytes(*length));
                    assert!(length > 125, "a shorter form exists for {length}");
                    (length, rest)
                }
                length => (usize::from(length), rest),
            };
            let (message, rest) = rest.split_at(length);
            messages.push(message);
            frames = rest;
        }
        assert!(frames.is_empty(), "a frame is cut");
        messages
    }

    /// Written in two parts, as a message that is made piece by piece.
    fn frames_of(out: &mut Vec<u8>, messages: &[Vec<u8>]) {
        for message in messages {
            let (first, second) = message.split_at(message.len() / 3);
            let start = begin(out);
            out.extend_from_slice(first);
            out.extend_from_slice(second);
            end(out, start);
        }
    }

    fn message_of_length(length: usize) -> Vec<u8> {
        (0u8..251).cycle().take(length).collect()
    }

    /// Lengths at which the header changes, and some between.
    fn lengths() -> impl Strategy<Value = usize> {
        prop_oneof![0usize..=3, 123usize..=128, 65_533usize..=65_538, 0usize..70_000]
    }

    #[test]
    fn headers_are_those_of_the_standard() {
        for (length, header) in [
            (0, &[0x81, 0][..]),
            (125, &[0x81, 125]),
            (126, &[0x81, 126, 0, 126]),
            (65_535, &[0x81, 126, 0xff, 0xff]),
            (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let message = message_of_length(length);
            let mut out = Vec::new();
            frames_of(&mut out, std::slice::from_ref(&message));
            assert_eq!(&out[..header.len()], header, "{length}");
            assert!(out[header.len()..] == message, "{length}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn messages_are_read_as_they_were_written(
            lengths in prop::collection::vec(lengths(), 1..6),
            before in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let messages: Vec<_> = lengths.into_iter().map(message_of_length).collect();
            let mut out = before.clone();
            frames_of(&mut out, &messages);
            prop_assert_eq!(&out[..before.len()], &before[..]);
            prop_assert!(messages_of(&out[before.len()..]) == messages);
        }
    }
}
