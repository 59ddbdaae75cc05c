//! Warns of limits that never deny, because a tighter one of the same key always denies first.
//!
//! What an algorithm grants is compared as a line: in each interval of length `t` at most
//! `burst + rate * t` permits. The comparison is exact, in whole numbers.

use std::collections::{HashMap, HashSet};

use tollgate::AnyAlgorithm;
use tollgate::algorithm::ChangeQuota;
use tollgate::keyed::Overflow;

use crate::file::{Applies, Apply, At, CountOf, PolicyFile, Rule};
use crate::problem::{Problems, quoted};

use super::report::{is_in_memory, warn};

/// At most `burst + n * t / period` permits in each interval of length `t`, in nanoseconds.
struct Line {
    burst: u128,
    n: u128,
    period: u128,
}

/// Compares the limits of a rule with each other, and with those of the rules that it names: these
/// see all of its requests.
pub(super) fn check(rule: &Rule, names: &HashMap<&str, &Rule>, problems: &mut Problems) {
    if !is_comparable(rule) {
        return;
    }
    let own = parsed(rule);
    let also = rule.also.iter().filter_map(|name| names.get(name.as_str()));
    let also: Vec<_> = also
        .filter(|named| is_comparable(named) && is_same_key(rule, named))
        .flat_map(|named| parsed(named))
        .collect();
    for (index, (_, text, loose)) in own.iter().enumerate() {
        let others = own.iter().enumerate().filter(|(other, (_, _, tight))| {
            // Of two that are as tight as each other, the first one denies.
            *other != index
                && never_denies(loose, tight)
                && (*other < index || !never_denies(tight, loose))
        });
        let others = others.map(|(_, other)| other);
        let named = also
            .iter()
            .filter(|(_, _, tight)| never_denies(loose, tight));
        if let Some((owner, tight, _)) = others.chain(named).next() {
            report(rule, text, owner, tight, problems);
        }
    }
}

fn report(
    rule: &Rule,
    text: &At<String>,
    owner: &Rule,
    tight: &At<String>,
    problems: &mut Problems,
) {
    let message = format!(
        "never denies a request: {} of {} always denies it first",
        quoted(tight),
        owner.title()
    );
    let value = quoted(text);
    warn(rule, "limit", &value, message, text.position, problems);
}

/// The most pairs of rules that are compared.
const MAX_PAIRS: usize = 1_000_000;

/// If all rules that match apply, compares the limits of each rule with those of the rules that see
/// all of its requests.
pub(super) fn check_all(file: &PolicyFile, problems: &mut Problems) {
    let count = file.rules.len();
    if file.apply != Apply::All || count.saturating_mul(count) > MAX_PAIRS {
        return;
    }
    let also = file.rules.iter().flat_map(|rule| &rule.also);
    // A rule that is named in `also` sees requests that do not fulfill its conditions, too.
    let named: HashSet<&str> = also.map(|name| name.as_str()).collect();
    let rules = file.rules.iter().filter(|rule| is_comparable(rule));
    let rules: Vec<_> = rules.map(|rule| (rule, parsed(rule))).collect();
    for (index, (rule, own)) in rules.iter().enumerate() {
        if named.contains(rule.name.as_str()) {
            continue;
        }
        let others = rules.iter().enumerate().filter(|(other, (owner, _))| {
            *other != index
                && is_same_key(rule, owner)
                && sees_all(owner, rule)
                && !names(rule, owner)
        });
        let others: Vec<_> = others.collect();
        for (_, text, loose) in own {
            let tight = others.iter().find_map(|(other, (owner, limits))| {
                let is_tight = |(_, _, tight): &&(_, _, AnyAlgorithm)| {
                    // Of two that are as tight as each other, the first one denies.
                    let is_first = other < &index || !never_denies(tight, loose);
                    never_denies(loose, tight) && (is_first || !sees_all(rule, owner))
                };
                limits.iter().find(is_tight)
            });
            if let Some((owner, tight, _)) = tight {
                report(rule, text, owner, tight, problems);
            }
        }
    }
}

fn names(rule: &Rule, other: &Rule) -> bool {
    rule.also.iter().any(|name| name.value == other.name.value)
}

/// Whether a rule sees all requests that another one sees.
fn sees_all(rule: &Rule, other: &Rule) -> bool {
    match (&rule.when.value, &other.when.value) {
        (Applies::Never, _) | (_, Applies::Never) => false,
        (Applies::Always, _) => true,
        (Applies::When(_), Applies::Always) => false,
        (Applies::When(when), Applies::When(other)) => when.covers(other),
    }
}

/// Whether what the rule's limits grant is known: each grant is recorded, nothing is given back,
/// and no key has a limit of its own.
fn is_comparable(rule: &Rule) -> bool {
    let records_all = rule.key.is_empty() || rule.overflow != Overflow::Admit;
    let keeps_all = rule.cost.settle.is_none() && rule.count == CountOf::All;
    let is_asked = is_in_memory(rule) && !rule.shadow;
    is_asked && records_all && keeps_all && rule.overrides.is_empty()
}

/// Whether two rules have the same keys and take the same permits.
fn is_same_key(rule: &Rule, named: &Rule) -> bool {
    // Two rules can capture different parts of a path under one name.
    let captures = rule.key.iter().any(|part| part.starts_with("path:"));
    !captures
        && rule.key == named.key
        && rule.missing == named.missing
        && rule.repeated == named.repeated
        && rule.network == named.network
        && rule.cost == named.cost
}

/// Returns the limits of a rule that are an algorithm of the core.
fn parsed(rule: &Rule) -> Vec<(&Rule, &At<String>, AnyAlgorithm)> {
    let limits = rule.limits.iter();
    limits
        .filter_map(|text| Some((rule, text, text.parse().ok()?)))
        .collect()
}

/// Whether one limit grants all that another one grants.
fn never_denies(loose: &AnyAlgorithm, tight: &AnyAlgorithm) -> bool {
    let wide = loose.quota();
    let is_same_window = match (loose, tight) {
        (AnyAlgorithm::FixedWindow(_), AnyAlgorithm::FixedWindow(_))
        | (AnyAlgorithm::SlidingWindow(_), AnyAlgorithm::SlidingWindow(_)) => {
            // The same windows with another number of permits.
            tight.with_quota(wide).ok() == Some(*loose) && tight.quota().period() == wide.period()
        }
        _ => false,
    };
    if is_same_window {
        return tight.quota().permits() <= wide.permits();
    }
    line(tight)
        .and_then(|line| fits(loose, &line))
        .unwrap_or(false)
}

/// Returns what an algorithm grants at most, if it is known.
fn line(algorithm: &AnyAlgorithm) -> Option<Line> {
    let quota = algorithm.quota();
    let n = u128::from(quota.permits());
    let burst = match algorithm {
        AnyAlgorithm::TokenBucket(_) => u128::from(quota.burst_size()),
        // One more, in case it rounds down.
        AnyAlgorithm::SlidingWindow(_) => n + 1,
        // The end of one window and the beginning of the next.
        AnyAlgorithm::FixedWindow(_) => 2 * n,
        _ => return None,
    };
    let period = quota.period().as_nanos();
    Some(Line { burst, n, period })
}

/// Whether an algorithm grants everything below a line. `None` if it is not known.
fn fits(algorithm: &AnyAlgorithm, line: &Line) -> Option<bool> {
    let quota = algorithm.quota();
    let (n, period) = (u128::from(quota.permits()), quota.period().as_nanos());
    match algorithm {
        AnyAlgorithm::TokenBucket(_) => {
            let burst = u128::from(quota.burst_size());
            let is_full = quota.initial_permits() == quota.burst_size();
            let is_slower = line.n.checked_mul(period)? <= n.checked_mul(line.period)?;
            Some(is_full && line.burst <= burst && is_slower)
        }
        AnyAlgorithm::FixedWindow(_) | AnyAlgorithm::SlidingWindow(_) => {
            let burst = line.burst.checked_mul(line.period)?;
            let most = burst.checked_add(line.n.checked_mul(period)?)?;
            Some(most <= n.checked_mul(line.period)?)
        }
        _ => None,
    }
}
