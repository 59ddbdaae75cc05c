//! Reads what a fact is compared with.

use super::fields;
use crate::facts::FactName;
use crate::when::{Pattern, PatternError};

/// Returns the ways to compare that a table can name.
pub(super) fn forms() -> &'static [&'static str] {
    fields::of("test")
}

/// Reads a text in one of the forms.
pub(super) fn parse_form(fact: &FactName, form: &str, text: &str) -> Result<Pattern, PatternError> {
    match form {
        "equal" => Pattern::equal(fact, text),
        "prefix" => Pattern::prefix(fact, text),
        "suffix" => Pattern::suffix(fact, text),
        "network" => Pattern::network(text),
        _ => Pattern::glob(fact, text),
    }
}

/// Returns the names that a pattern captures.
pub(super) fn captures(pattern: &Pattern) -> Vec<String> {
    match pattern {
        Pattern::Path(path) => path.names().map(Into::into).collect(),
        _ => Vec::new(),
    }
}
