//! One part of the limit: a word, and what keeps apart those who lower it.
//!
//! # Putting back what a request could not use
//!
//! A request that takes from several parts and can't have all puts back what it took. Nobody was granted
//! that and nobody hears of it; so, other than a give-back that a caller asks for, it must not bring forward a
//! single permit, whatever the algorithm, and whatever ticks others bring. So the word becomes again what it was
//! **before**, if it still is what it was made to be **after** that, and if nothing has lowered it in between.
//! Then nobody has changed it: grants, charges and new windows only raise a word. Others may have taken and put
//! back by the same rule, which leaves nothing behind.
//!
//! The word alone does not show that it was lowered: permits may come back, the bucket be found idle later, and
//! somebody take as many as make it the very same word. Hence a second word:
//!
//! ```text
//!  63                                 20                      0
//! ┌────────────────────────────────────┬───────────────────────┐
//! │ how often the word was lowered     │ who are putting back  │
//! └────────────────────────────────────┴───────────────────────┘
//! ```
//!
//! - **Who takes** notes the upper field first, and the word before and after.
//! - **Who puts back** adds itself to the lower field if the upper one is as noted, exchanges the words, and
//!   goes out again.
//! - **Who gives back** (undo, refund) looks at the word, then raises the upper field if nobody is in the lower
//!   one, and then exchanges the word that it saw. If somebody is, nothing comes back: a request is about to
//!   put back, and would find its word again. A take between look and exchange makes the exchange fail, and one
//!   before the look has noted the field before it was raised.
//! - **A reset** raises the field and does not ask. Whoever is putting back at that moment may put its permits
//!   into the fresh word, if that comes to be what it looks for: they are of the burst that a reset allows.
//!
//! Nobody waits. A thread that stops while it is putting back keeps this part from taking anything back.

use core::cmp::Reverse;

use crate::algorithm::Split;
use crate::cell::{Cell, Place};
use crate::clock::Tick;
use crate::limiter::At;
use crate::outcome::Granted;
use crate::primitive::{AtomicU64, Ordering, mistake};

/// How wide the field is of those who are putting back: as many threads as there can be.
const PUTTING_BACK: u32 = 20;

#[repr(C)]
pub(super) struct Part<A> {
    /// The word first, and next to it the parameters that every decision reads.
    cell: Cell,
    algorithm: A,
    lowered: AtomicU64,
}

/// What a request took from a part, before it has all it asked for.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    pub(super) granted: Granted,
    before: u64,
    after: u64,
    lowered: u64,
}

impl<A: Split> Part<A> {
    pub(super) fn new(algorithm: A, tick: Tick) -> Self {
        Self {
            cell: Cell::new(algorithm.initial_word(tick)),
            algorithm,
            lowered: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(super) const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    #[inline(always)]
    pub(super) const fn cell(&self) -> &Cell {
        &self.cell
    }

    /// The verbs that don't lower the word.
    #[inline(always)]
    pub(super) fn at(&self, now: Tick) -> At<'_, A> {
        At::new(&self.algorithm, &self.cell, now)
    }

    /// When it has a permit: [`Tick::MAX`] if it never will. Of parts that have some, the one with most is first.
    pub(super) fn due_of_one(&self, now: Tick) -> (Tick, Reverse<u64>) {
        let word = self.cell.load();
        let due = self.algorithm.due(word, now, 1).unwrap_or(Tick::MAX);
        (due, Reverse(self.algorithm.available(word, now)))
    }

    /// Takes as many of `n` as there are, so that they can be put back.
    pub(super) fn take(&self, now: Tick, n: u64) -> Taken {
        // ORDERING: Acquire. It pairs with the release in `lower`: a give-back of which this one knows had
        // looked at the word before we take. Model: loom-tests/tests/shards.rs
        let lowered = self.lowered.load(Ordering::Acquire) >> PUTTING_BACK;
        self.at(now).change(|before| {
            let (after, granted) = self.algorithm.take_up_to(before, now, n);
            let taken = Taken {
                granted,
                before,
                after,
                lowered,
            };
            (after, taken)
        })
    }

    /// Puts back what nobody was granted, if nobody has changed the word since.
    pub(super) fn put_back(&self, taken: &Taken) {
        if mistake!(PutsNothingBack) || taken.after == taken.before || !self.enter(taken.lowered) {
            return;
        }
        if mistake!(PutsBackBlindly) {
            self.cell.replace(taken.before);
        }
        // It may fail without a reason.
        while self.cell.exchange(taken.after, taken.before) == Err(taken.after) {}
        // ORDERING: Release. It pairs with the acquire in `lower`: who finds nobody here exchanges the word
        // after us. Model: loom-tests/tests/shards.rs
        self.lowered.fetch_sub(1, Ordering::Release);
    }

    /// Enters among those who are putting back, if the word was not lowered since.
    fn enter(&self, lowered: u64) -> bool {
        // ORDERING: Relaxed. The exchange finds out what has changed since.
        let mut seen = self.lowered.load(Ordering::Relaxed);
        loop {
            if seen >> PUTTING_BACK != lowered && !mistake!(IgnoresGiveBacks) {
                return false;
            }
            // ORDERING: Relaxed. Who gives back finds us or has been found, by the order of the changes of
            // this word; and the exchange of the other word fails if it was changed.
            // Model: loom-tests/tests/shards.rs
            match self.lowered.compare_exchange_weak(
                seen,
                seen + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }

    /// Notes that the word is about to be lowered, unless somebody is putting back.
    fn lower(&self) -> bool {
        // ORDERING: Relaxed. The exchange finds out what has changed since.
        let mut seen = self.lowered.load(Ordering::Relaxed);
        loop {
            let putting_back = seen & !(u64::MAX << PUTTING_BACK);
            if putting_back > 0 && !mistake!(LowersMeanwhile) {
                return false;
            }
            let next = seen.wrapping_add(1 << PUTTING_BACK);
            // ORDERING: Acquire, for the words of those who have put back; release, for our look at the word:
            // see `put_back` and `take`. Model: loom-tests/tests/shards.rs
            match self.lowered.compare_exchange_weak(
                seen,
                next,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(other) => seen = other,
            }
        }
    }

    /// Runs a step that lowers the word, and says how many permits it gave back; none, if somebody is putting
    /// back.
    pub(super) fn give_back(&self, step: impl Fn(&A, u64) -> (u64, u64)) -> u64 {
        let mut word = self.cell.load();
        loop {
            let (next, n) = step(&self.algorithm, word);
            if next == word {
                return n;
            }
            // After the look and before the exchange, each time.
            if !self.lower() {
                return 0;
            }
            match self.cell.exchange(word, next) {
                Ok(()) => return n,
                Err(seen) => word = seen,
            }
        }
    }

    pub(super) fn reset(&self) {
        let mut word = self.cell.load();
        loop {
            // ORDERING: Release, as in `lower`; it does not ask who is putting back.
            self.lowered.fetch_add(1 << PUTTING_BACK, Ordering::Release);
            match self.cell.exchange(word, 0) {
                Ok(()) => return,
                Err(seen) => word = seen,
            }
        }
    }
}
