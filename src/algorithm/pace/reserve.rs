//! Permits that are taken before they are available.
//!
//! A reservation is a grant that is due later. It raises the word as any grant does. The further
//! the word is above the clock, the later the permits are due. So the word alone keeps the waiting
//! callers in the order in which they came, and no list of them is needed:
//!
//! ```text
//!     accrued(now)         accrued(now) + capacity                             word
//! ─────────┼───── granted, due ───────┼── due soon ──┬── due later ──┬── due last ─┤
//!          └──────── capacity ─────────┘            mark            mark          mark
//! ```
//!
//! # Why the bound holds
//!
//! Each permit has a place of its own in the word, `permit` units long. The places of one
//! reservation are adjacent and span at most `capacity`. The reservation is due at the first tick
//! `t` at which `accrued(t) + capacity` reaches the top of its highest place, so all of its places
//! lie between `accrued(t)` and `accrued(t) + capacity`. The permits that become due in `[a, b]`
//! therefore have places between `accrued(a)` and `accrued(b) + capacity`, and these hold `burst +
//! rate * (b - a)` permits.
//!
//! # What a cancellation gives back
//!
//! - The last reservation in line returns all permits that are cancelled. Its places are free, and
//!   the next caller gets them. If it keeps some permits, they keep the lowest places, so they are
//!   due sooner.
//! - A reservation in the middle returns nothing while any caller waits. The callers after it
//!   already know when they are due, so their places can't move down. If the word were lowered
//!   anyway, the next caller would get a place that another caller already has, and both would go
//!   at the same tick. The cancelled permits are lost, but only once, and no caller goes early.
//! - While no caller waits, every reservation in the word is due, and places move down as for any
//!   `undo`.

use super::{Accrual, Pace};
use crate::algorithm::can_leave_the_line;
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

impl<M: Accrual + PartialEq> Pace<M> {
    #[inline(always)]
    pub(crate) fn reserve(
        &self,
        word: u64,
        now: Tick,
        n: u64,
        latest: Tick,
    ) -> Result<(u64, Granted), Denied> {
        if n > self.burst.get() {
            return Err(Denied::never(n, self.burst.get()));
        }
        let accrued = self.accrued(now);
        if word <= accrued + self.headroom(n) {
            return Ok(self.granted_at(word, accrued, now, n));
        }
        self.reserve_later(word, now, n, latest)
    }

    #[cold]
    fn reserve_later(
        &self,
        word: u64,
        now: Tick,
        n: u64,
        latest: Tick,
    ) -> Result<(u64, Granted), Denied> {
        let due = self.accrual.tick_of(word.saturating_sub(self.headroom(n)));
        if due > self.accrual.horizon() {
            return Err(Denied::stuck(n));
        }
        let due = Tick::from_nanos(due);
        if due > latest {
            return Err(Denied::later(n, due.saturating_since(latest)));
        }
        let (next, granted) = self.granted_at(word, self.accrued(due), now, n);
        Ok((next, granted.with_ready_at(due)))
    }

    /// Returns the next word, and the grant of permits that are available once `accrued` units have
    /// accrued.
    #[inline(always)]
    fn granted_at(&self, word: u64, accrued: u64, now: Tick, n: u64) -> (u64, Granted) {
        let next = if n == 0 {
            word
        } else {
            word.max(accrued) + n * self.permit.get()
        };
        (next, self.granted(next, accrued, now, n))
    }

    /// Returns how many permits are taken but not yet due, rounded up.
    #[inline]
    pub(crate) fn waiting(&self, word: u64, now: Tick) -> u64 {
        self.waiting_of(self.capacity, word, now)
    }

    /// Counts as [`waiting`](Self::waiting) does, where a permit is due once it is at most
    /// `at_once` units above the clock.
    #[inline]
    pub(crate) fn waiting_of(&self, at_once: u64, word: u64, now: Tick) -> u64 {
        let due = self.accrued(now).saturating_add(at_once.min(self.capacity));
        word.saturating_sub(due).div_ceil(self.permit.get())
    }

    /// Returns the tick at which this many units have accrued, if it is not past the horizon.
    pub(crate) fn tick_of(&self, units: u64) -> Option<Tick> {
        let tick = self.accrual.tick_of(units);
        (tick <= self.accrual.horizon()).then(|| Tick::from_nanos(tick))
    }

    /// Gives back the last `n` permits of a reservation, or as many of them as possible. Returns
    /// the next word, the rest of the reservation, and how many permits were returned, rounded up.
    #[inline]
    pub(crate) fn cancel(
        &self,
        word: u64,
        now: Tick,
        granted: &Granted,
        n: u64,
    ) -> (u64, Granted, u64) {
        self.cancel_of(self.capacity, word, now, granted, n)
    }

    /// Gives back a grant that no caller used, but nothing while a caller waits behind it.
    #[inline]
    pub(crate) fn roll_back(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let (next, _, back) = self.cancel(word, now, granted, granted.n());
        (next, back)
    }

    /// Cancels as [`cancel`](Self::cancel) does, where a reservation is due once it is at most
    /// `at_once` units above the clock.
    pub(crate) fn cancel_of(
        &self,
        at_once: u64,
        word: u64,
        now: Tick,
        granted: &Granted,
        n: u64,
    ) -> (u64, Granted, u64) {
        let at_once = at_once.min(self.capacity);
        // The caller's tick may be older than the grant's. Use the later one.
        let now = now.max(granted.at());
        let accrued = self.accrued(now);
        let n = n.min(granted.n());
        let kept = granted.again().with_n(granted.n() - n);
        let is_last = word == granted.mark();
        let someone_waits = word > accrued.saturating_add(at_once);
        // A reset, or an `undo` of a reservation that was still waiting, has lowered the word.
        // Other reservations may have the places of this one now.
        let waited = granted.mark() > accrued.saturating_add(at_once);
        let is_gone = waited && word < granted.mark();
        if is_gone || someone_waits && !can_leave_the_line(is_last) {
            return (word, kept, 0);
        }
        let units = n.saturating_mul(self.permit.get());
        let ahead = granted.mark().saturating_sub(accrued);
        let (next, back) = self.give_back(word, accrued, units.min(ahead));
        if !(someone_waits && is_last) {
            return (next, kept, back);
        }
        // The permits that are kept move to lower places, and become due when these places do.
        let due = Tick::from_nanos(self.accrual.tick_of(next.saturating_sub(at_once)));
        let due = due.max(now).min(granted.due());
        (next, kept.with_mark(next).with_ready_at(due), back)
    }
}
