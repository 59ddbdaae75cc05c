use core::fmt;
use core::hash::Hash;

use super::Keyed;
use super::hasher::KeyHasher;
use super::key::Key;
use crate::adjustable::Keep;
use crate::algorithm::Algorithm;
use crate::algorithm::ChangeQuota;
use crate::algorithm::Settings;
use crate::clock::{Clock, Tick};
use crate::limiter_error::LimiterError;
use crate::outcome::{Denied, Granted};
use crate::quota::Quota;

/// A view of a table under one of its plans, made by [`Keyed::plan`] or [`Keyed::plan_named`].
///
/// A key that is used under another plan than before keeps its permits or debt, up to what the new
/// plan can hold ([`ChangeQuota::carry_over`]). If the plan does not exist, requests are denied
/// with [`Denied::NoSuchPlan`]. Methods that can't be denied, such as queries, then answer as for a
/// fresh key of plan 0, and record nothing.
pub struct KeyedPlan<'a, A, C, S> {
    pub(super) limiter: &'a Keyed<A, C, S>,
    pub(super) plan: usize,
}

impl<'a, A, C, S: KeyHasher> KeyedPlan<'a, A, C, S> {
    /// Returns a view of one key under this plan, with all methods of a limiter.
    #[inline(always)]
    pub fn key<Q: Hash + ?Sized>(&self, key: &Q) -> Key<'a, A, C> {
        let Keyed {
            core,
            clock,
            hasher,
        } = self.limiter;
        let hash = hasher.hash_key(key);
        // Prefetch before the clock is read, so that the two overlap.
        let probe_seq = core.fetch(hash);
        Key::new(core, clock, probe_seq, self.index())
    }

    /// Returns the plan's index, or one that no plan has.
    #[inline(always)]
    pub(super) fn index(&self) -> u8 {
        u8::try_from(self.plan).unwrap_or(u8::MAX)
    }
}

impl<'a, A, C, S> KeyedPlan<'a, A, C, S> {
    /// Returns the plan's name, if it has one: see [`Keyed::with_named_plans`].
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.limiter.plan_names().nth(self.plan)
    }
}

impl<A: Algorithm, C: Clock, S: KeyHasher> KeyedPlan<'_, A, C, S> {
    /// Takes one permit of this key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permit is not granted: then nothing is taken.
    #[inline(always)]
    pub fn try_acquire<Q: Hash + ?Sized>(&self, key: &Q) -> Result<Granted, Denied> {
        self.key(key).try_acquire()
    }

    /// Takes `n` permits of this key, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits are not granted: then nothing is taken.
    #[inline(always)]
    pub fn try_acquire_n<Q: Hash + ?Sized>(&self, key: &Q, n: u64) -> Result<Granted, Denied> {
        self.key(key).try_acquire_n(n)
    }
}

impl<A: ChangeQuota + Settings + Clone, C, S> KeyedPlan<'_, A, C, S> {
    /// Changes the quota of this plan at this tick: see [`Keyed::set_quota`].
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the quota can't be represented, or the plan does not exist: then nothing
    /// has changed.
    pub fn set_quota_at(&self, quota: Quota, keep: Keep, now: Tick) -> Result<(), LimiterError> {
        let core = &self.limiter.core;
        match core.set_quota(self.plan, quota, keep, now)? {
            true => Ok(()),
            false => Err(core.no_such(self.plan)),
        }
    }

    /// Returns the current quota of this plan.
    ///
    /// # Errors
    ///
    /// [`LimiterError::NoSuchPlan`] if the plan does not exist.
    pub fn quota(&self) -> Result<Quota, LimiterError> {
        self.limiter.core.quota(self.plan)
    }
}

impl<A: ChangeQuota + Settings + Clone, C: Clock, S> KeyedPlan<'_, A, C, S> {
    /// Changes the quota of this plan: see [`Keyed::set_quota`].
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the quota can't be represented, or the plan does not exist: then nothing
    /// has changed.
    pub fn set_quota(&self, quota: Quota, keep: Keep) -> Result<(), LimiterError> {
        self.set_quota_at(quota, keep, self.limiter.clock.now())
    }
}

impl<A, C, S> Clone for KeyedPlan<'_, A, C, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, C, S> Copy for KeyedPlan<'_, A, C, S> {}

impl<A: fmt::Debug, C: fmt::Debug, S> fmt::Debug for KeyedPlan<'_, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedPlan")
            .field("limiter", &self.limiter)
            .field("plan", &self.plan)
            .finish()
    }
}
