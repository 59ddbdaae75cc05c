//! The step that all one-word windows share: they count the permits of a window, and drop the count
//! when the window ends.
//!
//! A window algorithm implements [`WindowCount`], which reads its word; [`Counting`] does the rest.

mod reserve;

use core::num::NonZeroU64;
use core::time::Duration;

use crate::algorithm::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Rebase, Reserve};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};

/// The contents of a word at a tick.
#[derive(Debug, Clone, Copy)]
pub(in crate::algorithm) struct Seen<M = ()> {
    /// The word, brought forward to the current window.
    pub(in crate::algorithm) word: u64,
    /// How many permits are counted.
    pub(in crate::algorithm) count: u64,
    /// The other contents of the word, which depend on the algorithm.
    pub(in crate::algorithm) more: M,
}

impl<M> Seen<M> {
    /// Returns the same contents with `n` more permits.
    #[inline(always)]
    fn with(self, n: u64) -> Self {
        Self {
            count: self.count + n,
            ..self
        }
    }
}

/// How a word counts permits that are reserved for later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::algorithm) enum Reservations {
    /// It can't count them.
    None,
    /// In the window in which they are due, which the word is moved to.
    InTheirWindow,
    /// As debt, which the next refills pay.
    AsDebt,
}

/// A window algorithm whose word has the count of permits in its lowest bits.
pub(in crate::algorithm) trait WindowCount {
    /// The contents of the word apart from the count.
    type More: Copy;

    /// Reads the word at this tick.
    fn see(&self, word: u64, now: Tick) -> Seen<Self::More>;

    /// Reads the word as [`see`](Self::see) does, if it is in the current window and reading it
    /// takes no division.
    fn see_fast(&self, word: u64, now: Tick) -> Option<Seen<Self::More>>;

    /// Returns the most permits that can be counted without debt.
    fn limit(&self) -> NonZeroU64;

    /// Returns the largest count that the word can hold.
    fn most(&self, seen: Seen<Self::More>) -> u64;

    /// Returns how many more permits fit.
    #[inline(always)]
    fn free(&self, seen: Seen<Self::More>) -> u64 {
        self.limit().get().saturating_sub(seen.count)
    }

    /// Returns whether the count is within the limit.
    #[inline(always)]
    fn is_within(&self, seen: Seen<Self::More>) -> bool {
        seen.count <= self.limit().get()
    }

    /// Returns how many permits are counted above the limit, rounded up.
    #[inline(always)]
    fn debt(&self, seen: Seen<Self::More>) -> u64 {
        seen.count.saturating_sub(self.limit().get())
    }

    /// Returns how many permits are counted, with their fraction.
    #[inline(always)]
    fn level(&self, seen: Seen<Self::More>) -> Level {
        Level::of_permits(seen.count)
    }

    /// Returns when `n` more permits will fit, given that they do not fit now. Returns `None` if
    /// the clock ends before that.
    fn fits_at(&self, seen: Seen<Self::More>, now: Tick, n: u64) -> Option<Tick>;

    /// Returns when no permit is counted any longer, or `None` if none is counted now.
    fn forgotten_at(&self, seen: Seen<Self::More>) -> Option<Tick>;

    /// Returns the tick at which permits are counted: now, or the beginning of the word's window if
    /// that is later.
    fn counted_at(&self, word: u64, seen: Seen<Self::More>, now: Tick) -> Tick;

    /// Returns how many permits of this grant are still counted. The oldest permits are refilled
    /// first.
    #[inline]
    fn left_of(&self, seen: Seen<Self::More>, granted: &Granted) -> u64 {
        let place = self.place_of(seen, granted);
        place.map_or(0, |place| granted.n().min(place))
    }

    /// Returns how permits that are due later are counted. See [`Reservations`].
    fn reservations(&self) -> Reservations {
        Reservations::None
    }

    /// Returns the count up to which permits of this grant are counted: its last permit has this
    /// place. Returns `None` if none of them is counted any longer.
    fn place_of(&self, seen: Seen<Self::More>, granted: &Granted) -> Option<u64>;

    /// Returns the contents at the tick `due`, to which `n` permits that are due then are added.
    fn until(&self, seen: Seen<Self::More>, n: u64, due: Tick) -> Seen<Self::More> {
        let _ = n;
        self.see(seen.word, due)
    }

    /// Returns the lowest count at which no caller with this tick is granted a permit of a later
    /// window. If the word is in no later window, this is 0.
    fn least_count(&self, seen: Seen<Self::More>, now: Tick) -> u64 {
        let _ = (seen, now);
        0
    }

    /// Returns whether the word is idle.
    fn is_idle(&self, word: u64, seen: Seen<Self::More>, now: Tick) -> bool;

    /// See [`Algorithm::initial_word`].
    #[inline]
    fn initial_word(&self, now: Tick) -> u64 {
        let _ = now;
        0
    }

    /// See [`Rebase::rebase`].
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64;
}

/// The algorithm of a [`WindowCount`].
#[derive(Debug)]
pub(in crate::algorithm) struct Counting<'w, W>(pub(in crate::algorithm) &'w W);

impl<W: WindowCount> Counting<'_, W> {
    #[inline(always)]
    fn decide(
        &self,
        word: u64,
        seen: Seen<W::More>,
        now: Tick,
        n: u64,
    ) -> Result<(u64, Granted), Denied> {
        let limit = self.0.limit().get();
        if n > limit {
            return Err(Denied::never(n, limit));
        }
        if !self.0.is_within(seen.with(n)) {
            return Err(match self.0.fits_at(seen, now, n) {
                Some(due) => Denied::later(n, due.saturating_since(now)),
                None => Denied::stuck(n),
            });
        }
        Ok(self.granted(word, seen, now, n))
    }

    /// Returns the next word and the grant of `n` permits, which must fit.
    #[inline(always)]
    fn granted(&self, word: u64, seen: Seen<W::More>, now: Tick, n: u64) -> (u64, Granted) {
        let (next, then) = (self.next(word, seen, n), seen.with(n));
        let granted = Granted::new(n, self.0.counted_at(word, seen, now))
            .with_remaining(self.0.free(then), NonZeroU64::MIN)
            .with_mark(next);
        match self.0.forgotten_at(then) {
            Some(tick) => (next, granted.with_reset_at(tick)),
            None => (next, granted),
        }
    }

    /// Returns the word with `n` more permits. The caller ensures that the count can hold them.
    #[inline(always)]
    fn next(&self, word: u64, seen: Seen<W::More>, n: u64) -> u64 {
        match n {
            0 => word,
            n => seen.word + n,
        }
    }

    #[inline]
    fn give_back(&self, word: u64, seen: Seen<W::More>, n: u64) -> (u64, u64) {
        match n.min(seen.count) {
            0 => (word, 0),
            n => (seen.word - n, n),
        }
    }
}

impl<W: WindowCount> Algorithm for Counting<'_, W> {
    #[inline(always)]
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.decide(word, self.0.see(word, now), now, n)
    }

    #[inline(always)]
    fn step_fast(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        Some(self.decide(word, self.0.see_fast(word, now)?, now, n))
    }

    #[inline]
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.0.free(self.0.see(word, now))
    }

    #[inline]
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        self.0.is_idle(word, self.0.see(word, now), now)
    }

    #[inline]
    fn idle_at(&self, word: u64, now: Tick) -> Tick {
        let Some(due) = self.due(word, now, self.0.limit().get()) else {
            return Tick::MAX;
        };
        // When the whole limit fits, a fraction of a permit may still be counted, and the word's
        // window may still be in the future.
        let seen = self.0.see(word, now);
        let forgotten = self.0.forgotten_at(seen);
        due.max(forgotten.unwrap_or_else(|| self.0.counted_at(word, seen, now)))
    }

    #[inline]
    fn initial_word(&self, now: Tick) -> u64 {
        self.0.initial_word(now)
    }

    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let seen = self.0.see(word, now);
        self.granted(word, seen, now, n.min(self.0.free(seen)))
    }
}

impl<W: WindowCount> GiveBack for Counting<'_, W> {
    #[inline]
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let seen = self.0.see(word, now);
        self.give_back(word, seen, self.0.left_of(seen, granted))
    }

    #[inline]
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.give_back(word, self.0.see(word, now), n)
    }

    #[inline]
    fn roll_back(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let (next, _, back) = self.cancel(word, now, granted, granted.n());
        (next, back)
    }
}

impl<W: WindowCount> Debt for Counting<'_, W> {
    #[inline]
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        let seen = self.0.see(word, now);
        let n = n.min(self.0.most(seen).saturating_sub(seen.count));
        let then = seen.with(n);
        let debt = self.0.debt(then);
        let clear_after = match self.0.fits_at(then, now, 0) {
            _ if debt == 0 => Duration::ZERO,
            Some(tick) => tick.saturating_since(now),
            None => Duration::MAX,
        };
        let charged = Charged::new(n, self.0.counted_at(word, seen, now));
        let next = self.next(word, seen, n);
        (next, charged.with_debt(debt, clear_after))
    }
}

impl<W: WindowCount> Forecast for Counting<'_, W> {
    #[inline]
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        if n > self.0.limit().get() {
            return None;
        }
        let seen = self.0.see(word, now);
        match self.0.is_within(seen.with(n)) {
            true => Some(now),
            false => self.0.fits_at(seen, now, n),
        }
    }
}

impl<W: WindowCount> Rebase for Counting<'_, W> {
    #[inline]
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        self.0.rebase(word, from, to)
    }
}

impl<W: WindowCount> Gauge for Counting<'_, W> {
    #[inline]
    fn level(&self, word: u64, now: Tick) -> Level {
        self.0.level(self.0.see(word, now))
    }
}
