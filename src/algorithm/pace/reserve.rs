//! Permits that are taken before they are there.
//!
//! A reservation is a grant whose tick is still to come: the word is raised as by any grant, and by
//! how far it stands above the clock then, the permits are due later. So those who wait stand in
//! the word one above the other, in the order in which they came, and there is no list of them:
//!
//! ```text
//!      made(now)              made(now) + reach                                 word
//! ─────────┼───── granted, due ───────┼── due soon ──┬── due later ──┬── due last ─┤
//!          └────────── reach ─────────┘            mark            mark          mark
//! ```
//!
//! # Why the bound holds
//!
//! Each permit has a place of its own in the word, `unit` long, and goes at a tick `t` for which
//! `made(t) + reach` is not below the top of its place, and not above its bottom by more than
//! `reach`: the places of one reservation are side by side, at most `reach` in all, and it is due
//! when the clock reaches its top. So those who go in `[a, b]` have places between `made(a)` and
//! `made(b) + reach`, and these hold `burst + rate * (b - a)` permits.
//!
//! # What comes back of one that is cancelled
//!
//! Of the last in line, all: its places are free, and the next one gets them. (If it keeps some,
//! these are the lowest of them, and it is due the sooner.) Of one in the middle nothing, while
//! anybody waits. Those after it have been told when to go, and go then, so their places can't move
//! down; if the word were lowered all the same, who comes next would be given a place that is
//! another's, and at that one's tick both would go. What is lost so is lost once, and nobody is
//! early for it. When nobody waits, all who are in the word have gone, and places move down as for
//! any `undo`.

use super::{Meter, Pace};
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};
use crate::sync::inject_fault;

impl<M: Meter + PartialEq> Pace<M> {
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
        let made = self.made(now);
        if word <= made + self.slack(n) {
            return Ok(self.granted_at(word, made, now, n));
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
        let due = self.meter.tick_of(word.saturating_sub(self.slack(n)));
        if due > self.meter.horizon() {
            return Err(Denied::stuck(n));
        }
        let due = Tick::from_nanos(due);
        if due > latest {
            return Err(Denied::later(n, due.saturating_since(latest)));
        }
        let (next, granted) = self.granted_at(word, self.made(due), now, n);
        Ok((next, granted.with_ready_at(due)))
    }

    /// The grant of permits that are there when the clock has made so many units.
    #[inline(always)]
    fn granted_at(&self, word: u64, made: u64, now: Tick, n: u64) -> (u64, Granted) {
        let next = if n == 0 {
            word
        } else {
            word.max(made + self.round) + n * self.unit.get()
        };
        (next, self.granted(next, made, now, n))
    }

    /// How many permits were taken that are not due yet, a started one counted whole, where who is
    /// due stands no more than `at_once` units above the clock.
    #[inline]
    pub(crate) fn waiting(&self, at_once: u64, word: u64, now: Tick) -> u64 {
        // As of debt: a full burst that was taken at once from an idle bucket does not wait.
        let due = self.made(now).saturating_add(self.round);
        let due = due.saturating_add(at_once.min(self.reach));
        word.saturating_sub(due).div_ceil(self.unit.get())
    }

    /// The tick at which the clock has made so many units, if it will.
    pub(crate) fn tick_of(&self, units: u64) -> Option<Tick> {
        let tick = self.meter.tick_of(units);
        (tick <= self.meter.horizon()).then(|| Tick::from_nanos(tick))
    }

    /// Gives back what can be of the last `n` permits of a reservation: the next word, what is kept
    /// of it, and how many came back, a part of one counted whole.
    #[inline]
    pub(crate) fn cancel(
        &self,
        word: u64,
        now: Tick,
        granted: &Granted,
        n: u64,
    ) -> (u64, Granted, u64) {
        self.cancel_of(self.reach, word, now, granted, n)
    }

    /// The same where who is due stands no more than `at_once` units above the clock.
    pub(crate) fn cancel_of(
        &self,
        at_once: u64,
        word: u64,
        now: Tick,
        granted: &Granted,
        n: u64,
    ) -> (u64, Granted, u64) {
        let at_once = at_once.min(self.reach);
        // A caller whose tick is older than that of the grant does not turn time back.
        let now = now.max(granted.at());
        let made = self.made(now);
        let base = made + self.round;
        let n = n.min(granted.n());
        let kept = granted.again().with_n(granted.n() - n);
        let is_last = word == granted.mark();
        let someone_waits = word > made.saturating_add(at_once);
        // A reset, or who gave back although it waits, has lowered the word: its places are others'
        // by now.
        let waited = granted.mark() > made.saturating_add(at_once);
        let is_gone = waited && word < granted.mark();
        if is_gone || someone_waits && !is_last && !inject_fault!(CancelsInTheMiddle) {
            return (word, kept, 0);
        }
        let units = n.saturating_mul(self.unit.get());
        let ahead = granted.mark().saturating_sub(base);
        let (next, back) = self.give_back(word, base, units.min(ahead));
        if !(someone_waits && is_last) {
            return (next, kept, back);
        }
        // What is kept has other places, and is due when they are.
        let due = Tick::from_nanos(self.meter.tick_of(next.saturating_sub(at_once)));
        let due = due.max(now).min(granted.due());
        (next, kept.with_mark(next).with_ready_at(due), back)
    }
}
