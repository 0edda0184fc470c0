//! From an answer of the API to a slice in the cache.
//!
//! A body goes to a temporary file beside its place and is read there once, to its end and with its
//! checksums, before it gets its name: nobody who looks into the cache, in this process or another,
//! ever sees a slice that is not good.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reqwest::{Client, Response};
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::api::{Answer, Failure, Fault, Question, describe, silence};
use crate::cache::SliceCache;
use crate::clock::Clock;
use crate::decompress::verify;
use crate::error::FeedError;
use crate::options::{Compression, FeedOptions};
use crate::part::Part;
use crate::progress::Progress;
use crate::slice::SliceFile;

/// Gzip of nothing: what stands in the cache for an answer without a body.
const EMPTY_GZIP: [u8; 20] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What all downloads of a stream share.
#[derive(Debug)]
pub(crate) struct Downloads {
    pub(crate) client: Client,
    pub(crate) options: Arc<FeedOptions>,
    pub(crate) question: Question,
    pub(crate) cache: SliceCache,
    pub(crate) progress: Arc<Progress>,
    /// Set when nobody wants the slices any more.
    pub(crate) stopped: Arc<AtomicBool>,
    pub(crate) running: Semaphore,
    pub(crate) clock: Clock,
}

/// A slice that was downloaded.
#[derive(Debug)]
pub(crate) struct Downloaded {
    pub(crate) file: SliceFile,
    pub(crate) suggested_minutes: u32,
}

impl Downloads {
    /// A slice from the cache, or else from the API.
    pub(crate) async fn get(self: &Arc<Self>, part: Part) -> Result<SliceFile, FeedError> {
        let downloads = Arc::clone(self);
        let minute = self.question.from.after(part.offset);
        let found = spawn_blocking(move || downloads.cache.find(minute, part.minutes)).await;
        if let Some(file) = found.map_err(|error| stopped(&error))? {
            return Ok(file);
        }
        if self.options.offline {
            return Err(FeedError::NotCached {
                exchange: self.question.exchange.clone(),
                minute,
                directory: self.cache.directory().to_owned(),
            });
        }
        self.download(part).await.map(|downloaded| downloaded.file)
    }

    /// A slice from the API, tried as often as the options say.
    pub(crate) async fn download(&self, part: Part) -> Result<Downloaded, FeedError> {
        let Ok(_permit) = self.running.acquire().await else {
            return Err(FeedError::Stopped { reason: "its downloads were closed".to_owned() });
        };
        let mut attempt = 1;
        loop {
            let fault = match self.attempt(part).await {
                Ok(downloaded) => return Ok(downloaded),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again(fault)) => fault,
            };
            match fault.delay(attempt, &self.options.retry) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return Err(fault.into_error(self.question.url(part), attempt)),
            }
            attempt += 1;
        }
    }

    async fn attempt(&self, part: Part) -> Result<Downloaded, Failure> {
        let (patience, key) = (self.options.attempt_timeout, self.options.api_key.as_ref());
        let now = self.clock.now();
        let answer = self.question.ask(&self.client, part, patience, key, now).await?;
        let Answer { response, compression, minutes, suggested_minutes } = answer;
        let minute = self.question.from.after(part.offset);
        let base = self.cache.base_path(minute, minutes);
        let (unconfirmed, file) = blocking(move || Unconfirmed::create(&base)).await?;
        let bytes = self.store(response, file, &unconfirmed.path, patience).await?;

        let (cache, stopped) = (self.cache.clone(), Arc::clone(&self.stopped));
        let file = blocking(move || {
            if bytes == 0 && compression == Compression::Gzip {
                let written = fs::write(&unconfirmed.path, EMPTY_GZIP);
                written.map_err(|source| disk("write", &unconfirmed.path, source))?;
            }
            match verify(&unconfirmed.path, compression, &stopped) {
                Ok(true) => {}
                Ok(false) => return Err(Failure::Final(nobody_waits())),
                Err(error) => return Err(Failure::Again(Fault::Body(error.to_string()))),
            }
            let mut file = cache.file(minute, minutes, compression);
            unconfirmed.confirm(&file.path).inspect_err(|_| file.temporary = false)?;
            Ok(file)
        })
        .await?;
        Ok(Downloaded { file, suggested_minutes })
    }

    /// Writes a body to a file; gives its length.
    async fn store(
        &self,
        mut response: Response,
        file: fs::File,
        path: &Path,
        patience: Duration,
    ) -> Result<u64, Failure> {
        let mut file = tokio::fs::File::from_std(file);
        let mut bytes = 0;
        loop {
            match timeout(patience, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    bytes += chunk.len() as u64;
                    self.progress.downloaded(chunk.len());
                    let written = file.write_all(&chunk).await;
                    written.map_err(|source| disk("write", path, source))?;
                }
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(Failure::Again(Fault::Network(describe(error)))),
                Err(_) => return Err(Failure::Again(Fault::Network(silence(patience)))),
            }
        }
        // What was written is on its way to the disk; only this says whether it arrived.
        file.flush().await.map_err(|source| disk("write", path, source))?;
        Ok(bytes)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.map_err(|error| Failure::Final(stopped(&error)))?
}

pub(crate) fn stopped(error: &tokio::task::JoinError) -> FeedError {
    FeedError::Stopped { reason: error.to_string() }
}

fn nobody_waits() -> FeedError {
    FeedError::Stopped { reason: "nobody waits for it".to_owned() }
}

/// A disk does not get better by trying again.
fn disk(action: &'static str, path: &Path, source: io::Error) -> Failure {
    Failure::Final(FeedError::Disk { action, path: path.to_owned(), source })
}

/// A file that is removed unless it is confirmed.
#[derive(Debug)]
struct Unconfirmed {
    path: PathBuf,
}

impl Unconfirmed {
    fn create(base: &Path) -> Result<(Self, fs::File), Failure> {
        let folder = base.parent().unwrap_or(base);
        let mut left = 3;
        loop {
            left -= 1;
            fs::create_dir_all(folder).map_err(|source| disk("create", folder, source))?;
            // Processes forked from one another draw the same numbers, but not the same ids.
            let mut path = base.as_os_str().to_owned();
            path.push(format!("{:08x}{:08x}.unconfirmed", process::id(), fastrand::u32(..)));
            let path = PathBuf::from(path);
            match fs::File::create_new(&path) {
                Ok(file) => return Ok((Self { path }, file)),
                // Somebody removed the folder in between because it was empty, or the name is taken.
                Err(error)
                    if left > 0
                        && matches!(
                            error.kind(),
                            io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists
                        ) => {}
                Err(source) => return Err(disk("create", &path, source)),
            }
        }
    }

    /// Gives the file its name; another of that name is replaced.
    fn confirm(self, name: &Path) -> Result<(), Failure> {
        fs::rename(&self.path, name).map_err(|source| disk("rename a download to", name, source))
    }
}

impl Drop for Unconfirmed {
    fn drop(&mut self) {
        // It is gone already if it was confirmed.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_for_an_empty_body_is_a_good_slice() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), EMPTY_GZIP).unwrap();
        let stopped = AtomicBool::new(false);
        assert!(verify(file.path(), Compression::Gzip, &stopped).unwrap());
    }
}
