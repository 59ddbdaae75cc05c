//! Reads single values, and reports what is wrong with them.

use std::time::Duration;

use tollgate::Quota;

use super::nearest::nearest;
use super::place::Place;
use super::tree::{Node, Tree, at};
use crate::file::At;
use crate::problem::{Excerpt, Position, Problem, Problems, quoted};

/// A value, and its place for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'p> {
    pub(super) node: &'p Node,
    pub(super) place: Place<'p>,
}

impl<'p> Field<'p> {
    /// Reports what is wrong with the value.
    pub(super) fn refuse(&self, message: impl AsRef<str>, problems: &mut Problems) {
        let value = Excerpt::of_value(&self.node.value);
        let problem = Problem::error(self.place.to_string(), value, message);
        problems.push(problem.at(self.node.position));
    }

    /// Returns the elements of a list, or the value itself if it is not a list. An empty list is
    /// an error.
    pub(super) fn one_or_more(&self, problems: &mut Problems) -> &'p [Node] {
        let list = self.node.one_or_more();
        if list.is_empty() {
            self.refuse("must have at least one element", problems);
        }
        list
    }

    /// Returns the elements of a list.
    pub(super) fn list(&self, what: &str, problems: &mut Problems) -> &'p [Node] {
        match &self.node.value {
            Tree::List(list) => list,
            _ => {
                self.refuse(format!("must be {what}"), problems);
                &[]
            }
        }
    }

    /// Returns a field with the same place and another value: an element of this list.
    pub(super) fn with(&self, node: &'p Node) -> Self {
        Self { node, ..*self }
    }

    pub(super) fn text(&self, what: &str, problems: &mut Problems) -> Option<At<String>> {
        match &self.node.value {
            Tree::Text(text) if text.trim().is_empty() => {
                self.refuse("must not be empty", problems);
                None
            }
            Tree::Text(text) => Some(at(text.clone(), self.node.position)),
            _ => {
                self.refuse(format!("must be {what}"), problems);
                None
            }
        }
    }

    /// Reads the text of a limit. The number 0 is the limit `"0"`.
    pub(super) fn limit(&self, what: &str, problems: &mut Problems) -> Option<At<String>> {
        match &self.node.value {
            Tree::Integer(0) => Some(at("0".into(), self.node.position)),
            _ => self.text(what, problems),
        }
    }

    /// Reads one text, or a list of texts that must differ.
    pub(super) fn texts(&self, what: &str, problems: &mut Problems) -> Vec<At<String>> {
        self.each(problems, |field, problems| field.text(what, problems))
    }

    /// Reads one limit, or a list of limits that must differ.
    pub(super) fn limits(&self, problems: &mut Problems) -> Vec<At<String>> {
        let what = "text such as \"5/min\", or a list of such texts";
        self.each(problems, |field, problems| field.limit(what, problems))
    }

    fn each(
        &self,
        problems: &mut Problems,
        read: impl Fn(&Self, &mut Problems) -> Option<At<String>>,
    ) -> Vec<At<String>> {
        let mut texts: Vec<At<String>> = Vec::new();
        for node in self.one_or_more(problems) {
            let field = self.with(node);
            let Some(text) = read(&field, problems) else {
                continue;
            };
            if texts.len() >= MAX_TEXTS {
                self.refuse(format!("must have at most {MAX_TEXTS} elements"), problems);
                break;
            }
            match texts.contains(&text) {
                true => field.refuse("must not be given twice", problems),
                false => texts.push(text),
            }
        }
        texts
    }

    /// Reads a name: 1 to 64 characters.
    pub(super) fn name(&self, problems: &mut Problems) -> Option<At<String>> {
        let name = self.text("text", problems)?;
        match name.chars().any(char::is_control) || name.chars().count() > 64 {
            true => {
                self.refuse(
                    "must have 1 to 64 characters, and no control characters",
                    problems,
                );
                None
            }
            false => Some(name),
        }
    }

    pub(super) fn bool(&self, problems: &mut Problems) -> Option<bool> {
        match self.node.value {
            Tree::Bool(value) => Some(value),
            _ => {
                self.refuse("must be true or false", problems);
                None
            }
        }
    }

    pub(super) fn choice<T: Copy>(
        &self,
        choices: &[(&'static str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let text = match &self.node.value {
            Tree::Text(text) => text.as_str(),
            _ => "",
        };
        let found = choices.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let names = either(choices.iter().map(|(name, _)| format!("{name:?}")));
            let near = nearest(text, choices.iter().map(|(name, _)| *name));
            let near = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            self.refuse(format!("must be {names}{near}"), problems);
        }
        found.map(|(_, choice)| *choice)
    }

    /// Reads a number from `min` to `max`, as an integer or as text with a multiplier.
    pub(super) fn number(&self, min: u64, max: u64, problems: &mut Problems) -> Option<At<u64>> {
        let number = match &self.node.value {
            Tree::Integer(number) => Some(*number),
            Tree::Text(text) => count(text).map(i128::from),
            _ => None,
        };
        let Some(number) = number else {
            self.refuse(
                "must be a whole number such as 1000, or text such as \"10k\" or \"64MiB\" with one \
                 of the multipliers k, M, G, Ki, Mi and Gi",
                problems,
            );
            return None;
        };
        match u64::try_from(number) {
            Ok(number) if (min..=max).contains(&number) => Some(at(number, self.node.position)),
            _ => {
                let message = match max {
                    u64::MAX if number < 1 => format!("must be at least {min}"),
                    _ => format!("must be from {min} to {max}"),
                };
                self.refuse(message, problems);
                None
            }
        }
    }

    pub(super) fn duration(&self, problems: &mut Problems) -> Option<At<Duration>> {
        let duration = match &self.node.value {
            Tree::Text(text) => duration(text),
            _ => None,
        };
        match duration {
            Some(duration) if !duration.is_zero() => Some(at(duration, self.node.position)),
            _ => {
                self.refuse(
                    "must be a length of time above zero, such as \"10min\": a number, and ns, us, \
                     ms, s, min, h or d",
                    problems,
                );
                None
            }
        }
    }
}

/// Joins alternatives: `a, b or c`.
fn either(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    let last = names.pop().unwrap_or_default();
    match names.is_empty() {
        true => last,
        false => format!("{} or {last}", names.join(", ")),
    }
}

/// The most elements of a list of names or limits.
const MAX_TEXTS: usize = 256;

/// Reports that a field is missing or does not fit another one.
pub(super) fn refuse_field(
    place: &Place<'_>,
    position: Option<Position>,
    message: impl AsRef<str>,
    problems: &mut Problems,
) {
    problems.push(Problem::error(place.to_string(), "", message).at(position));
}

/// Reports what is wrong with one text of a list.
pub(super) fn refuse_text(
    place: &Place<'_>,
    text: &At<String>,
    message: impl AsRef<str>,
    problems: &mut Problems,
) {
    let problem = Problem::error(place.to_string(), quoted(text), message);
    problems.push(problem.at(text.position));
}

/// Splits a number from its unit or multiplier. The parts are read as parts of a quota, so that
/// the units and multipliers are those of quotas.
fn parts(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_')?;
    let (number, unit) = (text.get(..end)?, text.get(end..)?.trim_start());
    let is_word = unit.chars().all(char::is_alphabetic);
    (is_word && !unit.is_empty() && number.starts_with(|c: char| c.is_ascii_digit()))
        .then_some((number, unit))
}

fn count(text: &str) -> Option<u64> {
    let (number, multiple) = parts(text).unwrap_or((text, ""));
    let quota: Quota = match number.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
        true => format!("{number}{multiple}/s").parse().ok()?,
        false => return None,
    };
    Some(quota.permits())
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = parts(text)?;
    let quota: Quota = format!("1/{number}{unit}").parse().ok()?;
    Some(quota.period())
}
