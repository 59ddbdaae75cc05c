//! Limits, plans, overrides and costs.

use std::time::Duration;

use tollgate::{AnyAlgorithm, Granted, Limiter, ManualClock, Quota, SlidingLog};
use toml::{Table, Value};

use super::conditions::Facts;
use super::{strings, text};
use crate::lines::Pairs;

/// The limit of a key.
pub(super) enum Limit {
    Rate(Limiter<AnyAlgorithm, ManualClock>),
    Log(SlidingLog<ManualClock>),
    Concurrency { limit: u64, inside: u64 },
}

impl Limit {
    pub(super) fn new(text: &str, clock: &ManualClock) -> Self {
        match text.split_once(' ') {
            Some(("concurrency", limit)) => Self::Concurrency {
                limit: limit.parse().expect("a number"),
                inside: 0,
            },
            Some(("sliding-log", quota)) => {
                let quota: Quota = quota.parse().expect("a quota");
                Self::Log(SlidingLog::with_clock(quota, clock.clone()).expect("a limit"))
            }
            _ => {
                let algorithm: AnyAlgorithm = text.parse().expect("an algorithm");
                Self::Rate(Limiter::with_clock(algorithm, clock.clone()))
            }
        }
    }

    pub(super) fn available(&self) -> u64 {
        match self {
            Self::Rate(limiter) => limiter.available(),
            Self::Log(log) => log.available(),
            Self::Concurrency { limit, inside } => limit - inside,
        }
    }

    /// Returns how long a request has to wait, or `None` if it is granted now.
    pub(super) fn wait(&self, n: u64) -> Option<Option<Duration>> {
        match self {
            Self::Rate(limiter) => Some(limiter.time_until(n)).filter(|wait| !is_now(*wait)),
            Self::Log(log) => Some(log.time_until(n)).filter(|wait| !is_now(*wait)),
            Self::Concurrency { .. } => (n > self.available()).then_some(None),
        }
    }

    pub(super) fn take(&mut self, n: u64) -> Option<Granted> {
        match self {
            Self::Rate(limiter) => Some(limiter.try_acquire_n(n).expect("no wait")),
            Self::Log(log) => Some(log.try_acquire_n(n).expect("no wait")),
            Self::Concurrency { inside, .. } => {
                *inside += n;
                None
            }
        }
    }

    /// Ends a request that took `n` permits, and needed `actual` in the end.
    pub(super) fn end(&mut self, n: u64, granted: Option<Granted>, actual: u64) {
        match (self, granted) {
            (Self::Rate(limiter), Some(granted)) => {
                let _ = limiter.settle(granted, actual);
            }
            (Self::Log(_), _) => assert_eq!(actual, n, "a log returns nothing"),
            (Self::Concurrency { inside, .. }, _) => *inside -= n,
            _ => unreachable!("a rate is granted"),
        }
    }
}

fn is_now(wait: Option<Duration>) -> bool {
    wait == Some(Duration::ZERO)
}

/// Returns the texts of a rule's limits for a key, or `None` if it has no plan for the request.
pub(super) fn texts(rule: &Table, key: &[String], facts: &Facts) -> Option<Vec<String>> {
    let overrides = rule.get("override").and_then(Value::as_array);
    let mut overrides = overrides.into_iter().flatten();
    if let Some(own) = overrides.find(|own| strings(own.get("key")) == key) {
        return Some(strings(own.get("limit")));
    }
    let Some(plans) = rule.get("plan").and_then(Value::as_table) else {
        return Some(strings(rule.get("limit")));
    };
    let plan = facts.get(&text(plans, "by")).map(String::as_str);
    let plan = plan.filter(|plan| !["by", "default"].contains(plan));
    let known = plan.and_then(|plan| plans.get(plan));
    let default = || plans.get(plans.get("default")?.as_str()?);
    let limit = known.or_else(default)?;
    Some(strings(Some(limit)))
}

/// Returns the cost of a request.
pub(super) fn cost(rule: &Table, facts: &Facts) -> u64 {
    let fact = |name: &Value| facts.get(name.as_str()?)?.parse().ok();
    let number = |value: &Value| value.as_integer().map(|n| n as u64);
    match rule.get("cost") {
        None => 1,
        Some(Value::Table(cost)) => {
            let max = cost.get("max").and_then(number).unwrap_or(u64::MAX);
            let estimate = cost.get("estimate").and_then(fact);
            let default = cost.get("default").and_then(number).unwrap_or(1);
            estimate.map_or(default, |n: u64| n.min(max))
        }
        Some(cost) => number(cost).or_else(|| fact(cost)).unwrap_or(1),
    }
}

/// Returns the actual cost, if the answer says it.
pub(super) fn settled(rule: &Table, answer: &Pairs) -> Option<u64> {
    let settle = rule.get("cost")?.get("settle")?.as_str()?;
    let (_, actual) = answer.iter().find(|(name, _)| name == settle)?;
    actual.parse().ok()
}

/// Returns a time such as `10min`.
pub(super) fn time(table: &Value, field: &str) -> Option<Duration> {
    let time = table.get(field)?.as_str()?;
    let quota: Quota = format!("1/{time}").parse().expect("a time");
    Some(quota.period())
}

/// Returns the period of a rule's first limit.
pub(super) fn period(rule: &Table) -> Duration {
    let limits = strings(rule.get("limit"));
    let rate = limits[0].split(' ').find_map(|word| word.parse().ok());
    let quota: Quota = rate.expect("a rate");
    quota.period()
}
