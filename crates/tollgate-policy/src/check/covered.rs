//! Warns of rules and entries that can never match: their conditions contradict each other, or an
//! earlier rule or entry covers them.

use crate::file::{Applies, Apply, Entry, MissingFact, PolicyFile, Rule};
use crate::problem::{Problem, Problems, quoted};
use crate::when::When;

use super::report::warn;

/// The most pairs of conditions that are compared, of rules and of entries. A policy with more is
/// checked in part.
const MAX_PAIRS: usize = 5_000_000;

/// Conditions that end the search, and the rule or the entry that has them.
#[derive(Clone, Copy)]
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

    /// Says why conditions that are covered by these are never reached.
    fn reason(&self) -> String {
        let name = quoted(self.name);
        let comes_first = "comes first and matches the same requests";
        format!("is never reached: {} {name} {comes_first}", self.kind)
    }
}

const CONTRADICTION: &str = "never applies: its conditions contradict each other";

pub(super) fn check(file: &PolicyFile, problems: &mut Problems) {
    let mut before = entries(file, problems);
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
        let position = rule.when.position;
        if when.is_some_and(When::is_contradiction) {
            warn(rule, "", "", CONTRADICTION, position, problems);
        } else if let Some(first) = before.iter().find(|before| before.covers(when)) {
            warn(rule, "", "", first.reason(), position, problems);
        } else if ends_search(file, rule) {
            before.push(Before {
                kind: "rule",
                name: &rule.name,
                when,
            });
        }
    }
}

/// Warns of entries that can never match. Returns all entries.
fn entries<'f>(file: &'f PolicyFile, problems: &mut Problems) -> Vec<Before<'f>> {
    let kind = |kind| move |entry: &'f Entry| (kind, entry);
    let deny = file.deny.iter().map(kind("deny"));
    let allow = file.allow.iter().map(kind("allow"));
    let mut before: Vec<Before<'_>> = Vec::new();
    let mut pairs = 0;
    for (kind, entry) in deny.chain(allow) {
        pairs += before.len();
        let mut known = before.iter().take_while(|_| pairs <= MAX_PAIRS);
        let message = match known.find(|before| before.covers(Some(&entry.when))) {
            _ if entry.when.is_contradiction() => Some(CONTRADICTION.to_owned()),
            first => first.map(Before::reason),
        };
        if let Some(message) = message {
            let field = format!("{kind} {}", quoted(&entry.name));
            let problem = Problem::warning(field, "", message);
            problems.push(problem.at(entry.name.position));
        }
        before.push(Before {
            kind,
            name: &entry.name,
            when: Some(&entry.when),
        });
    }
    before
}

/// Whether later rules do not see the requests that match this one.
fn ends_search(file: &PolicyFile, rule: &Rule) -> bool {
    let skips = rule.missing == MissingFact::Skip && !rule.key.is_empty();
    file.apply == Apply::First && !rule.shadow && !skips
}
