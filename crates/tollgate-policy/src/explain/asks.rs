//! What a rule asks: its key, its limits and the cost.

use tollgate::AnyAlgorithm;

use super::display::{Shown, ShownValues};
use super::{Asks, Cost, Plan, key};
use crate::facts::{FactName, Facts, Value, Values};
use crate::file::{Applies, Missing, Override, Plans, Rule};
use crate::rule::{Bytes, KeySpec, failure};
use crate::when::Reading;

/// The limits of a request.
#[derive(Default)]
struct Limits {
    texts: Vec<String>,
    plan: Option<Plan>,
    is_override: bool,
    denies: Option<String>,
}

/// Why a rule denies a request whose conditions may hold by values that are not read.
const UNREAD: &str = "its conditions depend on more values than are read, so they are ambiguous";

/// Returns what a rule asks, or why it does not apply. `is_own` says whether it applies by its own
/// conditions.
pub(super) fn of(rule: &Rule, is_own: bool, facts: &(impl Facts + ?Sized)) -> Result<Asks, String> {
    let key = key::key(rule, facts);
    let ambiguous = key.iter().find(|part| part.ambiguous.is_some());
    let missing = key.iter().find(|part| part.value.is_none());
    let unsure = || match &rule.when.value {
        Applies::When(when) => !when.holds_by(facts, Reading::ANY_KNOWN),
        _ => false,
    };
    let denies = |why: String| Limits {
        denies: Some(why),
        ..Limits::default()
    };
    let limits = match (ambiguous, missing, rule.missing) {
        _ if is_own && unsure() => denies(UNREAD.into()),
        (Some(part), ..) => denies(format!("{part}, so it is ambiguous")),
        (_, Some(part), Missing::Skip) => {
            return Err(format!("{} is missing, and missing = \"skip\"", part.name));
        }
        (_, Some(part), Missing::Deny) => {
            denies(format!("{} is missing, and missing = \"deny\"", part.name))
        }
        _ => limits(rule, facts),
    };
    let (mut limits, cost) = match cost(rule, &limits.texts, facts) {
        Ok(cost) => (limits, cost),
        Err(cost) if limits.denies.is_some() => (limits, cost),
        Err(cost) => (denies(cost.why.clone().unwrap_or_default()), cost),
    };
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
    let named = key::values(rule, &FactName::new(by), facts);
    let find = |wanted: &str| {
        plans
            .limits
            .iter()
            .find(|(name, _)| name.as_str() == wanted)
    };
    let said = ShownValues(&named).to_string();
    let (found, why) = match named.single().as_ref().map(Value::as_text) {
        None => (None, format!("{by} is {said}")),
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

/// Returns what a request costs. If that is ambiguous, the error says why.
fn cost(rule: &Rule, limits: &[String], facts: &(impl Facts + ?Sized)) -> Result<Cost, Cost> {
    let settle = rule.cost.settle.as_ref();
    let of = |permits, why| Cost {
        permits,
        why,
        settle: settle.map(|fact| fact.as_str().to_owned()),
    };
    let default = rule.cost.default.value;
    let values = match &rule.cost.estimate {
        Some(fact) => key::values(rule, fact, facts),
        None => Values::NONE,
    };
    let (largest, is_known) = values.largest();
    let said = |fact: &FactName| format!("{fact} is {}", ShownValues(&values));
    let counts_requests = |limit: &String| limit.split_whitespace().next() == Some("concurrency");
    let asks_requests = !limits.is_empty() && limits.iter().all(counts_requests);
    Ok(match (&rule.cost.estimate, largest, &rule.cost.max) {
        (Some(fact), ..) if !is_known => {
            return Err(of(
                default,
                Some(format!("{}, so the cost is ambiguous", said(fact))),
            ));
        }
        _ if asks_requests => of(1, None),
        (None, ..) => of(default, None),
        (Some(fact), None, _) if values.is_none() => {
            of(default, Some(format!("{}, so the default", said(fact))))
        }
        (Some(fact), None, _) => {
            let why = format!("{}, not a number, so the default", said(fact));
            of(default, Some(why))
        }
        (Some(fact), Some(cost), Some(max)) if cost > max.value => {
            let why = format!("{}, more than the maximum", said(fact));
            of(max.value, Some(why))
        }
        (Some(fact), Some(cost), _) if cost < rule.cost.min.value => {
            let why = format!("{}, less than the minimum", said(fact));
            of(rule.cost.min.value, Some(why))
        }
        (Some(fact), Some(cost), _) => of(cost, Some(said(fact))),
    })
}
