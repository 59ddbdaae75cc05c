//! Limits, plans, overrides and costs.

use std::cell::Cell;
use std::time::Duration;

use tollgate::{AnyAlgorithm, Granted, Limiter, ManualClock, Quota, SlidingLog};
use toml::{Table, Value};

use super::conditions::{Facts, single};
use super::{fact_name, strings, text};
use crate::guide::lines::{End, Pairs};

/// The limit of a key.
pub(super) enum Limit {
    Rate(Limiter<AnyAlgorithm, ManualClock>),
    Log(SlidingLog<ManualClock>),
    Concurrency {
        limit: u64,
        inside: u64,
    },
    /// `every-other`, which the tests register: grants every other request.
    EveryOther {
        asked: Cell<u64>,
    },
    /// At most this many permits in an outage.
    Outage {
        left: u64,
    },
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
            Some(("outage", limit)) => Self::Outage {
                left: limit.parse().expect("a number"),
            },
            None if text == "every-other" => Self::EveryOther {
                asked: Cell::new(0),
            },
            _ => {
                let algorithm: AnyAlgorithm = text.parse().expect("an algorithm");
                Self::Rate(Limiter::with_clock(algorithm, clock.clone()))
            }
        }
    }

    /// Returns whether a request weighs 1, whatever it costs.
    pub(super) fn counts_requests(&self) -> bool {
        matches!(self, Self::Concurrency { .. })
    }

    pub(super) fn available(&self) -> u64 {
        match self {
            Self::Rate(limiter) => limiter.available(),
            Self::Log(log) => log.available(),
            Self::Concurrency { limit, inside } => limit - inside,
            Self::EveryOther { .. } => 0,
            Self::Outage { left } => *left,
        }
    }

    /// Returns how long a request has to wait, or `None` if it is granted now.
    pub(super) fn wait(&self, n: u64) -> Option<Option<Duration>> {
        match self {
            Self::Rate(limiter) => Some(limiter.time_until(n)).filter(|wait| !is_now(*wait)),
            Self::Log(log) => Some(log.time_until(n)).filter(|wait| !is_now(*wait)),
            Self::Concurrency { .. } | Self::Outage { .. } => {
                (n > self.available()).then_some(None)
            }
            Self::EveryOther { asked } => {
                asked.set(asked.get() + 1);
                (asked.get() % 2 == 0).then_some(None)
            }
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
            Self::EveryOther { .. } => None,
            Self::Outage { left } => {
                *left -= n;
                None
            }
        }
    }

    /// Returns the most that an answer can say of the cost, if the rule does not.
    pub(super) fn most_settled(&self) -> u64 {
        match self {
            Self::Rate(limiter) => {
                let quota = limiter.quota();
                let nanos = quota.period().as_nanos();
                let hour = u128::from(quota.permits()) * 3_600_000_000_000 / nanos;
                quota
                    .burst_size()
                    .max(hour.try_into().expect("a small rate"))
            }
            _ => u64::from(u32::MAX),
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
            (Self::EveryOther { .. } | Self::Outage { .. }, _) => {}
            (Self::Rate(_), None) => unreachable!("a rate is granted"),
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
    let plan = single(facts, &fact_name(&text(plans, "by"))).map(String::as_str);
    let plan = plan.filter(|plan| !["by", "default"].contains(plan));
    let known = plan.and_then(|plan| plans.get(plan));
    let default = || plans.get(plans.get("default")?.as_str()?);
    let limit = known.or_else(default)?;
    Some(strings(Some(limit)))
}

/// Returns whether a rule is on a store that may not answer.
pub(super) fn is_on_store(rule: &Table, server: Option<&Value>) -> bool {
    match rule.get("store").and_then(Value::as_str) {
        Some(store) => store != "memory",
        None => server.is_some(),
    }
}

/// Returns the limit that decides while a store does not answer. `None` denies.
pub(super) fn fallback(rule: &Table, server: Option<&Value>) -> Option<String> {
    let of_server = || server?.get("fallback");
    let fallback = rule.get("fallback").or_else(of_server)?.as_table()?;
    if let Some(open) = fallback.get("open") {
        return Some(format!("outage {}", open.get("at_most")?.as_integer()?));
    }
    let local = fallback.get("local")?;
    let processes = local.get("processes")?.as_integer()? as u64;
    let whole: Quota = text(rule, "limit").parse().expect("a rate");
    let share = Quota::per(whole.permits() / processes, whole.period());
    Some(share.burst(whole.burst_size() / processes).to_string())
}

/// Returns the cost of a request.
pub(super) fn cost(rule: &Table, facts: &Facts) -> u64 {
    let fact = |name: &Value| {
        let values = facts.get(&fact_name(name.as_str()?))?.iter();
        values.filter_map(|value| value.parse().ok()).max()
    };
    let number = |value: &Value| value.as_integer().map(|n| n as u64);
    match rule.get("cost") {
        None => 1,
        Some(Value::Table(cost)) => {
            let max = cost.get("max").and_then(number).unwrap_or(u64::MAX);
            let estimate = cost.get("estimate").and_then(fact);
            let default = cost.get("default").and_then(number).unwrap_or(1);
            let min = cost.get("min").and_then(number).unwrap_or(1);
            estimate.map_or(default, |n: u64| n.min(max).max(min))
        }
        Some(cost) => {
            let estimate = || fact(cost).map(|n: u64| n.max(1));
            number(cost).or_else(estimate).unwrap_or(1)
        }
    }
}

/// Returns the limit of the requests that may fail, if failures ban a key.
pub(super) fn attempts(rule: &Table) -> Option<String> {
    let ban = rule.get("ban")?;
    let of = ban.get("of").and_then(Value::as_str);
    let after = ban.get("after").and_then(Value::as_integer)?;
    let within = ban.get("within").and_then(Value::as_str).unwrap_or("15min");
    (of == Some("failures")).then(|| format!("fixed-window {after}/{within} first-hit"))
}

/// Returns whether a request succeeded. `None` if it neither succeeded nor failed.
pub(super) fn outcome(rule: &Table, end: &End) -> Option<bool> {
    let status = end
        .answer
        .iter()
        .find(|(name, _)| name == "response-status");
    let named = rule.get("failures").and_then(Value::as_array);
    let (Some((_, status)), Some(named)) = (status, named) else {
        return Some(!end.fails);
    };
    let is_named = |name: &Value| match name {
        Value::Integer(number) => number.to_string() == *status,
        name => name.as_str().is_some_and(|name| name[..1] == status[..1]),
    };
    match named.iter().any(is_named) {
        true => Some(false),
        false => (status.as_str() < "400").then_some(true),
    }
}

/// Returns the most that a fact can say of the cost, if the rule does.
pub(super) fn max(rule: &Table) -> Option<u64> {
    let max = rule.get("cost")?.as_table()?.get("max")?;
    max.as_integer().map(|n| n as u64)
}

/// Returns the actual cost, if the answer says it.
pub(super) fn settled(rule: &Table, answer: &Pairs) -> Option<u64> {
    let settle = fact_name(rule.get("cost")?.get("settle")?.as_str()?);
    let lines = answer.iter().filter(|(name, _)| *name == settle);
    lines.filter_map(|(_, actual)| actual.parse().ok()).max()
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
