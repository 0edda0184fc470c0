//! An event as a message: its headers and their size.

use async_nats::HeaderMap;
use async_nats::header::{HeaderName, HeaderValue, NATS_MESSAGE_ID};
use ring::digest;

use crate::config_error::{ConfigError, ConfigFault};
use crate::payload_case::PayloadCase;
use crate::static_pairs::StaticPairs;

const PAYLOAD_CASE: HeaderName = HeaderName::from_static("payloadCase");
const DATA_TYPE: HeaderName = HeaderName::from_static("dataType");
/// `NATS/1.0`, the empty line, and the headers of every message.
const FIXED_SIZE: usize =
    12 + "Nats-Msg-Id: \r\n".len() + ID_LENGTH + "payloadCase: \r\n".len() + "dataType: \r\n".len();
const ID_LENGTH: usize = 32;

/// How messages are made.
#[derive(Debug)]
pub(super) struct Messages {
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Bytes of a message beside event, case and data type.
    overhead: usize,
}

impl Messages {
    pub(super) fn new(pairs: &StaticPairs) -> Result<Self, ConfigError> {
        let refuse = |value: &str, problem: &str, remedy: &str| {
            Err(ConfigFault::unusable(value, problem, remedy).of("--nats-static-headers"))
        };
        let mut headers = Vec::new();
        let mut overhead = FIXED_SIZE;
        for (name, value) in pairs.iter() {
            let is = |other: &str| name.eq_ignore_ascii_case(other);
            if name.to_ascii_lowercase().starts_with("nats-") || is("payloadCase") || is("dataType")
            {
                let remedy = "choose another name; Nats-*, payloadCase and dataType are taken";
                return refuse(name, "is set for every message", remedy);
            }
            let is_letter = |c: char| c.is_ascii_graphic() && c != ':';
            let (true, Ok(known)) = (name.chars().all(is_letter), name.parse()) else {
                let remedy = "use visible ASCII characters without a colon";
                return refuse(name, "is no header name", remedy);
            };
            let (false, Ok(text)) = (value.contains(char::is_control), value.parse()) else {
                return refuse(value, "has a control character", "write it in one line");
            };
            overhead += name.len() + value.len() + 4;
            headers.push((known, text));
        }
        Ok(Self { headers, overhead })
    }

    /// Bytes of a message as the server counts them against its largest.
    pub(super) fn size(&self, case: PayloadCase, event: &[u8], data_type: &str) -> usize {
        event.len() + case.name().len() + data_type.len() + self.overhead
    }

    /// The headers of an event's message.
    pub(super) fn headers(&self, case: PayloadCase, data_type: &str, event: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(NATS_MESSAGE_ID, HeaderValue::from(id_of(event)));
        headers.insert(PAYLOAD_CASE, HeaderValue::from(case.name()));
        headers.insert(DATA_TYPE, value_of(data_type));
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        headers
    }
}

/// What tells an event from all others, and is the same whenever it is sent: a hash of its bytes,
/// which hold session, place in it and time. Half of a SHA-256 is beyond collisions.
fn id_of(event: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, event);
    let mut id = String::with_capacity(ID_LENGTH);
    for byte in &hash.as_ref()[..ID_LENGTH / 2] {
        for digit in [byte >> 4, byte & 15] {
            id.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    id
}

/// A line break in a data type would end its header.
fn value_of(text: &str) -> HeaderValue {
    text.parse().unwrap_or_else(|_| HeaderValue::from(text.replace(['\r', '\n'], "_")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(headers: &str) -> Result<Messages, String> {
        let pairs = StaticPairs::parse("", headers).unwrap();
        Messages::new(&pairs).map_err(|error| error.to_string())
    }

    #[test]
    fn every_message_has_its_headers() {
        let messages = messages("env:prod,x:").unwrap();
        let headers = messages.headers(PayloadCase::GroupedBookSnapshot, "a\r\nb", b"event");
        let value = |name: &str| headers.get(name).unwrap().as_str().to_owned();
        assert_eq!(value("payloadCase"), "groupedBookSnapshot");
        assert_eq!(value("dataType"), "a__b");
        assert_eq!((value("env"), value("x")), ("prod".to_owned(), String::new()));
        // printf event | sha256sum
        assert_eq!(value("Nats-Msg-Id"), "b8e1f80bd70ae0784c7855a451731b74");
        let lines: usize = headers
            .iter()
            .map(|(name, values)| {
                let name: &str = name.as_ref();
                name.len() + values[0].as_str().len() + 4
            })
            .sum();
        assert_eq!(
            messages.size(PayloadCase::GroupedBookSnapshot, b"event", "a__b"),
            lines + 12 + 5
        );
    }

    #[test]
    fn equal_events_have_equal_ids_and_others_not() {
        assert_eq!(id_of(b"a"), id_of(b"a"));
        assert_ne!(id_of(b"a"), id_of(b"b"));
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        for (headers, refusal) in [
            ("nats-msg-id:x", "`nats-msg-id` is set for every message; choose another name"),
            ("PayloadCase:x", "`PayloadCase` is set for every message"),
            ("a b:x", "`a b` is no header name; use visible ASCII"),
            ("é:x", "`é` is no header name"),
        ] {
            let told = messages(headers).unwrap_err();
            assert!(told.starts_with(&format!("--nats-static-headers: {refusal}")), "{told}");
        }
        let pairs = StaticPairs::of_pairs("", [("a", "b\nc")]).unwrap();
        assert!(Messages::new(&pairs).is_err());
    }
}
