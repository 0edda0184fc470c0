//! Texts with placeholders that an event fills: keys, subjects, attributes.
//!
//! A template is compiled once, at start, and everything that could be wrong with it is refused then;
//! filling it in cannot fail. There is no escape: `{{` always opens a placeholder, and a lone `}}` is
//! text, so a template without placeholders is its own text.

use std::fmt;

use thiserror::Error;

use crate::config_error::{ConfigError, ConfigFault};
use crate::event_view::EventView;

/// The placeholders as people write them.
const PLACEHOLDERS: &str = "{{exchange}}, {{symbol}}, {{payloadCase}}, {{dataType}}, {{source}}, \
                            {{origin}}, {{meta.KEY}}";

/// A compiled template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Value),
}

/// What stands in for a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Exchange,
    Symbol,
    PayloadCase,
    DataType,
    Source,
    Origin,
    /// The value of a key of `meta`, or nothing.
    Meta(String),
}

/// Why a template is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{fault} `{placeholder}` in template `{template}`; valid are {PLACEHOLDERS}")]
pub struct TemplateError {
    /// What is wrong.
    pub fault: TemplateFault,
    /// The placeholder with its braces; up to the template's end if it is not closed.
    pub placeholder: String,
    /// The whole template.
    pub template: String,
}

/// What can be wrong with a placeholder.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TemplateFault {
    /// Its name is none of the valid ones.
    #[error("unknown placeholder")]
    Unknown,
    /// It has no name.
    #[error("empty placeholder")]
    Empty,
    /// It is `meta.` without a key.
    #[error("no meta key in placeholder")]
    NoMetaKey,
    /// Its closing braces are missing.
    #[error("unclosed placeholder")]
    Unclosed,
}

impl Template {
    /// Compiles a text; spaces between the braces and the name do not matter.
    pub fn compile(text: &str) -> Result<Self, TemplateError> {
        let error = |fault, placeholder: &str| TemplateError {
            fault,
            placeholder: placeholder.to_owned(),
            template: text.to_owned(),
        };
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(open) = rest.find("{{") {
            let (before, placeholder) = rest.split_at(open);
            let Some(close) = placeholder.find("}}") else {
                return Err(error(TemplateFault::Unclosed, placeholder));
            };
            let (placeholder, after) = placeholder.split_at(close + 2);
            let value = Value::named(placeholder[2..close].trim())
                .map_err(|fault| error(fault, placeholder))?;
            push_text(&mut parts, before);
            parts.push(Part::Value(value));
            rest = after;
        }
        push_text(&mut parts, rest);
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Compiles a text that `flag` gave.
    pub fn of_flag(flag: &str, text: &str) -> Result<Self, ConfigError> {
        Self::compile(text).map_err(|error| ConfigFault::from(error).of(flag))
    }

    /// The key of events where none is configured: `{{exchange}}|{{symbol}}|{{payloadCase}}`.
    #[must_use]
    pub fn default_key() -> Self {
        let bar = || Part::Text("|".to_owned());
        Self {
            text: "{{exchange}}|{{symbol}}|{{payloadCase}}".to_owned(),
            parts: vec![
                Part::Value(Value::Exchange),
                bar(),
                Part::Value(Value::Symbol),
                bar(),
                Part::Value(Value::PayloadCase),
            ],
        }
    }

    /// Whether it renders the same text for every event.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The text as it was written; of a constant template also what it renders.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Appends the text for an event.
    pub fn render(&self, event: &EventView<'_>, out: &mut String) {
        self.render_with(event, out, String::push_str);
    }

    /// Appends the text for an event; `put` appends what stands in for placeholders, so that a bus
    /// can replace characters in values that would mean something else to it, and leave alone those
    /// that the operator wrote.
    pub fn render_with(
        &self,
        event: &EventView<'_>,
        out: &mut String,
        mut put: impl FnMut(&mut String, &str),
    ) {
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value(Value::Exchange) => put(out, event.exchange()),
                Part::Value(Value::Symbol) => put(out, event.symbol()),
                Part::Value(Value::PayloadCase) => put(out, event.case().name()),
                Part::Value(Value::DataType) => put(out, event.data_type()),
                Part::Value(Value::Source) => put(out, event.source()),
                Part::Value(Value::Origin) => put(out, &event.origin()),
                Part::Value(Value::Meta(key)) => put(out, event.meta(key).unwrap_or_default()),
            }
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Value {
    fn named(name: &str) -> Result<Self, TemplateFault> {
        match name {
            "exchange" => Ok(Self::Exchange),
            "symbol" => Ok(Self::Symbol),
            "payloadCase" => Ok(Self::PayloadCase),
            "dataType" => Ok(Self::DataType),
            "source" => Ok(Self::Source),
            "origin" => Ok(Self::Origin),
            "" => Err(TemplateFault::Empty),
            "meta." => Err(TemplateFault::NoMetaKey),
            _ => match name.strip_prefix("meta.") {
                Some(key) => Ok(Self::Meta(key.trim().to_owned())),
                None => Err(TemplateFault::Unknown),
            },
        }
    }
}

fn push_text(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use market_data::{Message, Timestamp};
    use proptest::prelude::*;

    use super::*;
    use crate::{BronzeEncoder, EncoderOptions, EventBuffer, Origin};

    /// The bytes of the first event of a message, with `env` and `a.b` in its `meta`.
    fn event(message: &Message<'_>) -> Vec<u8> {
        let meta = [("env", "prod"), ("a.b", "c")];
        let meta = meta.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let options = EncoderOptions { origin: Origin::Replay, meta, ..EncoderOptions::default() };
        let mut events = EventBuffer::default();
        BronzeEncoder::new(options).unwrap().encode(message, Timestamp::INVALID, &mut events);
        events.iter().next().unwrap().1.to_vec()
    }

    fn render(template: &str, event: &EventView<'_>) -> String {
        let mut out = String::new();
        Template::compile(template).unwrap().render(event, &mut out);
        out
    }

    fn refusal(template: &str) -> String {
        Template::compile(template).unwrap_err().to_string()
    }

    /// Pieces of templates with what each stands for; texts have nothing that could open a
    /// placeholder across pieces.
    fn piece() -> impl Strategy<Value = String> {
        let names = prop::sample::select(vec![
            "exchange",
            "symbol",
            "payloadCase",
            "dataType",
            "source",
            "origin",
            "meta.env",
            "meta.a.b",
            "meta.none",
            "meta.data_type",
        ]);
        let placeholder = (names, " {0,2}", " {0,2}");
        prop_oneof![
            "[a-z|}:é ]{0,4}",
            placeholder.prop_map(|(name, before, after)| format!("{{{{{before}{name}{after}}}}}")),
        ]
    }

    /// The same without compiling: replaces one placeholder after the other.
    fn naive(template: &str, event: &EventView<'_>) -> String {
        let values = [
            ("exchange", event.exchange()),
            ("symbol", event.symbol()),
            ("payloadCase", event.case().name()),
            ("dataType", event.data_type()),
            ("source", event.source()),
            ("origin", "replay"),
            ("meta.env", "prod"),
            ("meta.a.b", "c"),
            ("meta.none", ""),
            ("meta.data_type", event.meta("data_type").unwrap()),
        ];
        let mut text = template.to_owned();
        for (index, (name, _)) in values.iter().enumerate() {
            for (before, after) in
                (0..3).flat_map(|before| (0..3).map(move |after| (before, after)))
            {
                let (before, after) = (" ".repeat(before), " ".repeat(after));
                // Marks first, so that a value that looks like a placeholder stays as it is.
                let mark = format!("\0{index}\0");
                text = text.replace(&format!("{{{{{before}{name}{after}}}}}"), &mark);
            }
        }
        for (index, (_, value)) in values.iter().enumerate() {
            text = text.replace(&format!("\0{index}\0"), value);
        }
        text
    }

    proptest! {
        #[test]
        fn rendering_is_replacing(
            pieces in prop::collection::vec(piece(), 0..8), message in test_messages::any_message(),
        ) {
            let event = event(&message);
            let event = EventView::read(&event).unwrap();
            let texts = [event.exchange(), event.symbol()];
            prop_assume!(!texts.iter().any(|text| text.contains('\0')));
            let template = pieces.concat();
            prop_assert_eq!(render(&template, &event), naive(&template, &event));
        }

        #[test]
        fn no_text_panics(text in "[{}a-z. ]{0,12}") {
            if let Ok(template) = Template::compile(&text) {
                prop_assert_eq!(template.is_constant(), !text.contains("{{"));
                prop_assert_eq!(template.text(), text);
            }
        }

        #[test]
        fn the_default_key_is_exchange_symbol_and_case(message in test_messages::any_message()) {
            let event = event(&message);
            let event = EventView::read(&event).unwrap();
            let mut key = String::new();
            Template::default_key().render(&event, &mut key);
            let case = crate::PayloadCase::of(&message);
            prop_assert_eq!(key, format!("{}|{}|{case}", message.exchange(), message.symbol()));
        }
    }

    #[test]
    fn the_default_key_is_what_its_text_compiles_to() {
        let default = Template::default_key();
        assert_eq!(Template::compile(&default.to_string()), Ok(default));
    }

    #[test]
    fn constant_templates_are_known() {
        for text in ["", "bronze.events", "a } b }} { c"] {
            let template = Template::compile(text).unwrap();
            assert!(template.is_constant());
            assert_eq!(template.text(), text);
        }
        assert!(!Template::compile("{{meta.env}}").unwrap().is_constant());
        assert!(!Template::default_key().is_constant());
    }

    #[test]
    fn only_values_go_through_put() {
        let mut bytes = Vec::new();
        crate::wire::put_text(&mut bytes, 2, "a.b");
        crate::wire::put_nested(&mut bytes, 100, |_| {});
        let event = EventView::read(&bytes).unwrap();
        let template = Template::compile("x.{{exchange}}.{{ meta.none }}").unwrap();
        let mut out = String::from("kept:");
        template.render_with(&event, &mut out, |out, value| out.push_str(&value.replace('.', "_")));
        assert_eq!(out, "kept:x.a_b.");
    }

    #[test]
    fn refusals_name_placeholder_template_and_the_valid_ones() {
        assert_eq!(
            refusal("x.{{ market }}.y"),
            "unknown placeholder `{{ market }}` in template `x.{{ market }}.y`; valid are \
             {{exchange}}, {{symbol}}, {{payloadCase}}, {{dataType}}, {{source}}, {{origin}}, \
             {{meta.KEY}}"
        );
        let begins = |template: &str, text: &str| {
            let refusal = refusal(template);
            assert!(
                refusal.starts_with(&format!("{text} in template `{template}`; ")),
                "{refusal}"
            );
        };
        begins("a{{}}", "empty placeholder `{{}}`");
        begins("a{{  }}b", "empty placeholder `{{  }}`");
        begins("{{meta.}}", "no meta key in placeholder `{{meta.}}`");
        begins("{{ meta. }}", "no meta key in placeholder `{{ meta. }}`");
        begins("{{symbol}}-{{exchange}", "unclosed placeholder `{{exchange}`");
        begins("{{", "unclosed placeholder `{{`");
        begins("{{meta}}", "unknown placeholder `{{meta}}`");
        begins("{{Exchange}}", "unknown placeholder `{{Exchange}}`");
        begins("{{{exchange}}}", "unknown placeholder `{{{exchange}}`");
    }
}
