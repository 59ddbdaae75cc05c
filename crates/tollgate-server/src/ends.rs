//! Which rules need the end of a request, which proxies do not tell.

use tollgate_policy::Policy;
use tollgate_policy::file::{BanOf, CountOf, Rule};

/// Logs a warning for each rule that decides otherwise if the end of a request is not told.
pub(crate) fn warn(policy: &Policy) {
    for rule in policy.rules() {
        for needs in needs(rule) {
            tracing::warn!(rule = rule.name.as_str(), "{needs}");
        }
    }
}

/// Says what a rule can't know of a request whose end is not told.
pub(crate) fn needs(rule: &Rule) -> impl Iterator<Item = &'static str> {
    let plans = rule.plan.iter().flat_map(|plan| &plan.value.limits);
    let mut limits = rule.limits.iter().chain(plans.map(|(_, limit)| limit));
    let is_concurrency = |text: &str| text.split_whitespace().next() == Some("concurrency");
    let concurrency = limits.any(|limit| is_concurrency(limit.as_str()));
    let failures = rule
        .ban
        .as_ref()
        .is_some_and(|ban| ban.of == BanOf::Failures);
    [
        concurrency.then_some(
            "a proxy does not say when a request ends: in its questions, `concurrency` frees a \
             place at once",
        ),
        (rule.count != CountOf::All).then_some(
            "a proxy does not say how a request ends: in its questions, `count` counts all \
             requests",
        ),
        rule.cost.settle.as_ref().map(|_| {
            "a proxy does not say what a request cost: in its questions, `settle` has no effect"
        }),
        failures.then_some(
            "a proxy does not say how a request ends: in its questions, `ban` bans no key, and \
             each request may be a failure",
        ),
    ]
    .into_iter()
    .flatten()
}
