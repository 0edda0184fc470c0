//! How far a stream has come. It can be read at any time, from any thread.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use market_data::Timestamp;

/// Counters of one stream.
#[derive(Debug)]
pub struct Progress {
    slices_done: AtomicU64,
    slices_total: AtomicU64,
    minutes_done: AtomicU64,
    minutes_total: AtomicU64,
    bytes_downloaded: AtomicU64,
    compressed_bytes: AtomicU64,
    decompressed_bytes: AtomicU64,
    market_time: AtomicI64,
}

impl Progress {
    pub(crate) fn new(minutes: u32) -> Self {
        Self {
            slices_done: AtomicU64::new(0),
            slices_total: AtomicU64::new(0),
            minutes_done: AtomicU64::new(0),
            minutes_total: AtomicU64::new(minutes.into()),
            bytes_downloaded: AtomicU64::new(0),
            compressed_bytes: AtomicU64::new(0),
            decompressed_bytes: AtomicU64::new(0),
            market_time: AtomicI64::new(i64::MIN),
        }
    }

    /// Slices read to their end.
    #[must_use]
    pub fn slices_done(&self) -> u64 {
        self.slices_done.load(Ordering::Relaxed)
    }

    /// Slices of the whole range; 0 as long as the API has not said how long they are.
    #[must_use]
    pub fn slices_total(&self) -> u64 {
        self.slices_total.load(Ordering::Relaxed)
    }

    /// Minutes read to their end.
    #[must_use]
    pub fn minutes_done(&self) -> u64 {
        self.minutes_done.load(Ordering::Relaxed)
    }

    /// Minutes of the whole range.
    #[must_use]
    pub fn minutes_total(&self) -> u64 {
        self.minutes_total.load(Ordering::Relaxed)
    }

    /// Bytes that came from the API.
    #[must_use]
    pub fn bytes_downloaded(&self) -> u64 {
        self.bytes_downloaded.load(Ordering::Relaxed)
    }

    /// Bytes read from slices.
    #[must_use]
    pub fn compressed_bytes(&self) -> u64 {
        self.compressed_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of text these became.
    #[must_use]
    pub fn decompressed_bytes(&self) -> u64 {
        self.decompressed_bytes.load(Ordering::Relaxed)
    }

    /// The time of the last message handed out; `None` before the first.
    #[must_use]
    pub fn market_time(&self) -> Option<Timestamp> {
        let micros = self.market_time.load(Ordering::Relaxed);
        (micros != i64::MIN).then(|| Timestamp::from_micros(micros))
    }

    pub(crate) fn plan(&self, slices: u64) {
        self.slices_total.store(slices, Ordering::Relaxed);
    }

    pub(crate) fn slice_added(&self) {
        self.slices_total.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn slice_done(&self, minutes: u32) {
        self.slices_done.fetch_add(1, Ordering::Relaxed);
        self.minutes_done.fetch_add(minutes.into(), Ordering::Relaxed);
    }

    pub(crate) fn downloaded(&self, bytes: usize) {
        self.bytes_downloaded.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self, compressed: u64, decompressed: usize) {
        self.compressed_bytes.fetch_add(compressed, Ordering::Relaxed);
        self.decompressed_bytes.fetch_add(decompressed as u64, Ordering::Relaxed);
    }

    pub(crate) fn reached(&self, time: Option<Timestamp>) {
        if let Some(micros) = time.and_then(Timestamp::micros) {
            self.market_time.store(micros, Ordering::Relaxed);
        }
    }
}
