//! One shard of the limit: a word, and a second word that keeps apart the threads that lower it.
//!
//! # Rolling back what a request could not use
//!
//! A request that takes from several shards and can't have all rolls back what it took. No caller
//! was granted those permits. So, unlike a give-back that a caller asks for, rolling back must not
//! bring forward a single permit, whatever the algorithm, and whatever ticks other threads bring.
//! Hence the word gets its value **before** the take again only if it still has the value **after**
//! the take, and if nothing has lowered it in between. Then no thread has changed it: grants,
//! charges and new windows only raise a word. Other requests may have taken and rolled back by the
//! same rule, which leaves nothing behind.
//!
//! The word alone does not show that it was lowered: permits may come back, the bucket may be idle
//! later, and a take may then produce the very same word. Hence a second word:
//!
//! ```text
//!  63                       24             12             0
//! ┌─────────────────────────┬──────────────┬──────────────┐
//! │ changes                 │ giving back  │ rolling back │
//! └─────────────────────────┴──────────────┴──────────────┘
//! ```
//!
//! - **A take** notes the changes first, and the word before and after.
//! - **Rolling back** enters the lowest field, if no thread is giving back and the changes are as
//!   noted; exchanges the words; and leaves.
//! - **Giving back** (undo, refund, reset) enters the middle field, if no thread is rolling back;
//!   exchanges the word; and leaves. Entering and leaving each count as a change. If a thread is
//!   rolling back, nothing comes back.
//!
//! So while one thread rolls back no other gives back, and none has since the permits were taken: a
//! give-back that was under way then has left since, which is a change, or is still inside. (To
//! count a change on entering alone would not do: the exchange of a give-back may succeed on a word
//! that a take made again after noting that change.)
//!
//! No thread waits. One that stops while it rolls back keeps this shard from taking anything back,
//! and one that stops while it gives back keeps others from rolling back, which loses permits and
//! grants none.

use core::num::NonZeroU64;

use crate::algorithm::Split;
use crate::clock::Tick;
use crate::outcome::Granted;
use crate::store::cell::{self, AtomicWord, WordCell};
use crate::store::operations::{Acquire, Change};
use crate::store::view::View;
use crate::store::word::WordStore;
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// How wide the fields are of those who are inside. More are not let in.
const WIDTH: u32 = 12;
/// One who is rolling back, and one who gives back; and one change.
const ROLLING_BACK: u64 = 1;
const GIVING_BACK: u64 = 1 << WIDTH;
const CHANGE: u64 = 1 << (2 * WIDTH);

const fn rolling_back(state: u64) -> u64 {
    state & (GIVING_BACK - 1)
}

const fn giving_back(state: u64) -> u64 {
    (state & (CHANGE - 1)) / GIVING_BACK
}

const fn changes(state: u64) -> u64 {
    state / CHANGE
}

/// Between two looks a shard may come to have less than the fullest one by this part of what it can
/// hold.
const SLACK: u64 = 32;

/// The most shards of a limiter.
pub(super) const MAX_SHARDS: usize = 256;

#[repr(C)]
pub(super) struct Shard<A> {
    /// The word first, and next to it the parameters that every decision reads.
    cell: WordCell,
    /// How many fractions a permit is: what the algorithm counts.
    permit: NonZeroU64,
    /// A request that leaves at least this much room, as the algorithm tells it, needs no look.
    keep: u64,
    algorithm: A,
    /// How much less than the fullest shard this one may have before the next look, as a difference
    /// of words; 0 if words can't be compared, or where it is less than a permit.
    slack: u64,
    /// The largest word for which no look is needed: the fullest shard's at the last look, and
    /// `slack` more.
    limit: AtomicU64,
    /// How far away that shard is.
    fullest: AtomicU64,
    backs: AtomicU64,
}

/// How to roll back what a request took from a shard, before it has all it asked for.
pub(super) struct Taken {
    before: u64,
    after: u64,
    changes: u64,
}

impl<A: Split> Shard<A> {
    /// A shard of so many.
    pub(super) fn new(algorithm: A, permit: NonZeroU64, shards: u64, tick: Tick) -> Self {
        // Seven eighths of what a fresh shard has.
        let keep = match algorithm.step(0, tick, 0) {
            Ok((_, fresh)) if shards > 1 => fresh.room() - fresh.room() / 8,
            _ => 0,
        };
        let slack = match algorithm.available(0, tick) / SLACK {
            slack if shards > 1 && slack >= permit.get() && algorithm.is_ordered() => {
                let after = |n| algorithm.take_up_to(0, tick, n).0;
                after(slack.saturating_add(1)).saturating_sub(after(1))
            }
            _ => 0,
        };
        Self {
            cell: WordCell::new(algorithm.initial_word(tick)),
            permit,
            keep,
            algorithm,
            slack,
            limit: AtomicU64::new(0),
            fullest: AtomicU64::new(0),
            backs: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(super) const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    #[inline(always)]
    pub(super) const fn cell(&self) -> &WordCell {
        &self.cell
    }

    /// How many fractions a permit is.
    #[inline(always)]
    pub(super) const fn permit(&self) -> u64 {
        self.permit.get()
    }

    /// What a full shard has.
    pub(super) fn full(&self) -> u64 {
        self.algorithm.available(0, Tick::ZERO)
    }

    /// The verbs that don't lower the word, in fractions of a permit.
    #[inline(always)]
    pub(super) const fn at(&self, now: Tick) -> View<WordStore<'_, A>> {
        WordStore::new(&self.algorithm, &self.cell).at(now)
    }

    /// Changes the word by a function that can't refuse.
    #[inline(always)]
    pub(super) fn change<T>(&self, now: Tick, change: impl FnMut(u64) -> (u64, T)) -> T {
        let Ok(answer) = cell::apply(&self.algorithm, &self.cell, now, Change(change));
        answer
    }

    /// Whether a grant that leads to this word needs no look at the other shards.
    #[inline(always)]
    pub(super) fn needs_no_look(&self, word: u64, granted: &Granted) -> bool {
        granted.room() >= self.keep || self.slack > 0 && self.is_within_limit(word)
    }

    /// Whether the word is between the fullest shard's at the last look and the limit. A smaller
    /// word got permits back since, and other shards may have too.
    #[inline(always)]
    fn is_within_limit(&self, word: u64) -> bool {
        // ORDERING: Relaxed. Only from which shard permits are taken depends on it, and not how
        // many. If several threads use this shard, it may go with a `fullest` of another look.
        let limit = self.limit.load(Ordering::Relaxed);
        limit.wrapping_sub(word) < self.slack
    }

    /// Stores what a look found: the word of the fullest shard, and how far away that is. Not if it
    /// is nearly full, since a full shard loses what comes.
    pub(super) fn store_look(&self, word: u64, distance: usize, now: Tick) {
        let full = self.full();
        let is_open = self.algorithm.available(word, now) <= full - full / SLACK;
        if self.slack > 0 && is_open {
            let (limit, _) = self.algorithm.take_up_to(word, now, full / SLACK);
            // ORDERING: Relaxed. See `is_within_limit`.
            self.fullest.store(distance as u64, Ordering::Relaxed);
            // ORDERING: Relaxed. See `is_within_limit`.
            self.limit.store(limit, Ordering::Relaxed);
        }
    }

    /// How far away the shard is that was the fullest at the last look.
    pub(super) fn fullest_distance(&self) -> Option<usize> {
        if self.slack == 0 {
            return None;
        }
        // ORDERING: Relaxed. See `is_within_limit`.
        Some(self.fullest.load(Ordering::Relaxed) as usize)
    }

    /// Takes `n` permits from another shard, if that stays within this one's limit.
    pub(super) fn take_from(&self, other: &Self, now: Tick, n: u64) -> Option<Granted> {
        other
            .take_if(now, n, |word, _| self.is_within_limit(word))
            .ok()
    }

    /// Takes `n` permits in one turn, if no look at the other shards is needed for it: `None` may
    /// mean that it was disturbed.
    #[inline(always)]
    pub(super) fn try_once(&self, now: Tick, n: u64) -> Option<Granted> {
        let fractions = n.checked_mul(self.permit())?;
        let op = Acquire { n: fractions };
        let needs_no_look = |next, granted: &Granted| self.needs_no_look(next, granted);
        let granted = cell::try_fast(&self.algorithm, &self.cell, now, op, needs_no_look)?;
        Some(granted.of_permits(n, self.permit()))
    }

    /// Takes `n` permits, if `accepts` agrees to the new word and the grant.
    ///
    /// # Errors
    ///
    /// The word, unchanged.
    pub(super) fn take_if(
        &self,
        now: Tick,
        n: u64,
        accepts: impl Fn(u64, &Granted) -> bool,
    ) -> Result<Granted, u64> {
        let fractions = n.saturating_mul(self.permit());
        let granted = self.change(now, |word| {
            match self.algorithm.step(word, now, fractions) {
                Ok((next, granted)) if accepts(next, &granted) => (next, Ok(granted)),
                _ => (word, Err(word)),
            }
        });
        Ok(granted?.of_permits(n, self.permit()))
    }

    /// Takes up to `n` fractions in a way that can be rolled back. `None` if the shard has fewer
    /// than `at_least`, or none.
    pub(super) fn take(&self, now: Tick, at_least: u64, n: u64) -> Option<(Granted, Taken)> {
        // ORDERING: Acquire. It pairs with the release in `go_out`: a give-back of which this one
        // knows has exchanged the word before we take. Models: shards::
        let changes = changes(self.backs.load(Ordering::Acquire));
        self.change(now, |before| {
            if self.algorithm.available(before, now) < at_least.max(1) {
                return (before, None);
            }
            let (after, granted) = self.algorithm.take_up_to(before, now, n);
            let taken = Taken {
                before,
                after,
                changes,
            };
            (after, Some((granted, taken)))
        })
    }

    /// Rolls back permits that no caller was granted, if no thread has changed the word since.
    pub(super) fn roll_back(&self, taken: &Taken) {
        let may_enter = |state| {
            let is_as_noted = changes(state) == taken.changes && giving_back(state) == 0;
            is_as_noted || inject_fault!(IgnoresGiveBacks)
        };
        if inject_fault!(RollsNothingBack)
            || taken.after == taken.before
            || !self.enter(ROLLING_BACK, may_enter)
        {
            return;
        }
        if inject_fault!(RollsBackBlindly) {
            self.cell.swap(taken.before);
        }
        // It may fail without a reason.
        while self.cell.compare_exchange(taken.after, taken.before) == Err(taken.after) {}
        self.go_out(ROLLING_BACK.wrapping_neg());
    }

    /// Enters, if that may be and there is room.
    fn enter(&self, who: u64, may_enter: impl Fn(u64) -> bool) -> bool {
        // ORDERING: Relaxed. The exchange finds out what has changed since.
        let mut state = self.backs.load(Ordering::Relaxed);
        loop {
            let is_full = rolling_back(state).max(giving_back(state)) == GIVING_BACK - 1;
            if is_full || !may_enter(state) {
                return false;
            }
            // ORDERING: Acquire. It pairs with the release in `go_out`: what those did who were
            // inside before is done before what we do. Models: shards::
            match self.backs.compare_exchange_weak(
                state,
                state.wrapping_add(who),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => state = other,
            }
        }
    }

    fn go_out(&self, who: u64) {
        // ORDERING: Release. See `enter` and `take`. Models: shards::
        self.backs.fetch_add(who, Ordering::Release);
    }

    /// Runs a step that lowers the word, and returns how many permits it gave back: none, if
    /// another thread is rolling back.
    pub(super) fn give_back(&self, step: impl Fn(&A, u64) -> (u64, u64)) -> u64 {
        let word = self.cell.load();
        let (next, n) = step(&self.algorithm, word);
        if next == word {
            return n;
        }
        let may_enter = |state| rolling_back(state) == 0 || inject_fault!(LowersMeanwhile);
        if !self.enter(GIVING_BACK + CHANGE, may_enter) {
            return 0;
        }
        let mut word = self.cell.load();
        let n = loop {
            let (next, n) = step(&self.algorithm, word);
            if next == word {
                break n;
            }
            match self.cell.compare_exchange(word, next) {
                Ok(()) => break n,
                Err(seen) => word = seen,
            }
        };
        self.go_out(CHANGE - GIVING_BACK);
        n
    }

    /// Makes it fresh, unless another thread is rolling back.
    pub(super) fn reset(&self) {
        self.give_back(|_, _| (0, 0));
    }
}
