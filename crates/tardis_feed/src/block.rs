//! Blocks of complete lines: how the text of a slice is handed on.

use std::io::{BufReader, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use market_data::Timestamp;
use memchr::{memchr_iter, memrchr};

use crate::decompress::{CountedFile, Decompressor, ZstdDecoder};
use crate::line::{Line, Lines};
use crate::slice::SliceId;

/// How much text a block has, unless a single line is longer or the slice ends.
const BLOCK_BYTES: usize = 256 << 10;

/// Complete lines of one slice. Its memory is used again when it is dropped.
#[derive(Debug)]
pub struct Block {
    /// As long as it was allocated, so that it need not be zeroed again.
    buffer: Vec<u8>,
    length: usize,
    slice: Arc<SliceId>,
    first_line: usize,
    last_time: Option<Timestamp>,
    pool: Arc<BufferPool>,
}

impl Block {
    /// The lines with their newlines; the last line of a slice may have none.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    /// The lines one by one, numbered as in their slice.
    #[must_use]
    pub fn lines(&self) -> Lines<'_> {
        Lines::numbered(self.text(), self.first_line)
    }

    /// The slice they are from.
    #[must_use]
    pub fn slice(&self) -> &Arc<SliceId> {
        &self.slice
    }

    /// The number of the first line in its slice, from 1.
    #[must_use]
    pub fn first_line(&self) -> usize {
        self.first_line
    }

    /// The time of the last message; `None` if it has none that can be read.
    #[must_use]
    pub fn last_time(&self) -> Option<Timestamp> {
        self.last_time
    }

    /// The memory it takes.
    pub(crate) fn memory(&self) -> usize {
        self.buffer.len()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.buffer));
    }
}

/// Buffers of one size that wait for their next use.
#[derive(Debug)]
pub(crate) struct BufferPool {
    size: usize,
    limit: usize,
    free: Mutex<Vec<Vec<u8>>>,
}

impl BufferPool {
    /// A pool that keeps at most `bytes`, for lines of at most `max_line_bytes`.
    pub(crate) fn new(bytes: usize, max_line_bytes: usize) -> Self {
        let size = BLOCK_BYTES.min(max_line_bytes.saturating_add(1));
        Self { size, limit: bytes / size + 2, free: Mutex::default() }
    }

    fn take(&self) -> Vec<u8> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.unwrap_or_else(|| vec![0; self.size])
    }

    fn give_back(&self, buffer: Vec<u8>) {
        // Those that a long line made longer would never shrink again.
        if buffer.len() != self.size {
            return;
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.limit {
            free.push(buffer);
        }
    }
}

/// Why a slice could not be read on.
#[derive(Debug)]
pub(crate) enum ReadFault {
    /// Its file is not what it should be.
    Damaged(String),
    /// A line is longer than any message.
    LineTooLong { line: usize },
}

/// What was read of a slice, to tell whether another copy of it begins the same way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadSoFar {
    pub(crate) blocks: u64,
    checksum: u32,
}

/// Cuts a slice into blocks. The same text is always cut at the same places.
pub(crate) struct BlockReader {
    source: Decompressor<BufReader<CountedFile>>,
    slice: Arc<SliceId>,
    pool: Arc<BufferPool>,
    max_line_bytes: usize,
    /// The beginning of a line whose end is not read yet.
    unfinished: Vec<u8>,
    next_line: usize,
    at_end: bool,
    so_far: ReadSoFar,
    /// The compressed bytes that were asked about.
    compressed: u64,
}

impl BlockReader {
    pub(crate) fn new(
        source: Decompressor<BufReader<CountedFile>>,
        slice: Arc<SliceId>,
        pool: Arc<BufferPool>,
        max_line_bytes: usize,
    ) -> Self {
        let (unfinished, so_far) = (Vec::new(), ReadSoFar::default());
        Self {
            source,
            slice,
            pool,
            max_line_bytes,
            unfinished,
            next_line: 1,
            at_end: false,
            so_far,
            compressed: 0,
        }
    }

    pub(crate) fn so_far(&self) -> ReadSoFar {
        self.so_far
    }

    pub(crate) fn into_decoder(self) -> Option<ZstdDecoder> {
        self.source.into_decoder()
    }

    /// How many compressed bytes were read since this was asked last.
    pub(crate) fn newly_compressed(&mut self) -> u64 {
        let read = self.source.input().get_ref().bytes;
        read - std::mem::replace(&mut self.compressed, read)
    }

    /// The next block; `None` at the end of the slice.
    pub(crate) fn next_block(&mut self) -> Result<Option<Block>, ReadFault> {
        if self.at_end {
            return Ok(None);
        }
        let mut buffer = self.pool.take();
        if buffer.len() <= self.unfinished.len() {
            buffer.resize(self.grown(self.unfinished.len()), 0);
        }
        let mut filled = self.unfinished.len();
        buffer[..filled].copy_from_slice(&self.unfinished);
        let length = loop {
            let searched = filled;
            filled = self.fill(&mut buffer, filled)?;
            if self.at_end {
                break filled;
            }
            if let Some(newline) = memrchr(b'\n', &buffer[searched..filled]) {
                break searched + newline + 1;
            }
            if filled > self.max_line_bytes {
                return Err(ReadFault::LineTooLong { line: self.next_line });
            }
            buffer.resize(self.grown(filled), 0);
        };
        self.unfinished.clear();
        self.unfinished.extend_from_slice(&buffer[length..filled]);
        // A long line is no reason to keep its memory for the rest of the slice.
        self.unfinished.shrink_to(BLOCK_BYTES);
        if length == 0 {
            return Ok(None);
        }
        let text = &buffer[..length];
        let first_line = self.next_line;
        self.next_line += memchr_iter(b'\n', text).count();
        self.so_far.blocks += 1;
        self.so_far.checksum = crc32c::crc32c_append(self.so_far.checksum, text);
        let last_time = last_time(text);
        let (slice, pool) = (Arc::clone(&self.slice), Arc::clone(&self.pool));
        Ok(Some(Block { buffer, length, slice, first_line, last_time, pool }))
    }

    /// Passes over what was read of another copy of this slice. Says whether it was the same.
    pub(crate) fn skip(&mut self, other: ReadSoFar) -> Result<bool, ReadFault> {
        while self.so_far.blocks < other.blocks {
            if self.next_block()?.is_none() {
                return Ok(false);
            }
        }
        Ok(self.so_far == other)
    }

    fn fill(&mut self, buffer: &mut [u8], mut filled: usize) -> Result<usize, ReadFault> {
        while filled < buffer.len() {
            match self.source.read(&mut buffer[filled..]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(read) => filled += read,
                Err(error) => return Err(ReadFault::Damaged(error.to_string())),
            }
        }
        Ok(filled)
    }

    /// How long a buffer is to be that is to hold more than `length`. One byte past the longest line
    /// is enough to see that it is too long.
    fn grown(&self, length: usize) -> usize {
        let limit = self.max_line_bytes.saturating_add(1);
        length.saturating_mul(2).min(limit).max(length + 1)
    }
}

/// The time of the last message in some lines.
fn last_time(text: &[u8]) -> Option<Timestamp> {
    let end = text.iter().rposition(|byte| *byte != b'\n')? + 1;
    let start = memrchr(b'\n', &text[..end]).map_or(0, |newline| newline + 1);
    match Lines::new(&text[start..end]).next()? {
        Ok(Line::Message { time, .. }) => Some(time),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decompress::{open, tests::compress};
    use crate::minute::Minute;
    use crate::options::Compression;
    use proptest::prelude::*;

    fn reader(
        bytes: &[u8],
        compression: Compression,
        max_line_bytes: usize,
    ) -> Option<BlockReader> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let source = open(file.path(), compression, &mut None).ok()?;
        let minute = Minute::of(Timestamp::of_day(2020, 2, 1)).unwrap();
        let slice = SliceId {
            exchange: "bitmex".to_owned(),
            minute,
            minutes: 1,
            path: file.path().to_owned(),
        };
        let pool = Arc::new(BufferPool::new(1 << 20, max_line_bytes));
        Some(BlockReader::new(source, Arc::new(slice), pool, max_line_bytes))
    }

    fn blocks(reader: &mut BlockReader) -> Result<Vec<(usize, Vec<u8>)>, ReadFault> {
        let mut blocks = Vec::new();
        while let Some(block) = reader.next_block()? {
            blocks.push((block.first_line(), block.text().to_vec()));
        }
        Ok(blocks)
    }

    #[test]
    fn a_long_line_gets_a_long_block_and_lines_after_it_short_ones() {
        let long = [vec![b'x'; 3 * BLOCK_BYTES], b"\n".to_vec()].concat();
        let text = [b"a\n".to_vec(), long.clone(), b"b\n".repeat(BLOCK_BYTES)].concat();
        let bytes = compress(&text, Compression::Zstd);
        let mut reader = reader(&bytes, Compression::Zstd, 1 << 20).unwrap();
        let blocks = blocks(&mut reader).unwrap();
        assert_eq!(blocks[0], (1, b"a\n".to_vec()));
        assert!(blocks[1].1.starts_with(&long));
        assert!(blocks[2..].iter().all(|(_, text)| text.len() <= BLOCK_BYTES));
        let last = blocks.last().unwrap();
        assert_eq!(last.0 + last.1.len() / 2 - 1, 2 + BLOCK_BYTES);
        assert_eq!(reader.newly_compressed(), bytes.len() as u64);
        assert_eq!(reader.newly_compressed(), 0);
    }

    #[test]
    fn a_line_past_the_limit_is_named() {
        for (length, fits) in [(100, true), (101, false), (1_000, false)] {
            let text = [b"a\n\n".to_vec(), vec![b'x'; length], b"\nb\n".to_vec()].concat();
            let bytes = compress(&text, Compression::Gzip);
            let result = blocks(&mut reader(&bytes, Compression::Gzip, 100).unwrap());
            match result {
                Ok(_) => assert!(fits, "{length}"),
                Err(ReadFault::LineTooLong { line }) => assert!(!fits && line == 3, "{length}"),
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn blocks_know_the_time_of_their_last_message() {
        let text = b"2020-02-01T00:00:01.5000001Z a\n2020-02-01T00:00:02.5000001Z b\n\n\n";
        let bytes = compress(text, Compression::Zstd);
        let mut reader = reader(&bytes, Compression::Zstd, 1 << 20).unwrap();
        let block = reader.next_block().unwrap().unwrap();
        assert_eq!(block.last_time().unwrap().to_string(), "2020-02-01T00:00:02.500000Z");
        assert_eq!(block.lines().count(), 4);
        assert_eq!(last_time(b"\n\n"), None);
        assert_eq!(last_time(b"nonsense"), None);
    }

    #[test]
    fn memory_is_used_again_but_not_hoarded() {
        let pool = BufferPool::new(2 * BLOCK_BYTES, 1 << 20);
        let buffers: Vec<_> = (0..9).map(|_| pool.take()).collect();
        for buffer in buffers {
            pool.give_back(buffer);
        }
        pool.give_back(vec![0; 2 * BLOCK_BYTES]);
        assert_eq!(pool.free.lock().unwrap().len(), 4);
    }

    proptest! {
        #[test]
        fn blocks_are_the_text_cut_after_lines(
            lines in prop::collection::vec("[a-z]{0,60}", 0..60),
            ends_in_newline: bool,
            max_line_bytes in 60usize..200,
        ) {
            let mut text = lines.join("\n").into_bytes();
            if ends_in_newline {
                text.push(b'\n');
            }
            let bytes = compress(&text, Compression::Zstd);
            let mut first = reader(&bytes, Compression::Zstd, max_line_bytes).unwrap();
            let blocks = blocks(&mut first).unwrap();
            let mut expected_line = 1;
            for (at, (first_line, block)) in blocks.iter().enumerate() {
                prop_assert_eq!(*first_line, expected_line);
                expected_line += memchr_iter(b'\n', block).count();
                prop_assert!(block.ends_with(b"\n") || at + 1 == blocks.len());
            }
            let joined = blocks.iter().map(|(_, block)| block.as_slice()).collect::<Vec<_>>().concat();
            prop_assert_eq!(joined, text);

            let mut again = reader(&bytes, Compression::Zstd, max_line_bytes).unwrap();
            prop_assert!(again.skip(first.so_far()).unwrap());
            prop_assert!(again.next_block().unwrap().is_none());
        }

        #[test]
        fn hostile_bytes_give_blocks_or_a_fault(
            text in prop::collection::vec(any::<u8>(), 0..2_000),
            cut in any::<prop::sample::Index>(),
            flip in any::<(prop::sample::Index, u8)>(),
            gzip: bool,
        ) {
            let compression = if gzip { Compression::Gzip } else { Compression::Zstd };
            let mut bytes = compress(&text, compression);
            let at = flip.0.index(bytes.len());
            bytes[at] ^= flip.1;
            bytes.truncate(cut.index(bytes.len()) + 1);
            if let Some(mut reader) = reader(&bytes, compression, 500) {
                let _ = blocks(&mut reader);
            }
        }
    }
}
