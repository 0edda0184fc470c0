//! What people see of the archive: streams of blocks of lines.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Client;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};

use crate::api::Question;
use crate::block::{Block, BufferPool};
use crate::cache::{SliceCache, check_exchange};
use crate::client::{endpoint, http_client};
use crate::clock::{Availability, Clock};
use crate::download::Downloads;
use crate::error::FeedError;
use crate::filters::OptimisedFilters;
use crate::options::{ApiKey, FeedOptions, SliceRange};
use crate::progress::Progress;
use crate::reading::{Backlog, BlockQueue, Item};
use crate::schedule::{Schedule, Task};

/// The longest range: fifty years. It keeps a slip of the pen from becoming a plan of its size.
const MAX_MINUTES: u32 = 50 * 366 * 24 * 60;

/// The archive, through its API and cache. Streams of one archive share their connections.
#[derive(Clone, Debug)]
pub struct Archive {
    options: Arc<FeedOptions>,
    endpoint: String,
    client: Client,
    runtime: Handle,
    clock: Clock,
}

impl Archive {
    /// An archive whose work is done by `runtime`, which needs its time and I/O drivers. Nothing is
    /// asked yet.
    pub fn new(options: Arc<FeedOptions>, runtime: &Handle) -> Result<Self, FeedError> {
        let url = endpoint(&options)?;
        let client = http_client(&options, &url)?;
        let endpoint = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { options, endpoint, client, runtime: runtime.clone(), clock: Clock::System })
    }

    /// The same archive as one request wants it: with a key of its own, or cleaned up behind it.
    pub fn for_request(
        &self,
        api_key: Option<ApiKey>,
        auto_cleanup: bool,
    ) -> Result<Self, FeedError> {
        let has_own_key = api_key.is_some() && api_key != self.options.api_key;
        if !has_own_key && (!auto_cleanup || self.options.auto_cleanup) {
            return Ok(self.clone());
        }
        let mut options = FeedOptions::clone(&self.options);
        options.auto_cleanup |= auto_cleanup;
        if !has_own_key {
            return Ok(Self { options: Arc::new(options), ..self.clone() });
        }
        options.api_key = api_key;
        Self::new(Arc::new(options), &self.runtime)
    }

    /// Where its slices are kept.
    #[must_use]
    pub fn cache_dir(&self) -> &Path {
        &self.options.cache_dir
    }

    /// Begins to fetch and read a range.
    pub fn open(&self, range: SliceRange) -> Result<SliceStream, FeedError> {
        check_exchange(&range.exchange)?;
        let options = Arc::clone(&self.options);
        let minutes = range.to.since(range.from);
        if minutes > MAX_MINUTES {
            let reason = format!("from {} to {} is longer than fifty years", range.from, range.to);
            return Err(FeedError::Option { option: "to", reason });
        }
        let filters = OptimisedFilters::new(&range.filters);
        let (root, cleanup) = (&options.cache_dir, options.auto_cleanup);
        let cache = SliceCache::new(root, &range.exchange, &filters, cleanup);
        let progress = Arc::new(Progress::new(minutes));
        let stopped = Arc::new(AtomicBool::new(false));
        let backlog = Arc::new(Backlog::new(options.prefetch_bytes));
        let (sender, blocks) = mpsc::unbounded_channel();
        let queue = BlockQueue {
            sender: sender.clone(),
            backlog: Arc::clone(&backlog),
            pool: Arc::new(BufferPool::new(options.prefetch_bytes, options.max_line_bytes)),
            progress: Arc::clone(&progress),
            stopped: Arc::clone(&stopped),
            max_line_bytes: options.max_line_bytes,
            decoder: Arc::default(),
        };
        let question = Question {
            endpoint: self.endpoint.clone(),
            exchange: range.exchange,
            from: range.from,
            filters,
            compression: options.compression,
        };
        let downloads = Downloads {
            client: self.client.clone(),
            question,
            cache,
            progress: Arc::clone(&progress),
            stopped: Arc::clone(&stopped),
            running: Semaphore::new(options.download_concurrency.max(1)),
            clock: self.clock.clone(),
            options,
        };
        let availability = Availability::new(range.wait_when_data_not_yet_available);
        let schedule = Schedule { downloads: Arc::new(downloads), queue, minutes, availability };
        let task = Task(self.runtime.spawn(async move {
            let _ = sender.send(match schedule.run().await {
                Ok(()) => Item::End,
                Err(error) => Item::Error(error),
            });
        }));
        Ok(SliceStream { blocks, backlog, progress, stopped, ended: false, _task: task })
    }
}

/// The blocks of a range, in order. Dropping it stops everything it began.
#[derive(Debug)]
pub struct SliceStream {
    blocks: mpsc::UnboundedReceiver<Item>,
    backlog: Arc<Backlog>,
    progress: Arc<Progress>,
    stopped: Arc<AtomicBool>,
    ended: bool,
    _task: Task,
}

impl SliceStream {
    /// The next block; `None` at the end of the range. After an error there is no more. Nothing is
    /// lost if this is dropped before it is ready.
    pub async fn next_block(&mut self) -> Option<Result<Block, FeedError>> {
        if self.ended {
            return None;
        }
        let item = self.blocks.recv().await;
        if let Some(Item::Block(block)) = item {
            self.backlog.taken(block.memory());
            self.progress.reached(block.last_time());
            return Some(Ok(block));
        }
        self.ended = true;
        match item {
            Some(Item::Error(error)) => Some(Err(error)),
            Some(_) => None,
            // Without its end it must not look complete.
            None => Some(Err(FeedError::Stopped { reason: "its task is gone".to_owned() })),
        }
    }

    /// How far it has come.
    #[must_use]
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }
}

impl Drop for SliceStream {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decompress::tests::zstd_frame;
    use crate::minute::Minute;
    use market_data::Timestamp;
    use std::sync::Mutex;

    #[tokio::test]
    async fn minutes_that_are_not_there_yet_are_waited_for() {
        let root = tempfile::tempdir().unwrap();
        let from = Minute::of(Timestamp::of_minute(2020, 2, 1, 10, 0)).unwrap();
        let cache = SliceCache::new(root.path(), "bitmex", &OptimisedFilters::new(&[]), false);
        for offset in 0..3 {
            let file = cache.file(from.after(offset), 1, crate::options::Compression::Zstd);
            std::fs::create_dir_all(file.path.parent().unwrap()).unwrap();
            std::fs::write(&file.path, zstd_frame(format!("{offset}\n").as_bytes())).unwrap();
        }
        let options = FeedOptions {
            // Nobody listens there: what is asked for too early is an error.
            endpoint: "http://127.0.0.1:9".to_owned(),
            cache_dir: root.path().to_owned(),
            ..FeedOptions::default()
        };
        let now = Arc::new(Mutex::new(Timestamp::of_minute(2020, 2, 1, 9, 50)));
        let mut archive = Archive::new(Arc::new(options), &Handle::current()).unwrap();
        archive.clock = Clock::Manual(Arc::clone(&now));
        let mut stream = archive
            .open(SliceRange {
                exchange: "bitmex".to_owned(),
                from,
                to: from.after(3),
                filters: Vec::new(),
                wait_when_data_not_yet_available: Some(30),
            })
            .unwrap();
        let mut text = Vec::new();
        while let Some(block) = stream.next_block().await {
            text.extend_from_slice(block.unwrap().text());
        }
        assert_eq!(text, b"0\n1\n2\n");
        let last_is_there = Timestamp::of_minute(2020, 2, 1, 10, 32);
        assert!(now.lock().unwrap().micros() >= last_is_there.micros());
    }

    #[test]
    fn a_stream_whose_runtime_is_gone_does_not_look_complete() {
        let root = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let options = FeedOptions { cache_dir: root.path().to_owned(), ..FeedOptions::default() };
        let archive = Archive::new(Arc::new(options), runtime.handle()).unwrap();
        let from = Minute::of(Timestamp::of_day(2020, 2, 1)).unwrap();
        let range = SliceRange {
            exchange: "bitmex".to_owned(),
            from,
            to: from.after(3),
            filters: Vec::new(),
            wait_when_data_not_yet_available: None,
        };
        let mut stream = archive.open(range).unwrap();
        drop(runtime);
        let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
        other.block_on(async {
            let end = stream.next_block().await;
            assert!(matches!(end, Some(Err(FeedError::Stopped { .. }))), "{end:?}");
            assert!(stream.next_block().await.is_none());
        });
    }
}
