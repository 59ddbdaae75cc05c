//! How a policy decides about a request: which rules apply, what they ask, and the answer.

use std::ops::Deref;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::compose::{All, AllDenied, Held, MAX_MEMBERS, Member, Members};
use tollgate::{Denied, Tick};

use super::asks::{Ask, Asks};
use super::decision::Decision;
use super::many::{Many, Refused, take_all};
use super::state::State;
use super::visits::{Take, With};
use crate::choose::{NoLimit, Why};
use crate::facts::Facts;
use crate::limit::{KeyHash, PolicyClock, RuleLimit};
use crate::policy::Policy;
use crate::rule::What;

/// Decides about a request that has these facts, whose caller would wait this long.
pub(crate) fn decide<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    policy: R,
    sets: &[impl Facts],
    patience: Option<Duration>,
) -> Decision<R, C> {
    // It is filled in place, because moving it takes time. Until a limit answers, it is a denial.
    let mut decision = Decision {
        state: State::Asked(Asks::new(policy), Err((0, Denied::busy(0)))),
        remotes: None,
    };
    if let State::Asked(asks, answer) = &mut decision.state {
        asks.patience = patience;
        let why = asks.collect(sets).or_else(|| asks.needs_store());
        let taken = match why {
            Some(_) => None,
            None => asks.take_one(),
        };
        match taken {
            Some(taken) => *answer = taken,
            None => decision.state = otherwise(decision.state, why),
        }
    }
    decision
}

/// Decides about a request that does not ask a single rate.
#[inline(never)]
fn otherwise<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    state: State<R, C>,
    why: Option<(Why, u32)>,
) -> State<R, C> {
    match (state, why) {
        (State::Asked(asks, _), Some((why, set))) => refused(asks.policy, why, set),
        (State::Asked(asks, _), None) => acquire_all(asks),
        (state, _) => state,
    }
}

/// Returns what becomes of a request about which no limit decides.
pub(crate) fn refused<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    policy: R,
    why: Why,
    set: u32,
) -> State<R, C> {
    match why {
        Why::Allowed(_) => State::Free(policy, Some(why)),
        _ => State::Refused(policy, why, set),
    }
}

/// Asks the limits of this process.
#[inline]
pub(crate) fn acquire<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    asks: Asks<R, C>,
) -> State<R, C> {
    match asks.take_one() {
        Some(taken) => State::Asked(asks, taken),
        None => acquire_all(asks),
    }
}

/// Asks all limits of this process, as one.
pub(crate) fn acquire_all<R: Deref<Target = Policy<C>>, C: PolicyClock>(
    mut asks: Asks<R, C>,
) -> State<R, C> {
    if asks.list.is_empty() && asks.would_deny.is_empty() {
        return State::Free(asks.policy, None);
    }
    asks.look_ahead();
    if asks.looks {
        if let Some((member, denied)) = asks.look_only() {
            return State::Asked(asks, Err((member, denied)));
        }
    }
    if !asks.has_clock() {
        asks.list.push(Ask {
            rule: usize::MAX,
            what: What::Clock,
            plan: 0,
            trial: false,
            takes: true,
            looks: false,
            set: 0,
            key: (0, 0),
            hash: 0,
            cost: 0,
        });
    }
    if asks.list.len() > MAX_MEMBERS {
        return match take_all(&asks) {
            Ok(held) => State::Many(Box::new(Many { asks, held })),
            Err(Refused::Invalid(error)) => State::Invalid(error),
            Err(Refused::Denied(member, denied)) => {
                let now = asks.now();
                asks.denied(member, denied, now)
            }
        };
    }
    let costs = asks.costs();
    let all = match All::new(asks) {
        Ok(all) => all,
        // Registered limits have other clocks.
        Err(error) => return State::Invalid(error),
    };
    match all.into_acquired_each(costs) {
        Ok(granted) => State::Granted(granted),
        Err((AllDenied::Member { member, denied, .. }, all)) => {
            let now = all.now();
            all.into_inner().denied(member, denied, now)
        }
        // There is a cost for each limit, and no line.
        Err((_, all)) => State::Asked(all.into_inner(), Err((0, Denied::busy(1)))),
    }
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Asks<R, C> {
    /// Returns why the request is refused, and for which set of facts, if it asks a store that
    /// decides asynchronously.
    fn needs_store(&mut self) -> Option<(Why, u32)> {
        for ask in &self.remote {
            match ask.trial {
                // Once, not for each limit.
                true if self.would_deny.contains(&ask.rule) => {}
                true => self.would_deny.push(ask.rule),
                false => return Some((Why::Rule(ask.rule, NoLimit::Remote), ask.set)),
            }
        }
        None
    }

    /// Asks the only limit, if it is a rate. A composition of one limit would answer the same, but
    /// take longer.
    #[inline]
    fn take_one(&self) -> Option<Result<Held, (usize, Denied)>> {
        let [ask] = self.list.as_slice() else {
            return None;
        };
        if !self.is_rate(ask) || ask.looks {
            return None;
        }
        let (n, now) = (ask.cost, self.now());
        let taken = self.visit(0, Take { n, now });
        // There is such a limit. A rule that bans asks two: this one has no denials to count.
        let taken = taken.unwrap_or(Err(Denied::busy(n)));
        Some(taken.map_err(|denied| (0, denied)))
    }

    fn has_clock(&self) -> bool {
        let mut asks = self.list.iter().enumerate();
        asks.any(|(index, ask)| {
            let is_rate = ask.takes && self.is_rate(ask);
            is_rate || self.with(index, |limit| limit.clock().is_some()) == Some(true)
        })
    }

    /// Returns whether a limit is a rate of the core.
    fn is_rate(&self, ask: &Ask) -> bool {
        let limit = self.limit(ask);
        matches!(limit, Some(RuleLimit::Table(_) | RuleLimit::Single(_)))
    }

    /// Returns what one limit would answer now. While a key is banned, each limit of the rule
    /// answers that it is.
    pub(crate) fn look(&self, index: usize, now: Tick) -> Option<Denied> {
        let ask = *self.list.get(index)?;
        let rule = self.policy.rules.get(ask.rule)?;
        let ban = rule.ban.as_ref().filter(|_| !ask.trial);
        let banned = ban.and_then(|ban| ban.bans.key(&KeyHash(ask.hash)).check(1, now).err());
        match (banned, rule.limit(ask.what)) {
            (None, Some(limit)) => {
                let n = ask.cost.max(u64::from(ask.looks));
                let look = With(|limit: &dyn Member<C>| limit.check(n, now).err());
                limit.visit(self.key(&ask), ask.plan, false, look)?
            }
            _ => banned,
        }
    }

    /// Returns the limit that has no permit for a request that only looks, and its answer. Of
    /// several, it is the one with the longest wait. Looks are no denials that a ban counts.
    #[cold]
    fn look_only(&self) -> Option<(usize, Denied)> {
        let now = self.now();
        let asks = self.list.iter().enumerate();
        let looking = asks.filter(|(_, ask)| ask.looks && !ask.trial);
        let denied = looking.filter_map(|(index, _)| Some((index, self.look(index, now)?)));
        denied.max_by_key(|(_, denied)| denied.retry_after().unwrap_or(Duration::MAX))
    }

    /// Finds the shadow rules that must take nothing: one of their several limits would deny.
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
        let of = |ask: &Ask| (ask.rule, ask.hash);
        let denies = |(index, ask): (usize, &Ask)| {
            (has_several(ask) && self.look(index, now).is_some()).then_some(of(ask))
        };
        let denying: SmallVec<[(usize, u64); 4]> =
            self.list.iter().enumerate().filter_map(denies).collect();
        for ask in &mut self.list {
            ask.takes = !denying.contains(&of(ask));
        }
    }
}
