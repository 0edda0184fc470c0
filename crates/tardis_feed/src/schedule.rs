//! Fetching the slices of one range ahead of their reader, and reading them in order.
//!
//! The last minute is asked for first, then the first one, both always of the API: they prove that
//! there is access to the whole range, and tell how long the slices between them should be. Those are
//! fetched several at once, a bounded number ahead of the one that is read.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::block::ReadSoFar;
use crate::clock::Availability;
use crate::download::{Downloads, stopped};
use crate::error::FeedError;
use crate::minute::Minute;
use crate::part::{Part, Parts};
use crate::reading::{BlockQueue, SliceEnd};
use crate::slice::{SliceFile, SliceId};

/// A task that ends with this value.
#[derive(Debug)]
pub(crate) struct Task<T = ()>(pub(crate) JoinHandle<T>);

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Fetches the slices of one range and puts them into its queue.
pub(crate) struct Schedule {
    pub(crate) downloads: Arc<Downloads>,
    pub(crate) queue: BlockQueue,
    pub(crate) minutes: u32,
    pub(crate) availability: Availability,
}

/// A slice that was asked for.
struct Coming {
    part: Part,
    file: Task<Result<SliceFile, FeedError>>,
}

impl Schedule {
    pub(crate) async fn run(self) -> Result<(), FeedError> {
        if self.minutes == 0 {
            return Ok(());
        }
        let mut ends = Vec::new();
        let mut parts: Box<dyn Iterator<Item = Part> + Send> = if self.downloads.options.offline {
            let parts = self.plan_offline().await?;
            self.queue.progress.plan(parts.len() as u64);
            Box::new(parts.into_iter())
        } else {
            let parts = self.plan(&mut ends).await?;
            self.queue.progress.plan(parts.total());
            Box::new(parts)
        };
        let ahead = self.downloads.options.slices_ahead.max(1);
        let mut coming: VecDeque<Coming> = VecDeque::with_capacity(ahead);
        loop {
            while coming.len() < ahead
                && let Some(part) = parts.next()
            {
                let ready = ends.iter().position(|(offset, _)| *offset == part.offset);
                let ready = ready.map(|at| ends.swap_remove(at).1);
                coming.push_back(self.fetch(part, ready));
            }
            let Some(Coming { part, mut file }) = coming.pop_front() else { return Ok(()) };
            let file = (&mut file.0).await.map_err(|error| stopped(&error))??;
            let minutes = file.minutes;
            self.read(part, file).await?;
            self.queue.progress.slice_done(minutes);
            if minutes < part.minutes {
                // The API gave less than it was asked for: the rest comes next.
                let rest = Part { offset: part.offset + minutes, minutes: part.minutes - minutes };
                self.queue.progress.slice_added();
                coming.push_front(self.fetch(rest, None));
            }
        }
    }

    /// Asks for both ends of the range, puts them into `ends`, and cuts the range into parts.
    async fn plan(&self, ends: &mut Vec<(u32, SliceFile)>) -> Result<Parts, FeedError> {
        let (from, clock) = (self.downloads.question.from, &self.downloads.clock);
        if let Some(wait) = self.availability.wait(from, clock.now()) {
            clock.sleep(wait).await;
        }
        let available = self.availability.available(from, self.minutes, clock.now());
        let mut suggested = 1;
        let last_and_first: &[u32] = match available {
            0 => &[],
            1 => &[0],
            more => &[more - 1, 0],
        };
        for offset in last_and_first {
            let downloaded = self.downloads.download(Part { offset: *offset, minutes: 1 }).await;
            let downloaded = match downloaded {
                Ok(downloaded) => downloaded,
                Err(error) => return Err(self.with_advice(error).await),
            };
            suggested = suggested.max(downloaded.suggested_minutes);
            ends.push((*offset, downloaded.file));
        }
        let size = if self.downloads.question.filters.is_empty() { 1 } else { suggested };
        Ok(Parts::new(self.minutes, available, size))
    }

    async fn plan_offline(&self) -> Result<Vec<Part>, FeedError> {
        self.cover().await?.map_err(|minute| FeedError::NotCached {
            exchange: self.downloads.question.exchange.clone(),
            minute,
            directory: self.downloads.cache.directory().to_owned(),
        })
    }

    async fn cover(&self) -> Result<Result<Vec<Part>, Minute>, FeedError> {
        let (downloads, minutes) = (Arc::clone(&self.downloads), self.minutes);
        let cover = move || downloads.cache.cover(downloads.question.from, minutes);
        tokio::task::spawn_blocking(cover).await.map_err(|error| stopped(&error))
    }

    /// Says so if the cache could do what the API did not.
    async fn with_advice(&self, error: FeedError) -> FeedError {
        match error {
            FeedError::Unreachable { url, attempts, reason, .. } => {
                let all_cached = matches!(self.cover().await, Ok(Ok(_)));
                FeedError::Unreachable { url, attempts, reason, all_cached }
            }
            other => other,
        }
    }

    fn fetch(&self, part: Part, ready: Option<SliceFile>) -> Coming {
        let (downloads, availability) = (Arc::clone(&self.downloads), self.availability);
        let minute = downloads.question.from.after(part.offset);
        let file = tokio::spawn(async move {
            if let Some(file) = ready {
                return Ok(file);
            }
            if let Some(wait) = availability.wait(minute, downloads.clock.now()) {
                downloads.clock.sleep(wait).await;
            }
            downloads.get(part).await
        });
        Coming { part, file: Task(file) }
    }

    /// Reads a slice into the queue. A damaged one is fetched again, once.
    async fn read(&self, part: Part, mut file: SliceFile) -> Result<(), FeedError> {
        let mut so_far = ReadSoFar::default();
        let minutes = file.minutes;
        let mut replaced = false;
        loop {
            let slice = SliceId {
                exchange: self.downloads.question.exchange.clone(),
                minute: self.downloads.question.from.after(part.offset),
                minutes,
                path: file.path.clone(),
            };
            let (slice, reason) = match self.queue.read(slice, &file, so_far).await? {
                SliceEnd::Complete => return Ok(()),
                SliceEnd::Damaged { slice, reason, so_far: read } => {
                    so_far = if read.blocks > so_far.blocks { read } else { so_far };
                    (slice, reason)
                }
            };
            let consequence = match (self.downloads.options.offline, replaced) {
                (true, _) => "remove it, or let it be fetched again without the option `offline`",
                (false, true) => "it was fetched again and is damaged again; check the disk",
                (false, false) => {
                    let _ = tokio::fs::remove_file(&file.path).await;
                    // The next one gets its name, and must not be removed with it.
                    file.temporary = false;
                    file =
                        self.downloads.download(Part { offset: part.offset, minutes }).await?.file;
                    replaced = true;
                    if file.minutes == minutes {
                        continue;
                    }
                    "the API no longer gives a slice of that size; start this replay again"
                }
            };
            return Err(FeedError::Damaged { slice: SliceId::clone(&slice), reason, consequence });
        }
    }
}
