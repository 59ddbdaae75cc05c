//! Reads and writes what a fact is compared with.

use crate::facts::{FactKind, FactName};
use crate::when::{Pattern, PatternError};

/// The ways to compare that a table can name.
pub(super) const FORMS: [&str; 5] = ["equal", "prefix", "suffix", "glob", "network"];

/// Reads a text in one of the `FORMS`.
pub(super) fn parse_form(fact: &FactName, form: &str, text: &str) -> Result<Pattern, PatternError> {
    match form {
        "equal" => Pattern::equal(fact, text),
        "prefix" => Pattern::prefix(fact, text),
        "suffix" => Pattern::suffix(fact, text),
        "network" => Pattern::network(text),
        _ => Pattern::glob(fact, text),
    }
}

/// Returns the form in which patterns must be written, unless they are written as plain text.
pub(super) fn form(fact: &FactName, patterns: &[Pattern]) -> Option<&'static str> {
    patterns
        .iter()
        .find_map(|pattern| match (fact.kind(), pattern) {
            (FactKind::ClientIp, _) | (_, Pattern::Path(_)) => None,
            (_, Pattern::Network(_)) => Some("network"),
            (FactKind::Path, _) => Some("glob"),
            _ => None,
        })
}

/// Returns a pattern as it is written in this form.
pub(super) fn text(pattern: &Pattern, form: Option<&str>) -> String {
    let text = pattern.to_string();
    match (pattern, form) {
        // Braces are special in paths alone.
        (Pattern::Path(_), Some(_)) => text.replace(r"\{", "{").replace(r"\}", "}"),
        _ => text,
    }
}

/// Returns the names that a pattern captures.
pub(super) fn captures(pattern: &Pattern) -> Vec<String> {
    match pattern {
        Pattern::Path(path) => path.names().map(Into::into).collect(),
        _ => Vec::new(),
    }
}
