//! The limits that a request asks, as the members of a composition.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Duration;

use smallvec::SmallVec;
use tollgate::compose::{Held, Members, Visitor};

use crate::limit::{EXEMPT, Gate, KeyHash, KeyRef, PolicyClock, RuleLimit};
use crate::policy::Policy;
use crate::rule::{Bytes, What};

/// One limit that a request asks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    /// The rule, by its position.
    pub(crate) rule: usize,
    /// What of the rule is asked.
    pub(crate) what: What,
    /// The plan, by its position.
    pub(crate) plan: usize,
    /// Whether the limit only reports what it would decide.
    pub(crate) trial: bool,
    /// Whether it takes permits. A rule in the shadow takes none if one of its limits would deny.
    pub(crate) takes: bool,
    /// Whether the request takes nothing, but is denied if there is no permit.
    pub(crate) looks: bool,
    /// The first set of facts that asks it, by its position.
    pub(crate) set: u32,
    /// Where the key is.
    pub(crate) key: (usize, usize),
    pub(crate) hash: u64,
    pub(crate) cost: u64,
}

impl Ask {
    /// Returns whether both are the same limit of the same rule and key.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.rule, self.what, self.hash) == (other.rule, other.what, other.hash)
    }
}

/// For each rule and key that several sets of facts ask, the sets after the first one.
pub(crate) type AlsoAskedBy = Option<Box<BTreeMap<(usize, u64), Vec<u32>>>>;

/// Returns the sets of facts that ask a limit after the first one.
pub(crate) fn others<'a>(also_asked_by: &'a AlsoAskedBy, ask: &Ask) -> &'a [u32] {
    let others = also_asked_by.as_ref();
    others
        .and_then(|it| it.get(&(ask.rule, ask.hash)))
        .map_or(&[], Vec::as_slice)
}

/// The limits that a request asks, in the order of the rules.
pub(crate) struct Asks<R, C> {
    pub(crate) policy: R,
    pub(crate) keys: Bytes,
    pub(crate) list: SmallVec<[Ask; 3]>,
    /// The limits of stores that decide asynchronously.
    pub(crate) remote: Vec<Ask>,
    /// Rules in the shadow that would deny the request because it has no key of theirs, or no plan.
    pub(crate) would_deny: SmallVec<[usize; 1]>,
    /// The other sets of facts that ask a rule and a key, if there are any.
    pub(crate) also_asked_by: AlsoAskedBy,
    /// Whether one of the limits only looks.
    pub(crate) looks: bool,
    /// How long the caller would wait. A denial that ends sooner does not count towards a ban.
    pub(crate) patience: Option<Duration>,
    pub(crate) clock: PhantomData<fn() -> C>,
}

impl<R, C> Asks<R, C> {
    pub(crate) fn new(policy: R) -> Self {
        Self {
            policy,
            keys: Bytes::new(),
            list: SmallVec::new(),
            remote: Vec::new(),
            would_deny: SmallVec::new(),
            also_asked_by: None,
            looks: false,
            patience: None,
            clock: PhantomData,
        }
    }

    pub(crate) fn key(&self, ask: &Ask) -> KeyRef<'_> {
        let (start, end) = ask.key;
        KeyRef {
            bytes: self.keys.get(start..end).unwrap_or_default(),
            hash: ask.hash,
        }
    }

    /// Returns what each limit is asked for.
    pub(crate) fn costs(&self) -> SmallVec<[u64; 8]> {
        self.list.iter().map(|ask| ask.cost).collect()
    }
}

impl<C, R> Asks<R, C>
where
    R: Deref<Target = Policy<C>>,
{
    /// Returns the limit, or `None` if it is something else that is asked.
    #[inline]
    pub(crate) fn limit(&self, ask: &Ask) -> Option<&RuleLimit<C>> {
        self.policy.rules.get(ask.rule)?.limit(ask.what)
    }
}

impl<R: Deref<Target = Policy<C>>, C: PolicyClock> Members<C> for Asks<R, C> {
    type Grants = SmallVec<[Option<Held>; 3]>;
    const COUNT: Option<usize> = None;

    #[inline]
    fn count(&self) -> usize {
        self.list.len()
    }

    #[inline]
    fn visit<V: Visitor<C>>(&self, index: usize, visitor: V) -> Option<V::Output> {
        let ask = self.list.get(index)?;
        let clock = &self.policy.clock;
        if ask.what == What::Clock {
            let banned = None;
            return Some(visitor.visit(&Gate { clock, banned }, None));
        }
        let rule = self.policy.rules.get(ask.rule)?;
        if ask.what == What::Ban {
            let banned = Some(rule.ban.as_ref()?.bans.key(&KeyHash(ask.hash)));
            return Some(visitor.visit(&Gate { clock, banned }, None));
        }
        if !ask.takes {
            return Some(visitor.visit(&EXEMPT, None));
        }
        let limit = rule.limit(ask.what)?;
        limit.visit(self.key(ask), ask.plan, ask.trial, visitor)
    }

    #[inline]
    fn no_grants(&self) -> Self::Grants {
        self.list.iter().map(|_| None).collect()
    }

    #[inline]
    fn grant_mut<'g>(
        &self,
        grants: &'g mut Self::Grants,
        index: usize,
    ) -> Option<&'g mut Option<Held>> {
        grants.get_mut(index)
    }

    #[inline]
    fn grant<'g>(&self, grants: &'g Self::Grants, index: usize) -> Option<&'g Held> {
        grants.get(index)?.as_ref()
    }
}

impl<R, C> fmt::Debug for Asks<R, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}
