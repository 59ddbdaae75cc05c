//! What the checks of rules share.

use crate::file::Rule;
use crate::problem::{Position, Problem, Problems};

/// Adds a warning about a field of a rule.
pub(super) fn warn(
    rule: &Rule,
    field: &str,
    value: &str,
    message: impl AsRef<str>,
    position: Option<Position>,
    problems: &mut Problems,
) {
    let field = format!("rule {:?}: {field}", rule.name.as_str());
    problems.push(Problem::warning(field, value, message).at(position));
}

/// Whether the rule's limits are in this process.
pub(super) fn is_in_memory(rule: &Rule) -> bool {
    rule.store.value == crate::text::MEMORY
}
