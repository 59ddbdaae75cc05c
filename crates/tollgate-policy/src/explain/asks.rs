//! What a rule asks: its key, its limits and the cost.

use tollgate::AnyAlgorithm;

use super::display::Shown;
use super::{Asks, Cost, Plan, key};
use crate::fact::{FactName, Facts};
use crate::failure;
use crate::file::{Missing, Override, Plans, Rule};
use crate::key::{Bytes, KeySpec};

/// The limits of a request.
#[derive(Default)]
struct Limits {
    texts: Vec<String>,
    plan: Option<Plan>,
    is_override: bool,
    denies: Option<String>,
}

/// Returns what a rule asks, or why it does not apply.
pub(super) fn of(rule: &Rule, facts: &(impl Facts + ?Sized)) -> Result<Asks, String> {
    let key = key::key(rule, facts);
    let missing = key.iter().find(|part| part.value.is_none());
    let limits = match (missing, rule.missing) {
        (Some(part), Missing::Skip) => {
            return Err(format!("{} is missing, and missing = \"skip\"", part.name));
        }
        (Some(part), Missing::Deny) => Limits {
            denies: Some(format!("{} is missing, and missing = \"deny\"", part.name)),
            ..Limits::default()
        },
        _ => limits(rule, facts),
    };
    let cost = cost(rule, &limits.texts, facts);
    let mut limits = limits;
    let attempts = failure::attempts(rule.ban.as_ref().filter(|_| !rule.shadow));
    if let (Some(Ok(window)), None) = (attempts, &limits.denies) {
        limits.texts.insert(0, window.to_string());
    }
    Ok(Asks {
        key,
        limits: limits.texts,
        plan: limits.plan,
        is_override: limits.is_override,
        cost,
        store: rule.store.value.clone(),
        denies: limits.denies,
        status: rule.status.map(|status| status.value),
    })
}

fn limits(rule: &Rule, facts: &(impl Facts + ?Sized)) -> Limits {
    if let Some(own) = own_limit(rule, facts) {
        return Limits {
            texts: overridden(rule, own),
            is_override: true,
            ..Limits::default()
        };
    }
    match &rule.plan {
        Some(plans) => plan(rule, plans, facts),
        None => Limits {
            texts: rule
                .limits
                .iter()
                .map(|limit| limit.value.clone())
                .collect(),
            ..Limits::default()
        },
    }
}

/// Returns the override of a request's key. A decision compares the same bytes.
fn own_limit<'r>(rule: &'r Rule, facts: &(impl Facts + ?Sized)) -> Option<&'r Override> {
    if rule.overrides.is_empty() {
        return None;
    }
    let spec = KeySpec::of(rule);
    let mut key = Bytes::new();
    let _ = spec.push(&facts, &mut key);
    let mut overrides = rule.overrides.iter();
    overrides.find(|own| spec.of_values(own.key.iter().map(String::as_str)) == key)
}

/// Returns the limits of a key that has an override: it takes the place of each rate.
fn overridden(rule: &Rule, own: &Override) -> Vec<String> {
    let is_other = |text: &str| text.parse::<AnyAlgorithm>().is_err();
    let others = rule.limits.iter().filter(|limit| is_other(limit));
    let others = others.map(|limit| limit.value.clone());
    std::iter::once(own.limit.value.clone())
        .chain(others)
        .collect()
}

fn plan(rule: &Rule, plans: &Plans, facts: &(impl Facts + ?Sized)) -> Limits {
    let by = plans.by.as_str();
    let named = key::value(rule, &FactName::new(by), facts);
    let find = |wanted: &str| {
        plans
            .limits
            .iter()
            .find(|(name, _)| name.as_str() == wanted)
    };
    let (found, why) = match named.as_ref().map(|value| value.as_text()) {
        None => (None, format!("{by} is absent")),
        Some(value) => match find(&value) {
            Some(found) => (Some(found), format!("{by} is {}", Shown(&value))),
            None => (
                None,
                format!("{by} is {}, which is not a plan", Shown(&value)),
            ),
        },
    };
    let (found, why) = match (found, &plans.default) {
        (None, Some(default)) => (find(default), format!("{why}, so the default")),
        (None, None) => (None, format!("{why}, and there is no default")),
        (found, _) => (found, why),
    };
    match found {
        Some((name, limit)) => Limits {
            texts: vec![limit.value.clone()],
            plan: Some(Plan {
                name: name.value.clone(),
                why,
            }),
            ..Limits::default()
        },
        None => Limits {
            denies: Some(why),
            ..Limits::default()
        },
    }
}

fn cost(rule: &Rule, limits: &[String], facts: &(impl Facts + ?Sized)) -> Cost {
    let settle = rule.cost.settle.as_ref();
    let of = |permits, why| Cost {
        permits,
        why,
        settle: settle.map(|fact| fact.as_str().to_owned()),
    };
    let counts_requests = |limit: &String| limit.split_whitespace().next() == Some("concurrency");
    if !limits.is_empty() && limits.iter().all(counts_requests) {
        return of(1, None);
    }
    let default = rule.cost.default.value;
    let Some(fact) = &rule.cost.estimate else {
        return of(default, None);
    };
    let Some(value) = key::value(rule, fact, facts) else {
        return of(
            default,
            Some(format!("{} is absent, so the default", fact.value)),
        );
    };
    let text = value.as_text();
    let said = format!("{} is {}", fact.value, Shown(&text));
    match (value.as_number(), &rule.cost.max) {
        (None, _) => of(
            default,
            Some(format!("{said}, not a number, so the default")),
        ),
        (Some(cost), Some(max)) if cost > max.value => {
            of(max.value, Some(format!("{said}, more than the maximum")))
        }
        (Some(cost), _) if cost < rule.cost.min.value => {
            let why = format!("{said}, less than the minimum");
            of(rule.cost.min.value, Some(why))
        }
        (Some(cost), _) => of(cost, Some(said)),
    }
}
