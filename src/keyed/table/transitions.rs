//! The transitions of a slot. Each is one exchange of the whole slot, and fails if anything in the
//! slot differs from what the caller saw. There is one more in `mod.rs`,
//! [`FoundSlot::decide_in_place`](super::FoundSlot::decide_in_place), with which the first attempts
//! replace the word. It is Relaxed, and does not use `exchange`.
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
//! `docs/ORDERINGS.md` has the whole protocol, and which model finds which fault.

use super::{SlotIndex, Table};
use crate::keyed::slot::SlotState;
use crate::sync::inject_fault;

/// Another thread changed the slot; this is its content now.
type Changed = SlotState;

impl Table {
    /// Claims a slot that is free, or has an abandoned claim, for the key with this tag. `nonce`
    /// distinguishes this claim from all others. Returns the claim.
    pub(in crate::keyed) fn claim(
        &self,
        at: SlotIndex,
        free: SlotState,
        tag: u64,
        nonce: u64,
    ) -> Result<SlotState, Changed> {
        let has_evicted = free.has_evicted() && !inject_fault!(ForgetsTheEviction); // FAULT
        let claim = SlotState::pending(tag, at.second, has_evicted, nonce);
        // ORDERING: as `exchange`. The claim comes before the fence of `confirm_unique`. So if two
        // threads claim slots for one key, at least one sees the other's claim.
        // Model: keyed::two_insert_the_same_key (`LooksOnce`),
        // keyed_turnover::an_old_claim_is_not_a_new_one (`NumbersAlike`),
        // keyed::a_key_that_evicted_one_in_use_is_a_newcomer (`ForgetsTheEviction`)
        self.exchange(at, free, claim)?;
        Ok(claim)
    }

    /// Claims the slot of a live key, which is evicted. If that key is idle, the caller has raised
    /// the horizon.
    pub(in crate::keyed) fn evict(
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

    /// Turns a claim into the live slot of its key. The caller has confirmed that the key has no
    /// other slot.
    pub(in crate::keyed) fn establish(
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
    pub(in crate::keyed) fn release(&self, at: SlotIndex, held: SlotState) -> Result<(), Changed> {
        // ORDERING: as `exchange`. It publishes nothing of its own.
        // Model: keyed::two_insert_the_same_key, blind
        self.exchange(at, held, SlotState::RELEASED)
    }

    /// Migrates a live slot to a newer version of its plan.
    pub(in crate::keyed) fn migrate(
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
    pub(in crate::keyed) fn decide(
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
    pub(in crate::keyed) fn write_unshared(&self, at: SlotIndex, was: SlotState, is: SlotState) {
        // ORDERING: as `exchange`. There is no other thread.
        let _ = self.exchange(at, was, is);
    }
}
