//! Which partition of the lake an event belongs to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use market_data::Timestamp;

use crate::payload_case::PayloadCase;
use crate::wire::{WireError, WireReader};

/// The field of the envelope that the date is taken from.
const LOCAL_TS: u32 = 4;
/// How Hive and Spark write a partition whose value is null.
const NO_DATE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The directory of a case and date.
pub(super) fn partition_directory(table: &Path, case: PayloadCase, date: &str) -> PathBuf {
    table.join(format!("payload_case={case}")).join(format!("date={date}"))
}

/// The places of events by date.
pub(super) fn by_date<'a>(events: impl Iterator<Item = &'a [u8]>) -> BTreeMap<String, Vec<usize>> {
    let mut dates: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut day = None;
    let mut date = String::new();
    for (place, event) in events.enumerate() {
        let day_of_event = local_seconds(event).ok().flatten().map(|at| at.div_euclid(86_400));
        if place == 0 || day_of_event != day {
            day = day_of_event;
            date = day.map_or_else(|| NO_DATE.to_owned(), date_of_day);
        }
        match dates.get_mut(&date) {
            Some(places) => places.push(place),
            None => drop(dates.insert(date.clone(), vec![place])),
        }
    }
    dates
}

/// The seconds of `local_ts`.
#[allow(clippy::cast_possible_wrap)] // as Protobuf writes negative numbers
fn local_seconds(event: &[u8]) -> Result<Option<i64>, WireError> {
    let mut reader = WireReader::new(event);
    let mut seconds = None;
    while let Some(key) = reader.next_key()? {
        if key.field != LOCAL_TS {
            reader.skip(key)?;
            continue;
        }
        let mut time = WireReader::new(reader.message(key)?);
        seconds = Some(0);
        while let Some(key) = time.next_key()? {
            match key.field {
                1 => seconds = Some(time.varint(key)? as i64),
                _ => time.skip(key)?,
            }
        }
    }
    Ok(seconds)
}

/// A day's date, if it has four digits for its year.
fn date_of_day(day: i64) -> String {
    let mut text = Vec::new();
    if let Some(micros) = day.checked_mul(86_400_000_000) {
        Timestamp::from_micros(micros).write(&mut text);
    }
    let date = text.split(|byte| *byte == b'T').next().unwrap_or_default();
    match std::str::from_utf8(date) {
        Ok(date) if date.len() == 10 => date.to_owned(),
        _ => NO_DATE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::bronze::NormalizedEvent;
    use prost::Message as _;

    fn event(seconds: Option<i64>) -> Vec<u8> {
        let local_ts = seconds.map(|seconds| prost_types::Timestamp { seconds, nanos: 5 });
        NormalizedEvent { local_ts, exchange: "x".to_owned(), ..NormalizedEvent::default() }
            .encode_to_vec()
    }

    #[test]
    fn events_are_grouped_by_the_day_they_were_received() {
        let times =
            [Some(1_714_521_599), Some(1_714_521_600), None, Some(0), Some(-1), Some(i64::MAX)];
        let events: Vec<_> = times.into_iter().map(event).collect();
        let dates = by_date(events.iter().map(Vec::as_slice));
        let dates: Vec<_> = dates.iter().map(|(date, at)| (date.as_str(), at.as_slice())).collect();
        assert_eq!(
            dates,
            [
                ("1969-12-31", [4].as_slice()),
                ("1970-01-01", &[3]),
                ("2024-04-30", &[0]),
                ("2024-05-01", &[1]),
                (NO_DATE, &[2, 5]),
            ]
        );
    }
}
