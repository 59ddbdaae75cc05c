//! Which slot a new key can claim.

use super::Keys;
use super::events::Event;
use super::leaving::{EvictionOrder, FirstToLeave};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::keyed::find::{Probe, SlotIndex, SlotState};
use crate::keyed::overflow::Overflow;
use crate::sync::inject_fault;

/// A slot that a new key can claim, with its present content.
pub(crate) struct Candidate {
    pub(super) slot: (SlotIndex, SlotState),
    /// The event to count, if claiming the slot makes a key leave.
    pub(super) leaves: Option<Event>,
    /// The tick since which that key has been idle, or 0 if it is not idle.
    pub(super) since: Tick,
}

impl Candidate {
    /// Returns a slot that has no key: it is free, or has a claim of another thread or of an
    /// earlier round.
    pub(crate) const fn of(slot: (SlotIndex, SlotState)) -> Self {
        Self {
            slot,
            leaves: None,
            since: Tick::ZERO,
        }
    }

    /// Returns the slot of a live key that is evicted although it is not idle.
    fn evicted(slot: (SlotIndex, SlotState)) -> Self {
        let leaves = Some(match slot.1.is_protected() {
            true => Event::EvictedProtected,
            false => Event::Evicted,
        });
        Self {
            leaves,
            ..Self::of(slot)
        }
    }
}

impl<A: Algorithm> Keys<A> {
    /// Chooses a slot for a new key. A free slot comes first, then that of an idle key; primary
    /// buckets come before neighbors. If there is neither, this chooses the slot of a live key to
    /// evict, if [`Overflow`] allows that, or the claim of another thread. `claims_first` says
    /// which of these two comes first.
    pub(crate) fn choose(&self, probe: &Probe, now: Tick, claims_first: bool) -> Option<Candidate> {
        let is_full = probe.is_full_of_keys();
        if !is_full {
            if let Some(free) = probe.free() {
                return Some(Candidate::of(free));
            }
        }
        // A new key counts at the horizon or later. So a key that is idle at the horizon counts as
        // idle here, even if `now` is older. A stale horizon finds fewer idle keys.
        let now = now.max(self.horizon());
        // Read after the slots, so that none of them has a later version.
        let version = self.plans.version();
        let plans = &self.plans;
        let leaves = match plans.only(version) {
            Some(plan) => {
                let idle = |word| plan.is_idle(word, now) || inject_fault!(TakesWhoIsBusy); // FAULT
                if is_full && plan.larger_is_idle_later() {
                    if let Some(chosen) = self.choose_in_order(probe, plan, (version, now), idle) {
                        return chosen;
                    }
                }
                self.choose_leaving(
                    probe,
                    (version, now),
                    |held| idle(held.word()),
                    |held| plan.idle_at(held.word(), now),
                )
            }
            None => self.choose_leaving(
                probe,
                (version, now),
                |held| plans.is_idle(held, version, now),
                |held| plans.idle_at(held, version, now),
            ),
        };
        let claimed = || {
            let mut slots = probe.slots();
            slots.find(|(_, held)| held.is_pending()).map(Candidate::of)
        };
        match leaves {
            Some(idle) if matches!(idle.leaves, Some(Event::Expired)) => Some(idle),
            evicted => claimed()
                .filter(|_| claims_first)
                .or(evicted)
                .or_else(claimed),
        }
    }

    /// Makes the same choice as [`choose_leaving`](Self::choose_leaving) by comparing words alone.
    /// Each slot must have a key, and a larger word must become idle later. Returns `None` if
    /// comparing words does not suffice.
    #[inline(always)]
    fn choose_in_order(
        &self,
        probe: &Probe,
        plan: &A,
        (version, now): (u64, Tick),
        is_idle: impl Fn(u64) -> bool,
    ) -> Option<Option<Candidate>> {
        let mut least = u64::MAX;
        probe.each(|_, held| least = least.min(held.word()));
        if is_idle(least) {
            return None;
        }
        if self.overflow != Overflow::Evict {
            return Some(None);
        }
        let order = EvictionOrder::new(&self.plans, version, now);
        let first = order.first_in_order(probe, least, |word| plan.idle_at(word, now))?;
        Some(probe.nth(first).map(Candidate::evicted))
    }

    /// Chooses the slot of an idle key. If there is none, chooses the first key to evict, if the
    /// overflow allows it.
    #[inline(always)]
    fn choose_leaving(
        &self,
        probe: &Probe,
        (version, now): (u64, Tick),
        is_idle: impl Fn(SlotState) -> bool,
        idle_at: impl Fn(SlotState) -> Tick,
    ) -> Option<Candidate> {
        if let Some((at, held)) = probe.idle(is_idle) {
            return Some(Candidate {
                // Use the version under which the key was found to be idle. Under another one it
                // may have become idle much later.
                since: self.plans.idle_since(held, version).unwrap_or(now).min(now),
                leaves: Some(Event::Expired),
                ..Candidate::of((at, held))
            });
        }
        if self.overflow != Overflow::Evict {
            return None;
        }
        let mut first = FirstToLeave::new(&self.plans, version, now);
        probe.each(|slot, held| {
            if held.is_live() {
                first.consider(slot, held, idle_at(held));
            }
        });
        probe.nth(first.found()?.0).map(Candidate::evicted)
    }
}
