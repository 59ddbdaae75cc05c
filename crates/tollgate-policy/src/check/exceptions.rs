//! Warns of exceptions that have no effect, because `*` matches one segment of a path.
//!
//! Two rules, one for `/api/*` and one for `/api/a/b`, can be meant as they are.

use crate::file::{Applies, PolicyFile};
use crate::problem::{Problem, Problems, quoted};
use crate::when::When;

use super::report::warn;

/// The most pairs of entries and rules that are compared.
const MAX_PAIRS: usize = 1_000_000;

pub(super) fn check(file: &PolicyFile, problems: &mut Problems) {
    for rule in &file.rules {
        let when = conditions(&rule.when.value);
        let hint = when.and_then(|when| when.hint_for(when.not.as_deref()?));
        if let Some(hint) = hint {
            let message = format!("has no effect: {hint}");
            warn(rule, "when.not", "", message, rule.when.position, problems);
        }
    }
    if file.rules.len().saturating_mul(file.allow.len()) > MAX_PAIRS {
        return;
    }
    for entry in &file.allow {
        // A rule without conditions applies to the entry's requests.
        let whens = file.rules.iter().map(|rule| &rule.when.value);
        let whens = whens
            .filter(|when| **when != Applies::Never)
            .map(conditions);
        let apart = whens.map(|when| when.filter(|when| when.is_disjoint(&entry.when)));
        let apart: Option<Vec<&When>> = apart.collect();
        let mut apart = apart.unwrap_or_default().into_iter();
        if let Some(hint) = apart.find_map(|when| when.hint_for(&entry.when)) {
            let field = format!("allow {}", quoted(&entry.name));
            let message = format!("has no effect: no rule applies to its requests; {hint}");
            problems.push(Problem::warning(field, "", message).at(entry.name.position));
        }
    }
}

fn conditions(applies: &Applies) -> Option<&When> {
    match applies {
        Applies::When(when) => Some(when),
        Applies::Always | Applies::Never => None,
    }
}
