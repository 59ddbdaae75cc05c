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

use crate::asks::{Ask, Asks};
use crate::decision::Decision;
use crate::fact::Facts;
use crate::file::{Apply, Missing};
use crate::key::Bytes;
use crate::limit::RuleLimit;
use crate::policy::Policy;
use crate::rule::CompiledRule;
use crate::state::{State, Why};

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
enum Applied {
    Yes,
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
    if !asks.has_clock() {
        asks.list.push(Ask {
            rule: usize::MAX,
            limit: None,
            plan: 0,
            trial: false,
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

    /// Adds what a rule asks, and the rules that apply with it.
    fn apply(&self, index: usize, facts: &impl Facts, collected: &mut Collected) -> Applied {
        let Some(rule) = self.rules.get(index) else {
            return Applied::Skipped;
        };
        if collected.rules.contains(&index) {
            return Applied::Yes;
        }
        if let Applied::Skipped = self.add(index, rule, rule.shadow, facts, collected) {
            return Applied::Skipped;
        }
        if !rule.shadow {
            for &other in &rule.also {
                if collected.rules.contains(&other) {
                    continue;
                }
                if let Some(rule) = self.rules.get(other) {
                    self.add(other, rule, rule.shadow, facts, collected);
                }
            }
        }
        Applied::Yes
    }

    /// Adds what one rule asks.
    fn add(
        &self,
        index: usize,
        rule: &CompiledRule<C>,
        trial: bool,
        facts: &impl Facts,
        collected: &mut Collected,
    ) -> Applied {
        let start = collected.keys.len();
        if rule.key.push(facts, &mut collected.keys).is_err() {
            match (rule.missing, trial) {
                (Missing::Shared, _) => {}
                (Missing::Skip, _) => {
                    collected.keys.truncate(start);
                    return Applied::Skipped;
                }
                (Missing::Deny, true) => {
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
        for (limit, state) in rule.limits.iter().enumerate() {
            let ask = Ask {
                rule: index,
                limit: Some(limit),
                plan,
                trial,
                key,
                hash,
                cost: match state.counts_requests() {
                    true => 1,
                    false => cost,
                },
            };
            match **state {
                RuleLimit::Remote(_) => collected.remote.push(ask),
                _ => collected.list.push(ask),
            }
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

    /// Returns what one limit would answer now.
    pub(crate) fn look(&self, index: usize, now: Tick) -> Option<Denied> {
        let ask = *self.list.get(index)?;
        let limit = self.policy.rules.get(ask.rule)?.limits.get(ask.limit?)?;
        let look = Look { n: ask.cost, now };
        limit.visit(self.key(&ask), ask.plan, false, look)?
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
            if let Some(long) = rule.strike(ask.hash) {
                let banned = rule.limits.iter().filter(|limit| limit.can_ban());
                for limit in banned.take(1) {
                    let _ = limit.ban_for(self.key(ask), ask.plan, long);
                }
            }
        }
    }
}
