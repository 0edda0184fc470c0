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

    /// Gives the headers to `take`: what the event is, the operator's own, then those of `meta`.
    pub(super) fn each_header(&self, event: &EventView<'_>, mut take: impl FnMut(&str, &str)) {
        let [payload_case, data_type] = Self::OWN_HEADERS;
        take(payload_case, event.case().name());
        take(data_type, event.data_type());
        for (name, value) in self.static_headers.iter() {
            take(name, value);
        }
        if let Some(prefix) = &self.meta_headers_prefix {
            let mut name = prefix.clone();
            for (key, value) in event.meta_pairs() {
                name.truncate(prefix.len());
                name.push_str(key);
                take(&name, value);
            }
        }
    }

    /// The headers in librdkafka's form.
    ///
    /// librdkafka wants a list of its own for each record. Filling one costs what copying a finished
    /// one would, so none is kept.
    pub(super) fn headers(&self, event: &EventView<'_>) -> OwnedHeaders {
        let fixed = Self::OWN_HEADERS.len() + self.static_headers.len();
        let of_meta = self.meta_headers_prefix.as_ref().map_or(0, |_| event.meta_pairs().count());
        let mut headers = Some(OwnedHeaders::new_with_capacity(fixed + of_meta));
        self.each_header(event, |key, value| {
            let header = Header { key, value: Some(value) };
            headers = headers.take().map(|headers| headers.insert(header));
        });
        headers.unwrap_or_default()
    }

    /// Bytes of key and headers, without those that say how long each is.
    pub(super) fn size(&self, event: &EventView<'_>) -> usize {
        let mut key = String::new();
        self.key.render(event, &mut key);
        let mut size = key.len();
        self.each_header(event, |name, value| size += name.len() + value.len());
        size
    }
}
