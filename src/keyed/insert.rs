//! How a key comes into the table.
//!
//! A slot is first *claimed* for it, by a number that no other claim has; then all other slots
//! where the key may be are looked at again; and only if it is in none of them is the claim
//! *established*, with the word after the first decision. Of two claims for a key the one that
//! comes first in the key's own order stays, and the thread that establishes it ends the other. A
//! thread that wants the key and finds it claimed does the same, so that none waits for the one
//! that made the claim. Between a claim and the look round is a fence: of two threads that claim at
//! the same time at least one sees the other.

use super::claimable::{Claimable, ClaimedBy};
use super::core::Core;
use super::leaving::{By, FirstToLeave};
use super::probe::Probe;
use super::probe_seq::ProbeSeq;
use super::slot::SlotState;
use super::stats::Event;
use super::table::SlotIndex;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::overflow::Overflow;
use crate::sync::{Ordering, fence, inject_fault};

impl<A: Algorithm> Core<A> {
    /// A place for a key: a free one, else one whose key is idle; in a primary bucket, if there is
    /// one; else as the overflow says, or that of another claim, `claims_first` or last.
    pub(super) fn choose(&self, probe: &Probe, now: Tick, claims_first: bool) -> Option<Claimable> {
        let is_full = probe.is_full_of_keys();
        if !is_full {
            if let Some(free) = probe.free() {
                return Some(Claimable::of(free, None));
            }
        }
        // A key that comes in is counted no earlier than the horizon: so keys are idle that are
        // idle then. ORDERING: Relaxed. An old one finds fewer idle.
        let now = now.max(Tick::from_nanos(self.horizon.load(Ordering::Relaxed)));
        // Later than what was seen, of which so none is of a later one.
        let version = self.plans.version();
        let plans = &self.plans;
        let leaves = match plans.only(version) {
            Some(plan) => {
                if is_full && plan.larger_is_idle_later() {
                    if let Some(chosen) = self.choose_in_order(probe, plan, (version, now)) {
                        return chosen;
                    }
                }
                self.choose_leaving(
                    probe,
                    (version, now),
                    |held| plan.is_idle(held.word, now),
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

    /// The same as [`choose_leaving`](Self::choose_leaving), where there is a key in each slot, and
    /// a larger word is idle later. `None` if it can't be told by that alone.
    #[inline(always)]
    fn choose_in_order(
        &self,
        probe: &Probe,
        plan: &A,
        (version, now): (u64, Tick),
    ) -> Option<Option<Claimable>> {
        let mut least = u64::MAX;
        probe.each(|_, held| least = least.min(held.word));
        if plan.is_idle(least, now) || inject_fault!(TakesWhoIsBusy) {
            return None;
        }
        if self.overflow != Overflow::Evict {
            return Some(None);
        }
        let by = self.judged_by(version, now);
        let first = by.first_in_order(probe, |word| plan.idle_at(word, now))?;
        Some(probe.nth(first).map(evicted))
    }

    /// The place of an idle key, else that of the key that is the first to leave, if keys may be
    /// evicted.
    #[inline(always)]
    fn choose_leaving(
        &self,
        probe: &Probe,
        (version, now): (u64, Tick),
        is_idle: impl Fn(SlotState) -> bool,
        idle_at: impl Fn(SlotState) -> Tick,
    ) -> Option<Claimable> {
        let is_idle = |held| is_idle(held) || inject_fault!(TakesWhoIsBusy);
        if let Some((at, held)) = probe.idle(is_idle) {
            return Some(Claimable {
                // By the version that says that it is idle: by another one it may be that much
                // later.
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

    /// How it is judged which key leaves.
    const fn judged_by(&self, version: u64, now: Tick) -> By<'_, A> {
        By {
            plans: &self.plans,
            version,
            now,
        }
    }

    /// Where there is no free slot, and each has to be asked: brings them up to the version in
    /// force, so that they need not be carried over so far each time that one is asked for. Whether
    /// something was changed.
    pub(super) fn migrate_all(&self, probe: &Probe) -> bool {
        // Later than what was seen.
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

    /// Claims a place for a key. `None` if it has changed.
    pub(super) fn claim(&self, probe_seq: &ProbeSeq, place: Claimable) -> Option<SlotState> {
        let afterwards = inject_fault!(RaisesAfterwards);
        if !afterwards {
            self.raise(place.since);
        }
        let nonce = inject_fault!(NumbersAlike => 0, else self.events.nonce());
        let (at, held, tag) = (place.at, place.held, probe_seq.tag());
        let claim = match place.leaves {
            Some(_) => self.table.evict(at, held, tag, nonce),
            None => self.table.claim(at, held, tag, nonce),
        };
        let claim = claim.ok()?;
        if afterwards {
            self.raise(place.since);
        }
        if let Some(event) = place.leaves {
            self.events.count(event);
        }
        Some(claim)
    }

    /// Says that a key leaves that has been idle since this tick.
    fn raise(&self, now: Tick) {
        let now = now.as_nanos();
        // ORDERING: Relaxed. What it is compared with may be old, which only writes the same again.
        if self.horizon.load(Ordering::Relaxed) < now {
            // ORDERING: Relaxed. The exchange that follows publishes it.
            // Model: keyed_turnover::who_is_late_gets_no_second_burst
            self.horizon.fetch_max(now, Ordering::Relaxed);
        }
    }

    /// Ends a claim, if it is still there.
    pub(super) fn release_claim(&self, at: SlotIndex, claim: SlotState) {
        let held = inject_fault!(GivesUpBlindly => self.table.load(at), else claim);
        let _ = self.table.release(at, held);
    }

    /// Whether a claim may be established: the key is nowhere else, and other claims for it have
    /// been ended. If so, the earliest tick at which the key may come into the table.
    pub(super) fn confirm_unique(
        &self,
        probe_seq: &ProbeSeq,
        claim: SlotIndex,
        by: ClaimedBy,
    ) -> Option<Tick> {
        // ORDERING: SeqCst. Of two threads that have claimed slots for the same key, or found them
        // claimed, one sees what the other has seen. It also comes before the neighbours that are
        // skipped. After an exchange of its own a thread has a fence already on x86-64.
        // Model: keyed::two_insert_the_same_key
        match (by, self.table.fast_pair()) {
            (ClaimedBy::Caller, Some(fast_pair)) => {
                fast_pair.fence_after_exchange(Ordering::SeqCst)
            }
            _ => fence(Ordering::SeqCst),
        }
        let labels = self.table.look_at_labels(probe_seq);
        let is_alone = labels.is_some_and(|labels| {
            let neighbours = || self.table.look_at_labels_of_neighbours(probe_seq);
            labels.are_of_no_other(probe_seq.tag(), claim, neighbours)
        });
        if !is_alone && !self.end_other_claims(probe_seq, claim) {
            return None;
        }
        // ORDERING: Relaxed. A thread that saw that the key had left saw what was published before
        // that. Model: keyed_turnover::who_is_late_gets_no_second_burst
        let horizon = self.horizon.load(Ordering::Relaxed);
        Some(Tick::from_nanos(
            inject_fault!(IgnoresTheHorizon => 0, else horizon),
        ))
    }

    /// Whether the key is nowhere else, and other claims for it have been ended.
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
                if inject_fault!(LooksOnce) {
                    return None;
                }
                // A claim that comes after this one is ended. (If this one has been ended itself,
                // it is not seen, and no other claim comes after it.)
                let ends = held.is_pending() && is_after;
                let is_left = inject_fault!(LeavesOtherClaims);
                (!ends || !is_left && self.table.release(at, held).is_err()).then_some(())
            });
        other.is_none()
    }
}

/// The place of a key that leaves though it is not idle.
fn evicted(place: (SlotIndex, SlotState)) -> Claimable {
    let event = match place.1.is_protected() {
        true => Event::EvictedProtected,
        false => Event::Evicted,
    };
    Claimable::of(place, Some(event))
}

#[cfg(all(
    test,
    not(any(
        all(tollgate_loom, feature = "loom"),
        all(tollgate_shuttle, feature = "shuttle")
    ))
))]
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

    /// Keys of one spot: their hashes differ in bits that say nothing of the buckets.
    fn all_in_one_place(core: &Core<TokenBucket>) -> impl Iterator<Item = u64> + '_ {
        let pairs = |hash| {
            let probe_seq = core.table.probe_seq(hash);
            (probe_seq.first() / 2, probe_seq.second() / 2)
        };
        let hashes = (1_u64..).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        hashes.filter(move |hash| pairs(*hash) == (77, 200))
    }

    #[test]
    fn who_leaves_while_the_quota_changes_has_not_been_idle_since_later() {
        let second = |n: u64| Tick::from_nanos(n * 1_000_000_000);
        let bucket = TokenBucket::new(Quota::per_second(1)).expect("a bucket");
        let pairs = NonZeroU64::new(LEAST_PAIRS).expect("some");
        let table = Table::new(pairs).expect("there is memory");
        let core = Core::new(table, Plans::one(bucket));
        let mut hashes = all_in_one_place(&core);
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
        let new = hashes.next().expect("there are more");
        let probe_seq = core.table.probe_seq(new);
        let place = core.choose(&core.table.look(&probe_seq), second(100), true);
        let place = place.expect("all are idle");
        assert!(matches!(place.leaves, Some(Event::Expired)));
        // Of a thousand permits they have one each, and the last of them comes in a year.
        let slow = Quota::per_day(3).burst(1000);
        core.set_quota(0, slow, Keep::AsIs, second(101))
            .expect("it can be represented");
        let claim = core.claim(&probe_seq, place);
        assert!(claim.is_some());
        // ORDERING: Relaxed. Nobody else is there.
        let horizon = Tick::from_nanos(core.horizon.load(Ordering::Relaxed));
        assert_eq!(horizon, second(2));
    }
}
