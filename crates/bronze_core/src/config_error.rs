//! Why a setting is refused, before anything is connected.
//!
//! Each text names the setting as the user wrote it, the bad value, and what to write instead. Only
//! settings that are no secrets come here.

use thiserror::Error;

use crate::payload_case::{PayloadCase, UnknownPayloadCase};
use crate::template::TemplateError;

/// A setting that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{flag}: {fault}")]
pub struct ConfigError {
    /// The setting, for example `--kafka-topic-routing`.
    pub flag: String,
    /// What is wrong with its value.
    pub fault: ConfigFault,
}

/// What can be wrong with a setting's value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigFault {
    /// Nothing is between two commas, or beside one.
    #[error("`{list}` has an empty entry; remove the extra comma")]
    EmptyEntry {
        /// The whole list.
        list: String,
    },
    /// An entry that should be a pair is none.
    #[error("`{entry}` has no colon; write {form}")]
    NoColon {
        /// The entry.
        entry: String,
        /// How the setting is written.
        form: &'static str,
    },
    /// A name is no payload case.
    #[error(transparent)]
    UnknownCase(#[from] UnknownPayloadCase),
    /// The destination for events that have no route of their own is empty.
    #[error("it is empty; name the destination of all events that have no route of their own")]
    NoBaseDestination,
    /// A payload case is routed to nowhere.
    #[error(
        "the destination of `{case}` is empty; name one, or leave `{case}` out so that it goes to \
         the base destination"
    )]
    NoDestination {
        /// The payload case.
        case: PayloadCase,
    },
    /// A payload case is routed to two places.
    #[error("`{case}` is routed to both `{first}` and `{second}`; keep one of them")]
    TwoDestinations {
        /// The payload case.
        case: PayloadCase,
        /// Where it is routed to.
        first: String,
        /// Where it is routed to as well.
        second: String,
    },
    /// A pair has a value but no key.
    #[error("`:{value}` has no key before the colon; write key:value,key:value")]
    NoKey {
        /// The pair's value.
        value: String,
    },
    /// A key occurs twice.
    #[error("the key `{key}` occurs twice; keep one of them")]
    TwiceTheKey {
        /// The key.
        key: String,
    },
    /// A number is too small or too large.
    #[error("{value} is out of range; give {least} to {most}")]
    OutOfRange {
        /// The number.
        value: u64,
        /// The smallest that is allowed.
        least: u64,
        /// The largest that is allowed.
        most: u64,
    },
    /// A value that is needed is not there.
    #[error("it is missing; {remedy}")]
    Missing {
        /// What to do about it.
        remedy: String,
    },
    /// A value is none of those that are allowed, or has a wrong form.
    #[error("`{value}` {problem}; {remedy}")]
    Unusable {
        /// The value.
        value: String,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// Two options contradict each other.
    #[error("it contradicts {other}: {problem}; {remedy}")]
    Contradiction {
        /// The other option.
        other: String,
        /// Why both cannot be.
        problem: String,
        /// What to do about it.
        remedy: String,
    },
    /// A template does not compile.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl ConfigFault {
    /// A number that is not from `least` to `most`.
    #[must_use]
    pub const fn out_of_range(value: u64, least: u64, most: u64) -> Self {
        Self::OutOfRange { value, least, most }
    }

    /// A value that is needed and not there.
    pub fn missing(remedy: impl Into<String>) -> Self {
        Self::Missing { remedy: remedy.into() }
    }

    /// A value that cannot be used.
    pub fn unusable(
        value: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (value, problem, remedy) = (value.into(), problem.into(), remedy.into());
        Self::Unusable { value, problem, remedy }
    }

    /// Two options that cannot both hold.
    pub fn contradiction(
        other: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (other, problem, remedy) = (other.into(), problem.into(), remedy.into());
        Self::Contradiction { other, problem, remedy }
    }

    /// The fault as an error of a setting.
    #[must_use]
    pub fn of(self, flag: &str) -> ConfigError {
        ConfigError { flag: flag.to_owned(), fault: self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Template;

    #[test]
    fn every_fault_is_told_with_its_setting_once() {
        let fault = ConfigFault::from(Template::compile("{{}}").unwrap_err());
        let error = fault.of("--kafka-key-template");
        assert_eq!(
            error.to_string(),
            "--kafka-key-template: empty placeholder `{{}}` in template `{{}}`; valid are \
             {{exchange}}, {{symbol}}, {{payloadCase}}, {{dataType}}, {{source}}, {{origin}}, \
             {{meta.KEY}}"
        );
        assert!(std::error::Error::source(&error).is_none());
    }
}
