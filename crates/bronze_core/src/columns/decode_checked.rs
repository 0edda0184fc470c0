//! Events to columns where some may be bad: a row that cannot be read is null and has a reason.

use std::sync::{Arc, LazyLock};

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::check::{EventProblem, read_fitting};
use super::decode::{
    NarrowTable, WideTable, event_bytes, events_to_narrow, events_to_wide, nullable_event_bytes,
};
use super::error::{ColumnsError, Fault};
use super::slots::EventSlots;
use crate::event_view::EventView;
use crate::payload_case::PayloadCase;

/// Events as a table, wide or of one case, row by row, and why a row is empty; null for good rows.
pub fn events_to_checked(
    events: &dyn Array,
    case: Option<PayloadCase>,
) -> Result<(RecordBatch, ArrayRef), ColumnsError> {
    // Nearly always everything is good, and then nothing need be looked at twice.
    let strict = match case {
        None => events_to_wide(events),
        Some(case) => events_to_narrow(events, case),
    };
    match strict {
        Ok(batch) => Ok((batch, new_null_array(&DataType::Utf8, events.len()))),
        Err(error @ (ColumnsError::EventsType { .. } | ColumnsError::TooLarge { .. })) => {
            Err(error)
        }
        Err(_) => decode_what_can_be(events, case),
    }
}

fn decode_what_can_be(
    events: &dyn Array,
    case: Option<PayloadCase>,
) -> Result<(RecordBatch, ArrayRef), ColumnsError> {
    let events = nullable_event_bytes(events)?;
    let mut slots = EventSlots::new();
    let mut table = Table::new(case, events.len());
    let mut reasons = Vec::with_capacity(events.len());
    for (row, event) in events.into_iter().enumerate() {
        match table.read(event, &mut slots) {
            Ok(found) => {
                table.append(row, found, &mut slots).map_err(|fault| fault.at(row))?;
                reasons.push(None);
            }
            Err(problem) => {
                slots.clear();
                table.append_null();
                reasons.push(Some(problem.to_string()));
            }
        }
    }
    Ok((table.finish()?, Arc::new(StringArray::from(reasons))))
}

enum Table {
    Wide(Box<WideTable>),
    Narrow(NarrowTable, PayloadCase),
}

impl Table {
    fn new(case: Option<PayloadCase>, rows: usize) -> Self {
        match case {
            None => Self::Wide(Box::new(WideTable::new(rows))),
            Some(case) => Self::Narrow(NarrowTable::new(case, rows), case),
        }
    }

    fn read<'a>(
        &self,
        event: Option<&'a [u8]>,
        slots: &mut EventSlots<'a>,
    ) -> Result<Option<PayloadCase>, EventProblem> {
        let found = read_fitting(event.ok_or(EventProblem::Null)?, slots)?;
        match self {
            Self::Narrow(_, expected) if found != Some(*expected) => {
                Err(EventProblem::OtherCase { found, expected: *expected })
            }
            Self::Wide(_) | Self::Narrow(..) => Ok(found),
        }
    }

    fn append(
        &mut self,
        row: usize,
        case: Option<PayloadCase>,
        slots: &mut EventSlots<'_>,
    ) -> Result<(), Fault> {
        match self {
            Self::Wide(table) => table.append(row, case, slots),
            Self::Narrow(table, _) => table.append(slots),
        }
    }

    fn append_null(&mut self) {
        match self {
            Self::Wide(table) => table.append_null(),
            Self::Narrow(table, _) => table.append_null(),
        }
    }

    fn finish(self) -> Result<RecordBatch, ColumnsError> {
        match self {
            Self::Wide(table) => table.finish(),
            Self::Narrow(table, _) => table.finish(),
        }
    }
}

static KEYS: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fields = ["exchange", "symbol", "payload_case"];
    Arc::new(Schema::new(fields.map(|name| Field::new(name, DataType::Utf8, true)).to_vec()))
});

/// What routes and keys of good events are made of: exchange, symbol and payload case.
pub fn event_keys(events: &dyn Array) -> Result<RecordBatch, ColumnsError> {
    let views = event_bytes(events)?
        .into_iter()
        .enumerate()
        .map(|(row, event)| {
            EventView::read(event).map_err(|error| ColumnsError::Unroutable { row, error })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let column = |text: fn(&EventView<'_>) -> String| -> ArrayRef {
        Arc::new(views.iter().map(|view| Some(text(view))).collect::<StringArray>())
    };
    let columns = vec![
        column(|view| view.exchange().to_owned()),
        column(|view| view.symbol().to_owned()),
        column(|view| view.case().name().to_owned()),
    ];
    Ok(RecordBatch::try_new(Arc::clone(&KEYS), columns)?)
}
