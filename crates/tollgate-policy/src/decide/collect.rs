//! Which rules apply to a request, and what they ask.

use std::fmt;
use std::ops::{ControlFlow, Deref};

use smallvec::SmallVec;
use tollgate::clock::Clock;
use tollgate::keyed::KeyHasher;

use super::asks::{Ask, Asks};
use super::state::Why;
use crate::facts::Facts;
use crate::file::{Apply, Missing};
use crate::limit::RuleLimit;
use crate::policy::Policy;
use crate::rule::{Bytes, NoKey, What};
use crate::when::Reading;

/// What a request asks, while its rules are collected.
struct Collected<'a> {
    keys: &'a mut Bytes,
    list: &'a mut SmallVec<[Ask; 3]>,
    remote: &'a mut Vec<Ask>,
    would_deny: &'a mut SmallVec<[usize; 1]>,
    /// The rules that apply.
    rules: SmallVec<[usize; 4]>,
    refused: Option<Why>,
}

impl Collected<'_> {
    /// Denies the request because of a rule. A rule in the shadow only would deny it.
    fn refuse(&mut self, rule: usize, trial: bool, why: fn(usize) -> Why) -> Applied {
        // Once, however many rules name it.
        self.rules.push(rule);
        match trial {
            true => self.would_deny.push(rule),
            false => {
                self.refused.get_or_insert(why(rule));
            }
        }
        Applied::Yes
    }
}

/// What came of a rule that matches a request.
#[derive(PartialEq, Eq)]
enum Applied {
    Yes,
    /// It was added before.
    Before,
    /// Its key is missing, and so it does not apply.
    Skipped,
}

impl<R, C> Asks<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    /// Collects what a request asks. Returns what decides without a limit, if anything does.
    pub(crate) fn collect(&mut self, facts: &impl Facts) -> Option<Why> {
        let policy = &*self.policy;
        let mut collected = Collected {
            keys: &mut self.keys,
            list: &mut self.list,
            remote: &mut self.remote,
            would_deny: &mut self.would_deny,
            rules: SmallVec::new(),
            refused: None,
        };
        match policy.registry.resolvers.is_empty() {
            true => policy.collect(facts, &mut collected),
            false => policy.collect(&policy.registry.resolve(facts), &mut collected),
        }
        collected.refused
    }
}

impl<C: Clock + fmt::Debug + Send + Sync> Policy<C> {
    /// Returns which entry of the lists applies: the first of `deny`, else the first of `allow`.
    fn listed(&self, facts: &impl Facts) -> Option<Why> {
        if self.deny.names.is_empty() && self.allow.names.is_empty() {
            return None;
        }
        let first = |index, _: &dyn Fn(Reading) -> bool| ControlFlow::Break(index);
        if let ControlFlow::Break(entry) = self.deny.matcher.find(facts, Reading::ANY, first) {
            return Some(Why::Entry(entry));
        }
        match self.allow.matcher.find(facts, Reading::EACH, first) {
            ControlFlow::Break(entry) => Some(Why::Allowed(entry)),
            ControlFlow::Continue(()) => None,
        }
    }

    /// Collects what the rules ask that apply to a request, unless an entry of the lists does.
    fn collect(&self, facts: &impl Facts, collected: &mut Collected<'_>) {
        if let Some(why) = self.listed(facts) {
            collected.refused = Some(why);
            return;
        }
        let _ = self.matcher.find(facts, Reading::ANY, |index, by| {
            let rule = self.rules.get(index);
            let applied = match (by(Reading::ANY_KNOWN), rule) {
                (false, Some(rule)) if !collected.rules.contains(&index) => {
                    collected.refuse(index, rule.shadow, Why::Ambiguous)
                }
                _ => self.apply(index, facts, collected),
            };
            let is_over = match (applied, rule) {
                // By a value that the service may not read, it exempts from no rule that follows.
                (Applied::Yes, Some(rule)) => {
                    self.apply == Apply::First && !rule.shadow && by(Reading::EACH)
                }
                _ => false,
            };
            match is_over || collected.refused.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }

    /// Adds what a rule asks, and the rules that apply with it. A rule that is skipped or in the
    /// shadow brings no others.
    fn apply(&self, index: usize, facts: &impl Facts, collected: &mut Collected<'_>) -> Applied {
        let applied = self.add(index, facts, collected);
        let mut next: SmallVec<[usize; 4]> = SmallVec::new();
        if applied == Applied::Yes {
            next.extend(self.also(index));
        }
        while let Some(other) = next.pop() {
            if self.add(other, facts, collected) == Applied::Yes {
                next.extend(self.also(other));
            }
        }
        match applied {
            Applied::Skipped => Applied::Skipped,
            Applied::Yes | Applied::Before => Applied::Yes,
        }
    }

    /// Returns the rules that apply with a rule directly, the last one first.
    fn also(&self, index: usize) -> impl Iterator<Item = usize> {
        let rule = self.rules.get(index).filter(|rule| !rule.shadow);
        let also = rule.into_iter().flat_map(|rule| &rule.also);
        also.rev().copied()
    }

    /// Adds what one rule asks.
    fn add(&self, index: usize, facts: &impl Facts, collected: &mut Collected<'_>) -> Applied {
        if collected.rules.contains(&index) {
            return Applied::Before;
        }
        let Some(rule) = self.rules.get(index) else {
            return Applied::Skipped;
        };
        let trial = rule.shadow;
        let start = collected.keys.len();
        match (rule.key.push(facts, collected.keys), rule.missing) {
            (Ok(()), _) | (Err(NoKey::Missing), Missing::Shared) => {}
            (Err(NoKey::Missing), Missing::Skip) => {
                collected.keys.truncate(start);
                return Applied::Skipped;
            }
            (Err(NoKey::Missing), Missing::Deny) => {
                return collected.refuse(index, trial, Why::Missing);
            }
            (Err(NoKey::Ambiguous), _) => return collected.refuse(index, trial, Why::Ambiguous),
        }
        let key = (start, collected.keys.len());
        let bytes = collected.keys.get(start..).unwrap_or_default();
        let hash = self.hasher.0.hash_key(bytes);
        let plan = match rule.plans.as_ref().map(|plans| plans.of(facts)) {
            None => 0,
            Some(Some(plan)) => plan,
            // An override replaces every plan, so it also helps where there is none.
            Some(None) if rule.has_override(hash) => 0,
            Some(None) => return collected.refuse(index, trial, Why::NoPlan),
        };
        let Some(cost) = rule.cost.of(facts) else {
            return collected.refuse(index, trial, Why::Ambiguous);
        };
        collected.rules.push(index);
        let mut ask = |what, plan, cost, is_remote| {
            let ask = Ask {
                rule: index,
                what,
                plan,
                trial,
                takes: true,
                key,
                hash,
                cost,
            };
            match is_remote {
                true => collected.remote.push(ask),
                false => collected.list.push(ask),
            }
        };
        if let Some(ban) = rule.ban.as_ref().filter(|_| !trial) {
            ask(What::Ban, 0, 0, false);
            if ban.attempts.is_some() {
                ask(What::Attempt, 0, 1, false);
            }
        }
        for (limit, state) in rule.limits.iter().enumerate() {
            let cost = match state.counts_requests(plan) {
                true => 1,
                false => cost,
            };
            let is_remote = matches!(**state, RuleLimit::Remote(_));
            ask(What::Limit(limit), plan, cost, is_remote);
        }
        Applied::Yes
    }
}
