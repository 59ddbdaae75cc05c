//! What a rule asks: its key, its limits and the cost.

use tollgate::AnyAlgorithm;

use super::{Asks, Cost, KeyPart, Plan, key};
use crate::choose::{Asked, NoLimit};
use crate::facts::Facts;
use crate::file::{BanOf, Override, Plans, Rule};
use crate::limit::{Fixed, is_concurrency};
use crate::parse::MEMORY;
use crate::rule::{RuleFact, failure};
use crate::when::{Shown, ShownValues};

/// What a rule that applies does.
pub(super) enum Outcome {
    /// The rule denies the request whatever is left.
    Denies(NoLimit),
    Asks(Asked),
}

/// Why a rule denies a request whose conditions may hold by values that are not read.
const UNREAD: &str = "its conditions depend on more values than are read, so they are ambiguous";

/// Returns why a rule without its key does not apply.
pub(super) fn skipped(rule: &Rule, facts: &(impl Facts + ?Sized)) -> String {
    let key = key::key(rule, facts);
    let missing = key.iter().find(|part| part.value.is_none());
    let name = missing.map_or("", |part| part.name.as_str());
    format!("{name} is missing, and missing = \"skip\"")
}

/// Returns what a rule asks. `own` is the override of the request's key.
pub(super) fn of(
    rule: &Rule,
    outcome: &Outcome,
    own: Option<&Override>,
    facts: &(impl Facts + ?Sized),
) -> Asks {
    let key = key::key(rule, facts);
    let (mut limits, plan, denies) = match outcome {
        Outcome::Denies(why) => {
            let why = denies(rule, *why, own.is_some(), &key, facts);
            (Vec::new(), None, Some(why))
        }
        Outcome::Asks(asked) => {
            let (limits, plan) = limits(rule, asked.plan, own, facts);
            (limits, plan, None)
        }
    };
    let mut cost = cost(rule, &limits, facts);
    if let Outcome::Asks(asked) = outcome {
        if !asks_requests(&limits) {
            cost.permits = asked.cost;
        }
        let ban = rule.ban.as_ref().filter(|_| !rule.shadow);
        let ban = ban.filter(|ban| ban.of == BanOf::Failures);
        let window = ban.map(|ban| failure::window(ban.after.value, failure::within(ban)));
        if let Some(Ok(window)) = window {
            limits.insert(0, window.to_string());
        }
    }
    Asks {
        key,
        limits,
        plan,
        is_override: own.is_some(),
        cost,
        store: rule.store.value.clone(),
        denies,
        status: rule.status.map(|status| status.value),
    }
}

/// Returns why a rule denies a request even if permits are left.
fn denies(
    rule: &Rule,
    why: NoLimit,
    is_override: bool,
    key: &[KeyPart],
    facts: &(impl Facts + ?Sized),
) -> String {
    let ambiguous = key.iter().find(|part| part.ambiguous.is_some());
    let missing = key.iter().find(|part| part.value.is_none());
    match (why, ambiguous, missing, &rule.plan) {
        (NoLimit::Unread, ..) => UNREAD.into(),
        (NoLimit::Zero(_), ..) if is_override => "the override of this key is 0".into(),
        (NoLimit::Zero(_), ..) => "its limit for this request is 0".into(),
        (NoLimit::Ambiguous, Some(part), ..) => format!("{part}, so it is ambiguous"),
        (NoLimit::Missing, _, Some(part), _) => {
            format!("{} is missing, and missing = \"deny\"", part.name)
        }
        (NoLimit::NoPlan, .., Some(plans)) => {
            format!("{}, and there is no default", plan_said(rule, plans, facts))
        }
        _ => cost(rule, &[], facts).why.unwrap_or_default(),
    }
}

/// Returns the limits of a request, and its plan.
fn limits(
    rule: &Rule,
    plan: usize,
    own: Option<&Override>,
    facts: &(impl Facts + ?Sized),
) -> (Vec<String>, Option<Plan>) {
    if let Some(own) = own {
        return (overridden(rule, own), None);
    }
    let Some(plans) = &rule.plan else {
        let limits = rule.limits.iter().map(|limit| limit.value.clone());
        return (limits.collect(), None);
    };
    let Some((name, limit)) = plans.limits.get(plan) else {
        return (Vec::new(), None);
    };
    let name = name.value.clone();
    let said = plan_said(rule, plans, facts);
    let named = RuleFact::of(rule, &plans.by).values(facts).single();
    let why = match named.is_some_and(|value| value.as_text() == name.as_str()) {
        true => said,
        false => format!("{said}, so the default"),
    };
    (vec![limit.value.clone()], Some(Plan { name, why }))
}

/// Returns the limits of a key that has an override: it takes the place of each rate.
fn overridden(rule: &Rule, own: &Override) -> Vec<String> {
    let is_other = |text: &str| match rule.store.as_str() {
        MEMORY => text.parse::<AnyAlgorithm>().is_err() && Fixed::of(text).is_none(),
        _ => is_concurrency(text),
    };
    let others = rule.limits.iter().filter(|limit| is_other(limit));
    let others = others.map(|limit| limit.value.clone());
    std::iter::once(own.limit.value.clone())
        .chain(others)
        .collect()
}

/// Returns what a request says of its plan.
fn plan_said(rule: &Rule, plans: &Plans, facts: &(impl Facts + ?Sized)) -> String {
    let by = plans.by.as_str();
    let named = RuleFact::of(rule, by).values(facts);
    let said = ShownValues(&named).to_string();
    let Some(value) = named.single() else {
        return format!("{by} is {said}");
    };
    let value = value.as_text();
    match plans.limits.iter().any(|(name, _)| name.as_str() == value) {
        true => format!("{by} is {}", Shown(&value)),
        false => format!("{by} is {}, which is not a plan", Shown(&value)),
    }
}

/// Returns whether all limits count requests, whatever they cost.
fn asks_requests(limits: &[String]) -> bool {
    !limits.is_empty() && limits.iter().all(|limit| is_concurrency(limit))
}

/// Returns what a request costs, and where that comes from.
fn cost(rule: &Rule, limits: &[String], facts: &(impl Facts + ?Sized)) -> Cost {
    let default = rule.cost.default.value;
    let of = |permits, why| Cost {
        permits,
        why,
        settle: rule
            .cost
            .settle
            .as_ref()
            .map(|fact| fact.as_str().to_owned()),
    };
    let Some(fact) = &rule.cost.estimate else {
        let is_one = asks_requests(limits);
        return of(if is_one { 1 } else { default }, None);
    };
    let values = RuleFact::of(rule, fact.as_str()).values(facts);
    let (largest, is_known) = values.largest();
    let said = format!("{} is {}", fact.value, ShownValues(&values));
    let max = rule.cost.max.as_ref().map_or(u64::MAX, |max| max.value);
    let min = rule.cost.min.value;
    match largest {
        _ if !is_known => of(default, Some(format!("{said}, so the cost is ambiguous"))),
        _ if asks_requests(limits) => of(1, None),
        None if values.is_none() => of(default, Some(format!("{said}, so the default"))),
        None => of(
            default,
            Some(format!("{said}, not a number, so the default")),
        ),
        Some(cost) if cost > max => of(max, Some(format!("{said}, more than the maximum"))),
        Some(cost) if cost < min => of(min, Some(format!("{said}, less than the minimum"))),
        Some(cost) => of(cost, Some(said)),
    }
}
