//! A rule, ready to decide.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::algorithm::ChangeQuota;
use tollgate::clock::Clock;
use tollgate::{AnyAlgorithm, Quota};

use crate::fact::{FactName, Facts};
use crate::file::{Count, Missing, Rule};
use crate::keep::Overrides;
use crate::key::KeySpec;
use crate::limit::{KeyHash, Remote, RuleLimit, Spec, Table};
use crate::rule_fact::RuleFact;
use crate::when::with_text;

/// A rule, ready to decide.
pub(crate) struct CompiledRule<C> {
    pub(crate) name: Box<str>,
    pub(crate) key: KeySpec,
    pub(crate) missing: Missing,
    /// The limits, all of which must grant a request.
    pub(crate) limits: Vec<Arc<RuleLimit<C>>>,
    /// For each limit, what its text says, or that of each plan.
    pub(crate) specs: Vec<Vec<Spec>>,
    /// For each limit, its text, or that of each plan.
    pub(crate) texts: Vec<Vec<Box<str>>>,
    pub(crate) plans: Option<Plans>,
    pub(crate) cost: Cost,
    pub(crate) count: Count,
    pub(crate) ban: Option<Ban<C>>,
    /// The rules that it names in `also`.
    pub(crate) also: Vec<usize>,
    pub(crate) shadow: bool,
    /// The limits of single keys, in the order of their hashes.
    pub(crate) overrides: Overrides,
    /// What the file says.
    pub(crate) source: Rule,
}

impl<C> CompiledRule<C> {
    /// Returns whether a key has a limit of its own.
    pub(crate) fn has_override(&self, hash: u64) -> bool {
        self.override_of(hash).is_some()
    }

    /// Returns the limit of a key's own.
    fn override_of(&self, hash: u64) -> Option<&AnyAlgorithm> {
        let overrides = &self.overrides;
        let found = overrides.binary_search_by_key(&hash, |(hash, _)| *hash);
        overrides.get(found.ok()?).map(|(_, algorithm)| algorithm)
    }

    /// Returns what one limit allows a key under a plan.
    pub(crate) fn allowed(&self, limit: usize, plan: usize, hash: u64) -> Option<Allowed> {
        match (&**self.limits.get(limit)?, self.override_of(hash)) {
            (RuleLimit::Table(_), Some(own)) => Some(Allowed::Rate(own.quota())),
            (RuleLimit::Remote(remote), _) if remote.concurrency(plan).is_some() => {
                remote.concurrency(plan).map(Allowed::Concurrency)
            }
            _ => match self.specs.get(limit)?.get(plan)? {
                Spec::Rate(algorithm) => Some(Allowed::Rate(algorithm.quota())),
                Spec::Concurrency(limit) => Some(Allowed::Concurrency(*limit)),
                Spec::Own { .. } => None,
            },
        }
    }

    /// Returns a limit of a store that decides asynchronously.
    pub(crate) fn remote(&self, limit: usize) -> Option<&Remote> {
        match &**self.limits.get(limit)? {
            RuleLimit::Remote(remote) => Some(remote),
            _ => None,
        }
    }
}

impl<C: Clock> CompiledRule<C> {
    /// Forgets a key. Returns whether anything was known of it.
    pub(crate) fn forget(&self, key: &KeyHash) -> bool {
        let mut known = false;
        for limit in &self.limits {
            if let RuleLimit::Table(table) = &**limit {
                known |= table.remove(key);
            }
        }
        if let Some(ban) = &self.ban {
            known |= ban.strikes.remove(key);
            known |= ban.bans.remove(key);
        }
        known
    }

    /// Counts a denial of a key, and bans it if there were too many. Returns for how long.
    pub(crate) fn strike(&self, hash: u64) -> Option<Duration> {
        let ban = self.ban.as_ref()?;
        let key = KeyHash(hash);
        match ban.strikes.key(&key).try_acquire() {
            Ok(granted) if granted.remaining() == 0 => {
                // Without a slot for the ban, the key is not banned.
                let time = ban.duration.saturating_sub(AFTER_BAN);
                let _ = ban.bans.key(&key).ban_for(time);
                ban.strikes.remove(&key);
                Some(ban.duration)
            }
            // If it is denied, another caller has just reached the number.
            _ => None,
        }
    }
}

/// What a limit allows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Allowed {
    Rate(Quota),
    Concurrency(u64),
}

/// The plans of a rule.
#[derive(Debug)]
pub(crate) struct Plans {
    pub(crate) by: RuleFact,
    /// The names, in the order of the plans.
    pub(crate) names: Vec<Box<str>>,
    pub(crate) default: Option<usize>,
}

impl Plans {
    /// Returns the plan of a request.
    pub(crate) fn of(&self, facts: &impl Facts) -> Option<usize> {
        let named = self.by.value(facts).and_then(|value| {
            let is = |name: &str| self.names.iter().position(|known| **known == *name);
            with_text(&value, is)
        });
        named.or(self.default)
    }
}

/// How many permits a request takes.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) estimate: Option<RuleFact>,
    pub(crate) default: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) settle: Option<FactName>,
}

impl Cost {
    #[inline]
    pub(crate) fn of(&self, facts: &impl Facts) -> u64 {
        let Some(fact) = &self.estimate else {
            return self.default;
        };
        let estimate = fact.value(facts).and_then(|value| value.as_number());
        estimate.map_or(self.default, |cost| cost.min(self.max).max(self.min))
    }
}

/// How long after a ban the key gets its first permit in the table of bans.
pub(crate) const AFTER_BAN: Duration = Duration::from_nanos(1);

/// Bans a key that is denied again and again.
pub(crate) struct Ban<C> {
    pub(crate) duration: Duration,
    pub(crate) after: u64,
    pub(crate) within: Duration,
    /// Counts the denials of each key.
    pub(crate) strikes: Arc<Table<C>>,
    /// Where keys are banned. A ban in the table of a limit would last until that limit has a
    /// permit again: with a window of a day, until the next day.
    pub(crate) bans: Arc<Table<C>>,
}

impl<C> Ban<C> {
    /// Returns how many denials ban a key, as saved states write it.
    pub(crate) fn strikes_text(&self) -> String {
        strikes_text(self.after, self.within)
    }
}

/// Returns how many denials in which period ban a key, as saved states write it.
pub(crate) fn strikes_text(after: u64, within: Duration) -> String {
    Quota::per(after, within).to_string()
}

impl<C> fmt::Debug for CompiledRule<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
