//! LZ4 frames, as Kafka's clients write them: independent blocks of at most 64 KiB, no checksums.
//!
//! The library's own writer of frames copies what it is given, and looks for matches in the block before
//! even where blocks are independent; around its blocks alone, the frame costs nothing.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

/// Magic number, what kind of frame it is (version 1, independent blocks of at most 64 KiB), and the byte
/// that checks the kind.
const HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
/// A block of no bytes ends the frame.
const END: [u8; 4] = [0; 4];
const BLOCK_BYTES: usize = 64 * 1024;
/// The bit of a block's length that says that it is not compressed.
const PLAIN: u32 = 1 << 31;

/// Writes frames, one after the other, in memory of its own.
pub(super) struct Lz4Writer {
    table: CompressTable,
    block: Vec<u8>,
}

impl Default for Lz4Writer {
    fn default() -> Self {
        Self { table: CompressTable::large(), block: Vec::new() }
    }
}

impl Lz4Writer {
    /// Appends a frame that holds `bytes`.
    pub(super) fn append(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
        self.block.resize(get_maximum_output_size(BLOCK_BYTES), 0);
        out.extend_from_slice(&HEADER);
        for block in bytes.chunks(BLOCK_BYTES) {
            let length = compress_into_with_table(block, &mut self.block, &mut self.table)
                .map_err(std::io::Error::other)?;
            let (mark, stored) =
                if length < block.len() { (0, &self.block[..length]) } else { (PLAIN, block) };
            let length = u32::try_from(stored.len()).map_err(std::io::Error::other)?;
            out.extend_from_slice(&(length | mark).to_le_bytes());
            out.extend_from_slice(stored);
        }
        out.extend_from_slice(&END);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
    use proptest::prelude::*;

    use super::*;

    fn check(writer: &mut Lz4Writer, bytes: &[u8]) -> usize {
        let mut frame = b"before".to_vec();
        writer.append(bytes, &mut frame).unwrap();
        let mut read = Vec::new();
        FrameDecoder::new(&frame[6..]).read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
        frame.len()
    }

    proptest! {
        #[test]
        fn frames_hold_what_was_put_into_them(
            pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..300), 1..2_000_usize), 0..4),
        ) {
            let mut writer = Lz4Writer::default();
            let texts: Vec<_> = pieces.iter().map(|(piece, times)| piece.repeat(*times)).collect();
            check(&mut writer, &texts.concat());
            for text in texts {
                check(&mut writer, &text);
            }
        }
    }

    #[test]
    fn blocks_that_do_not_shrink_are_kept_plain() {
        let mut random = fastrand::Rng::with_seed(7);
        for length in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES] {
            let bytes: Vec<u8> = std::iter::repeat_with(|| random.u8(..)).take(length).collect();
            let around = HEADER.len() + length.div_ceil(BLOCK_BYTES) * 4 + END.len();
            assert_eq!(check(&mut Lz4Writer::default(), &bytes), 6 + around + length);
        }
    }

    #[test]
    fn a_frame_is_the_one_that_the_library_writes() {
        let info =
            FrameInfo::new().block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(b"x").unwrap();
        let mut ours = Vec::new();
        Lz4Writer::default().append(b"x", &mut ours).unwrap();
        assert_eq!(encoder.finish().unwrap(), ours);
    }
}
