//! How a key is inserted.
//!
//! - A thread first *claims* a slot for the key, with a number that no other claim has.
//! - It then looks again at all other slots where the key may be.
//! - Only if the key is in none of them does it *establish* the claim, with the word after the
//!   first decision.
//!
//! If a key has several claims, the first one in the key's probe order stays, and the thread that
//! establishes it releases the others. A thread that wants the key and finds it claimed establishes
//! the claim itself, so no thread waits for the one that made the claim. A fence between claim and
//! second look ensures that of two threads that claim at the same time, at least one sees the
//! other.

use super::claimable::{Claimable, ClaimedBy};
use super::core::Core;
use super::leaving::{By, FirstToLeave};
use super::overflow::Overflow;
use super::probe::Probe;
use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use super::stats::Event;
use super::table::SlotIndex;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::sync::{Ordering, fence, inject_fault};

impl<A: Algorithm> Core<A> {
    /// Chooses a slot for a new key. A free slot comes first, then that of an idle key; primary
    /// buckets come before neighbors. If there is neither, this chooses the slot of a live key to
    /// evict, if [`Overflow`] allows that, or the claim of another thread. `claims_first` says
    /// which of these two comes first.
    pub(super) fn choose(&self, probe: &Probe, now: Tick, claims_first: bool) -> Option<Claimable> {
        let is_full = probe.is_full_of_keys();
        if !is_full {
            if let Some(free) = probe.free() {
                return Some(Claimable::of(free, None));
            }
        }
        // A new key counts at the horizon or later. So a key that is idle at the horizon counts as
        // idle here, even if `now` is older. ORDERING: Relaxed. It publishes nothing and pairs with
        // nothing: a stale horizon finds fewer idle keys.
        let now = now.max(Tick::from_nanos(self.horizon.load(Ordering::Relaxed)));
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
                    |held| idle(held.word),
                    |held| plan.idle_at(held.word, now),
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
            let claim = probe.first(SlotState::is_pending)?;
            Some(Claimable::of(claim, None))
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
    ) -> Option<Option<Claimable>> {
        let mut least = u64::MAX;
        probe.each(|_, held| least = least.min(held.word));
        if is_idle(least) {
            return None;
        }
        if self.overflow != Overflow::Evict {
            return Some(None);
        }
        let by = self.judged_by(version, now);
        let first = by.first_in_order(probe, least, |word| plan.idle_at(word, now))?;
        Some(probe.nth(first).map(evicted))
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
    ) -> Option<Claimable> {
        if let Some((at, held)) = probe.idle(is_idle) {
            return Some(Claimable {
                // Use the version under which the key was found to be idle. Under another one it
                // may have become idle much later.
                since: self.plans.idle_since(held, version).unwrap_or(now).min(now),
                ..Claimable::of((at, held), Some(Event::Expired))
            });
        }
        if self.overflow != Overflow::Evict {
            return None;
        }
        let mut first = FirstToLeave::new(self.judged_by(version, now));
        probe.each(|slot, held| {
            if held.is_live() {
                first.consider(slot, held, idle_at(held));
            }
        });
        probe.nth(first.found()?.0).map(evicted)
    }

    /// Returns what keys are judged by when one is to be evicted.
    const fn judged_by(&self, version: u64, now: Tick) -> By<'_, A> {
        By {
            plans: &self.plans,
            version,
            now,
        }
    }

    /// Migrates all live slots to the current version if there is no free slot. Without free slots
    /// each new key examines them all, and would otherwise convert their words each time. Returns
    /// whether any slot changed.
    pub(super) fn migrate_all(&self, probe: &Probe) -> bool {
        // Read after the slots, so that none of them has a later version.
        let version = self.plans.version();
        if version == 0 || probe.free().is_some() {
            return false;
        }
        let live = probe.slots().filter(|(_, held)| held.is_live());
        let brought = live.filter(|(at, held)| match self.plans.migrated(*held, version) {
            Some(next) if next != *held => self.table.migrate(*at, *held, next).is_ok(),
            _ => false,
        });
        brought.count() > 0
    }

    /// Claims a slot for a key. Returns `None` if the slot has changed.
    pub(super) fn claim(&self, probe_seq: &ProbeSeq, claimable: Claimable) -> Option<SlotState> {
        let afterwards = inject_fault!(RaisesAfterwards); // FAULT
        if !afterwards {
            self.raise(claimable.since);
        }
        let nonce = inject_fault!(NumbersAlike => 0, else self.events.nonce()); // FAULT
        let (at, held, tag) = (claimable.at, claimable.held, probe_seq.tag());
        let claim = match claimable.leaves {
            Some(event) => {
                let is_idle = matches!(event, Event::Expired);
                self.table.evict(at, (held, is_idle), tag, nonce)
            }
            None => self.table.claim(at, held, tag, nonce),
        };
        let claim = claim.ok()?;
        if afterwards {
            self.raise(claimable.since);
        }
        if let Some(event) = claimable.leaves {
            self.events.count(event);
        }
        Some(claim)
    }

    /// Raises the horizon to this tick, at which an evicted key became idle.
    fn raise(&self, now: Tick) {
        let now = now.as_nanos();
        // ORDERING: Relaxed. It publishes nothing. A stale value only repeats the `fetch_max`.
        if self.horizon.load(Ordering::Relaxed) < now {
            // ORDERING: Relaxed. The exchange that follows publishes it.
            // Model: keyed_turnover::a_late_caller_gets_no_second_burst
            self.horizon.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Releases a claim, if it is still there.
    pub(super) fn release_claim(&self, at: SlotIndex, claim: SlotState) {
        let _ = self.table.release(at, claim);
    }

    /// Checks whether a claim may be established: the key is in no other slot, and its other claims
    /// have been released. If so, returns the earliest tick at which the key may start.
    pub(super) fn confirm_unique(
        &self,
        probe_seq: &ProbeSeq,
        claim: SlotIndex,
        by: ClaimedBy,
    ) -> Option<Tick> {
        // ORDERING: SeqCst. It pairs with itself, and with the fences of `sweep` and `move_to`. If
        // two threads claim slots for the same key, or find them claimed, at least one of them sees
        // what the other saw. Whether to skip the neighbors is also decided after the fence. On
        // x86-64 a thread's own exchange is already a fence.
        // Model: keyed::two_insert_the_same_key
        match (by, self.table.fast_pair()) {
            (ClaimedBy::Caller, Some(fast_pair)) => {
                fast_pair.fence_after_exchange(Ordering::SeqCst)
            }
            _ => fence(Ordering::SeqCst),
        }
        let labels = self.table.look_at_labels(probe_seq);
        let is_alone = labels.is_some_and(|labels| {
            let neighbors = || self.table.look_at_labels_of_neighbors(probe_seq);
            labels.are_of_no_other(probe_seq.tag(), claim, neighbors)
        });
        if !is_alone && !self.end_other_claims(probe_seq, claim) {
            return None;
        }
        // ORDERING: Relaxed. A thread that sees that a key has left synchronizes with its eviction,
        // which published the horizon.
        // Model: keyed_turnover::a_late_caller_gets_no_second_burst
        let horizon = self.horizon.load(Ordering::Relaxed);
        Some(Tick::from_nanos(horizon))
    }

    /// Releases the key's claims that come after this one, and returns whether the key is then in
    /// no other slot.
    #[cold]
    #[inline(never)]
    fn end_other_claims(&self, probe_seq: &ProbeSeq, claim: SlotIndex) -> bool {
        let mut is_after = false;
        let other = self
            .table
            .look(probe_seq)
            .each_of(probe_seq.tag(), |at, held| {
                if at == claim {
                    is_after = true;
                    return None;
                }
                let looks_once = inject_fault!(LooksOnce); // FAULT
                if looks_once {
                    return None;
                }
                // Release a claim that comes after this one in the probe order. (If this claim has
                // itself been released, it is not seen here, and no other claim counts as coming
                // after it.)
                let ends = held.is_pending() && is_after;
                (!ends || self.table.release(at, held).is_err()).then_some(())
            });
        other.is_none()
    }
}

/// Returns the slot of a live key that is evicted although it is not idle.
fn evicted(slot: (SlotIndex, SlotState)) -> Claimable {
    let event = match slot.1.is_protected() {
        true => Event::EvictedProtected,
        false => Event::Evicted,
    };
    Claimable::of(slot, Some(event))
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::*;
    use crate::adjustable::Keep;
    use crate::algorithm::TokenBucket;
    use crate::keyed::core::Request;
    use crate::keyed::plans::Plans;
    use crate::keyed::probe_seq::LEAST_PAIRS;
    use crate::keyed::table::Table;
    use crate::quota::Quota;
    use crate::store::operations::Acquire;

    /// Returns hashes that have the same two pairs of buckets.
    fn all_in_one_bucket_pair(core: &Core<TokenBucket>) -> impl Iterator<Item = u64> + '_ {
        let pairs = |hash| {
            let probe_seq = core.table.probe_seq(hash);
            (probe_seq.first() / 2, probe_seq.second() / 2)
        };
        let hashes = (1_u64..).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        hashes.filter(move |hash| pairs(*hash) == (77, 200))
    }

    #[test]
    fn an_eviction_during_a_quota_change_raises_the_horizon_no_further() {
        let second = |n: u64| Tick::from_nanos(n * 1_000_000_000);
        let bucket = TokenBucket::new(Quota::per_second(1)).expect("a bucket");
        let pairs = NonZeroU64::new(LEAST_PAIRS).expect("not zero");
        let table = Table::new(pairs).expect("enough memory");
        let core = Core::new(table, Plans::one(bucket));
        let mut hashes = all_in_one_bucket_pair(&core);
        for hash in hashes.by_ref().take(16) {
            let (plan, now) = (0, second(1));
            let probe_seq = core.table.probe_seq(hash);
            let request = Request {
                probe_seq,
                plan,
                now,
            };
            let granted = core.apply(request, Acquire { n: 1 });
            assert!(granted.is_ok());
        }
        let new = hashes.next().expect("hashes never end");
        let probe_seq = core.table.probe_seq(new);
        let claimable = core.choose(&core.table.look(&probe_seq), second(100), true);
        let claimable = claimable.expect("all are idle");
        assert!(matches!(claimable.leaves, Some(Event::Expired)));
        // Under this quota each key has 1 of 1000 permits, and needs almost a year for the rest.
        let slow = Quota::per_day(3).burst(1000);
        core.set_quota(0, slow, Keep::AsIs, second(101))
            .expect("the quota is valid");
        let claim = core.claim(&probe_seq, claimable);
        assert!(claim.is_some());
        // ORDERING: Relaxed. There is no other thread.
        let horizon = Tick::from_nanos(core.horizon.load(Ordering::Relaxed));
        assert_eq!(horizon, second(2));
    }
}
