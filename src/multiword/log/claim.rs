//! How permits get into a log.
//!
//! 1. **Look.** The last claim must have been entered: whoever finds that it was not enters it.
//!    Then ticks along the ring never fall, the place ahead holds the oldest permit, and `n` of
//!    them may be replaced if the `n`-th oldest has expired.
//! 2. **Claim.** The state goes on by `n` in one exchange: that is the decision, for all of them or
//!    none. It fails if anybody has claimed since the look, and an entry changes only after its
//!    claim; so all that was seen still holds.
//! 3. **Enter.** The places that were claimed get the tick, in their order. The first exchange
//!    decides which tick that is. Anybody can do it: who has claimed and stops stops nobody.
//!
//! A claim is entered at `max(now, the newest tick, the n-th oldest's expiry)`, where `now` is that
//! of whoever enters it: of the claimer that is the tick at which it was admitted, and anybody
//! else's is no less than the floor of the other two, which is all that the bound asks for. The
//! claimer reports the tick that was entered, or, if its place has been claimed anew by the time it
//! looks, that floor, which is no later.
//!
//! **The bound.** Number all permits as they were claimed. The tick of the `i`-th is never below
//! that of the one before it, and at least a period above that of the one a lap before. So of `n +
//! 1` permits that follow each other the last is at least a period later than the first.

use super::SlidingLog;
use super::shape::{RingPosition, tick_of, told};
use crate::clock::Tick;
use crate::sync::{AtomicU64, Backoff, Ordering, inject_fault};

/// A state in which all is entered, and what it says.
#[derive(Clone, Copy)]
pub(super) struct LogState {
    pub(super) state: u64,
    /// The tick at which a permit would count.
    pub(super) now: u64,
    /// That of the newest permit.
    newest: u64,
}

impl<C> SlidingLog<C> {
    #[inline(always)]
    pub(super) fn load(&self) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `claim`: who sees a claim sees the
        // entries of all claims before it. Relaxed, an entry could look as it did a lap ago, and
        // its permit be had again. Models: log::
        self.state.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn entry(&self, place: RingPosition) -> Option<&AtomicU64> {
        self.ring.get(place.index as usize)
    }

    #[inline(always)]
    fn read(&self, place: RingPosition) -> u64 {
        // ORDERING: Acquire. It pairs with the release in `enter`: an entry of a later lap shows
        // that the state has gone on, and the state that is loaded after it does not look older. It
        // also hands on the entries of that claim with the next one. Models: log::
        self.entry(place)
            .map_or(0, |entry| entry.load(Ordering::Acquire))
    }

    /// Fails if the entry is another one by now.
    #[inline(always)]
    fn enter(&self, place: RingPosition, old: u64, tick: u64) -> bool {
        let Some(entry) = self.entry(place) else {
            return true;
        };
        // ORDERING: Release: see `read`. Relaxed on failure: it is read again.
        // Models: log::
        let entered =
            entry.compare_exchange(old, place.entry(tick), Ordering::Release, Ordering::Relaxed);
        entered.is_ok()
    }

    /// The log as it is, if all that was claimed is entered.
    #[inline(always)]
    pub(super) fn glance(&self, now: Tick) -> Option<LogState> {
        self.view(self.load(), now)
    }

    #[inline(always)]
    fn view(&self, state: u64, now: Tick) -> Option<LogState> {
        let newest = match state {
            0 => 0,
            _ => {
                let place = self.shape.behind(state, 1);
                let entry = self.read(place);
                if !place.is_filled(entry) && !inject_fault!(TakesUnentered) {
                    return None;
                }
                tick_of(entry)
            }
        };
        let now = told(now).max(newest);
        Some(LogState { state, now, newest })
    }

    /// The log as it is, when all that was claimed is entered.
    pub(super) fn look(&self, now: Tick) -> LogState {
        let mut state = self.load();
        if let Some(view) = self.view(state, now) {
            return view;
        }
        // The thread that claimed is most likely about to enter it.
        Backoff::new().wait();
        loop {
            match self.view(state, now) {
                Some(view) => return view,
                None => {
                    state = inject_fault!(NeverHelps => self.load(), else self.help(state, now))
                }
            }
        }
    }

    /// Enters the last claim of this state, unless it has been. The state then.
    #[cold]
    #[inline(never)]
    fn help(&self, state: u64, now: Tick) -> u64 {
        let shape = &self.shape;
        let n = shape.last(state);
        let floor = match n < shape.limit {
            // The newest permit before the claim. It has been entered.
            true => tick_of(self.read(shape.behind(state, n + 1))),
            false => 0,
        };
        let expiry = shape.expiry(self.read(shape.behind(state, 1)));
        let floor = inject_fault!(HelpsAtItsTick => 0, else floor.max(expiry));
        self.enter_all(state, n, told(now).max(floor));
        self.load()
    }

    /// Enters all `n` of this claim, some of which may be. `None` if the state is another one by
    /// now: then all of them are. Else the tick at which they are.
    pub(super) fn enter_all(&self, state: u64, n: u64, tick: u64) -> Option<u64> {
        let mut tick = tick;
        for i in (1..=n).rev() {
            let place = self.shape.behind(state, i);
            loop {
                let entry = self.read(place);
                // While the state is this one the entry is of this lap or of the one before.
                if self.load() != state && !inject_fault!(EntersLate) {
                    return None;
                }
                if place.is_filled(entry) {
                    // All of a claim have the tick of its first.
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

    /// The oldest entry.
    #[inline(always)]
    pub(super) fn oldest_one(&self, view: &LogState) -> u64 {
        self.read(self.shape.next(view.state))
    }

    /// The `n`-th oldest entry. `n` is not 0, and at most the limit.
    #[inline(always)]
    pub(super) fn oldest(&self, view: &LogState, n: u64) -> u64 {
        self.read(self.shape.ahead(view.state, n - 1))
    }

    /// When all have expired: 0 of a fresh log.
    pub(super) fn newest_expiry(&self, view: &LogState) -> u64 {
        match view.state {
            0 => 0,
            _ => view.newest + self.shape.period,
        }
    }

    /// Whether nobody has claimed since that look.
    #[inline(always)]
    pub(super) fn still(&self, view: &LogState) -> bool {
        self.load() == view.state
    }

    /// Claims `n`, if nobody has claimed since that look: the state then.
    #[inline(always)]
    fn claim_of(&self, view: &LogState, n: u64) -> Option<u64> {
        let claimed = self.shape.after(view.state, n);
        if inject_fault!(EntersFirst) {
            let place = self.shape.next(view.state);
            self.enter(place, self.read(place), view.now);
        }
        // ORDERING: Release, for the entries that were seen: see `load`. On failure Relaxed: the
        // state is loaded again. Models: log::
        let exchanged =
            self.state
                .compare_exchange(view.state, claimed, Ordering::Release, Ordering::Relaxed);
        exchanged.ok().map(|_| claimed)
    }

    /// Claims one and enters it, in place of the oldest entry, which has expired. The tick at which
    /// it counts; `None` if somebody has claimed since that look.
    #[inline(always)]
    pub(super) fn claim_one(&self, view: &LogState, oldest: u64) -> Option<u64> {
        let claimed = self.claim_of(view, 1)?;
        // Nobody has changed the entry between the look and the claim.
        match self.enter(self.shape.next(view.state), oldest, view.now) {
            true => Some(view.now),
            false => Some(self.entered(view, claimed, 1, oldest)),
        }
    }

    /// Claims `n` and enters them. `last` is the `n`-th oldest entry, and has expired. The tick at
    /// which they count; `None` if somebody has claimed since that look.
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
        // Somebody else has entered it. Its first place is not claimed anew before the log has gone
        // round.
        let entry = self.read(self.shape.behind(claimed, n));
        if self.shape.between(claimed, self.load()) <= self.shape.limit - n {
            return tick_of(entry);
        }
        view.newest.max(self.shape.expiry(last))
    }

    /// How many of the oldest have expired; a moment later it may be more.
    pub(super) fn expired(&self, view: &LogState) -> u64 {
        let is_expired = |n| self.shape.expiry(self.oldest(view, n)) <= view.now;
        let (mut expired, mut kept) = (0, self.shape.limit + 1);
        // Ticks never fall along the ring.
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
