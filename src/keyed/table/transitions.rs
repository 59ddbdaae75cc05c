//! The transitions of a slot. Each is one exchange of the whole slot: it fails if anything in the
//! slot differs from what the caller saw. One of them is not here but in `mod.rs`: the first
//! attempt of a decision replaces the word by
//! [`FoundSlot::decide_in_place`](super::FoundSlot::decide_in_place). It is Relaxed, and does not
//! go through `exchange`. All other changes of a slot are the functions of this file.
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
//! `docs/ORDERINGS.md` has the protocol in full, and which model finds which fault.

use super::{SlotIndex, Table};
use crate::keyed::slot::SlotState;

/// The slot was changed by another thread; this is its state now.
type Changed = SlotState;

impl Table {
    /// Claims a slot for the key with this tag: one that is free, or an abandoned claim. `nonce`
    /// tells this claim from all others. Returns the claim.
    pub(in crate::keyed) fn claim(
        &self,
        at: SlotIndex,
        free: SlotState,
        tag: u64,
        nonce: u64,
    ) -> Result<SlotState, Changed> {
        let claim = SlotState::pending(tag, at.second, nonce);
        // ORDERING: as `exchange`. The claim comes before the fence of `confirm_unique`, by which
        // one of two threads that claim slots for one key sees the other's claim.
        // Model: keyed::two_insert_the_same_key (`LooksOnce`),
        // keyed_turnover::an_old_claim_is_not_a_new_one (`NumbersAlike`)
        self.exchange(at, free, claim)?;
        Ok(claim)
    }

    /// Claims the slot of a key that leaves. The caller has raised the horizon, if the key is idle.
    pub(in crate::keyed) fn evict(
        &self,
        at: SlotIndex,
        live: SlotState,
        tag: u64,
        nonce: u64,
    ) -> Result<SlotState, Changed> {
        let claim = SlotState::pending(tag, at.second, nonce);
        // ORDERING: as `exchange`. It publishes the horizon: a thread that sees that the key has
        // left sees the horizon, too.
        // Model: keyed_turnover::who_is_late_gets_no_second_burst (`RaisesAfterwards`),
        // keyed_turnover::who_is_busy_stays (`TakesWhoIsBusy`)
        self.exchange(at, live, claim)?;
        Ok(claim)
    }

    /// Makes a claim the live slot of its key. The caller has confirmed that it is the only one.
    pub(in crate::keyed) fn establish(
        &self,
        at: SlotIndex,
        claim: SlotState,
        live: SlotState,
    ) -> Result<(), Changed> {
        // ORDERING: as `exchange`. The claim, or the fence after it, has published the parameters
        // of the slot's version already.
        // Model: keyed_quota::who_is_late_by_many_changes_mixes_nothing (`ReadsTheVersionFirst`)
        self.exchange(at, claim, live)
    }

    /// Frees a slot: ends a claim, or forgets a key.
    pub(in crate::keyed) fn release(&self, at: SlotIndex, held: SlotState) -> Result<(), Changed> {
        // ORDERING: as `exchange`. It publishes nothing of its own.
        // Model: keyed::two_insert_the_same_key (`GivesUpBlindly`)
        self.exchange(at, held, SlotState::RELEASED)
    }

    /// Carries a live slot over to a newer version of its plan.
    pub(in crate::keyed) fn migrate(
        &self,
        at: SlotIndex,
        old: SlotState,
        new: SlotState,
    ) -> Result<(), Changed> {
        // ORDERING: as `exchange`. It publishes the parameters of the new version.
        // Model: keyed_quota::weaker_orderings_are_found (Relaxed),
        // keyed_quota::a_change_reaches_every_key (`SweepsNothing`)
        self.exchange(at, old, new)
    }

    /// Replaces a live slot's word, and its version and plan with it.
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
