//! Message attributes: what every message says of itself, and what the operator adds.
//!
//! SQS takes no attribute without a value, so one whose value is empty for an event is left out of
//! its message. Characters that SQS takes nowhere become U+FFFD, which is what it would do itself.

use std::borrow::Cow;

use crate::config_error::{ConfigError, ConfigFault};
use crate::event_view::EventView;
use crate::static_pairs::StaticPairs;
use crate::template::Template;

/// Attributes that a message may have, by the API.
const MOST_ATTRIBUTES: usize = 10;
/// Attributes that every message has, those of the operator apart.
const OWN: [&str; 3] = ["payloadCase", "dataType", "contentEncoding"];
/// The type of all attributes.
pub(super) const TYPE: &str = "String";

pub(super) const STATIC_FLAG: &str = "--sqs-static-attributes";
pub(super) const TEMPLATES_FLAG: &str = "--sqs-attribute-templates";

/// The attributes of messages.
#[derive(Clone, Debug)]
pub(super) struct Attributes {
    fixed: Vec<(String, String)>,
    templates: Vec<(String, Template)>,
}

impl Attributes {
    /// Checks the operator's attributes.
    pub(super) fn validate(fixed: &StaticPairs, given: &StaticPairs) -> Result<Self, ConfigError> {
        for (name, value) in fixed.iter() {
            check_name(name).map_err(|fault| fault.of(STATIC_FLAG))?;
            check_value(name, value).map_err(|fault| fault.of(STATIC_FLAG))?;
        }
        let mut templates = Vec::with_capacity(given.len());
        for (name, text) in given.iter() {
            check_name(name).map_err(|fault| fault.of(TEMPLATES_FLAG))?;
            if fixed.get(name).is_some() {
                let problem = format!("both give the attribute `{name}`");
                let remedy = "keep one of them";
                let fault = ConfigFault::contradiction(STATIC_FLAG, problem, remedy);
                return Err(fault.of(TEMPLATES_FLAG));
            }
            templates.push((name.to_owned(), Template::of_flag(TEMPLATES_FLAG, text)?));
        }
        let all = OWN.len() + fixed.len() + templates.len();
        if all > MOST_ATTRIBUTES {
            let value = format!("{} attributes", fixed.len() + templates.len());
            let problem = format!(
                "with those of {STATIC_FLAG} and {TEMPLATES_FLAG} together are {} too many",
                all - MOST_ATTRIBUTES
            );
            let remedy = format!(
                "give at most {}: a message has {MOST_ATTRIBUTES}, and {} are in use",
                MOST_ATTRIBUTES - OWN.len(),
                OWN.join(", ")
            );
            let flag = if templates.is_empty() { STATIC_FLAG } else { TEMPLATES_FLAG };
            return Err(ConfigFault::unusable(value, problem, remedy).of(flag));
        }
        let fixed = [(OWN[2], "base64")].into_iter().chain(fixed.iter());
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { fixed, templates })
    }

    /// Gives each attribute of an event's message, name and value, to `take`.
    pub(super) fn each(&self, event: &EventView<'_>, mut take: impl FnMut(&str, &str)) {
        let mut take = |name: &str, value: &str| {
            if !value.is_empty() {
                take(name, &cleaned(value));
            }
        };
        take(OWN[0], event.case().name());
        take(OWN[1], event.data_type());
        for (name, value) in &self.fixed {
            take(name, value);
        }
        let mut value = String::new();
        for (name, template) in &self.templates {
            value.clear();
            template.render(event, &mut value);
            take(name, &value);
        }
    }

    /// Bytes that an event's attributes take in its message.
    pub(super) fn size(&self, event: &EventView<'_>) -> usize {
        let mut size = 0;
        self.each(event, |name, value| size += name.len() + TYPE.len() + value.len());
        size
    }
}

fn check_name(name: &str) -> Result<(), ConfigFault> {
    let refuse = |problem: &str, remedy: &str| Err(ConfigFault::unusable(name, problem, remedy));
    if OWN.contains(&name) {
        return refuse("is an attribute that every message has", "choose another name");
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        return refuse("begins like a name of AWS", "choose another name");
    }
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let dots = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    if name.len() > 256 || !name.chars().all(is_letter) || dots {
        return refuse(
            "is no name of an attribute",
            "give up to 256 letters, digits, `_`, `-` and single `.` inside",
        );
    }
    Ok(())
}

fn check_value(name: &str, value: &str) -> Result<(), ConfigFault> {
    let pair = format!("{name}:{value}");
    if value.is_empty() {
        let remedy = "give one, or leave the attribute out";
        return Err(ConfigFault::unusable(pair, "has no value, which SQS does not take", remedy));
    }
    if value.contains(|c| !is_text(c)) {
        let problem = "has a control character, which SQS does not take";
        return Err(ConfigFault::unusable(pair.escape_debug().to_string(), problem, "remove it"));
    }
    Ok(())
}

/// The characters that SQS takes.
fn is_text(character: char) -> bool {
    matches!(character,
        '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

fn cleaned(value: &str) -> Cow<'_, str> {
    if value.chars().all(is_text) {
        return value.into();
    }
    let clean = |c| if is_text(c) { c } else { char::REPLACEMENT_CHARACTER };
    value.chars().map(clean).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::bronze::normalized_event::Payload;
    use crate::generated::bronze::{NormalizedEvent, Trade};
    use prost::Message;

    fn attributes(fixed: &str, templates: &str) -> Result<Attributes, String> {
        let fixed = StaticPairs::parse(STATIC_FLAG, fixed).unwrap();
        let templates = StaticPairs::parse(TEMPLATES_FLAG, templates).unwrap();
        Attributes::validate(&fixed, &templates).map_err(|error| error.to_string())
    }

    #[test]
    fn names_follow_the_rule_of_sqs() {
        for name in ["env", "a.b", "a-b_c", &"a".repeat(256)] {
            assert!(attributes(&format!("{name}:x"), "").is_ok(), "{name}");
        }
        let form = "give up to 256 letters, digits, `_`, `-` and single `.` inside";
        for name in [".a", "a.", "a..b", "a b", "ä", &"a".repeat(257)] {
            assert_eq!(
                attributes("", &format!("{name}:x")).unwrap_err(),
                format!("--sqs-attribute-templates: `{name}` is no name of an attribute; {form}")
            );
        }
        for name in ["AWS.x", "aws.x", "Amazon.x"] {
            assert_eq!(
                attributes(&format!("{name}:x"), "").unwrap_err(),
                format!(
                    "--sqs-static-attributes: `{name}` begins like a name of AWS; choose another \
                     name"
                )
            );
        }
        assert_eq!(
            attributes("payloadCase:x", "").unwrap_err(),
            "--sqs-static-attributes: `payloadCase` is an attribute that every message has; choose \
             another name"
        );
    }

    #[test]
    fn values_and_numbers_that_sqs_does_not_take_are_refused() {
        assert_eq!(
            attributes("env:", "").unwrap_err(),
            "--sqs-static-attributes: `env:` has no value, which SQS does not take; give one, or \
             leave the attribute out"
        );
        assert_eq!(
            attributes("env:a\u{1}b", "").unwrap_err(),
            "--sqs-static-attributes: `env:a\\u{1}b` has a control character, which SQS does not \
             take; remove it"
        );
        assert_eq!(
            attributes("env:x", "env:{{symbol}}").unwrap_err(),
            "--sqs-attribute-templates: it contradicts --sqs-static-attributes: both give the \
             attribute `env`; keep one of them"
        );
        assert!(attributes("a:1,b:1,c:1,d:1", "e:1,f:1,g:1").is_ok());
        assert_eq!(
            attributes("a:1,b:1,c:1,d:1", "e:1,f:1,g:1,h:1").unwrap_err(),
            "--sqs-attribute-templates: `8 attributes` with those of --sqs-static-attributes and \
             --sqs-attribute-templates together are 1 too many; give at most 7: a message has 10, \
             and payloadCase, dataType, contentEncoding are in use"
        );
        assert!(
            attributes("", "a:{{nothing}}")
                .unwrap_err()
                .starts_with("--sqs-attribute-templates: unknown placeholder `{{nothing}}`")
        );
    }

    #[test]
    fn empty_values_are_left_out_and_odd_characters_replaced() {
        let event = NormalizedEvent {
            symbol: "XBT\u{0}".to_owned(),
            payload: Some(Payload::Trade(Trade::default())),
            ..NormalizedEvent::default()
        };
        let bytes = event.encode_to_vec();
        let view = EventView::read(&bytes).unwrap();
        let attributes = attributes("env:prod", "none:{{meta.none}},symbol:{{symbol}}").unwrap();
        let mut found = Vec::new();
        attributes.each(&view, |name, value| found.push(format!("{name}={value}")));
        assert_eq!(
            found,
            ["payloadCase=trade", "contentEncoding=base64", "env=prod", "symbol=XBT\u{FFFD}"]
        );
        let texts: usize = found.iter().map(|pair| pair.len() - 1).sum();
        assert_eq!(attributes.size(&view), texts + 4 * "String".len());
    }
}
