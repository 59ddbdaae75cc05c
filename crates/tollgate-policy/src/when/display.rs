//! Conditions as a policy writes them.

use std::fmt::{self, Display, Write};

use crate::facts::{FactKind, FactName};

use super::condition::{Condition, Test, When};
use super::pattern::Pattern;

impl Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "{ ";
        let mut next =
            |f: &mut fmt::Formatter<'_>| f.write_str(std::mem::replace(&mut separator, ", "));
        for condition in &self.all {
            next(f)?;
            condition.fmt(f)?;
        }
        if !self.any.is_empty() {
            next(f)?;
            f.write_str("any = ")?;
            list(f, &self.any)?;
        }
        if let Some(not) = &self.not {
            next(f)?;
            write!(f, "not = {not}")?;
        }
        f.write_str(if separator == "{ " { "{}" } else { " }" })
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_name(f, &self.fact)?;
        f.write_str(" = ")?;
        match &self.test {
            Test::Present => f.write_str("true"),
            Test::Absent => f.write_str("false"),
            Test::OneOf(patterns) => write_patterns(f, &self.fact, patterns),
        }
    }
}

/// Writes a name as a key of a table: `header.x-key`.
fn write_name(f: &mut fmt::Formatter<'_>, fact: &FactName) -> fmt::Result {
    let (table, name) = match fact.kind() {
        FactKind::Header(name) => ("header.", name),
        FactKind::Query(name) => ("query.", name),
        FactKind::Cookie(name) => ("cookie.", name),
        _ => ("", fact.as_str()),
    };
    f.write_str(table)?;
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !name.is_empty() && name.bytes().all(bare) {
        return f.write_str(name);
    }
    Quoted(name).fmt(f)
}

/// Writes patterns in the short form if all of them have it, and else in an explicit form.
fn write_patterns(
    f: &mut fmt::Formatter<'_>,
    fact: &FactName,
    patterns: &[Pattern],
) -> fmt::Result {
    let forms: Vec<_> = patterns.iter().map(|pattern| form(fact, pattern)).collect();
    let form = forms.iter().flatten().next();
    if let Some(form) = form {
        write!(f, "{{ {form} = ")?;
    }
    let values = patterns
        .iter()
        .zip(&forms)
        .map(|(pattern, form)| match (pattern, form) {
            (Pattern::Prefix(text) | Pattern::Suffix(text) | Pattern::Equal(text), Some(_)) => {
                text.clone()
            }
            _ => pattern.to_string(),
        });
    let values: Vec<_> = values.map(Quoted).collect();
    match &*values {
        [value] => value.fmt(f)?,
        values => list(f, values)?,
    }
    f.write_str(if form.is_some() { " }" } else { "" })
}

/// The explicit form that a pattern needs, if the short form means something else for this fact.
fn form(fact: &FactName, pattern: &Pattern) -> Option<&'static str> {
    match (fact.kind(), pattern) {
        (FactKind::Path, Pattern::Path(_)) | (FactKind::ClientIp, Pattern::Network(_)) => None,
        (_, Pattern::Network(_)) => Some("network"),
        (FactKind::Path | FactKind::ClientIp, Pattern::Equal(_)) => Some("equal"),
        (FactKind::Path | FactKind::ClientIp, Pattern::Prefix(_)) => Some("prefix"),
        (FactKind::Path | FactKind::ClientIp, Pattern::Suffix(_)) => Some("suffix"),
        (FactKind::Path | FactKind::ClientIp, Pattern::Glob(_)) => Some("glob"),
        _ => None,
    }
}

/// Writes a list in brackets.
fn list(f: &mut fmt::Formatter<'_>, items: &[impl Display]) -> fmt::Result {
    f.write_str("[")?;
    for (index, item) in items.iter().enumerate() {
        let separator = if index > 0 { ", " } else { "" };
        write!(f, "{separator}{item}")?;
    }
    f.write_str("]")
}

/// A text in quotes: in the simple ones if it has a `\`, as patterns do.
struct Quoted<T>(T);

impl<T: AsRef<str>> Display for Quoted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.as_ref();
        let simple = !text.contains(|char: char| char.is_control() || char == '\'');
        if simple && text.contains(['\\', '"']) {
            return write!(f, "'{text}'");
        }
        f.write_char('"')?;
        for char in text.chars() {
            match char {
                '"' | '\\' => write!(f, "\\{char}")?,
                _ if char.is_control() => write!(f, "\\u{:04x}", u32::from(char))?,
                _ => f.write_char(char)?,
            }
        }
        f.write_char('"')
    }
}
