//! What the page knows of each rule.

use std::collections::{HashMap, HashSet};

use tollgate_policy::Policy;

use crate::admin::Admin;
use crate::counters::OfRuleNow;
use crate::history::RuleHistory;

/// A rule, or an entry of the list `deny`.
pub(super) struct Rule<'a> {
    /// What it is, before its name.
    pub(super) kind: &'static str,
    pub(super) name: &'a str,
    pub(super) is_shadow: bool,
    pub(super) counts: OfRuleNow,
    pub(super) history: RuleHistory,
}

/// Returns all rules: those with most denials first, and then those with most requests.
pub(super) fn all<'a>(
    policy: &'a Policy,
    counted: &'a [(String, OfRuleNow)],
    admin: &Admin,
) -> Vec<Rule<'a>> {
    let rule = |kind, name, is_shadow, counts| Rule {
        kind,
        name,
        is_shadow,
        counts,
        history: admin.history.rule(name),
    };
    let mut counts: HashMap<&str, OfRuleNow> = HashMap::new();
    counts.extend(
        counted
            .iter()
            .map(|(name, counts)| (name.as_str(), *counts)),
    );
    let in_policy = policy.rules().map(|it| {
        let name = it.name.as_str();
        let counts = counts.remove(name).unwrap_or_default();
        rule("Rule", name, it.shadow, counts)
    });
    let mut rules: Vec<_> = in_policy.collect();
    // Entries of the list `deny`, and rules that are gone but whose numbers are not.
    let others = counted
        .iter()
        .filter(|(name, _)| counts.contains_key(name.as_str()));
    let entries: HashSet<_> = policy
        .file()
        .deny
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let kind = |name: &str| match entries.contains(name) {
        true => "Entry of the list deny:",
        false => "Former rule",
    };
    rules.extend(others.map(|(name, counts)| rule(kind(name), name, false, *counts)));
    rules.sort_by(|one, other| {
        let (one, other) = (&one.history, &other.history);
        let denied = other.denied_per_s.total_cmp(&one.denied_per_s);
        denied.then_with(|| other.allowed_per_s.total_cmp(&one.allowed_per_s))
    });
    rules
}
