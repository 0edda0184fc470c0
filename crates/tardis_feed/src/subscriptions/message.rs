//! Reading a client's message.

use market_data::Filter;
use serde_json::Value;

/// What a message asks for; `None` if it is no subscription.
pub(super) type Reading = Result<Option<Vec<Filter>>, Misread>;

/// Why a subscription cannot be read.
#[derive(Debug)]
pub(super) enum Misread {
    /// It has another form than it should.
    Form,
    /// It names a channel that is not known.
    Channel(String),
}

/// Whether a field of the message has just this text.
pub(super) fn says(message: &Value, field: &str, word: &str) -> bool {
    message.get(field).and_then(Value::as_str) == Some(word)
}

/// The text of a field, which must be there.
pub(super) fn text<'a>(message: &'a Value, field: &str) -> Result<&'a str, Misread> {
    message.get(field).and_then(Value::as_str).ok_or(Misread::Form)
}

/// The texts of a field, which is one text or a list of them and must be there.
pub(super) fn texts<'a>(message: &'a Value, field: &str) -> Result<Vec<&'a str>, Misread> {
    match given(message, field) {
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().ok_or(Misread::Form)).collect()
        }
        _ => Err(Misread::Form),
    }
}

/// The texts of a field that may be missing: symbols, of which none means all.
pub(super) fn symbols<'a>(message: &'a Value, field: &str) -> Result<Vec<&'a str>, Misread> {
    given(message, field).map_or(Ok(Vec::new()), |_| texts(message, field))
}

/// The items of a field, which must be a list.
pub(super) fn items<'a>(message: &'a Value, field: &str) -> Result<&'a [Value], Misread> {
    message.get(field).and_then(Value::as_array).map(Vec::as_slice).ok_or(Misread::Form)
}

/// An object inside of the message, which must be there.
pub(super) fn part<'a>(message: &'a Value, field: &str) -> Result<&'a Value, Misread> {
    message.get(field).filter(|part| part.is_object()).ok_or(Misread::Form)
}

fn given<'a>(message: &'a Value, field: &str) -> Option<&'a Value> {
    message.get(field).filter(|value| !value.is_null())
}

/// A channel with these symbols; with none of them, all of it.
pub(super) fn filter<'a>(channel: &str, symbols: impl IntoIterator<Item = &'a str>) -> Filter {
    let symbols: Vec<String> = symbols.into_iter().map(str::to_owned).collect();
    Filter { channel: channel.to_owned(), symbols: (!symbols.is_empty()).then_some(symbols) }
}

/// All of these channels, with the same symbols.
pub(super) fn filters(channels: &[&str], symbols: &[&str]) -> Vec<Filter> {
    channels.iter().map(|channel| filter(channel, symbols.iter().copied())).collect()
}

/// A topic such as `trade:XBTUSD`; without a symbol it is all of the channel.
pub(super) fn topic_filter(topic: &str, separator: char) -> Filter {
    match topic.split_once(separator) {
        Some((channel, symbol)) => filter(channel, [symbol]),
        None => filter(topic, []),
    }
}

/// The filters with, for every one of `channel`, one of `companion` beside it: what an exchange sends
/// of itself or gives out in another way, the archive keeps as a channel of its own.
pub(super) fn with_companion(filters: Vec<Filter>, channel: &str, companion: &str) -> Vec<Filter> {
    let mut all = Vec::with_capacity(filters.len());
    for filter in filters {
        let beside = (filter.channel == channel)
            .then(|| Filter { channel: companion.to_owned(), symbols: filter.symbols.clone() });
        all.push(filter);
        all.extend(beside);
    }
    all
}
