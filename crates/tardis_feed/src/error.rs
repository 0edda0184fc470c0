//! What can go wrong between the archive and its lines.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::minute::Minute;
use crate::slice::SliceId;

/// Why a stream of slices ended early. None of these texts holds a key.
#[derive(Debug, Error)]
pub enum FeedError {
    /// An option cannot be used.
    #[error("{option} cannot be used: {reason}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What is wrong and what is accepted.
        reason: String,
    },
    /// The API refused, or failed until the attempts were used up.
    #[error("the Tardis API answered {status} to {url}: {text}{}", advice(*status, *attempts))]
    Api {
        /// The HTTP status.
        status: u16,
        /// What the API said.
        text: String,
        /// What was asked.
        url: String,
        /// How often it was asked.
        attempts: u32,
    },
    /// The API could not be reached, or sent nothing, until the attempts were used up.
    #[error(
        "{url} could not be fetched in {attempts} attempts: {reason}; check the network and the endpoint{}",
        if *all_cached { ". Everything asked for is in the cache: the option `offline` replays it without the API" } else { "" }
    )]
    Unreachable {
        /// What was asked.
        url: String,
        /// How often it was asked.
        attempts: u32,
        /// What failed the last time.
        reason: String,
        /// Whether the cache has every slice of the range.
        all_cached: bool,
    },
    /// What the API sent is no slice, and was not after the last attempt either.
    #[error("{url} gave no good slice in {attempts} attempts: {reason}; nothing of it was kept")]
    BadBody {
        /// What was asked.
        url: String,
        /// How often it was asked.
        attempts: u32,
        /// What was wrong the last time.
        reason: String,
    },
    /// The API answered in a way that is not understood.
    #[error("the answer to {url} is not understood: {reason}")]
    Answer {
        /// What was asked.
        url: String,
        /// What is not understood.
        reason: String,
    },
    /// The cache could not be written or read.
    #[error("could not {action} {}: {source}{}", path.display(), disk_advice(source))]
    Disk {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A slice in the cache is damaged and could not be replaced in time.
    #[error("{slice} is damaged: {reason}; {consequence}")]
    Damaged {
        /// Which slice.
        slice: SliceId,
        /// What is wrong with it.
        reason: String,
        /// What became of it, and what can be done.
        consequence: &'static str,
    },
    /// A line is longer than any message.
    #[error("line {line} of {slice} is longer than {limit} bytes")]
    LineTooLong {
        /// Which slice.
        slice: SliceId,
        /// The line's number, from 1.
        line: usize,
        /// How long a line may be.
        limit: usize,
    },
    /// A slice is not in the cache and the API may not be asked.
    #[error(
        "the cache at {} has no slice of {exchange} for {minute}; without the option `offline` it is fetched",
        directory.display()
    )]
    NotCached {
        /// The exchange.
        exchange: String,
        /// The first minute that is missing.
        minute: Minute,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// The runtime was shut down under the stream.
    #[error("the stream was stopped before its end: {reason}")]
    Stopped {
        /// What the runtime said.
        reason: String,
    },
}

impl FeedError {
    /// The status of the API, where it gave one.
    #[must_use]
    pub fn api_status(&self) -> Option<u16> {
        match self {
            Self::Api { status, .. } => Some(*status),
            _ => None,
        }
    }
}

fn advice(status: u16, attempts: u32) -> String {
    match status {
        401 | 403 => " (check the API key and what it gives access to)".to_owned(),
        429 | 500.. => format!(" (asked {attempts} times; try again later)"),
        _ => String::new(),
    }
}

fn disk_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "; make room, clear the cache or choose another cache directory"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a cache directory that can be written"
        }
        _ => "",
    }
}
