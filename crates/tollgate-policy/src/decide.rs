//! How a policy decides about a request: which rules apply, what they ask, and the answer.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use smallvec::SmallVec;
use tollgate::clock::Clock;
use tollgate::compose::{All, AllDenied, Members, Visitor};
use tollgate::keyed::KeyHasher;
use tollgate::{Denied, Tick};

use crate::asks::{Ask, Asks, What};
use crate::decision::{Decision, State, Why};
use crate::fact::Facts;
use crate::file::{Apply, Missing};
use crate::key::Bytes;
use crate::limit::{Gate, KeyHash, RuleLimit};
use crate::policy::Policy;
use crate::rule::AFTER_BAN;
use crate::visits::{HasClock, Look, Take};

/// What a request asks, while its rules are collected.
struct Collected<'a> {
    keys: &'a mut Bytes,
    list: &'a mut SmallVec<[Ask; 3]>,
    would_deny: &'a mut SmallVec<[usize; 1]>,
    /// The rules that apply.
    rules: SmallVec<[usize; 4]>,
    refused: Option<Why>,
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

/// Decides about a request.
pub(crate) fn decide<R, C>(policy: R, facts: &impl Facts) -> Decision<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    let state = match policy.listed(facts) {
        Some(Why::Entry(entry)) => State::Refused(policy, Why::Entry(entry)),
        Some(why) => State::Free(policy, Some(why)),
        None => match policy.registry.resolvers.is_empty() {
            true => ask(policy, facts),
            false => {
                let registry = Arc::clone(&policy.registry);
                ask(policy, &registry.resolve(facts))
            }
        },
    };
    Decision { state }
}

fn ask<R, C>(policy: R, facts: &impl Facts) -> State<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    // It is filled where it stays: moving it takes time.
    let mut asks = Asks {
        policy,
        keys: Bytes::new(),
        list: SmallVec::new(),
        would_deny: SmallVec::new(),
        clock: PhantomData,
    };
    let mut collected = Collected {
        keys: &mut asks.keys,
        list: &mut asks.list,
        would_deny: &mut asks.would_deny,
        rules: SmallVec::new(),
        refused: None,
    };
    asks.policy.collect(facts, &mut collected);
    if let Some(why) = collected.refused {
        return State::Refused(asks.policy, why);
    }
    if asks.list.is_empty() && asks.would_deny.is_empty() {
        return State::Free(asks.policy, None);
    }
    if let [ask] = asks.list.as_slice() {
        if asks.is_rate(ask) && !ask.trial {
            return ask_one(asks);
        }
    }
    asks.look_ahead();
    if !asks.has_clock() {
        asks.list.push(Ask {
            rule: usize::MAX,
            what: What::Clock,
            plan: 0,
            trial: false,
            takes: true,
            key: (0, 0),
            hash: 0,
            cost: 0,
        });
    }
    let costs = asks.costs();
    let all = match All::new(asks) {
        Ok(all) => all,
        // There are more limits than a composition can have, or registered ones on other clocks.
        Err(error) => return State::Invalid(error),
    };
    match all.into_acquired_each(costs) {
        Ok(granted) => State::Granted(granted),
        Err((AllDenied::Member { member, denied, .. }, all)) => {
            let now = all.now();
            let asks = all.into_inner();
            asks.strike(now);
            State::Denied(asks, member, denied)
        }
        // There is a cost for each limit, and no line.
        Err((_, all)) => State::Denied(all.into_inner(), 0, Denied::busy(1)),
    }
}

/// Asks a single rate. A composition of one limit would answer the same, but take longer.
fn ask_one<R, C>(asks: Asks<R, C>) -> State<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    let n = asks.list.first().map_or(0, |ask| ask.cost);
    let now = asks.now();
    match asks.visit(0, Take { n, now }) {
        Some(Ok(held)) => State::One(asks, held),
        Some(Err(denied)) => {
            asks.strike(now);
            State::Denied(asks, 0, denied)
        }
        // There is such a limit.
        None => State::Denied(asks, 0, Denied::busy(n)),
    }
}

impl<C: Clock + fmt::Debug + Send + Sync> Policy<C> {
    /// Returns which entry of the lists applies: the first of `deny`, else the first of `allow`.
    fn listed(&self, facts: &impl Facts) -> Option<Why> {
        if self.deny.names.is_empty() && self.allow.names.is_empty() {
            return None;
        }
        let first = |index| ControlFlow::Break(index);
        if let ControlFlow::Break(entry) = self.deny.matcher.each(facts, first) {
            return Some(Why::Entry(entry));
        }
        match self.allow.matcher.each(facts, first) {
            ControlFlow::Break(entry) => Some(Why::Allowed(entry)),
            ControlFlow::Continue(()) => None,
        }
    }

    /// Collects what the rules ask that apply to a request.
    fn collect(&self, facts: &impl Facts, collected: &mut Collected<'_>) {
        let _ = self.matcher.each(facts, |index| {
            let applied = self.apply(index, facts, collected);
            let is_over = match (applied, self.rules.get(index)) {
                (Applied::Yes, Some(rule)) => self.apply == Apply::First && !rule.shadow,
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
        if rule.key.push(facts, collected.keys).is_err() {
            match (rule.missing, trial) {
                (Missing::Shared, _) => {}
                (Missing::Skip, _) => {
                    collected.keys.truncate(start);
                    return Applied::Skipped;
                }
                (Missing::Deny, true) => {
                    collected.rules.push(index);
                    collected.would_deny.push(index);
                    return Applied::Yes;
                }
                (Missing::Deny, false) => {
                    collected.refused.get_or_insert(Why::Missing(index));
                    return Applied::Yes;
                }
            }
        }
        collected.rules.push(index);
        let key = (start, collected.keys.len());
        let bytes = collected.keys.get(start..).unwrap_or_default();
        let hash = self.hasher.0.hash_key(bytes);
        let plan = match rule.plans.as_ref().map(|plans| plans.of(facts)) {
            None => 0,
            Some(Some(plan)) => plan,
            // An override replaces every plan, so it also helps where there is none.
            Some(None) if rule.has_override(hash) => 0,
            Some(None) if trial => {
                collected.would_deny.push(index);
                return Applied::Yes;
            }
            Some(None) => {
                collected.refused.get_or_insert(Why::NoPlan(index));
                return Applied::Yes;
            }
        };
        let cost = rule.cost.of(facts);
        let mut ask = |what, cost| {
            collected.list.push(Ask {
                rule: index,
                what,
                plan,
                trial,
                takes: true,
                key,
                hash,
                cost,
            });
        };
        if rule.ban.is_some() && !trial {
            ask(What::Ban, 0);
        }
        for (limit, state) in rule.limits.iter().enumerate() {
            let cost = match state.counts_requests() {
                true => 1,
                false => cost,
            };
            ask(What::Limit(limit), cost);
        }
        Applied::Yes
    }
}

impl<R, C> Asks<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    fn has_clock(&self) -> bool {
        let mut asks = self.list.iter().enumerate();
        asks.any(|(index, ask)| {
            let is_rate = ask.takes && self.is_rate(ask);
            is_rate || self.visit(index, HasClock) == Some(true)
        })
    }

    /// Returns whether a limit is a rate of the core.
    fn is_rate(&self, ask: &Ask) -> bool {
        let limit = self.limit(ask);
        matches!(limit, Some(RuleLimit::Table(_) | RuleLimit::Single(_)))
    }

    /// Returns what one limit would answer now. While a key is banned, all limits of the rule
    /// answer so.
    pub(crate) fn look(&self, index: usize, now: Tick) -> Option<Denied> {
        let ask = *self.list.get(index)?;
        let rule = self.policy.rules.get(ask.rule)?;
        let look = Look { n: ask.cost, now };
        let ban = rule.ban.as_ref().filter(|_| !ask.trial);
        let banned = ban.and_then(|ban| look.visit(&Gate(ban.bans.key(&KeyHash(ask.hash))), None));
        match (banned, ask.what) {
            (None, What::Limit(limit)) => {
                let limit = rule.limits.get(limit)?;
                limit.visit(self.key(&ask), ask.plan, false, look)?
            }
            _ => banned,
        }
    }

    /// Finds the rules in the shadow that must take nothing: those with several limits, one of
    /// which would deny.
    fn look_ahead(&mut self) {
        let policy = &*self.policy;
        let has_several = |ask: &Ask| match policy.rules.get(ask.rule) {
            Some(rule) => ask.trial && rule.limits.len() > 1,
            None => false,
        };
        if !self.list.iter().any(has_several) {
            return;
        }
        let now = policy.clock.now();
        let denies = |(index, ask): (usize, &Ask)| {
            (has_several(ask) && self.look(index, now).is_some()).then_some(ask.rule)
        };
        let denying: SmallVec<[usize; 4]> =
            self.list.iter().enumerate().filter_map(denies).collect();
        for ask in &mut self.list {
            ask.takes = !denying.contains(&ask.rule);
        }
    }

    /// Counts a denial for each rule that denied it, and bans the key if there were too many.
    fn strike(&self, now: Tick) {
        let mut last = None;
        for (index, ask) in self.list.iter().enumerate() {
            let rule = self.policy.rules.get(ask.rule);
            let Some(ban) = rule.and_then(|rule| rule.ban.as_ref()) else {
                continue;
            };
            if ask.trial || last == Some(ask.rule) {
                continue;
            }
            let counts = matches!(
                self.look(index, now),
                Some(Denied::Later { .. } | Denied::Never { .. } | Denied::Busy { .. })
            );
            if !counts {
                continue;
            }
            last = Some(ask.rule);
            let key = KeyHash(ask.hash);
            let is_over = match ban.strikes.key(&key).try_acquire() {
                Ok(granted) => granted.remaining() == 0,
                // Another caller has just reached the number.
                Err(_) => false,
            };
            if is_over {
                // Without a slot for the ban, the key is not banned.
                let time = ban.duration.saturating_sub(AFTER_BAN);
                let _ = ban.bans.key(&key).ban_for(time);
                ban.strikes.remove(&key);
            }
        }
    }
}
