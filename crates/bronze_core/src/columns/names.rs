//! Names of columns, checked against the schema's.

use super::error::ColumnsError;

/// Checks that every column is known and none comes twice. `path` is a column's name for people.
pub(super) fn check_names(
    found: &[&str],
    known: impl Fn(&str) -> bool,
    expected: impl Fn() -> String,
    path: impl Fn(&str) -> String,
) -> Result<(), ColumnsError> {
    for (position, name) in found.iter().enumerate() {
        if !known(name) {
            let (expected, found) = (expected(), found.join(", "));
            return Err(ColumnsError::UnknownColumn { column: path(name), expected, found });
        }
        if found[..position].contains(name) {
            let found = found.join(", ");
            return Err(ColumnsError::DuplicateColumn { column: path(name), found });
        }
    }
    Ok(())
}
