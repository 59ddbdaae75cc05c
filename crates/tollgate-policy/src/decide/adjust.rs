//! Permits that are given back or charged by facts, without a decision that took them.

use std::slice;

use tollgate::compose::Member;
use tollgate::{Granted, Tick};

use super::asks::{Ask, Asks};
use super::visits::With;
use crate::facts::Facts;
use crate::limit::{KeyHash, KeyRef, PolicyClock, Remote, RemoteAsk, RemoteError, RuleLimit};
use crate::policy::Policy;
use crate::rule::What;

/// What becomes of permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    GiveBack,
    Charge,
}

impl<C: PolicyClock> Policy<C> {
    /// Gives the permits back that a decision about these facts takes, as far as each limit can
    /// take them back. Use it only if there is no [`Decision`](crate::Decision) to settle or to
    /// undo, because it was made long ago or by another process: a client that gets back what it
    /// did not take has more than its limit. Returns how many came back, over all limits.
    ///
    /// Each rule that applies gets back its cost: see [`Facts::permits`]. A concurrency gets
    /// nothing back. If a rule or an entry of `deny` or `allow` decides without a limit, nothing
    /// happens.
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '5/d'\ncost = 'n'";
    /// let policy = Policy::from_toml(text)?;
    /// let ann = |n| [("user", "ann"), ("n", n)];
    /// assert_eq!(policy.decide(&ann("4")).remaining(), Some(1));
    /// assert_eq!(policy.refund(&ann("3")), 3);
    /// assert_eq!(policy.refund(&ann("3")), 1); // no more than it has taken
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn refund(&self, facts: &impl Facts) -> u64 {
        self.changes(facts).here(Change::GiveBack)
    }

    /// Takes the permits that a decision about these facts takes, whether they are available or
    /// not: the limits may go into debt. So a request can be charged when its cost is known.
    /// Returns how many were taken, over all limits.
    ///
    /// Each rule that applies charges its cost, but at most what an answer can
    /// [settle](crate::Decision::settle).
    ///
    /// ```
    /// use tollgate_policy::Policy;
    ///
    /// let text = "[[rule]]\nname = 'api'\nkey = 'user'\nlimit = '5/h'\ncost = 'n'";
    /// let policy = Policy::from_toml(text)?;
    /// let ann = |n| [("user", "ann"), ("n", n)];
    /// assert_eq!(policy.decide(&ann("4")).remaining(), Some(1));
    /// assert_eq!(policy.charge(&ann("3")), 3);
    /// assert_eq!(policy.refund(&ann("2")), 2); // the debt is paid
    /// assert!(!policy.decide(&ann("1")).is_allowed());
    /// # Ok::<(), tollgate_policy::Problems>(())
    /// ```
    pub fn charge(&self, facts: &impl Facts) -> u64 {
        self.changes(facts).here(Change::Charge)
    }

    /// Gives permits back as [`refund`](Self::refund) does, also at stores that decide
    /// asynchronously.
    ///
    /// # Errors
    ///
    /// [`RemoteError`] if a store could not give its permits back. All others are given back.
    pub async fn refund_async(&self, facts: &impl Facts) -> Result<u64, RemoteError> {
        self.changes(facts).everywhere(Change::GiveBack).await
    }

    /// Takes permits as [`charge`](Self::charge) does, also at stores that decide asynchronously.
    ///
    /// # Errors
    ///
    /// [`RemoteError`] if a store could not take its permits. All others are taken.
    pub async fn charge_async(&self, facts: &impl Facts) -> Result<u64, RemoteError> {
        self.changes(facts).everywhere(Change::Charge).await
    }

    /// Returns the limits that decide about these facts.
    fn changes(&self, facts: &impl Facts) -> Changes<'_, C> {
        let mut asks = Asks::new(self);
        let decides_alone = asks.collect(slice::from_ref(facts)).is_some();
        if decides_alone {
            asks.list.clear();
            asks.remote.clear();
        }
        Changes(asks)
    }
}

struct Changes<'p, C>(Asks<&'p Policy<C>, C>);

impl<C: PolicyClock> Changes<'_, C> {
    /// Changes the limits of this process. Returns the sum of what changed.
    fn here(&self, change: Change) -> u64 {
        let now = self.0.now();
        let changed = self.0.list.iter().filter_map(|ask| {
            let limit = self.0.limit(ask)?;
            let n = self.permits(ask, change)?;
            Some(limit.change(self.0.key(ask), ask.plan, change, n, now))
        });
        changed.fold(0, u64::saturating_add)
    }

    async fn everywhere(&self, change: Change) -> Result<u64, RemoteError> {
        let mut sum = self.here(change);
        let mut error = None;
        for ask in &self.0.remote {
            let Some(RuleLimit::Remote(remote)) = self.0.limit(ask) else {
                continue;
            };
            let Some(n) = self.permits(ask, change) else {
                continue;
            };
            match remote.change(self.0.key(ask), ask.plan, change, n).await {
                Ok(n) => sum = sum.saturating_add(n),
                Err(why) => error = error.or(Some(why)),
            }
        }
        error.map_or(Ok(sum), Err)
    }

    /// Returns how many permits of a limit change. `None` if it has none that could: it counts
    /// requests that are inside, or it is no limit.
    fn permits(&self, ask: &Ask, change: Change) -> Option<u64> {
        let What::Limit(index) = ask.what else {
            return None;
        };
        let rule = self.0.policy.rules.get(ask.rule)?;
        if rule.limits.get(index)?.counts_requests(ask.plan) {
            return None;
        }
        Some(match change {
            Change::GiveBack => ask.cost,
            Change::Charge => ask.cost.min(rule.most_settled(index, ask.plan, ask.hash)),
        })
    }
}

impl<C: PolicyClock> RuleLimit<C> {
    /// Changes the permits of a key. Returns how many changed.
    fn change(&self, key: KeyRef<'_>, plan: usize, change: Change, n: u64, now: Tick) -> u64 {
        match (self, change) {
            (Self::Table(table), _) => {
                let key = table.key(&KeyHash(key.hash)).with_plan(plan);
                match change {
                    Change::GiveBack => key.at(now).refund(n),
                    Change::Charge => key.at(now).charge(n).n(),
                }
            }
            (Self::Single(limiter), Change::GiveBack) => limiter.at(now).refund(n),
            (Self::Single(limiter), Change::Charge) => limiter.at(now).charge(n).n(),
            (Self::Own(_), _) => {
                let change = With(|limit: &dyn Member<C>| match change {
                    Change::GiveBack => limit.give_back(Granted::new(n, now).into(), now),
                    Change::Charge => limit.charge_to(n, now).n(),
                });
                self.visit(key, plan, false, change).unwrap_or(0)
            }
            (Self::Slots(_) | Self::OneSlots(_) | Self::Remote(_), _) => 0,
        }
    }
}

impl Remote {
    /// Changes the permits of a key at the store. Returns how many changed.
    async fn change(
        &self,
        key: KeyRef<'_>,
        plan: usize,
        change: Change,
        n: u64,
    ) -> Result<u64, RemoteError> {
        let (limit, plan) = self.of_key(key.hash, plan);
        let ask = RemoteAsk {
            limit: &**limit,
            key,
            plan,
            cost: n,
        };
        let changed = match change {
            Change::GiveBack => self.store.refund(ask),
            Change::Charge => self.store.charge(ask),
        };
        match changed {
            Some(changed) => changed.await,
            None => Err("the store has no such verb".into()),
        }
    }
}
