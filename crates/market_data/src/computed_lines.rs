//! Computed types of messages that come as lines of JSON.

use hashbrown::HashMap;
use thiserror::Error;

use crate::computed::Computing;
use crate::data_type::DataType;
use crate::json_read::{ReadError, read_message};
use crate::json_write::write_message;
use crate::message::Message;

/// Adds what some data types ask for to lines of normalized messages, of any exchanges.
#[derive(Debug)]
pub struct ComputedLines {
    data_types: Vec<DataType>,
    by_exchange: HashMap<String, Computing>,
}

/// A line that is no message.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {number}: {error}")]
pub struct ComputedLineError {
    /// The line's number, from 1.
    pub number: usize,
    /// What is wrong with it.
    pub error: ReadError,
}

impl ComputedLines {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(data_types: Vec<DataType>) -> Self {
        Self { data_types, by_exchange: HashMap::new() }
    }

    /// Writes each message of `lines` to `out`, and after it what it completes. A disconnect drops
    /// what is known of its exchange. Empty lines are passed over.
    pub fn take(&mut self, lines: &[u8], out: &mut Vec<u8>) -> Result<(), ComputedLineError> {
        for (position, line) in lines.split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            let message = read_message(line)
                .map_err(|error| ComputedLineError { number: position + 1, error })?;
            let computing = self
                .by_exchange
                .entry_ref(message.exchange())
                .or_insert_with(|| Computing::new(&self.data_types));
            computing.take(&message, &mut |message: &Message<'_>| {
                write_message(out, message);
                out.push(b'\n');
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trade(exchange: &str, price: u32) -> String {
        format!(
            "{{\"type\":\"trade\",\"symbol\":\"A\",\"exchange\":\"{exchange}\",\"id\":\"1\",\
             \"price\":{price},\"amount\":1,\"side\":\"buy\",\
             \"timestamp\":\"2020-02-01T00:00:00.000Z\",\
             \"localTimestamp\":\"2020-02-01T00:00:00.000000Z\"}}\n"
        )
    }

    #[test]
    fn exchanges_are_kept_apart_and_state_is_kept_from_call_to_call() {
        let mut lines = ComputedLines::new(vec!["trade_bar_2ticks".parse().unwrap()]);
        let mut out = Vec::new();
        lines.take((trade("a", 1) + "\n" + &trade("b", 7)).as_bytes(), &mut out).unwrap();
        assert!(!String::from_utf8_lossy(&out).contains("trade_bar"));
        lines.take(trade("a", 3).as_bytes(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().filter(|line| line.contains("\"open\":1,\"high\":3")).count(), 1);
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn a_line_that_is_no_message_is_named() {
        let mut lines = ComputedLines::new(Vec::new());
        let error = lines.take((trade("a", 1) + "{}").as_bytes(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("line 2: not a normalized message"), "{error}");
    }
}
