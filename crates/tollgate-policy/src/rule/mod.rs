//! A rule, ready to decide: its key, its limits, and what counts.

mod fact;
pub(crate) mod failure;
mod key;
mod missing;
mod outcome;
mod reads;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Quota;
use tollgate::algorithm::ChangeQuota;
use tollgate::clock::Clock;

use crate::facts::Facts;
use crate::file::{CountOf, Rule};
use crate::limit::{KeyHash, Overrides, RuleLimit, Spec, Table, own_of};
pub(crate) use fact::{RuleFact, can_be_key};
use failure::Named;
pub(crate) use key::{Bytes, KeySpec, NoKey, key_values, of_values};
pub(crate) use missing::MissingKeys;
pub use outcome::Outcome;
pub(crate) use reads::{Plans, Reads};

/// What a request asks of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A limit, by its position in the rule.
    Limit(usize),
    /// Whether the key is banned. This is asked before the limits of the rule.
    Ban,
    /// The limit of the requests that may fail before they ban their key.
    Attempt,
    /// Nothing. It lends the policy's clock.
    Clock,
}

/// A rule, ready to decide.
pub(crate) struct CompiledRule<C> {
    pub(crate) name: Box<str>,
    /// What it reads of a request.
    pub(crate) reads: Reads,
    /// The limits, all of which must grant a request.
    pub(crate) limits: Vec<Arc<RuleLimit<C>>>,
    /// For each limit, what its text says, or what the texts of its plans say.
    pub(crate) specs: Vec<Vec<Spec>>,
    /// For each limit, its text, or the texts of its plans.
    pub(crate) texts: Vec<Vec<Box<str>>>,
    pub(crate) count: CountOf,
    /// The answers that are failures, if the rule names them.
    pub(crate) failures: Option<Named>,
    pub(crate) ban: Option<Ban<C>>,
    /// The limits of single keys, in the order of their hashes.
    pub(crate) overrides: Overrides,
    /// Counts the requests that lack its key.
    pub(crate) missing_keys: MissingKeys,
    /// What the file says.
    pub(crate) source: Rule,
}

impl<C> AsRef<Reads> for CompiledRule<C> {
    fn as_ref(&self) -> &Reads {
        &self.reads
    }
}

impl<C> CompiledRule<C> {
    /// Returns a limit that a request asks.
    #[inline]
    pub(crate) fn limit(&self, what: What) -> Option<&RuleLimit<C>> {
        match what {
            What::Limit(limit) => self.limits.get(limit).map(|limit| &**limit),
            What::Attempt => Some(&self.ban.as_ref()?.attempts.as_ref()?.limit),
            What::Ban | What::Clock => None,
        }
    }

    /// Returns the tables of its keys, those of a ban included.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table<C>> {
        let ban = self.ban.iter().flat_map(|ban| {
            let attempts = ban.attempts.iter().filter_map(|it| it.limit.table());
            attempts.chain([&*ban.strikes, &*ban.bans])
        });
        self.limits
            .iter()
            .filter_map(|limit| limit.table())
            .chain(ban)
    }

    /// Returns the name of a plan, if the rule has plans.
    pub(crate) fn plan_name(&self, plan: usize) -> Option<&str> {
        let plans = self.reads.plans.as_ref()?;
        plans.names.get(plan).map(|name| &**name)
    }

    /// Returns whether denials count towards a ban.
    pub(crate) fn bans_denials(&self) -> bool {
        self.ban.as_ref().is_some_and(|ban| ban.attempts.is_none())
    }

    /// Returns the outcome of a request for this rule: what the program says, unless the rule names
    /// the answers that are failures.
    pub(crate) fn outcome(&self, said: Option<Outcome>, answer: &impl Facts) -> Option<Outcome> {
        match (&self.failures, said) {
            (None, _) | (_, None | Some(Outcome::Unanswered)) => said,
            (Some(named), _) => named.outcome(answer).or(said),
        }
    }

    /// Returns the limit of a key's own.
    pub(crate) fn override_of(&self, hash: u64) -> Option<&Spec> {
        own_of(&self.overrides, hash)
    }

    /// Returns whether an override takes the place of a limit under a plan: it does of each rate.
    fn is_rate(&self, limit: usize, plan: usize) -> bool {
        let rule_limit = self.limits.get(limit).map(|limit| &**limit);
        match (self.spec(limit, plan), rule_limit) {
            (Some(Spec::Rate(_) | Spec::Fixed(_)), _) => true,
            (_, Some(RuleLimit::Remote(remote))) => remote.concurrency(plan).is_none(),
            _ => false,
        }
    }

    fn spec(&self, limit: usize, plan: usize) -> Option<&Spec> {
        self.specs.get(limit)?.get(plan)
    }

    /// Returns the limit of a key's own, if it takes the place of a limit under all plans.
    pub(crate) fn in_place_of(&self, limit: usize, hash: u64) -> Option<&Spec> {
        let mut plans = 0..self.specs.get(limit)?.len();
        let own = self.override_of(hash)?;
        plans.all(|plan| self.is_rate(limit, plan)).then_some(own)
    }

    /// Returns whether a limit is not asked for a key that is unlimited under a plan: the text says
    /// so, or an override, which takes the place of each rate.
    pub(crate) fn is_unlimited(&self, limit: usize, plan: usize, hash: u64) -> bool {
        let is_fixed = matches!(self.spec(limit, plan), Some(Spec::Fixed(_)));
        is_fixed || (self.is_rate(limit, plan) && self.override_of(hash).is_some())
    }

    /// Returns what one limit allows a key under a plan.
    pub(crate) fn allowed(&self, limit: usize, plan: usize, hash: u64) -> Option<Allowed> {
        if let RuleLimit::Remote(remote) = &**self.limits.get(limit)? {
            if let Some(limit) = remote.concurrency(plan) {
                return Some(Allowed::Concurrency(limit));
            }
        }
        let own = self.override_of(hash);
        let own = own.filter(|_| self.is_rate(limit, plan));
        match own.or_else(|| self.spec(limit, plan))? {
            Spec::Rate(algorithm) => Some(Allowed::Rate(algorithm.quota())),
            Spec::Concurrency(limit) => Some(Allowed::Concurrency(*limit)),
            Spec::Own { .. } | Spec::Fixed(_) => None,
        }
    }

    /// Returns the most permits that a fact of the answer can say. A larger cost that was granted
    /// counts anyway.
    pub(crate) fn most_settled(&self, limit: usize, plan: usize, hash: u64) -> u64 {
        let of_limit = || match self.allowed(limit, plan, hash) {
            Some(Allowed::Rate(quota)) => quota.largest_settlement(),
            Some(Allowed::Concurrency(_)) | None => UNKNOWN_SETTLEMENT,
        };
        self.reads.cost.max.unwrap_or_else(of_limit)
    }
}

impl<C: Clock> CompiledRule<C> {
    /// Counts a denial or a failure of a key, and bans it if there were too many. Returns for how
    /// long.
    pub(crate) fn strike(&self, hash: u64) -> Option<Duration> {
        let ban = self.ban.as_ref()?;
        let key = KeyHash(hash);
        match ban.strikes.key(&key).try_acquire() {
            Ok(granted) if granted.remaining() == 0 => {
                // Without a slot for the ban, the key is not banned.
                let time = ban.duration.saturating_sub(AFTER_BAN);
                let _ = ban.bans.key(&key).ban_for(time);
                ban.strikes.key(&key).remove();
                Some(ban.duration)
            }
            // If this is denied, another caller has just reached the number.
            _ => None,
        }
    }
}

/// The largest cost that a fact of the answer can say, if neither the rule nor the limit bounds it.
const UNKNOWN_SETTLEMENT: u64 = u32::MAX as u64;

/// What a limit allows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Allowed {
    Rate(Quota),
    Concurrency(u64),
}

/// How long after a ban the key gets its first permit in the table of bans.
pub(crate) const AFTER_BAN: Duration = Duration::from_nanos(1);

/// Bans a key that is denied, or fails, again and again.
pub(crate) struct Ban<C> {
    pub(crate) duration: Duration,
    pub(crate) after: u64,
    pub(crate) within: Duration,
    /// If failures count, how many requests of a key may fail, those under way included. So a
    /// client can't try more at once.
    pub(crate) attempts: Option<Arc<Attempts<C>>>,
    /// Counts the denials or the failures of each key.
    pub(crate) strikes: Arc<Table<C>>,
    /// Where keys are banned. Not in a limit's table: there a ban lasts until the limit has a
    /// permit again, so up to a day if the window is a day.
    pub(crate) bans: Arc<Table<C>>,
}

/// The limit of the requests that may fail.
pub(crate) struct Attempts<C> {
    pub(crate) limit: RuleLimit<C>,
    pub(crate) quota: Quota,
    pub(crate) text: Box<str>,
}

/// Returns how many denials or failures in which period ban a key, as saved states write it.
pub(crate) fn strikes_text(of_failures: bool, after: u64, within: Duration) -> String {
    let quota = Quota::per(after, within);
    match of_failures {
        true => format!("failures {quota}"),
        false => quota.to_string(),
    }
}

impl<C> fmt::Debug for CompiledRule<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
