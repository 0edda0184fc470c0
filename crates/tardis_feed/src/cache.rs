//! The cache of slices on disk, laid out as other programs of this archive lay it out, so that one
//! cache serves all: `feeds/EXCHANGE/HASH OF FILTERS/yyyy/MM/dd/HH/mm[.size-N].json.{zst|gz}`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use market_data::Filter;

use crate::error::FeedError;
use crate::filters::OptimisedFilters;
use crate::minute::Minute;
use crate::options::Compression;
use crate::part::Part;
use crate::slice::SliceFile;

/// Slices of one exchange with the same filters.
#[derive(Clone, Debug)]
pub(crate) struct SliceCache {
    directory: PathBuf,
    auto_cleanup: bool,
}

impl SliceCache {
    pub(crate) fn new(
        root: &Path,
        exchange: &str,
        filters: &OptimisedFilters,
        auto_cleanup: bool,
    ) -> Self {
        let directory = root.join("feeds").join(exchange).join(filters.hash());
        Self { directory, auto_cleanup }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where a slice belongs, without the ending that says how it is compressed.
    pub(crate) fn base_path(&self, minute: Minute, minutes: u32) -> PathBuf {
        let size = if minutes == 1 { String::new() } else { format!(".size-{minutes}") };
        self.directory.join(format!("{}{size}.json", minute.path()))
    }

    /// A slice as a file of this cache.
    pub(crate) fn file(&self, minute: Minute, minutes: u32, compression: Compression) -> SliceFile {
        let mut path = self.base_path(minute, minutes).into_os_string();
        path.push(".");
        path.push(compression.extension());
        SliceFile { path: path.into(), minutes, compression, temporary: self.auto_cleanup }
    }

    /// The slice, if it is there.
    pub(crate) fn find(&self, minute: Minute, minutes: u32) -> Option<SliceFile> {
        [Compression::Zstd, Compression::Gzip].into_iter().find_map(|compression| {
            let mut file = self.file(minute, minutes, compression);
            if file.path.exists() {
                return Some(file);
            }
            file.temporary = false;
            None
        })
    }

    /// Slices of whatever size that cover a range without gap, or the minute where one is missing.
    pub(crate) fn cover(&self, from: Minute, minutes: u32) -> Result<Vec<Part>, Minute> {
        // The size of a slice that begins at each minute and from which the range's end can be
        // reached, found from the end backwards; 0 = there is none.
        let mut steps = vec![0u32; minutes as usize];
        let mut hour = Hour::default();
        let mut missing = None;
        for offset in (0..minutes).rev() {
            let minute = from.after(offset);
            let leads_on = |size: &u32| {
                let left = minutes - offset;
                *size == left || (*size < left && steps[(offset + size) as usize] != 0)
            };
            let step = hour.sizes(&self.directory, minute).into_iter().filter(leads_on).max();
            steps[offset as usize] = step.unwrap_or(0);
            missing = missing.or(if step.is_none() { Some(minute) } else { None });
        }
        let mut parts = Vec::new();
        let mut offset = 0;
        while offset < minutes {
            let step = steps[offset as usize];
            if step == 0 {
                return Err(missing.unwrap_or(from));
            }
            parts.push(Part { offset, minutes: step });
            offset += step;
        }
        Ok(parts)
    }
}

/// The files of one hour in the cache.
#[derive(Default)]
struct Hour {
    directory: PathBuf,
    names: Vec<String>,
}

impl Hour {
    /// The sizes of the slices that begin with a minute.
    fn sizes(&mut self, cache: &Path, minute: Minute) -> Vec<u32> {
        let path = minute.path();
        let Some((hour, name)) = path.rsplit_once('/') else { return Vec::new() };
        let directory = cache.join(hour);
        if directory != self.directory {
            self.names = names_in(&directory);
            self.directory = directory;
        }
        self.names.iter().filter_map(|file| slice_size(file.strip_prefix(name)?)).collect()
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Reads what follows the minute in a slice's name.
fn slice_size(rest: &str) -> Option<u32> {
    let rest = rest.strip_suffix(".json.zst").or_else(|| rest.strip_suffix(".json.gz"))?;
    if rest.is_empty() {
        return Some(1);
    }
    rest.strip_prefix(".size-")?.parse().ok().filter(|size| *size > 1)
}

/// Whether an exchange's id can be part of a path and a URL.
pub(crate) fn check_exchange(exchange: &str) -> Result<(), FeedError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !exchange.is_empty() && exchange.bytes().all(plain) {
        return Ok(());
    }
    let reason = format!("`{exchange}` is no exchange id, such as binance-futures");
    Err(FeedError::Option { option: "exchange", reason })
}

/// A part of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachePart<'a> {
    /// Of one exchange.
    pub exchange: Option<&'a str>,
    /// With these filters; needs an exchange.
    pub filters: Option<&'a [Filter]>,
    /// Of one year; needs filters.
    pub year: Option<u16>,
    /// Of one month, from 1; needs a year.
    pub month: Option<u8>,
    /// Of one day, from 1; needs a month.
    pub day: Option<u8>,
}

/// Removes a part of the cache, or all of it. What is not there is no error.
pub fn clear_cache(cache_dir: &Path, part: &CachePart<'_>) -> Result<(), FeedError> {
    let mut path = cache_dir.join("feeds");
    let steps = [
        ("exchange", part.exchange.map(ToOwned::to_owned)),
        ("filters", part.filters.map(|filters| OptimisedFilters::new(filters).hash())),
        ("year", part.year.map(|year| year.to_string())),
        ("month", part.month.map(|month| format!("{month:02}"))),
        ("day", part.day.map(|day| format!("{day:02}"))),
    ];
    let mut missing = None;
    for (name, step) in steps {
        match (step, missing) {
            (Some(step), None) => path.push(step),
            (Some(_), Some(missing)) => {
                let reason = format!("it says nothing without `{missing}`, which is not given");
                return Err(FeedError::Option { option: name, reason });
            }
            (None, _) => missing = missing.or(Some(name)),
        }
    }
    if let Some(exchange) = part.exchange {
        check_exchange(exchange)?;
    }
    match fs::remove_dir_all(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(FeedError::Disk { action: "remove", path, source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use market_data::Timestamp;

    const NONE: &str = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";

    fn minute() -> Minute {
        Minute::of(Timestamp::of_minute(2020, 2, 1, 0, 58)).unwrap()
    }

    fn cache(root: &Path) -> SliceCache {
        SliceCache::new(root, "bitmex", &OptimisedFilters::new(&[]), false)
    }

    fn put(cache: &SliceCache, minute: Minute, minutes: u32, compression: Compression) {
        let path = &cache.file(minute, minutes, compression).path;
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, b"").unwrap();
    }

    #[test]
    fn slices_lie_where_others_look_for_them() {
        let cache = cache(Path::new("/c"));
        let path = |minutes, compression| cache.file(minute(), minutes, compression).path.clone();
        let start = format!("/c/feeds/bitmex/{NONE}/2020/02/01/00/58");
        assert_eq!(path(1, Compression::Zstd), Path::new(&format!("{start}.json.zst")));
        assert_eq!(path(10, Compression::Gzip), Path::new(&format!("{start}.size-10.json.gz")));
    }

    #[test]
    fn zstd_is_found_before_gzip() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path());
        assert!(cache.find(minute(), 1).is_none());
        put(&cache, minute(), 1, Compression::Gzip);
        assert_eq!(cache.find(minute(), 1).unwrap().compression, Compression::Gzip);
        put(&cache, minute(), 1, Compression::Zstd);
        assert_eq!(cache.find(minute(), 1).unwrap().compression, Compression::Zstd);
    }

    #[test]
    fn a_range_is_covered_by_slices_of_any_size_or_its_gap_is_named() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path());
        // 58, 59 and the hour after; the slice of 3 leads nowhere.
        for (offset, minutes) in [(0, 1), (1, 3), (1, 1), (2, 2), (5, 1)] {
            put(&cache, minute().after(offset), minutes, Compression::Zstd);
        }
        put(&cache, minute().after(2), 1, Compression::Gzip);
        put(&cache, minute().after(3), 2, Compression::Gzip);
        let parts = cache.cover(minute(), 6).unwrap();
        let parts: Vec<_> = parts.iter().map(|part| (part.offset, part.minutes)).collect();
        assert_eq!(parts, [(0, 1), (1, 1), (2, 1), (3, 2), (5, 1)]);
        assert_eq!(cache.cover(minute(), 7), Err(minute().after(6)));
        assert_eq!(cache.cover(minute(), 0), Ok(Vec::new()));
    }

    #[test]
    fn a_part_is_cleared_and_the_rest_stays() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path());
        let next_day = minute().after(24 * 60);
        put(&cache, minute(), 1, Compression::Zstd);
        put(&cache, next_day, 1, Compression::Zstd);
        let day = CachePart {
            exchange: Some("bitmex"),
            filters: Some(&[]),
            year: Some(2020),
            month: Some(2),
            day: Some(1),
        };
        clear_cache(root.path(), &day).unwrap();
        assert!(cache.find(minute(), 1).is_none() && cache.find(next_day, 1).is_some());
        clear_cache(root.path(), &CachePart { exchange: Some("okex"), ..Default::default() })
            .unwrap();
        assert!(cache.find(next_day, 1).is_some());
        clear_cache(root.path(), &CachePart::default()).unwrap();
        assert!(!root.path().join("feeds").exists());
    }

    #[test]
    fn a_part_that_could_be_elsewhere_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for exchange in ["..", "", "a/b"] {
            let part = CachePart { exchange: Some(exchange), ..Default::default() };
            clear_cache(root.path(), &part).unwrap_err();
        }
        let part = CachePart { exchange: Some("bitmex"), year: Some(2020), ..Default::default() };
        let error = clear_cache(root.path(), &part).unwrap_err().to_string();
        assert_eq!(
            error,
            "year cannot be used: it says nothing without `filters`, which is not given"
        );
    }
}
