//! What is wrong with a limit, as a problem of the file.

use crate::file::{At, Rule};
use crate::limit::RemoteRefusal;
use crate::problem::{Problem, quoted, short_number};

/// Returns the problem of a limit's text.
pub(crate) fn refuse(rule: &Rule, field: &str, text: &At<String>, message: &str) -> Problem {
    let field = format!("{}: {field}", rule.title());
    Problem::error(field, quoted(text), message).at(text.position)
}

/// Returns the problem of a table that does not fit the memory.
pub(crate) fn too_large(rule: &Rule) -> Problem {
    let field = format!("{}: capacity", rule.title());
    let value = short_number(rule.capacity.value);
    let message = "there is not enough memory for so many keys";
    Problem::error(field, value, message).at(rule.capacity.position)
}

/// Returns the problem of what a store refuses.
pub(crate) fn of_refusal(
    rule: &Rule,
    field: &str,
    texts: &[&At<String>],
    refusal: &RemoteRefusal,
) -> Problem {
    match (refusal, &rule.fallback) {
        (RemoteRefusal::Limit(index, message), _) => {
            let text = texts.get(*index).or(texts.first());
            refuse(rule, field, text.unwrap_or(&&rule.store), message)
        }
        (RemoteRefusal::Fallback(message), fallback) => {
            let field = format!("{}: fallback", rule.title());
            let position = fallback.as_ref().and_then(|it| it.position);
            Problem::error(field, "", message).at(position.or(rule.store.position))
        }
    }
}
