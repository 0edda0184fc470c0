//! Recorded messages as JSON text: the project's own samples, and the conformance data where it is.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::value::RawValue;

/// Where a message was found, for a failing test's words.
pub type Source = String;

fn project_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The conformance data; `None`, and a line that says so, where it is not beside the project.
pub(crate) fn conformance_root() -> Option<PathBuf> {
    let root = project_root().join("../shared/conformance");
    if root.is_dir() {
        return Some(root);
    }
    eprintln!("conformance data is not there: {}", root.display());
    None
}

/// The samples that the package ships: every type of message, one a line.
#[must_use]
pub fn sample_messages() -> Vec<(Source, String)> {
    let path = project_root().join("python/tardis_fast/samples/messages.jsonl");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .enumerate()
        .map(|(number, line)| (format!("messages.jsonl:{}", number + 1), line.to_owned()))
        .collect()
}

/// Calls `check` with every normalized message of the conformance data and returns their number;
/// `None`, and a line that says so, where the data is not beside the project.
pub fn conformance_messages(mut check: impl FnMut(&str, &str)) -> Option<usize> {
    let root = conformance_root()?;
    let mut count = 0;
    for path in files(&root.join("mappers"), "jsonl") {
        let name = file_name(&path);
        for line in fs::read_to_string(&path).expect("a readable case file").lines() {
            let case: Case<'_> = serde_json::from_str(line).expect("a case");
            for message in case.steps.iter().flat_map(|step| step.output.iter().flatten()) {
                check(&name, &with_javascript_exponents(message.get()));
                count += 1;
            }
        }
    }
    for path in files(&root.join("e2e/bodies"), "zst") {
        let name = file_name(&path);
        if name.contains("__raw") {
            continue;
        }
        let body = zstd::decode_all(fs::File::open(&path).expect("a body")).expect("zstd data");
        let body = String::from_utf8(body).expect("text");
        for line in body.lines() {
            check(&name, line);
            count += 1;
        }
    }
    Some(count)
}

#[derive(Deserialize)]
struct Case<'a> {
    #[serde(borrow)]
    steps: Vec<Step<'a>>,
}

#[derive(Deserialize)]
struct Step<'a> {
    #[serde(borrow)]
    output: Option<Vec<&'a RawValue>>,
}

/// The case files use exponents from other sizes on than JavaScript does (`9.3927e-05`): numbers
/// with an exponent are written anew, all other text stays.
pub(crate) fn with_javascript_exponents(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    let mut in_string = false;
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let is_number = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let length = if !in_string && (first.is_ascii_digit() || first == '-') {
            rest.find(|c| !is_number(c)).unwrap_or(rest.len())
        } else if in_string && first == '\\' {
            2
        } else {
            in_string ^= first == '"';
            first.len_utf8()
        };
        let (token, left) = rest.split_at(length);
        match token.parse::<f64>() {
            Ok(number) if !in_string && token.contains('e') => {
                text.push_str(ryu_js::Buffer::new().format(number));
            }
            _ => text.push_str(token),
        }
        rest = left;
    }
    text
}

pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .collect();
    files.sort();
    files
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
