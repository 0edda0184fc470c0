//! The embedded lake: Bronze as Parquet files on the local disk, which Spark and others read as one
//! table.
//!
//! ```text
//! DIR/payload_case=trade/date=2024-05-01/part-….parquet    typed columns of the case
//! DIR/_temporary/…                                         files that are being written
//! ```
//!
//! A request is a file per date: it is written whole, synchronised, and then renamed into its place.
//! So a reader never sees half a file, an acknowledged event is on the disk, and rolling by size and time
//! is the batching that every bus has. The date is that of `local_ts`, in UTC.

mod partition;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_array::BinaryArray;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::Deserialize;
use thiserror::Error;

use super::{Address, Answer, BusClient, ConnectError, Connected, Names, Request, RequestLimits};
use crate::columns::{self, ColumnsError};
use crate::config_error::{ConfigError, ConfigFault};
use crate::delivery::DeliveryOptions;
use crate::event_view::EventView;
use crate::notice::Notices;
use crate::payload_case::PayloadCase;
use crate::payload_filter::PayloadFilter;
use crate::record_file::sync_directory;
use crate::retry::Outcome;
use partition::{by_date, partition_directory};

// Limits.

const DEFAULT_ROLL_MB: u64 = 16;
const DEFAULT_ROLL_SECONDS: u64 = 10;
/// Events in a file; more than a roll by size gives.
const MOST_EVENTS: usize = 4_000_000;
/// What an earlier process left half-written is deleted after this time.
const STALE_AFTER: Duration = Duration::from_hours(1);

// Options.

/// The operator's options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LakeOptions {
    /// The directory of the table.
    pub dir: Option<PathBuf>,
    /// The payload cases to keep; all if empty.
    pub include_payloads: Names,
    /// Megabytes of encoded events after which a file is complete.
    pub roll_mb: Option<u64>,
    /// Seconds after which a file is complete.
    pub roll_seconds: Option<u64>,
    /// `zstd` or `none`.
    pub compression: Option<String>,
}

/// The lake.
#[derive(Debug)]
pub struct Lake {
    table: Arc<Table>,
    filter: PayloadFilter,
    roll_bytes: usize,
    roll_after: Duration,
}

impl BusClient for Lake {
    const NAME: &'static str = "lake";
    type Options = LakeOptions;

    fn validate(
        options: LakeOptions,
        delivery: &DeliveryOptions,
        _: &Notices,
    ) -> Result<Self, ConfigError> {
        let directory = options.dir.filter(|directory| !directory.as_os_str().is_empty());
        let directory = directory.ok_or_else(|| {
            ConfigFault::missing("name the directory of the table").of("--lake-dir")
        })?;
        let compression = match options.compression.as_deref().unwrap_or("zstd") {
            "zstd" => Compression::ZSTD(ZstdLevel::default()),
            "none" => Compression::UNCOMPRESSED,
            other => {
                let fault = ConfigFault::unusable(other, "is no compression", "use zstd or none");
                return Err(fault.of("--lake-compression"));
            }
        };
        let most = (delivery.max_memory_mb / 2).max(1);
        let roll_mb = options.roll_mb.unwrap_or(DEFAULT_ROLL_MB.min(most));
        if !(1..=most).contains(&roll_mb) {
            // What waits for its file waits in memory.
            let fault = ConfigFault::contradiction(
                "--max-memory-mb",
                format!("a file of {roll_mb} MB does not fit into half of the memory"),
                format!("give 1 to {most}, or raise the other"),
            );
            return Err(fault.of("--lake-roll-mb"));
        }
        let roll_seconds = options.roll_seconds.unwrap_or(DEFAULT_ROLL_SECONDS);
        if roll_seconds > 3_600 {
            return Err(ConfigFault::out_of_range(roll_seconds, 0, 3_600).of("--lake-roll-seconds"));
        }
        Ok(Self {
            table: Arc::new(Table { directory, compression, files: AtomicU64::new(0) }),
            filter: options.include_payloads.payload_filter("--lake-include-payloads")?,
            roll_bytes: usize::try_from(roll_mb << 20).unwrap_or(usize::MAX),
            roll_after: Duration::from_secs(roll_seconds),
        })
    }

    fn filter(&self) -> PayloadFilter {
        self.filter
    }

    fn limits(&self) -> RequestLimits {
        RequestLimits {
            events: MOST_EVENTS,
            bytes: self.roll_bytes,
            linger: self.roll_after,
            lanes: 1,
            pipelined: 1,
            one_event_per_key: false,
        }
    }

    fn address(
        &self,
        event: &EventView<'_>,
        _: &[u8],
        _: bool,
        address: &mut Address,
    ) -> Result<(), String> {
        address.destination = event.case() as usize;
        Ok(())
    }

    // Connect.

    async fn connect(&self) -> Result<Connected, ConnectError> {
        let table = Arc::clone(&self.table);
        let opened = tokio::task::spawn_blocking(move || table.open()).await;
        let directory = self.table.directory.display();
        match opened {
            Ok(Ok(())) => Ok(Connected { peer: directory.to_string(), warnings: Vec::new() }),
            Ok(Err(error)) => {
                let reason = format!("cannot write to {directory}: {error}");
                Err(ConnectError { is_permanent: is_permanent(&error), reason })
            }
            Err(error) => Err(ConnectError::transient(error.to_string())),
        }
    }

    // Send.

    async fn send(self: Arc<Self>, request: Request) -> Answer {
        let table = Arc::clone(&self.table);
        let written = tokio::task::spawn_blocking(move || table.write(&request)).await;
        written.unwrap_or_else(|error| Answer::All(Outcome::Transient(error.to_string())))
    }

    async fn close(&self) {}
}

/// The files of the lake.
#[derive(Debug)]
struct Table {
    directory: PathBuf,
    compression: Compression,
    /// Files begun by this process.
    files: AtomicU64,
}

#[derive(Debug, Error)]
enum WriteError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Parquet(#[from] ParquetError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Table {
    fn temporary(&self) -> PathBuf {
        self.directory.join("_temporary")
    }

    /// Makes sure that files can be written, and removes what was left half-written long ago.
    fn open(&self) -> io::Result<()> {
        let temporary = self.temporary();
        fs::create_dir_all(&temporary)?;
        let probe = temporary.join(self.file_name());
        File::create_new(&probe)?;
        fs::remove_file(&probe)?;
        for entry in fs::read_dir(&temporary)? {
            let entry = entry?;
            let age = entry.metadata().and_then(|metadata| metadata.modified());
            let is_stale = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > STALE_AFTER));
            if is_stale {
                // Another process may have removed it, which is as good.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Writes the events of one case, a file per date, and says what became of each.
    fn write(&self, request: &Request) -> Answer {
        let Some((case, _)) = request.events.iter().next() else {
            return Answer::Each(Vec::new());
        };
        let mut outcomes = vec![Outcome::Acknowledged; request.events.len()];
        let mut is_whole = true;
        for (date, places) in by_date(request.events.iter().map(|(_, event)| event)) {
            let events = places.iter().map(|place| request.events.event(*place).1);
            let Err(error) = self.write_file(case, &date, events) else { continue };
            is_whole = false;
            let outcome = outcome_of(&error);
            for place in places {
                outcomes[place] = outcome.clone();
            }
        }
        if is_whole { Answer::All(Outcome::Acknowledged) } else { Answer::Each(outcomes) }
    }

    fn write_file<'a>(
        &self,
        case: PayloadCase,
        date: &str,
        events: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), WriteError> {
        let events: BinaryArray = events.map(Some).collect();
        let rows = columns::events_to_narrow(&events, case)?;
        let name = self.file_name();
        let temporary = self.temporary().join(&name);
        let written = self.write_rows(&temporary, &rows).and_then(|()| {
            let partition = partition_directory(&self.directory, case, date);
            fs::create_dir_all(&partition)?;
            fs::rename(&temporary, partition.join(&name))?;
            Ok(sync_directory(&partition).map_err(io::Error::other)?)
        });
        if written.is_err() {
            // Where this fails too, it is removed when it is stale.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    fn write_rows(&self, path: &Path, rows: &arrow_array::RecordBatch) -> Result<(), WriteError> {
        let properties = WriterProperties::builder().set_compression(self.compression).build();
        let file = File::create_new(path)?;
        let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties))?;
        writer.write(rows)?;
        Ok(writer.into_inner()?.sync_all()?)
    }

    /// A name that no other file of any process has.
    fn file_name(&self) -> String {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = self.files.fetch_add(1, Relaxed);
        let (millis, process, random) =
            (since_1970.as_millis(), std::process::id(), fastrand::u32(..));
        format!("part-{millis:013}-{process}-{random:08x}-{number:06}.parquet")
    }
}

// Which errors are transient.

fn outcome_of(error: &WriteError) -> Outcome {
    match error {
        WriteError::Io(error) if !is_permanent(error) => Outcome::Transient(error.to_string()),
        WriteError::Parquet(ParquetError::External(_)) => Outcome::Transient(error.to_string()),
        WriteError::Io(_) | WriteError::Columns(_) | WriteError::Parquet(_) => {
            Outcome::Permanent(error.to_string())
        }
    }
}

/// A full disk may be emptied; rights and kinds of files do not change by themselves.
fn is_permanent(error: &io::Error) -> bool {
    use io::ErrorKind::{
        InvalidFilename, IsADirectory, NotADirectory, PermissionDenied, ReadOnlyFilesystem,
    };
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | NotADirectory | IsADirectory | InvalidFilename
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(options: LakeOptions) -> String {
        let refused = Lake::validate(options, &DeliveryOptions::default(), &Notices::default());
        refused.unwrap_err().to_string()
    }

    fn options() -> LakeOptions {
        LakeOptions { dir: Some("lake".into()), ..LakeOptions::default() }
    }

    #[test]
    fn options_without_sense_are_refused_by_flag() {
        assert_eq!(
            refusal(LakeOptions::default()),
            "--lake-dir: it is missing; name the directory of the table"
        );
        assert_eq!(
            refusal(LakeOptions { compression: Some("rar".to_owned()), ..options() }),
            "--lake-compression: `rar` is no compression; use zstd or none"
        );
        assert_eq!(
            refusal(LakeOptions { roll_mb: Some(100), ..options() }),
            "--lake-roll-mb: it contradicts --max-memory-mb: a file of 100 MB does not fit into half \
             of the memory; give 1 to 64, or raise the other"
        );
        assert_eq!(
            refusal(LakeOptions { roll_seconds: Some(9_999), ..options() }),
            "--lake-roll-seconds: 9999 is out of range; give 0 to 3600"
        );
        let unknown = Names::Text("trades".to_owned());
        assert!(
            refusal(LakeOptions { include_payloads: unknown, ..options() })
                .starts_with("--lake-include-payloads: ")
        );
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_a_permanent_failure() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let options = LakeOptions { dir: Some(file.join("lake")), ..LakeOptions::default() };
        let lake =
            Lake::validate(options, &DeliveryOptions::default(), &Notices::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(lake.connect()).unwrap_err();
        assert!(error.is_permanent, "{error}");
    }
}
