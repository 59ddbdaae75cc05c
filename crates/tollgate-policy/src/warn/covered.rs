//! Warns of rules that can never match, because an earlier one covers them.

use crate::file::{Applies, Apply, Missing, PolicyFile, Rule};
use crate::problem::{Problems, quoted};
use crate::when::When;

use super::report::warn;

/// The most pairs of conditions that are compared. A policy with more is checked in part.
const MAX_PAIRS: usize = 5_000_000;

/// Conditions that end the search, and what they belong to.
struct Before<'f> {
    kind: &'static str,
    name: &'f str,
    /// Absent conditions always hold.
    when: Option<&'f When>,
}

impl Before<'_> {
    fn covers(&self, when: Option<&When>) -> bool {
        match (self.when, when) {
            (None, _) => true,
            (Some(own), Some(when)) => own.covers(when),
            (Some(_), None) => false,
        }
    }
}

pub(super) fn check(file: &PolicyFile, problems: &mut Problems) {
    let entry = |kind| move |entry| before_entry(kind, entry);
    let deny = file.deny.iter().map(entry("deny"));
    let allow = file.allow.iter().map(entry("allow"));
    let mut before: Vec<Before<'_>> = deny.chain(allow).collect();
    let mut pairs = 0;
    for rule in &file.rules {
        let when = match &rule.when.value {
            Applies::Never => continue,
            Applies::Always => None,
            Applies::When(when) => Some(when),
        };
        pairs += before.len();
        if pairs > MAX_PAIRS {
            return;
        }
        if let Some(first) = before.iter().find(|before| before.covers(when)) {
            let message = format!(
                "is never reached: {} {} comes first and matches the same requests",
                first.kind,
                quoted(first.name)
            );
            warn(rule, "when", "", message, rule.when.position, problems);
        } else if ends_search(file, rule) {
            before.push(Before {
                kind: "rule",
                name: &rule.name,
                when,
            });
        }
    }
}

fn before_entry<'f>(kind: &'static str, entry: &'f crate::file::Entry) -> Before<'f> {
    Before {
        kind,
        name: &entry.name,
        when: Some(&entry.when),
    }
}

/// Whether later rules do not see the requests that match this one.
fn ends_search(file: &PolicyFile, rule: &Rule) -> bool {
    let skips = rule.missing == Missing::Skip && !rule.key.is_empty();
    file.apply == Apply::First && !rule.shadow && !skips
}
