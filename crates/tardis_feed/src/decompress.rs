//! Compressed slices as readers of their text. Both kinds may be several streams one after another,
//! and both must be complete: what ends early is an error, not a shorter slice.
//!
//! Memory is bounded whatever the input says: a zstd frame may ask for a window of at most 128 MiB,
//! gzip for 32 KiB, and text comes out in pieces.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use zstd::stream::raw::{Decoder, InBuffer, Operation as _, OutBuffer};

use crate::options::Compression;

/// How much of a file is read at once.
const INPUT_BYTES: usize = 128 << 10;

pub(crate) type ZstdDecoder = Decoder<'static>;

/// Text out of compressed bytes.
pub(crate) enum Decompressor<R> {
    Zstd(ZstdFrames<R>),
    Gzip(Box<MultiGzDecoder<R>>),
}

impl<R: BufRead> Decompressor<R> {
    /// `decoder` is one that was used before, or a place for one.
    pub(crate) fn new(
        mut input: R,
        compression: Compression,
        decoder: &mut Option<ZstdDecoder>,
    ) -> io::Result<Self> {
        // Nothing is no gzip and no zstd either, though decoders of both let it pass.
        if input.fill_buf()?.is_empty() {
            return Err(ends_early("it is empty"));
        }
        Ok(match compression {
            Compression::Zstd => Self::Zstd(ZstdFrames {
                input,
                decoder: match decoder.take() {
                    Some(mut decoder) => {
                        decoder.reinit()?;
                        decoder
                    }
                    None => Decoder::new()?,
                },
                in_frame: true,
                output_full: false,
            }),
            Compression::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(input))),
        })
    }

    /// The decoder, for the next slice: it has memory that takes time to get.
    pub(crate) fn into_decoder(self) -> Option<ZstdDecoder> {
        match self {
            Self::Zstd(frames) => Some(frames.decoder),
            Self::Gzip(_) => None,
        }
    }

    pub(crate) fn input(&self) -> &R {
        match self {
            Self::Zstd(frames) => &frames.input,
            Self::Gzip(members) => members.get_ref(),
        }
    }
}

impl<R: BufRead> Read for Decompressor<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(frames) => frames.read(out),
            Self::Gzip(members) => members.read(out),
        }
    }
}

/// Zstandard frames, one after another.
pub(crate) struct ZstdFrames<R> {
    input: R,
    decoder: ZstdDecoder,
    /// A frame has begun and not ended.
    in_frame: bool,
    /// The decoder may hold text for which there was no room.
    output_full: bool,
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let available = self.input.fill_buf()?;
            if available.is_empty() && !self.output_full {
                return if self.in_frame {
                    Err(ends_early("its last zstd frame ends early"))
                } else {
                    Ok(0)
                };
            }
            let mut source = InBuffer::around(available);
            let mut target = OutBuffer::around(&mut *out);
            let wanted = self.decoder.run(&mut source, &mut target)?;
            let (consumed, written) = (source.pos(), target.pos());
            self.input.consume(consumed);
            if consumed > 0 || written > 0 {
                self.in_frame = wanted != 0;
            }
            let was_full = std::mem::replace(&mut self.output_full, written == out.len());
            if written > 0 {
                return Ok(written);
            }
            if consumed == 0 && !was_full {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "its zstd data lead nowhere",
                ));
            }
        }
    }
}

fn ends_early(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, what)
}

/// Opens a slice's file.
pub(crate) fn open(
    path: &Path,
    compression: Compression,
    decoder: &mut Option<ZstdDecoder>,
) -> io::Result<Decompressor<BufReader<CountedFile>>> {
    let file = CountedFile { file: File::open(path)?, bytes: 0 };
    Decompressor::new(BufReader::with_capacity(INPUT_BYTES, file), compression, decoder)
}

/// A file that knows how much of it was read.
pub(crate) struct CountedFile {
    file: File,
    pub(crate) bytes: u64,
}

impl Read for CountedFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(out)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

/// Reads a whole file to see that it is complete and that its checksums are right. Says whether it
/// came to the end, which it does not if `stopped` is set meanwhile.
pub(crate) fn verify(
    path: &Path,
    compression: Compression,
    stopped: &AtomicBool,
) -> io::Result<bool> {
    let mut slice = open(path, compression, &mut None)?;
    let mut text = vec![0; INPUT_BYTES];
    while !stopped.load(Ordering::Relaxed) {
        if slice.read(&mut text)? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;

    pub(crate) fn zstd_frame(text: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    pub(crate) fn gzip_member(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    pub(crate) fn compress(text: &[u8], compression: Compression) -> Vec<u8> {
        match compression {
            Compression::Zstd => zstd_frame(text),
            Compression::Gzip => gzip_member(text),
        }
    }

    fn decompress(bytes: &[u8], compression: Compression, step: usize) -> io::Result<Vec<u8>> {
        // A small input buffer, so that streams end and begin in the middle of it.
        let input = BufReader::with_capacity(7, bytes);
        let mut slice = Decompressor::new(input, compression, &mut None)?;
        let (mut text, mut piece) = (Vec::new(), vec![0; step]);
        loop {
            match slice.read(&mut piece)? {
                0 => return Ok(text),
                read => text.extend_from_slice(&piece[..read]),
            }
        }
    }

    fn compression() -> impl Strategy<Value = Compression> {
        prop_oneof![Just(Compression::Zstd), Just(Compression::Gzip)]
    }

    #[test]
    fn nothing_is_no_slice() {
        for compression in [Compression::Zstd, Compression::Gzip] {
            assert!(decompress(b"", compression, 10).is_err());
            assert_eq!(decompress(&compress(b"", compression), compression, 10).unwrap(), b"");
        }
    }

    #[test]
    fn a_window_that_would_not_fit_is_refused() {
        // A frame header that asks for a window of 2 GiB.
        let bomb = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00];
        assert!(decompress(&bomb, Compression::Zstd, 1 << 10).is_err());
    }

    #[test]
    fn a_bomb_comes_out_in_pieces() {
        let zeros = vec![0; 1 << 20];
        for compression in [Compression::Zstd, Compression::Gzip] {
            let bomb = compress(&zeros, compression).repeat(64);
            let mut slice = Decompressor::new(bomb.as_slice(), compression, &mut None).unwrap();
            let mut piece = vec![1; 256 << 10];
            let mut total = 0;
            loop {
                match slice.read(&mut piece).unwrap() {
                    0 => break,
                    read => total += read,
                }
            }
            assert_eq!(total, 64 << 20);
        }
    }

    #[test]
    fn a_decoder_forgets_what_it_left_unfinished() {
        let (long, short) = (zstd_frame(&[7; 10_000]), zstd_frame(b"short"));
        let mut slice = Decompressor::new(long.as_slice(), Compression::Zstd, &mut None).unwrap();
        assert!(slice.read(&mut [0; 10]).unwrap() > 0);
        let mut decoder = slice.into_decoder();
        let mut slice =
            Decompressor::new(short.as_slice(), Compression::Zstd, &mut decoder).unwrap();
        assert!(decoder.is_none());
        let mut text = Vec::new();
        slice.read_to_end(&mut text).unwrap();
        assert_eq!(text, b"short");
    }

    proptest! {
        #[test]
        fn streams_one_after_another_give_all_their_text(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 1..5),
            step in 1usize..700,
            compression in compression(),
        ) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| compress(text, compression)).collect();
            prop_assert_eq!(decompress(&bytes, compression, step).unwrap(), texts.concat());
        }

        #[test]
        fn what_is_cut_is_an_error(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..4),
            cut in any::<prop::sample::Index>(),
            compression in compression(),
        ) {
            let streams: Vec<Vec<u8>> = texts.iter().map(|text| compress(text, compression)).collect();
            let mut borders = vec![];
            let mut end = 0;
            for stream in &streams {
                end += stream.len();
                borders.push(end);
            }
            let bytes = streams.concat();
            let length = cut.index(bytes.len());
            let whole = borders.contains(&length);
            prop_assert_eq!(decompress(&bytes[..length], compression, 64).is_ok(), whole);
        }

        #[test]
        fn a_changed_byte_never_gives_other_text(
            text in prop::collection::vec(any::<u8>(), 1..2_000),
            at in any::<prop::sample::Index>(),
            flip in 1u8..,
            compression in compression(),
        ) {
            let mut bytes = compress(&text, compression);
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            // Some bytes mean nothing (a gzip header's time), so the text may still come out.
            if let Ok(read) = decompress(&bytes, compression, 512) {
                prop_assert_eq!(read, text);
            }
        }

        #[test]
        fn any_bytes_end_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..500),
            compression in compression(),
        ) {
            let start: &[u8] = match compression {
                Compression::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
                Compression::Gzip => &[0x1f, 0x8b, 8, 0],
            };
            let _ = decompress(&bytes, compression, 100);
            let _ = decompress(&[start, &bytes].concat(), compression, 100);
        }
    }
}
