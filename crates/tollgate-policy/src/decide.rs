//! How a policy decides about a request: which rules apply, what they ask, and the answer.

use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{ControlFlow, Deref};

use smallvec::SmallVec;
use tollgate::clock::Clock;
use tollgate::compose::{All, AllDenied, Member, Members, Visitor};
use tollgate::keyed::KeyHasher;
use tollgate::{Denied, Tick};

use crate::asks::{Ask, Asks, What};
use crate::decision::Decision;
use crate::fact::Facts;
use crate::file::{Apply, Missing};
use crate::key::Bytes;
use crate::limit::{Gate, KeyHash, RuleLimit};
use crate::policy::Policy;
use crate::verdict::{State, Why};

/// What a request asks, while its rules are collected.
pub(crate) struct Collected {
    pub(crate) keys: Bytes,
    list: SmallVec<[Ask; 3]>,
    /// The limits of stores that decide asynchronously.
    pub(crate) remote: Vec<Ask>,
    would_deny: SmallVec<[usize; 1]>,
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
    let mut collected = match policy.consider(facts) {
        Ok(collected) => collected,
        Err(why) => return refused(policy, why).into(),
    };
    // Stores that decide asynchronously can't be asked here.
    for ask in mem::take(&mut collected.remote) {
        match ask.trial {
            true => collected.would_deny.push(ask.rule),
            false => return refused(policy, Why::Remote(ask.rule)).into(),
        }
    }
    acquire(policy, collected).into()
}

/// Returns what becomes of a request about which no limit decides.
pub(crate) fn refused<R, C>(policy: R, why: Why) -> State<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    match why {
        Why::Allowed(_) => State::Free(policy, Some(why)),
        _ => State::Refused(policy, why),
    }
}

/// Asks the limits of this process.
pub(crate) fn acquire<R, C>(policy: R, collected: Collected) -> State<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    let mut asks = Asks {
        policy,
        keys: collected.keys,
        list: collected.list,
        would_deny: collected.would_deny,
        clock: PhantomData,
    };
    if asks.list.is_empty() && asks.would_deny.is_empty() {
        return State::Free(asks.policy, None);
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
            all.inner().strike(now);
            State::Denied(all, member, denied)
        }
        // There is a cost for each limit, and no line.
        Err((_, all)) => State::Denied(all, 0, Denied::busy(1)),
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

    /// Collects what a request asks, or returns what decides without a limit.
    pub(crate) fn consider(&self, facts: &impl Facts) -> Result<Collected, Why> {
        if let Some(why) = self.listed(facts) {
            return Err(why);
        }
        let collected = match self.registry.resolvers.is_empty() {
            true => self.collect(facts),
            false => self.collect(&self.registry.resolve(facts)),
        };
        match collected.refused {
            Some(why) => Err(why),
            None => Ok(collected),
        }
    }

    /// Collects what the rules ask that apply to a request.
    fn collect(&self, facts: &impl Facts) -> Collected {
        let mut collected = Collected {
            keys: Bytes::new(),
            list: SmallVec::new(),
            remote: Vec::new(),
            would_deny: SmallVec::new(),
            rules: SmallVec::new(),
            refused: None,
        };
        let _ = self.matcher.each(facts, |index| {
            let applied = self.apply(index, facts, &mut collected);
            let is_over = match (applied, self.rules.get(index)) {
                (Applied::Yes, Some(rule)) => self.apply == Apply::First && !rule.shadow,
                _ => false,
            };
            match is_over || collected.refused.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        collected
    }

    /// Adds what a rule asks, and the rules that apply with it. A rule that is skipped or in the
    /// shadow brings no others.
    fn apply(&self, index: usize, facts: &impl Facts, collected: &mut Collected) -> Applied {
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
    fn add(&self, index: usize, facts: &impl Facts, collected: &mut Collected) -> Applied {
        if collected.rules.contains(&index) {
            return Applied::Before;
        }
        let Some(rule) = self.rules.get(index) else {
            return Applied::Skipped;
        };
        let trial = rule.shadow;
        let start = collected.keys.len();
        if rule.key.push(facts, &mut collected.keys).is_err() {
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
        let mut ask = |what, cost, is_remote| {
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
        if rule.ban.is_some() && !trial {
            ask(What::Ban, 0, false);
        }
        for (limit, state) in rule.limits.iter().enumerate() {
            let cost = match state.counts_requests() {
                true => 1,
                false => cost,
            };
            let is_remote = matches!(**state, RuleLimit::Remote(_));
            ask(What::Limit(limit), cost, is_remote);
        }
        Applied::Yes
    }
}

/// Returns whether a limit has a clock.
struct HasClock;

impl<C> Visitor<C> for HasClock {
    type Output = bool;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> bool {
        member.clock().is_some()
    }
}

/// Returns how many permits a limit has.
pub(crate) struct Available(pub(crate) Tick);

impl<C> Visitor<C> for Available {
    type Output = u64;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> u64 {
        member.available_at(self.0)
    }
}

/// Returns what a limit would answer.
#[derive(Clone, Copy)]
struct Look {
    n: u64,
    now: Tick,
}

impl<C> Visitor<C> for Look {
    type Output = Option<Denied>;

    fn visit<M: Member<C> + ?Sized>(self, member: &M, _: Option<&'static str>) -> Option<Denied> {
        member.check(self.n, self.now).err()
    }
}

impl<R, C> Asks<R, C>
where
    R: Deref<Target = Policy<C>>,
    C: Clock + fmt::Debug + Send + Sync,
{
    fn has_clock(&self) -> bool {
        (0..self.list.len()).any(|index| self.visit(index, HasClock) == Some(true))
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
            let Some(rule) = rule.filter(|rule| rule.ban.is_some()) else {
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
            let _ = rule.strike(ask.hash);
        }
    }
}
