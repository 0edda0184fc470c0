//! What a record is made of beside the event's bytes: its key and its headers.

use rdkafka::message::{Header, OwnedHeaders};

use crate::event_view::EventView;
use crate::static_pairs::StaticPairs;
use crate::template::Template;

/// How keys and headers are made.
#[derive(Clone, Debug)]
pub(super) struct RecordForm {
    pub(super) key: Template,
    pub(super) static_headers: StaticPairs,
    pub(super) meta_headers_prefix: Option<String>,
}

impl RecordForm {
    /// The headers that every record has.
    pub(super) const OWN_HEADERS: [&'static str; 2] = ["payloadCase", "dataType"];

    /// The headers: what the event is, the operator's own, then those of `meta`.
    ///
    /// librdkafka wants a list of its own for each record. Filling one costs what copying a finished
    /// one would, so none is kept.
    pub(super) fn headers(&self, event: &EventView<'_>) -> OwnedHeaders {
        let [payload_case, data_type] = Self::OWN_HEADERS;
        let fixed = Self::OWN_HEADERS.len() + self.static_headers.len();
        let of_meta = self.meta_headers_prefix.as_ref().map_or(0, |_| event.meta_pairs().count());
        let mut headers = OwnedHeaders::new_with_capacity(fixed + of_meta)
            .insert(Header { key: payload_case, value: Some(event.case().name()) })
            .insert(Header { key: data_type, value: Some(event.data_type()) });
        for (key, value) in self.static_headers.iter() {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        if let Some(prefix) = &self.meta_headers_prefix {
            let mut name = prefix.clone();
            for (key, value) in event.meta_pairs() {
                name.truncate(prefix.len());
                name.push_str(key);
                headers = headers.insert(Header { key: &name, value: Some(value) });
            }
        }
        headers
    }

    /// Bytes of key and headers, without those that say how long each is.
    pub(super) fn size(&self, event: &EventView<'_>) -> usize {
        let [payload_case, data_type] = Self::OWN_HEADERS;
        let mut key = String::new();
        self.key.render(event, &mut key);
        let own = payload_case.len() + event.case().name().len();
        let own = own + data_type.len() + event.data_type().len();
        let pair = |(name, value): (&str, &str)| name.len() + value.len();
        let fixed = self.static_headers.iter().map(pair).sum::<usize>();
        let of_meta = self.meta_headers_prefix.as_ref().map_or(0, |prefix| {
            event.meta_pairs().map(|meta| prefix.len() + pair(meta)).sum::<usize>()
        });
        key.len() + own + fixed + of_meta
    }
}
