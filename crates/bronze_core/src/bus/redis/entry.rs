//! An event as an entry of a stream: which stream, which fields.

use redis::Cmd;

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
    streams: Vec<Template>,
    key: Template,
    headers: StaticPairs,
    max_len: Option<u64>,
    overhead: usize,
}

impl Entries {
    pub(super) fn new(
        route: Route,
        streams: Vec<Template>,
        key: Template,
        headers: StaticPairs,
        max_len: Option<u64>,
    ) -> Self {
        let of_headers: usize =
            headers.iter().map(|(name, value)| name.len() + value.len() + 16).sum();
        Self { route, streams, key, headers, max_len, overhead: USUAL_OVERHEAD + of_headers }
    }

    /// Bytes of an entry beside the event, about.
    pub(super) fn overhead(&self) -> usize {
        self.overhead
    }

    pub(super) fn put_key(&self, event: &EventView<'_>, key: &mut String) {
        self.key.render(event, key);
    }

    fn put_stream(&self, event: &EventView<'_>, case: PayloadCase, stream: &mut String) {
        self.streams[self.route.index(case)].render_with(event, stream, |stream, value| {
            stream.push_str(if value.is_empty() { "_" } else { value });
        });
    }

    /// The command that adds an event to its stream.
    pub(super) fn command(&self, case: PayloadCase, event: &[u8]) -> Result<Cmd, EventViewError> {
        let view = EventView::read(event)?;
        let arguments = 6 + 2 * (FIELDS.len() + self.headers.len());
        let mut command = Cmd::with_capacity(arguments, event.len() + self.overhead);
        let mut text = String::with_capacity(64);
        self.put_stream(&view, case, &mut text);
        command.arg("XADD").arg(&text);
        if let Some(max_len) = self.max_len {
            command.arg("MAXLEN").arg("~").arg(max_len);
        }
        text.clear();
        self.put_key(&view, &mut text);
        command.arg("*").arg(FIELDS[0]).arg(event).arg(FIELDS[1]).arg(&text);
        command.arg(FIELDS[2]).arg(case.name()).arg(FIELDS[3]).arg(view.data_type());
        for (name, value) in self.headers.iter() {
            command.arg(name).arg(value);
        }
        Ok(command)
    }
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
        Entries::new(route, streams, Template::default_key(), headers, max_len)
    }

    /// The command as Redis reads it, with `EVENT` for the event.
    fn words(entries: &Entries, case: PayloadCase, event: &[u8]) -> String {
        let packed = entries.command(case, event).unwrap().get_packed_command();
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
        assert!(entries("b", "", "", None).command(PayloadCase::Trade, b"\x0f").is_err());
    }
}
