//! Makes plans and overrides, and changes them.

use std::boxed::Box;
use std::string::String;
use std::vec::Vec;

use super::changes::{Changes, PlanChange};
use super::overrides::{OVERRIDE, Overrides};
use super::{AlgorithmId, Plans};
use crate::adjustable::Keep;
use crate::algorithm::{ChangeQuota, Settings};
use crate::clock::Tick;
use crate::keyed::find::PLANS;
use crate::limiter_error::LimiterError;
use crate::quota::Quota;
use crate::sync::{Ordering, inject_fault};

/// The maximum length of a plan's name, in bytes.
const MAX_PLAN_NAME: usize = 64;

impl<A: ChangeQuota> Plans<A> {
    pub(crate) fn several(algorithms: impl IntoIterator<Item = A>) -> Result<Self, LimiterError> {
        let mut plans = algorithms.into_iter();
        let Some(first) = plans.next() else {
            return Err(LimiterError::ZeroPlans);
        };
        let max = PLANS as usize;
        // Taking one too many is enough to detect that there are too many.
        let others: Vec<_> = plans.take(max).collect();
        if others.len() >= max {
            let plans = others.len() + 1;
            return Err(LimiterError::TooManyPlans { plans, max });
        }
        Ok(Self {
            others: others.into(),
            carry: Some(A::carry_over),
            ..Self::one(first)
        })
    }

    /// Sets what a key keeps when it moves to another plan or an override.
    pub(crate) fn set_moves(&mut self, keep: Keep) {
        self.carry = Some(keep.carry());
    }

    pub(crate) fn named(
        plans: impl IntoIterator<Item = (impl Into<String>, A)>,
    ) -> Result<Self, LimiterError> {
        let mut names = Vec::new();
        let plans = plans.into_iter().map(|(name, algorithm)| {
            names.push(name.into());
            algorithm
        });
        let plans = Self::several(plans)?;
        for (plan, name) in names.iter().enumerate() {
            let (length, max) = (name.len(), MAX_PLAN_NAME);
            if length == 0 || length > max {
                return Err(LimiterError::PlanNameLength { plan, length, max });
            }
            match names.iter().position(|other| other == name) {
                Some(other) if other < plan => {
                    return Err(LimiterError::SamePlanName { plan, other });
                }
                _ => {}
            }
        }
        Ok(Self {
            names: names.into(),
            ..plans
        })
    }
}

impl<A: ChangeQuota + Settings + Clone> Plans<A> {
    /// Allocates this number of overrides.
    pub(crate) fn with_overrides(self, overrides: usize) -> Result<Self, LimiterError> {
        let (plans, max) = (self.count(), OVERRIDE.into());
        if plans > max {
            return Err(LimiterError::TooManyPlans { plans, max });
        }
        Ok(Self {
            overrides: Some(Box::new(Overrides::new(overrides)?)),
            carry: self.carry.or(Some(A::carry_over)),
            ..self
        })
    }

    /// Changes the quota of one plan. `reach` is called with the version before the change. It
    /// migrates one part of the table.
    pub(crate) fn set_quota(
        &self,
        plan: usize,
        quota: Quota,
        (keep, at): (Keep, Tick),
        reach: impl FnOnce(u64),
    ) -> Result<(), LimiterError> {
        let set = |latest: &mut Vec<A>, changes: &Changes<A>| {
            let Some(algorithm) = latest.get_mut(plan) else {
                return Err(self.no_such(plan));
            };
            // Nothing would change: the quota is current already, and permits are kept.
            if keep != Keep::Fresh && algorithm.quota() == quota {
                return Ok(());
            }
            *algorithm = algorithm.with_quota(quota)?;
            let version = self.version();
            reach(version);
            // The version does not recur: 2^64 changes take centuries.
            let version = version.wrapping_add(1);
            for (index, algorithm) in (0..).zip(latest) {
                let change = PlanChange {
                    algorithm: algorithm.clone(),
                    at,
                    keep: (index == plan).then_some(keep),
                };
                changes.write(index, version, &change);
            }
            // ORDERING: Release. It publishes the parameters of this version, and pairs with the
            // load of `version`.
            // Model: keyed_quota::a_change_reaches_every_key
            self.version.store(version, Ordering::Release);
            Ok(())
        };
        let all = || Changes::new(core::iter::once(&self.first).chain(&self.others));
        let changes = self.changes.get_or_init(all);
        let set = || changes.change(|latest| set(latest, changes));
        let alone = !inject_fault!(ChangesQuotasMeanwhile); // FAULT
        match &self.overrides {
            // Hold this lock too: `remove_override` holds it while it moves a key from its override
            // to a plan, and the version must not change meanwhile.
            Some(overrides) if alone => overrides.change(|_| set()),
            _ => set(),
        }
    }

    /// Returns the current algorithm of a plan.
    pub(crate) fn algorithm(&self, plan: usize) -> Result<A, LimiterError> {
        let algorithm = match self.changes.get() {
            Some(changes) => changes.change(|latest| latest.get(plan).cloned()),
            None => u8::try_from(plan)
                .ok()
                .and_then(|plan| self.get(plan))
                .cloned(),
        };
        algorithm.ok_or_else(|| self.no_such(plan))
    }

    /// Returns the override of a key with this hash.
    pub(crate) fn override_of(&self, hash: u64) -> Option<A> {
        self.overrides
            .as_ref()?
            .change(|given| given.get(&hash).cloned())
    }

    /// Gives a key an override. `reach` moves the key's slot to it.
    pub(crate) fn set_override(
        &self,
        hash: u64,
        algorithm: A,
        reach: impl FnOnce(AlgorithmId),
    ) -> Result<(), LimiterError> {
        let overrides = self.overrides.as_ref().ok_or(LimiterError::NoOverrides)?;
        overrides.set(hash, algorithm, |number| {
            reach(AlgorithmId::new(OVERRIDE, number))
        })
    }

    /// Removes a key's override, and returns whether it had one. `reach` moves the key's slot to
    /// this plan.
    pub(crate) fn remove_override(
        &self,
        hash: u64,
        plan: u8,
        reach: impl FnOnce(AlgorithmId),
    ) -> bool {
        // No quota changes while the override is being removed.
        let to = || AlgorithmId::new(self.or_first(plan), self.version());
        let overrides = self.overrides.as_ref();
        overrides.is_some_and(|overrides| overrides.remove(hash, || reach(to())))
    }
}
