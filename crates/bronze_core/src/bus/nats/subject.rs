//! Subjects: what the operator may write, how an event's values go into them, which stream takes them.
//!
//! Values that stand in for placeholders become one token or a part of one: what would end a token,
//! or be a wildcard, is replaced by `_`, and an empty value is `_`, so that no token is empty.

use async_nats::Subject;

use crate::config_error::{ConfigError, ConfigFault};
use crate::event_view::EventView;
use crate::payload_case::PayloadCase;
use crate::route::Route;
use crate::template::Template;

/// Subjects by payload case.
#[derive(Debug)]
pub(super) struct Subjects {
    route: Route,
    /// In the order of the route's destinations.
    places: Vec<Place>,
}

#[derive(Debug)]
enum Place {
    Constant(Subject),
    Filled(Template),
}

impl Subjects {
    /// All destinations of `route`, of which the first, from `flag`, may have placeholders.
    pub(super) fn new(route: Route, flag: &str) -> Result<Self, ConfigError> {
        let mut places = Vec::new();
        for (place, text) in route.destinations().iter().enumerate() {
            let flag = if place == 0 { flag } else { "--nats-subject-routing" };
            places.push(Place::read(text, flag)?);
        }
        Ok(Self { route, places })
    }

    /// Where an event goes.
    pub(super) fn of(&self, case: PayloadCase, event: &EventView<'_>) -> Subject {
        match &self.places[self.route.index(case)] {
            Place::Constant(subject) => subject.clone(),
            Place::Filled(template) => {
                let mut subject = String::with_capacity(64);
                template.render_with(event, &mut subject, put_value);
                Subject::from(subject)
            }
        }
    }

    /// What a stream must take so that it takes every event: none of them covers another.
    pub(super) fn patterns(&self) -> Vec<String> {
        let texts: Vec<String> = self
            .route
            .destinations()
            .iter()
            .enumerate()
            .filter(|(place, _)| {
                PayloadCase::ALL.iter().any(|case| self.route.index(*case) == *place)
            })
            .map(|(_, text)| pattern_of(text))
            .collect();
        let is_covered =
            |text: &String| texts.iter().any(|other| other != text && covers(other, text));
        texts.iter().filter(|text| !is_covered(text)).cloned().collect()
    }
}

impl Place {
    fn read(text: &str, flag: &str) -> Result<Self, ConfigError> {
        let template = Template::of_flag(flag, text)?;
        if !template.is_constant() && flag != "--nats-subject-template" {
            let remedy = "templates go to --nats-subject-template";
            return Err(ConfigFault::unusable(text, "has placeholders", remedy).of(flag));
        }
        let unusable = |problem| {
            let remedy = "write tokens between dots, such as market.trades";
            Err(ConfigFault::unusable(text, problem, remedy).of(flag))
        };
        let written = without_placeholders(text);
        if written.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return unusable("has a space or control character");
        }
        if written.contains(['*', '>']) {
            return unusable("has a wildcard, and events go to one subject each");
        }
        if written.split('.').any(str::is_empty) {
            return unusable("has an empty token");
        }
        if written.starts_with('$') {
            return unusable("begins with `$`, which is the server's own");
        }
        Ok(if template.is_constant() {
            Self::Constant(Subject::from(text))
        } else {
            Self::Filled(template)
        })
    }
}

/// The text with a letter for each placeholder, which always becomes one or more letters.
fn without_placeholders(text: &str) -> String {
    let mut written = String::new();
    let mut rest = text;
    while let Some((before, placeholder)) = rest.split_once("{{") {
        written.push_str(before);
        written.push('x');
        rest = placeholder.split_once("}}").map_or("", |(_, after)| after);
    }
    written + rest
}

/// The constant tokens at the template's beginning, and `>` for all that may follow.
fn pattern_of(text: &str) -> String {
    let Some((constant, _)) = text.split_once("{{") else { return text.to_owned() };
    let tokens = constant.rfind('.').map_or(0, |dot| dot + 1);
    format!("{}>", &constant[..tokens])
}

/// Whether everything that `inner` matches is matched by `outer`.
pub(super) fn covers(outer: &str, inner: &str) -> bool {
    let mut inner = inner.split('.');
    for token in outer.split('.') {
        match (token, inner.next()) {
            (">", Some(_)) => return true,
            ("*", Some(other)) if other != ">" => {}
            (token, Some(other)) if token == other => {}
            _ => return false,
        }
    }
    inner.next().is_none()
}

/// Appends a value as a part of a token.
fn put_value(subject: &mut String, value: &str) {
    if value.is_empty() {
        return subject.push('_');
    }
    let is_special = |c: char| c.is_whitespace() || c.is_control() || ".*>".contains(c);
    subject.extend(value.chars().map(|c| if is_special(c) { '_' } else { c }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn subjects(base: &str, flag: &str, routes: &str) -> Result<Subjects, String> {
        let route = Route::to(flag, base).unwrap().with_routes("", routes).unwrap();
        Subjects::new(route, flag).map_err(|error| error.to_string())
    }

    #[test]
    fn what_cannot_be_a_subject_is_refused() {
        for (text, problem) in [
            ("a b", "has a space"),
            ("a.*", "has a wildcard"),
            ("a.>", "has a wildcard"),
            ("a..b", "has an empty token"),
            (".a", "has an empty token"),
            ("a.", "has an empty token"),
            ("$JS.a", "begins with `$`"),
            ("a.{{symbol}}", "has placeholders; templates go to --nats-subject-template"),
        ] {
            let refusal = subjects(text, "--nats-subject", "").unwrap_err();
            assert!(
                refusal.starts_with(&format!("--nats-subject: `{text}` {problem}")),
                "{refusal}"
            );
        }
        let refusal = subjects("a.{{symbol}}.", "--nats-subject-template", "").unwrap_err();
        assert!(refusal.contains("has an empty token"), "{refusal}");
        let refusal = subjects("a", "--nats-subject", "trade:b c").unwrap_err();
        assert!(refusal.starts_with("--nats-subject-routing: `b c` has a space"), "{refusal}");
    }

    #[test]
    fn patterns_cover_all_and_do_not_overlap() {
        let patterns =
            |base, routes| subjects(base, "--nats-subject-template", routes).unwrap().patterns();
        assert_eq!(patterns("a", "trade:b.c"), ["a", "b.c"]);
        assert_eq!(patterns("a.{{symbol}}.x", "trade:a.trades,quote:b"), ["a.>", "b"]);
        assert_eq!(patterns("a.b-{{symbol}}", ""), ["a.>"]);
        assert_eq!(patterns("{{symbol}}", ""), [">"]);
        let all: Vec<_> = PayloadCase::ALL.iter().map(|case| format!("{case}:t.x")).collect();
        assert_eq!(patterns("unused", &all.join(",")), ["t.x"]);
    }

    #[test]
    fn wildcards_cover() {
        for (outer, inner, expected) in [
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.*", "a.>", false),
            (">", "a.>", true),
            ("a.b", "a.b", true),
            ("a.b", "a.*", false),
            ("a.b.c", "a.b", false),
        ] {
            assert_eq!(covers(outer, inner), expected, "{outer} {inner}");
        }
    }

    proptest! {
        #[test]
        fn values_are_parts_of_tokens(value in ".*|[a.*> \n\t]{0,6}") {
            let mut subject = String::new();
            put_value(&mut subject, &value);
            prop_assert!(!subject.is_empty());
            prop_assert!(!subject.contains(|c: char| c.is_whitespace() || ".*>".contains(c)));
        }
    }
}
