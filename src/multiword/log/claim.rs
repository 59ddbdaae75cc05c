//! The protocol by which permits get into a log.
//!
//! 1. **Look.** A thread reads the state. If the last claim has not been entered in the ring yet,
//!    the thread enters it. From then on, ticks along the ring never decrease, and the next index
//!    holds the oldest permit. `n` permits may be replaced if the `n`-th oldest has expired.
//! 2. **Claim.** One exchange moves the state on by `n`. This is the decision, for all `n` permits
//!    or none. The exchange fails if another thread has claimed since the look. An entry changes
//!    only after a claim, so if the exchange succeeds, everything that was read still holds.
//! 3. **Enter.** The claimed entries get the claim's tick, in order. The first exchange decides
//!    which tick that is. Any thread can do this, so a thread that stops after its claim blocks no
//!    other.
//!
//! A claim is entered at `max(now, newest, expiry)`: the tick of the thread that enters it, the
//! tick of the newest permit, and the expiry of the `n`-th oldest. If the claimer enters it, that
//! is the tick at which it was admitted. If another thread does, the tick is still no less than the
//! floor `max(newest, expiry)`, and the bound needs only that. The claimer reports the tick that
//! was entered. If the entry is claimed again before the claimer reads it, the claimer reports the
//! floor, which is no later.
//!
//! **The bound.** Number all permits in the order of their claims. The tick of permit `i` is never
//! below that of permit `i - 1`, and at least a period above that of permit `i - n`, whose entry it
//! replaces. So of `n + 1` consecutive permits the last is at least a period later than the first.

use super::SlidingLog;
use super::shape::{RingPosition, tick_of, told};
use crate::clock::Tick;
use crate::sync::{AtomicU64, Backoff, Ordering, inject_fault};

/// A state whose last claim has been entered, and what was read with it.
#[derive(Clone, Copy)]
pub(super) struct LogState {
    pub(super) state: u64,
    /// The tick at which a permit would count now.
    pub(super) now: u64,
    /// The tick of the newest permit.
    newest: u64,
}

impl<C> SlidingLog<C> {
    #[inline(always)]
    pub(super) fn load(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `claim_of`: a thread that sees a claim
        // sees the entries of all earlier claims. If this were Relaxed, an entry could look as it
        // did a lap ago, and its permit be granted twice. Models: log::
        self.state.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn entry(&self, place: RingPosition) -> Option<&AtomicU64> {
        self.ring.get(place.index as usize)
    }

    #[inline(always)]
    fn read(&self, place: RingPosition) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `enter`: a thread that reads an entry of
        // a later lap then loads a state that has moved on, and no older one. It also makes the
        // next claim publish that entry. Models: log::
        self.entry(place)
            .map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    /// Exchanges an entry that was `old`. Returns false if another thread changed it first.
    #[inline(always)]
    fn enter(&self, place: RingPosition, old: u64, tick: u64) -> bool {
        let Some(entry) = self.entry(place) else {
            return true;
        };
        // ORDERING: Release. It publishes the claim, and pairs with the acquire in `read`. Relaxed
        // on failure: the entry is read again. Models: log::
        let entered =
            entry.compare_exchange(old, place.entry(tick), Ordering::Release, Ordering::Relaxed);
        entered.is_ok()
    }

    /// Reads the log in this state. `None` if the last claim has not been entered.
    #[inline(always)]
    pub(super) fn view(&self, state: u64, now: Tick) -> Option<LogState> {
        let newest = match state {
            0 => 0,
            _ => {
                let place = self.shape.behind(state, 1);
                let entry = self.read(place);
                let is_entered = place.is_filled(entry) || inject_fault!(TakesUnentered); // FAULT
                if !is_entered {
                    return None;
                }
                tick_of(entry)
            }
        };
        let now = told(now).max(newest);
        Some(LogState { state, now, newest })
    }

    /// Reads the log, and enters the last claim if it has not been entered.
    pub(super) fn look(&self, now: Tick) -> LogState {
        let mut state = self.load();
        if let Some(view) = self.view(state, now) {
            return view;
        }
        // The thread that claimed is probably about to enter it.
        Backoff::new().wait();
        loop {
            match self.view(state, now) {
                Some(view) => return view,
                None => state = self.help(state, now),
            }
        }
    }

    /// Enters the last claim of this state, if it has not been entered, and returns the state after
    /// that.
    #[cold]
    #[inline(never)]
    fn help(&self, state: u64, now: Tick) -> u64 {
        let shape = &self.shape;
        let n = shape.last(state);
        let floor = match n < shape.limit {
            // The newest permit before the claim, which has been entered.
            true => tick_of(self.read(shape.behind(state, n + 1))),
            false => 0,
        };
        let expiry = shape.expiry(self.read(shape.behind(state, 1)));
        let helps = !inject_fault!(NeverHelps); // FAULT
        if helps {
            self.enter_all(state, n, told(now).max(floor).max(expiry));
        }
        self.load()
    }

    /// Enters those of this claim's `n` permits that have not been entered yet. Returns the tick at
    /// which they count. `None` if the state has changed, since all of them were entered before
    /// that.
    pub(super) fn enter_all(&self, state: u64, n: u64, tick: u64) -> Option<u64> {
        let mut tick = tick;
        for i in (1..=n).rev() {
            let place = self.shape.behind(state, i);
            loop {
                let entry = self.read(place);
                // While the state has not changed, the entry is of this lap or of the one before.
                if self.load() != state {
                    return None;
                }
                if place.is_filled(entry) {
                    // All permits of a claim have the tick of its first one.
                    tick = tick_of(entry);
                    break;
                }
                if self.enter(place, entry, tick) {
                    break;
                }
            }
        }
        Some(tick)
    }

    /// Returns the oldest entry.
    #[inline(always)]
    pub(super) fn oldest_one(&self, view: &LogState) -> u64 {
        self.read(self.shape.next(view.state))
    }

    /// Returns the `n`-th oldest entry. `n` is from 1 to the limit.
    #[inline(always)]
    pub(super) fn oldest(&self, view: &LogState, n: u64) -> u64 {
        self.read(self.shape.ahead(view.state, n - 1))
    }

    /// Returns the tick at which all permits have expired: 0 for a new log.
    pub(super) fn newest_expiry(&self, view: &LogState) -> u64 {
        match view.state {
            0 => 0,
            _ => view.newest + self.shape.period,
        }
    }

    /// Returns whether no thread has claimed since that look.
    #[inline(always)]
    pub(super) fn still(&self, view: &LogState) -> bool {
        self.load() == view.state
    }

    /// Claims `n` permits and returns the new state. `None` if another thread has claimed since
    /// that look.
    #[inline(always)]
    fn claim_of(&self, view: &LogState, n: u64) -> Option<u64> {
        let claimed = self.shape.after(view.state, n);
        // ORDERING: Release. It publishes the entries that were read, and pairs with the acquire in
        // `load`. Relaxed on failure: the state is loaded again. Models: log::
        let exchanged =
            self.state
                .compare_exchange(view.state, claimed, Ordering::Release, Ordering::Relaxed);
        exchanged.ok().map(|_| claimed)
    }

    /// Claims one permit and enters it in place of the oldest entry, which has expired. Returns the
    /// tick at which it counts. `None` if another thread has claimed since that look.
    #[inline(always)]
    pub(super) fn claim_one(&self, view: &LogState, oldest: u64) -> Option<u64> {
        let claimed = self.claim_of(view, 1)?;
        // No thread has changed the entry between the look and the claim.
        match self.enter(self.shape.next(view.state), oldest, view.now) {
            true => Some(view.now),
            false => Some(self.entered(view, claimed, 1, oldest)),
        }
    }

    /// Claims `n` permits and enters them. `last` is the `n`-th oldest entry, and has expired.
    /// Returns the tick at which they count. `None` if another thread has claimed since that look.
    pub(super) fn claim(&self, view: &LogState, n: u64, last: u64) -> Option<u64> {
        let claimed = self.claim_of(view, n)?;
        Some(self.entered(view, claimed, n, last))
    }

    #[cold]
    #[inline(never)]
    fn entered(&self, view: &LogState, claimed: u64, n: u64, last: u64) -> u64 {
        if let Some(tick) = self.enter_all(claimed, n, view.now) {
            return tick;
        }
        // Another thread has entered the claim. The claim's first entry stays until it is claimed
        // again, a lap later.
        let entry = self.read(self.shape.behind(claimed, n));
        if self.shape.between(claimed, self.load()) <= self.shape.limit - n {
            return tick_of(entry);
        }
        view.newest.max(self.shape.expiry(last))
    }

    /// Returns how many of the oldest permits have expired. It may be more a moment later.
    pub(super) fn expired(&self, view: &LogState) -> u64 {
        let is_expired = |n| self.shape.expiry(self.oldest(view, n)) <= view.now;
        let (mut expired, mut kept) = (0, self.shape.limit + 1);
        // Ticks never decrease along the ring, so this is a binary search.
        while kept - expired > 1 {
            let middle = expired + (kept - expired) / 2;
            match is_expired(middle) {
                true => expired = middle,
                false => kept = middle,
            }
        }
        expired
    }
}
