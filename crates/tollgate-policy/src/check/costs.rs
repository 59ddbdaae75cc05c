//! Warns of costs that no limit ever grants.

use tollgate::{AnyAlgorithm, Denied, Limiter, ManualClock};

use crate::file::{At, Rule};
use crate::problem::{Problems, quoted};

use super::report::{is_in_memory, warn};

/// Warns of a cost that a limit of the rule never grants, or no plan of the rule.
pub(super) fn check(rule: &Rule, problems: &mut Problems) {
    if !is_in_memory(rule) || !rule.overrides.is_empty() {
        return;
    }
    let cost = &rule.cost;
    let is_fixed = cost.estimate.is_none();
    let (field, effect) = match is_fixed {
        true if cost.settle.is_none() => ("cost", "each request is denied"),
        true => ("cost.default", "each request is denied"),
        false => ("cost.default", "a request without an estimate is denied"),
    };
    let mut check = |field, number: &At<u64>, effect| {
        if let Some((text, most)) = never_grants(rule, number.value) {
            let text = quoted(text);
            let message = format!("{text} never grants more than {most} at once, so {effect}");
            let value = number.to_string();
            warn(rule, field, &value, message, number.position, problems);
        }
    };
    check(field, &cost.default, effect);
    if !is_fixed {
        check("cost.min", &cost.min, "each estimate is denied");
    }
    if let (Some(max), false) = (&cost.max, is_fixed) {
        check("cost.max", max, "a larger cost is denied");
    }
}

/// Returns a limit that never grants `n` permits, and how many it can grant. With plans, all must
/// deny `n`; the plan that grants the most is returned.
fn never_grants(rule: &Rule, n: u64) -> Option<(&str, u64)> {
    let Some(plans) = &rule.plan else {
        return rule.limits.iter().find_map(|text| most_below(text, n));
    };
    let plans = plans.limits.iter().map(|(_, text)| most_below(text, n));
    let plans: Option<Vec<_>> = plans.collect();
    plans?.into_iter().max_by_key(|(_, most)| *most)
}

/// Returns the most that a limit grants at once, if that is less than `n`.
fn most_below(text: &str, n: u64) -> Option<(&str, u64)> {
    let algorithm: AnyAlgorithm = text.parse().ok()?;
    let limiter = Limiter::with_clock(algorithm, ManualClock::new());
    match limiter.try_acquire_n(n) {
        Err(Denied::Never { limit, .. }) => Some((text, limit)),
        _ => None,
    }
}
