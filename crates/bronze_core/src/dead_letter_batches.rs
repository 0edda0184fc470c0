//! Dead letters as Arrow record batches, a bounded part of the file at a time.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::dead_letter::{DeadLetter, DeadLetters, read_dead_letters};
use crate::record_file::RecordFileError;

/// Bytes of events after which a batch ends.
const BATCH_BYTES: usize = 4 * 1024 * 1024;

/// The record batches of a dead-letter file or a spill segment: `reason`, `payload_case`, `event`. An
/// end that cannot be read is a last item that is an error.
#[derive(Debug)]
pub struct DeadLetterBatches {
    letters: DeadLetters,
    failed: Option<RecordFileError>,
}

impl DeadLetterBatches {
    /// Opens a file.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, RecordFileError> {
        Ok(Self { letters: read_dead_letters(path)?, failed: None })
    }
}

impl Iterator for DeadLetterBatches {
    type Item = Result<RecordBatch, RecordFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        let mut letters: Vec<DeadLetter> = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES {
            match self.letters.next() {
                Some(Ok(letter)) => {
                    bytes += letter.event.len() + letter.reason.len();
                    letters.push(letter);
                }
                Some(Err(error)) => {
                    self.failed = Some(error);
                    break;
                }
                None => break,
            }
        }
        if letters.is_empty() {
            return self.failed.take().map(Err);
        }
        batch_of(&letters).map(Ok)
    }
}

/// Nothing only if the columns did not fit the schema beside them.
fn batch_of(letters: &[DeadLetter]) -> Option<RecordBatch> {
    let schema = Schema::new(vec![
        Field::new("reason", DataType::Utf8, false),
        Field::new("payload_case", DataType::Utf8, false),
        Field::new("event", DataType::Binary, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(letters.iter().map(|letter| Some(&*letter.reason)).collect::<StringArray>()),
        Arc::new(letters.iter().map(|letter| Some(letter.case.name())).collect::<StringArray>()),
        Arc::new(letters.iter().map(|letter| Some(&*letter.event)).collect::<BinaryArray>()),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dead_letter::DeadLetterFile;
    use crate::payload_case::PayloadCase;
    use arrow_array::cast::AsArray;

    #[test]
    fn a_file_comes_in_parts_and_a_torn_end_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kafka.dead");
        let mut file = DeadLetterFile::new(&path);
        let event = vec![7; 3 * 1024 * 1024];
        for reason in ["one", "two", "three"] {
            file.append(reason, [(PayloadCase::Quote, event.as_slice())]).unwrap();
        }
        drop(file);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 5]).unwrap();
        let mut batches = DeadLetterBatches::open(&path).unwrap();
        let first = batches.next().unwrap().unwrap();
        assert_eq!(first.num_rows(), 2);
        assert_eq!(first.column(0).as_string::<i32>().value(1), "two");
        assert_eq!(first.column(1).as_string::<i32>().value(0), "quote");
        assert_eq!(first.column(2).as_binary::<i32>().value(0), event);
        assert!(matches!(batches.next(), Some(Err(RecordFileError::Torn { .. }))));
        assert!(batches.next().is_none());
    }
}
