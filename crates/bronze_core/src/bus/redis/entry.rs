//! An event as an entry of a stream: which stream, which fields.
//!
//! Everything of a command that is the same for many events is put into bytes at the start.

use itoa::Buffer;

use crate::event_view::{EventView, EventViewError};
use crate::payload_case::PayloadCase;
use crate::route::Route;
use crate::static_pairs::StaticPairs;
use crate::template::Template;

/// The fields of every entry, before the static headers.
pub(super) const FIELDS: [&str; 4] = ["data", "key", "payloadCase", "dataType"];

/// Bytes of an entry beside the event and the static headers: names, lengths, and stream, key and
/// data type of usual length.
const USUAL_OVERHEAD: usize = 256;

/// How entries are made.
#[derive(Debug)]
pub(super) struct Entries {
    route: Route,
    /// In the order of the route's destinations.
    streams: Vec<Stream>,
    /// From the stream's name to the event.
    to_event: Vec<u8>,
    /// From the event to the key.
    to_key: Vec<u8>,
    key: Template,
    /// For each case from the key to the data type.
    to_data_type: [Vec<u8>; PayloadCase::ALL.len()],
    headers: Vec<u8>,
    overhead: usize,
}

#[derive(Debug)]
enum Stream {
    /// The command up to the stream's name.
    Constant(Vec<u8>),
    /// The command up to where the name begins, and how it is made.
    Filled(Vec<u8>, Template),
}

impl Entries {
    pub(super) fn new(
        route: Route,
        streams: Vec<Template>,
        key: Template,
        headers: &StaticPairs,
        max_len: Option<u64>,
    ) -> Self {
        let trim = max_len.map(|most| ["MAXLEN".to_owned(), "~".to_owned(), most.to_string()]);
        let trim = trim.into_iter().flatten().collect::<Vec<_>>();
        let count = 3 + trim.len() + 2 * (FIELDS.len() + headers.len());
        let mut command = format!("*{count}\r\n").into_bytes();
        put_text(&mut command, b"XADD");
        let stream = |template: Template| {
            let mut command = command.clone();
            if !template.is_constant() {
                return Stream::Filled(command, template);
            }
            put_text(&mut command, template.text().as_bytes());
            Stream::Constant(command)
        };
        let texts = |texts: &[&str]| {
            let mut bytes = Vec::new();
            for text in texts {
                put_text(&mut bytes, text.as_bytes());
            }
            bytes
        };
        let trim = trim.iter().map(String::as_str);
        let of_headers: usize =
            headers.iter().map(|(name, value)| name.len() + value.len() + 16).sum();
        Self {
            route,
            streams: streams.into_iter().map(stream).collect(),
            to_event: texts(&trim.chain(["*", FIELDS[0]]).collect::<Vec<_>>()),
            to_key: texts(&[FIELDS[1]]),
            key,
            to_data_type: PayloadCase::ALL.map(|case| texts(&[FIELDS[2], case.name(), FIELDS[3]])),
            headers: headers.iter().flat_map(|(name, value)| texts(&[name, value])).collect(),
            overhead: USUAL_OVERHEAD + of_headers,
        }
    }

    /// Bytes of an entry beside the event, about.
    pub(super) fn overhead(&self) -> usize {
        self.overhead
    }

    pub(super) fn put_key(&self, event: &EventView<'_>, key: &mut String) {
        self.key.render(event, key);
    }

    /// Appends the command that adds an event to its stream; `text` is room to work in.
    pub(super) fn put_command(
        &self,
        case: PayloadCase,
        event: &[u8],
        text: &mut String,
        out: &mut Vec<u8>,
    ) -> Result<(), EventViewError> {
        let view = EventView::reread(event)?;
        out.reserve(event.len() + self.overhead);
        match &self.streams[self.route.index(case)] {
            Stream::Constant(command) => out.extend_from_slice(command),
            Stream::Filled(command, name) => {
                out.extend_from_slice(command);
                text.clear();
                name.render_with(&view, text, |text, value| {
                    text.push_str(if value.is_empty() { "_" } else { value });
                });
                put_text(out, text.as_bytes());
            }
        }
        out.extend_from_slice(&self.to_event);
        put_text(out, event);
        out.extend_from_slice(&self.to_key);
        text.clear();
        self.put_key(&view, text);
        put_text(out, text.as_bytes());
        out.extend_from_slice(&self.to_data_type[case as usize]);
        put_text(out, view.data_type().as_bytes());
        out.extend_from_slice(&self.headers);
        Ok(())
    }
}

/// Appends a part of a command.
#[inline]
fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'$');
    out.extend_from_slice(Buffer::new().format(text.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use market_data::{Message, Timestamp};

    use super::*;
    use crate::{BronzeEncoder, EncoderOptions, EventBuffer};

    fn event(message: &str) -> Vec<u8> {
        let message: Message<'_> = market_data::read_message(message.as_bytes()).unwrap();
        let mut events = EventBuffer::default();
        BronzeEncoder::new(EncoderOptions::default()).unwrap().encode(
            &message,
            Timestamp::INVALID,
            &mut events,
        );
        events.iter().next().unwrap().1.to_vec()
    }

    fn trade() -> Vec<u8> {
        event(
            r#"{"type":"trade","symbol":"XBTUSD","exchange":"bitmex","id":"1","price":1,"amount":2,"side":"buy","timestamp":"2019-06-01T00:00:00.000Z","localTimestamp":"2019-06-01T00:00:00.000000Z"}"#,
        )
    }

    fn disconnect() -> Vec<u8> {
        event(
            r#"{"type":"disconnect","exchange":"bitmex","localTimestamp":"2019-06-01T00:00:00.000000Z"}"#,
        )
    }

    fn entries(stream: &str, routes: &str, headers: &str, max_len: Option<u64>) -> Entries {
        let route = Route::to("", stream).unwrap().with_routes("", routes).unwrap();
        let streams = route.destinations().iter().map(|text| Template::compile(text).unwrap());
        let streams = streams.collect();
        let headers = StaticPairs::parse("", headers).unwrap();
        Entries::new(route, streams, Template::default_key(), &headers, max_len)
    }

    /// The command as Redis reads it, with `EVENT` for the event.
    fn words(entries: &Entries, case: PayloadCase, event: &[u8]) -> String {
        let mut packed = Vec::new();
        entries.put_command(case, event, &mut "left over".to_owned(), &mut packed).unwrap();
        let place = packed.windows(event.len()).position(|bytes| bytes == event).unwrap();
        let text = [&packed[..place], b"EVENT", &packed[place + event.len()..]].concat();
        let text = String::from_utf8(text).unwrap();
        let is_word = |line: &&str| *line == "*" || !line.starts_with(['$', '*']);
        text.lines().filter(is_word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn entries_have_their_fields_in_order() {
        let entries = entries("bronze", "", "env:prod,team:a b", None);
        assert_eq!(
            words(&entries, PayloadCase::Trade, &trade()),
            "XADD bronze * data EVENT key bitmex|XBTUSD|trade payloadCase trade dataType trade \
             env prod team a b"
        );
    }

    #[test]
    fn streams_are_routed_filled_in_and_kept_short() {
        let entries = entries("b:{{exchange}}:{{symbol}}", "trade:t:{{symbol}}", "", Some(9));
        let trade = words(&entries, PayloadCase::Trade, &trade());
        assert!(trade.starts_with("XADD t:XBTUSD MAXLEN ~ 9 * data"), "{trade}");
        let disconnect = words(&entries, PayloadCase::Disconnect, &disconnect());
        assert!(disconnect.starts_with("XADD b:bitmex:_ MAXLEN ~ 9 * data"), "{disconnect}");
        assert!(disconnect.contains("key bitmex||disconnect payloadCase disconnect"));
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let (mut text, mut out) = (String::new(), Vec::new());
        let entries = entries("b", "", "", None);
        assert!(entries.put_command(PayloadCase::Trade, b"\x0f", &mut text, &mut out).is_err());
    }
}
