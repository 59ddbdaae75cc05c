//! One shard of the limit: a word that counts, and a second word that coordinates the threads that
//! lower the first.
//!
//! # Rolling back what a request could not use
//!
//! A request that takes from several shards and can't get everything rolls back what it took. Its
//! caller was granted nothing. So a rollback, unlike a give-back that a caller asks for, must not
//! make any permit available early. This must hold for every algorithm and for all ticks that other
//! threads pass.
//!
//! So a rollback restores the word from **before** the take only if two things hold: the word still
//! has the value from **after** the take, and nothing has lowered it in between. Then no thread has
//! changed it, because grants, charges and new windows only raise a word. (Other requests may have
//! taken and rolled back under the same rule, but that changes nothing.)
//!
//! The word alone does not show that it was lowered. Permits may be returned, the bucket may become
//! idle, and a later take may then produce the very same word. Hence the second word:
//!
//! ```text
//!  63                       24             12             0
//! ┌─────────────────────────┬──────────────┬──────────────┐
//! │ changes                 │ giving back  │ rolling back │
//! └─────────────────────────┴──────────────┴──────────────┘
//! ```
//!
//! - **A take** notes the number of changes first, and the word before and after.
//! - **A rollback** adds one to the lowest field, if no thread is giving back and the number of
//!   changes is as noted. Then it exchanges the first word, and subtracts the one again.
//! - **A give-back** (undo, refund, reset) adds one to the middle field, if no thread is rolling
//!   back. Then it exchanges the first word, and subtracts the one again. The addition and the
//!   subtraction each count as a change. If a thread is rolling back, nothing is given back.
//!
//! So while a thread rolls back, no other thread gives back, and none has given back since the
//! permits were taken. A give-back that was under way at the take has either ended since, which is
//! a change, or still shows in the middle field. (It would not be enough to count a change at the
//! beginning of a give-back. A take could note that change and produce again the word that the
//! give-back has read. The exchange of the give-back would then succeed.)
//!
//! No thread waits for another. If a thread stops during a rollback, this shard accepts no returned
//! permits. If a thread stops during a give-back, others can't roll back. In both cases permits are
//! lost, and none is granted twice.

use core::num::NonZeroU64;
use core::time::Duration;

use crate::algorithm::Split;
use crate::clock::{NoClock, Tick};
use crate::limiter::Limiter;
use crate::outcome::Granted;
use crate::store::cell::{AtomicWord, WordCell};
use crate::store::op::{Current, Op, Step};
use crate::store::operations::Change;
use crate::store::view::View;
use crate::store::word::WordStore;
use crate::store::{Refusal, Store};
use crate::sync::{AtomicU64, Ordering, inject_fault};

/// The width of the two fields that count threads. If a field is full, further threads are refused.
const WIDTH: u32 = 12;
/// The increments of the fields: a thread that rolls back, a thread that gives back, and a change.
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

/// Between two scans, a shard may have less than the fullest one by up to a 32nd of what it can
/// hold.
const SLACK: u64 = 32;

/// The largest number of shards of a limiter.
pub(super) const MAX_SHARDS: usize = 256;

#[repr(C)]
pub(super) struct Shard<A> {
    /// The limiter of this shard, in fractions of a permit. Its word comes first, next to the
    /// parameters that every decision reads.
    limiter: Limiter<A, NoClock>,
    /// The number of fractions in a permit.
    permit: NonZeroU64,
    /// A request that leaves at least this much room (in the unit of [`Granted::room`]) needs no
    /// scan.
    keep: u64,
    /// How much this shard may have less than the fullest one before the next scan, as a difference
    /// of words. It is 0 if words can't be compared, or if the difference is less than a permit.
    slack: u64,
    /// The largest word that needs no scan: that of the fullest shard at the last scan, plus
    /// `slack`.
    limit: AtomicU64,
    /// The distance of the fullest shard at the last scan from this one.
    fullest: AtomicU64,
    backs: AtomicU64,
}

/// The data to roll back what a request took from a shard.
pub(super) struct Taken {
    before: u64,
    after: u64,
    changes: u64,
}

/// Takes `n` fractions, if `accepts` returns true for the next word and the grant.
struct AcquireIf<F> {
    n: u64,
    accepts: F,
}

/// The word of a shard that refused a request.
struct Refused(u64);

impl Refusal for Refused {
    fn earlier(self, _by: Duration) -> Self {
        self
    }
}

impl<A: Split, F: Fn(u64, &Granted) -> bool> Op<A> for AcquireIf<F> {
    type Output = Granted;
    type Refusal = Refused;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, current: Current) -> Step<A, Self> {
        match algorithm.step(current.word, current.now, self.n) {
            Ok((next, granted)) if (self.accepts)(next, &granted) => Ok((next, granted)),
            _ => Err(Refused(current.word)),
        }
    }

    #[inline(always)]
    fn run_fast(&mut self, algorithm: &A, current: Current) -> Option<Step<A, Self>> {
        Some(
            match algorithm.step_fast(current.word, current.now, self.n)? {
                Ok((next, granted)) if (self.accepts)(next, &granted) => Ok((next, granted)),
                _ => Err(Refused(current.word)),
            },
        )
    }

    #[inline(always)]
    fn is_unchanged(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }
}

impl<A: Split> Shard<A> {
    /// Creates one of `shards` shards.
    pub(super) fn new(algorithm: A, permit: NonZeroU64, shards: u64, tick: Tick) -> Self {
        // Seven eighths of the room of a new shard.
        let keep = match algorithm.step(0, tick, 0) {
            Ok((_, fresh)) if shards > 1 => fresh.left() - fresh.left() / 8,
            _ => 0,
        };
        let slack = match algorithm.available(0, tick) / SLACK {
            slack if shards > 1 && slack >= permit.get() && algorithm.is_ordered() => {
                let after = |n| algorithm.take_up_to(0, tick, n).0;
                after(slack.saturating_add(1)).saturating_sub(after(1))
            }
            _ => 0,
        };
        let cell = WordCell::new(algorithm.initial_word(tick));
        Self {
            limiter: Limiter::with_cell(algorithm, NoClock, cell),
            permit,
            keep,
            slack,
            limit: AtomicU64::new(0),
            fullest: AtomicU64::new(0),
            backs: AtomicU64::new(0),
        }
    }

    #[inline(always)]
    pub(super) const fn algorithm(&self) -> &A {
        self.store().algorithm
    }

    #[inline(always)]
    pub(super) const fn cell(&self) -> &WordCell {
        self.store().cell
    }

    #[inline(always)]
    const fn store(&self) -> WordStore<'_, A> {
        self.limiter.at(Tick::ZERO).store
    }

    /// Returns how many fractions make one permit.
    #[inline(always)]
    pub(super) const fn permit(&self) -> u64 {
        self.permit.get()
    }

    /// Returns the number of fractions in a full shard.
    pub(super) fn full(&self) -> u64 {
        self.algorithm().available(0, Tick::ZERO)
    }

    /// Returns a view with the operations that don't lower the word, in fractions of a permit.
    #[inline(always)]
    pub(super) const fn at(&self, now: Tick) -> View<WordStore<'_, A>> {
        self.limiter.at(now)
    }

    /// Changes the word by a function that can't fail.
    #[inline(always)]
    pub(super) fn change<T>(&self, now: Tick, change: impl FnMut(u64) -> (u64, T)) -> T {
        let Ok(answer) = self.store().apply(now, Change(change));
        answer
    }

    /// Returns whether a grant that produces this word needs no scan of the other shards.
    #[inline(always)]
    pub(super) fn needs_no_look(&self, word: u64, granted: &Granted) -> bool {
        granted.left() >= self.keep || self.slack > 0 && self.is_within_limit(word)
    }

    /// Returns whether the word is between that of the fullest shard at the last scan and the
    /// limit. If it is smaller, permits were returned to this shard, and maybe to others too, so a
    /// new scan is needed.
    #[inline(always)]
    fn is_within_limit(&self, word: u64) -> bool {
        // ORDERING: Relaxed. It publishes nothing: it affects which shard permits are taken from,
        // and not how many. If several threads use this shard, `limit` and `fullest` may come from
        // different scans.
        let limit = self.limit.load(Ordering::Relaxed);
        limit.wrapping_sub(word) < self.slack
    }

    /// Stores the word of the fullest shard and its distance, as a scan found them. Stores nothing
    /// if that shard is nearly full, because a full shard loses what it would refill.
    pub(super) fn store_look(&self, word: u64, distance: usize, now: Tick) {
        let full = self.full();
        let is_open = self.algorithm().available(word, now) <= full - full / SLACK;
        if self.slack > 0 && is_open {
            let (limit, _) = self.algorithm().take_up_to(word, now, full / SLACK);
            // ORDERING: Relaxed. See `is_within_limit`.
            self.fullest.store(distance as u64, Ordering::Relaxed);
            // ORDERING: Relaxed. See `is_within_limit`.
            self.limit.store(limit, Ordering::Relaxed);
        }
    }

    /// Returns the distance of the shard that was the fullest at the last scan.
    pub(super) fn fullest_distance(&self) -> Option<usize> {
        if self.slack == 0 {
            return None;
        }
        // ORDERING: Relaxed. See `is_within_limit`.
        Some(self.fullest.load(Ordering::Relaxed) as usize)
    }

    /// Takes `n` permits from another shard, if its word stays within this shard's limit.
    pub(super) fn take_from(&self, other: &Self, now: Tick, n: u64) -> Option<Granted> {
        other
            .take_if(now, n, |word, _| self.is_within_limit(word))
            .ok()
    }

    /// Takes `n` permits in a single attempt, if that needs no scan of the other shards. `None`
    /// means that nothing was taken; use the slow path.
    #[inline(always)]
    pub(super) fn try_once(&self, now: Tick, n: u64) -> Option<Granted> {
        let fractions = n.checked_mul(self.permit())?;
        let accepts = |word, granted: &Granted| self.needs_no_look(word, granted);
        let op = AcquireIf {
            n: fractions,
            accepts,
        };
        let granted = self.store().try_fast(now, op)?.ok()?;
        Some(granted.of_permits(n, self.permit()))
    }

    /// Takes `n` permits, if `accepts` returns true for the new word and the grant.
    ///
    /// # Errors
    ///
    /// Returns the unchanged word as the error.
    pub(super) fn take_if(
        &self,
        now: Tick,
        n: u64,
        accepts: impl Fn(u64, &Granted) -> bool,
    ) -> Result<Granted, u64> {
        let fractions = n.saturating_mul(self.permit());
        let op = AcquireIf {
            n: fractions,
            accepts,
        };
        match self.store().apply(now, op) {
            Ok(granted) => Ok(granted.of_permits(n, self.permit())),
            Err(Refused(word)) => Err(word),
        }
    }

    /// Takes up to `n` fractions, and returns what is needed to roll them back. Returns `None` if
    /// the shard is empty or has fewer than `at_least`.
    pub(super) fn take(&self, now: Tick, at_least: u64, n: u64) -> Option<(Granted, Taken)> {
        // ORDERING: Acquire. It pairs with the release in `go_out`: a give-back whose change is
        // noted here has exchanged the word before this take. Models: shards::
        let changes = changes(self.backs.load(Ordering::Acquire));
        self.change(now, |before| {
            if self.algorithm().available(before, now) < at_least.max(1) {
                return (before, None);
            }
            let (after, granted) = self.algorithm().take_up_to(before, now, n);
            let taken = Taken {
                before,
                after,
                changes,
            };
            (after, Some((granted, taken)))
        })
    }

    /// Rolls back a take, if no thread has changed the word since.
    pub(super) fn roll_back(&self, taken: &Taken) {
        let is_as_noted = |state| changes(state) == taken.changes && giving_back(state) == 0;
        if taken.after == taken.before || !self.enter(ROLLING_BACK, is_as_noted) {
            return;
        }
        // The exchange is weak and may fail spuriously.
        while self.cell().compare_exchange(taken.after, taken.before) == Err(taken.after) {}
        self.go_out(ROLLING_BACK.wrapping_neg());
    }

    /// Adds `who` to the second word, if `may_enter` allows it and no field would overflow.
    fn enter(&self, who: u64, may_enter: impl Fn(u64) -> bool) -> bool {
        // ORDERING: Relaxed. It publishes nothing, and the exchange detects a stale value.
        let mut state = self.backs.load(Ordering::Relaxed);
        loop {
            let is_full = rolling_back(state).max(giving_back(state)) == GIVING_BACK - 1;
            let enters = may_enter(state) || inject_fault!(EntersAnyhow); // FAULT
            if is_full || !enters {
                return false;
            }
            // ORDERING: Acquire. It pairs with the release in `go_out`: the exchanges of threads
            // that were inside before happen before those of this one. Models: shards::
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
        // ORDERING: Release. It publishes the exchange of the word, and pairs with the acquires in
        // `enter` and `take`. Models: shards::
        self.backs.fetch_add(who, Ordering::Release);
    }

    /// Runs a step that lowers the word, and returns how many permits it gave back: 0 if another
    /// thread is rolling back.
    pub(super) fn give_back(&self, step: impl Fn(&A, u64) -> (u64, u64)) -> u64 {
        let word = self.cell().load();
        let (next, n) = step(self.algorithm(), word);
        if next == word {
            return n;
        }
        let none_rolls_back = |state| rolling_back(state) == 0;
        if !self.enter(GIVING_BACK + CHANGE, none_rolls_back) {
            return 0;
        }
        let n = self.change(Tick::ZERO, |word| step(self.algorithm(), word));
        self.go_out(CHANGE - GIVING_BACK);
        n
    }

    /// Resets the shard to a new one, unless another thread is rolling back.
    pub(super) fn reset(&self) {
        self.give_back(|_, _| (0, 0));
    }
}
