//! The transitions of a slot. Each is one exchange of the whole slot, and fails if anything in the
//! slot differs from what the caller saw.
//!
//! ```text
//!            claim                establish
//!   Free ─────────────► Pending ─────────────► Live ◄─┐
//!    ▲                   │  ▲ └─ claim          │ └───┘ decide, decide_in_place, migrate
//!    │      release      │  └────── evict ──────┤
//!    ├───────────────────┘                      │
//!    └───────────────── release ────────────────┘
//! ```
//!
//! `docs/dev/ORDERINGS.md` has the whole protocol, and which model finds which fault.

use super::{FoundSlot, SlotIndex, SlotState, Table};
use crate::sync::{Ordering, fence, inject_fault};

/// Another thread changed the slot; this is its content now.
type Changed = SlotState;

impl Table {
    /// Claims a slot that is free, or has an abandoned claim, for the key with this tag. `nonce`
    /// distinguishes this claim from all others. Returns the claim.
    pub(crate) fn claim(
        &self,
        at: SlotIndex,
        free: SlotState,
        tag: u64,
        nonce: u64,
    ) -> Result<SlotState, Changed> {
        let has_evicted = free.has_evicted() && !inject_fault!(ForgetsTheEviction); // FAULT
        let claim = SlotState::pending(tag, at.second, has_evicted, nonce);
        // ORDERING: as `exchange`. The claim comes before the fence of `confirm`. So if two threads
        // claim slots for one key, at least one sees the other's claim.
        // Model: keyed::two_insert_the_same_key (`LooksOnce`),
        // keyed_turnover::an_old_claim_is_not_a_new_one (`NumbersAlike`),
        // keyed::a_key_that_evicted_one_in_use_is_a_newcomer (`ForgetsTheEviction`)
        self.exchange(at, free, claim)?;
        Ok(claim)
    }

    /// Claims the slot of a live key, which is evicted. If that key is idle, the caller has raised
    /// the horizon.
    pub(crate) fn evict(
        &self,
        at: SlotIndex,
        (live, is_idle): (SlotState, bool),
        tag: u64,
        nonce: u64,
    ) -> Result<SlotState, Changed> {
        let claim = SlotState::pending(tag, at.second, !is_idle, nonce);
        // ORDERING: as `exchange`. It publishes the horizon: a thread that sees that the key has
        // left also sees the horizon.
        // Model: keyed_turnover::a_late_caller_gets_no_second_burst (`RaisesAfterwards`),
        // keyed_turnover::a_busy_key_stays (`TakesWhoIsBusy`)
        self.exchange(at, live, claim)?;
        Ok(claim)
    }

    /// The fence between a claim and the second look at the key's slots. `is_own` says whether this
    /// thread made the claim: on x86-64 its exchange is already a fence.
    #[inline(always)]
    pub(crate) fn fence_after_claim(&self, is_own: bool) {
        // ORDERING: SeqCst. It pairs with itself: of two threads that claim slots for a key, at
        // least one sees the other's claim. `Keys::confirm`, its only caller, says more.
        // Model: keyed::two_insert_the_same_key
        match self.fast_pair.filter(|_| is_own) {
            Some(fast_pair) => fast_pair.fence_after_exchange(Ordering::SeqCst),
            None => fence(Ordering::SeqCst),
        }
    }

    /// Turns a claim into the live slot of its key. The caller has confirmed that the key has no
    /// other slot.
    pub(crate) fn establish(
        &self,
        at: SlotIndex,
        claim: SlotState,
        live: SlotState,
    ) -> Result<(), Changed> {
        // ORDERING: as `exchange`. The parameters of the slot's version are published already, by
        // the claim or the fence after it.
        // Model: keyed_quota::a_thread_late_by_many_changes_mixes_nothing (`ReadsTheVersionFirst`),
        // keyed::a_key_that_evicted_one_in_use_is_a_newcomer (`ForgetsTheEviction`)
        self.exchange(at, claim, live)
    }

    /// Frees a slot: releases a claim, or removes a key.
    pub(crate) fn release(&self, at: SlotIndex, held: SlotState) -> Result<(), Changed> {
        // ORDERING: as `exchange`. It publishes nothing of its own.
        // Model: keyed::two_insert_the_same_key, blind
        self.exchange(at, held, SlotState::RELEASED)
    }

    /// Migrates a live slot to a newer version of its plan, or to another algorithm.
    pub(crate) fn migrate(
        &self,
        at: SlotIndex,
        old: SlotState,
        new: SlotState,
    ) -> Result<(), Changed> {
        // ORDERING: as `exchange`. It publishes the parameters of the new version.
        // Model: keyed_quota::weaker_orderings_are_found (Relaxed),
        // keyed_quota::a_change_reaches_every_key, idle
        self.exchange(at, old, new)
    }

    /// Replaces a live slot's word, and with it the version and plan.
    pub(crate) fn decide(
        &self,
        at: SlotIndex,
        live: SlotState,
        next: SlotState,
    ) -> Result<(), Changed> {
        // ORDERING: as `exchange`. It publishes the parameters of the next version.
        // Model: keyed_quota::weaker_orderings_are_found (Relaxed)
        self.exchange(at, live, next)
    }

    /// Writes a slot of a table that no other thread can see yet.
    pub(crate) fn write_unshared(&self, at: SlotIndex, was: SlotState, is: SlotState) {
        // ORDERING: as `exchange`. There is no other thread.
        let _ = self.exchange(at, was, is);
    }

    /// Exchanges the whole slot.
    #[cfg_attr(any(tollgate_loom, tollgate_shuttle), track_caller)]
    fn exchange(&self, at: SlotIndex, held: SlotState, next: SlotState) -> Result<(), Changed> {
        let Some(slot) = self.slot(at) else {
            return Err(SlotState::RELEASED);
        };
        // ORDERING: AcqRel. Release publishes what the thread knew when it decided: the horizon,
        // and which version is current. Acquire pairs with the Release of earlier exchanges of the
        // slot, also on failure, like `load`. Each transition says what it publishes.
        // Model: keyed_quota::weaker_orderings_are_found
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        let (old, new) = (held.bits(), next.bits());
        let exchanged = match self.fast_pair {
            Some(fast_pair) => fast_pair.compare_exchange(slot, old, new, success, failure),
            None => slot.compare_exchange(old, new, success, failure),
        };
        exchanged.map(|_| ()).map_err(SlotState::of_bits)
    }
}

impl FoundSlot<'_> {
    /// Replaces the slot's content by `next`, which has another word and may be protected. If the
    /// slot has changed since it was found, returns its present content as the error.
    #[inline(always)]
    pub(crate) fn decide_in_place(self, next: SlotState) -> Result<(), Changed> {
        // ORDERING: Relaxed. It publishes nothing. As a read-modify-write it continues the release
        // sequence of the content that it replaces, so a thread that loads the new content still
        // sees what was published with the old one. On failure Acquire, like `load`.
        // Model: keyed::two_decide_on_a_key
        let (success, failure) = (Ordering::Relaxed, Ordering::Acquire);
        let (old, new) = (self.held.bits(), next.bits());
        let exchanged = self
            .fast_pair
            .compare_exchange(self.slot, old, new, success, failure);
        exchanged.map(|_| ()).map_err(SlotState::of_bits)
    }
}
