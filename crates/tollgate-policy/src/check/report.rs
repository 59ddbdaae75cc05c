//! What the checks of rules share.

use crate::file::Rule;
use crate::problem::{Position, Problem, Problems};

/// Adds a warning about a field of a rule, or about the rule as a whole if the field is empty.
pub(super) fn warn(
    rule: &Rule,
    field: &str,
    value: &str,
    message: impl AsRef<str>,
    position: Option<Position>,
    problems: &mut Problems,
) {
    let field = match field {
        "" => rule.title(),
        field => format!("{}: {field}", rule.title()),
    };
    problems.push(Problem::warning(field, value, message).at(position));
}

/// Whether the rule's limits are in this process.
pub(super) fn is_in_memory(rule: &Rule) -> bool {
    rule.store.value == crate::parse::MEMORY
}
