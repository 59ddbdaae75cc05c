//! How a sliding window reads and changes its word.

use core::num::NonZeroU64;

use super::SlidingWindow;
use crate::algorithm::Level;
use crate::algorithm::carry::{CarriedCounts, Recount};
use crate::algorithm::counting::{self, Reservations, WindowCount};
use crate::clock::Tick;
use crate::outcome::Granted;

/// The contents of a word apart from the count of its window.
#[derive(Debug, Clone, Copy)]
pub(in crate::algorithm) struct Before {
    /// The count of the previous window.
    count: u64,
    /// How much of the window is left: from a whole period down to a nanosecond.
    left: u64,
}

type Seen = counting::Seen<Before>;

impl SlidingWindow {
    #[inline(always)]
    const fn window(&self, word: u64) -> u64 {
        word >> (2 * self.bits)
    }

    /// Returns the word brought forward to `now`, and how long ago its window began. This is 0 if a
    /// caller with a later tick began the window.
    #[inline(always)]
    fn settled(&self, word: u64, now: Tick) -> (u64, u64) {
        match self.grid.elapsed_in(self.window(word), now) {
            Some(elapsed) => (word, elapsed),
            None => self.elsewhere(word, now),
        }
    }

    /// Brings forward a word that is not in the current window.
    #[cold]
    #[inline(never)]
    fn elsewhere(&self, word: u64, now: Tick) -> (u64, u64) {
        let place = self.grid.place(now);
        let settled = match place.index.checked_sub(self.window(word)) {
            // The algorithm never writes the last number, but a word from elsewhere may hold it.
            // Treat such a word as full, so that it can't become all ones.
            None if self.window(word) > self.grid.last_index() => return (word | self.most, 0),
            None => return (word, 0),
            Some(0) => word,
            Some(1) => (place.index << self.bits | word & self.most) << self.bits,
            Some(_) => place.index << (2 * self.bits),
        };
        (settled, place.elapsed)
    }

    #[inline(always)]
    fn seen(&self, word: u64, elapsed: u64) -> Seen {
        Seen {
            word,
            count: word & self.most,
            more: Before {
                count: (word >> self.bits) & self.most,
                left: self.grid.period().get() - elapsed,
            },
        }
    }

    /// Returns the weight of `permits` permits of the current window.
    #[inline(always)]
    fn weight(&self, permits: u64) -> u128 {
        u128::from(permits) * u128::from(self.grid.period().get())
    }

    /// Returns the weight of all permits that are counted.
    #[inline(always)]
    fn weighed(&self, seen: Seen) -> u128 {
        u128::from(seen.more.count) * u128::from(seen.more.left) + self.weight(seen.count)
    }

    /// Returns the largest weight that all counted permits may have together.
    #[inline(always)]
    fn allowed(&self) -> u128 {
        let (lower, upper) = self.allowed;
        u128::from(upper) << 64 | u128::from(lower)
    }

    /// Returns the largest remainder of a window at which `count` permits fit in it, after `before`
    /// permits in the previous window. Returns `None` if `count` never fits.
    #[inline]
    fn most_left(&self, before: u64, count: u64) -> Option<u64> {
        let rest = self.allowed().checked_sub(self.weight(count))?;
        let period = self.grid.period().get();
        let left = rest.checked_div(before.into()).unwrap_or(u128::MAX);
        Some(u64::try_from(left).map_or(period, |left| left.min(period)))
    }
}

impl WindowCount for SlidingWindow {
    type More = Before;

    #[inline(always)]
    fn see(&self, word: u64, now: Tick) -> Seen {
        let (settled, elapsed) = self.settled(word, now);
        self.seen(settled, elapsed)
    }

    #[inline(always)]
    fn see_fast(&self, word: u64, now: Tick) -> Option<Seen> {
        let elapsed = self.grid.elapsed_in(self.window(word), now)?;
        Some(self.seen(word, elapsed))
    }

    #[inline(always)]
    fn limit(&self) -> NonZeroU64 {
        self.limit
    }

    #[inline(always)]
    fn most(&self, _seen: Seen) -> u64 {
        self.most
    }

    #[inline]
    fn free(&self, seen: Seen) -> u64 {
        let free = self.allowed().saturating_sub(self.weighed(seen));
        let free = free / u128::from(self.grid.period().get());
        // The room is at most the limit, because rounding down leaves out less than a permit.
        u64::try_from(free).unwrap_or(self.limit.get())
    }

    #[inline(always)]
    fn is_within(&self, seen: Seen) -> bool {
        self.weighed(seen) <= self.allowed()
    }

    #[inline]
    fn debt(&self, seen: Seen) -> u64 {
        let debt = self.weighed(seen).saturating_sub(self.allowed());
        let debt = debt.div_ceil(u128::from(self.grid.period().get()));
        u64::try_from(debt).unwrap_or(u64::MAX)
    }

    #[inline]
    fn level(&self, seen: Seen) -> Level {
        Level::of_units(self.weighed(seen), self.grid.period())
    }

    /// Returns the first tick at which the request fits. This is in the current window, once less
    /// of it is left; or in the next window, where this window's count is weighted; or in the
    /// window after that, where both counts are 0.
    #[inline]
    fn fits_at(&self, seen: Seen, now: Tick, n: u64) -> Option<Tick> {
        let index = self.window(seen.word);
        let this = (index, seen.more.count, seen.count.saturating_add(n));
        let next = (index + 1, seen.count, n);
        for (index, before, count) in [this, next] {
            let left = self.most_left(before, count).unwrap_or(0);
            if left > 0 {
                let tick = self.grid.tick_in(index, self.grid.period().get() - left)?;
                return Some(now.max(Tick::from_nanos(tick)));
            }
        }
        let start = self.grid.reachable_start_of(index + 2)?;
        Some(now.max(Tick::from_nanos(start)))
    }

    #[inline]
    fn forgotten_at(&self, seen: Seen) -> Option<Tick> {
        let windows = match (seen.count, seen.more.count) {
            (0, 0) => return None,
            (0, _) => 1,
            _ => 2,
        };
        let start = self.grid.start_of(self.window(seen.word) + windows);
        Some(Tick::from_nanos(start))
    }

    #[inline(always)]
    fn counted_at(&self, _word: u64, seen: Seen, now: Tick) -> Tick {
        now.max(Tick::from_nanos(self.grid.start_of(self.window(seen.word))))
    }

    /// Returns `None` if the grant's window is over, by the clock or because the word is in a later
    /// window.
    #[inline]
    fn place_of(&self, seen: Seen, granted: &Granted) -> Option<u64> {
        let is_same = self.window(granted.mark()) == self.window(seen.word);
        is_same.then_some(granted.mark() & self.most)
    }

    fn reservations(&self) -> Reservations {
        Reservations::InTheirWindow
    }

    /// At the beginning of a window the previous one has its full weight. So callers whose tick is
    /// before that window get nothing while the two counts together capacity the limit.
    fn least_count(&self, seen: Seen, now: Tick) -> u64 {
        match self.window(seen.word) > self.grid.place(now).index {
            true => self.limit.get().saturating_sub(seen.more.count),
            false => 0,
        }
    }

    #[inline]
    fn is_idle(&self, _word: u64, seen: Seen, now: Tick) -> bool {
        let is_empty = seen.more.count == 0 && seen.count == 0;
        is_empty && self.window(seen.word) <= self.grid.place(now).index
    }

    /// Keeps the counts as they are if both clocks are equally far into their windows. Otherwise
    /// the current weight, rounded up, becomes the count of the other clock's window, because the
    /// two windows overlap differently with the last period. Permits counted in a later window stay
    /// counted in that window, or in the next one if it would end earlier.
    #[inline]
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        let seen = self.see(word, from);
        let (old, new) = (self.grid.place(from), self.grid.place(to));
        let ahead = self.window(seen.word).saturating_sub(old.index);
        let level = WindowCount::level(self, seen).ceil().min(self.most);
        // A window that is later than the current one must not end earlier than before.
        let later = ahead + u64::from(ahead > 0 && self.grid.ends_earlier(from, to));
        let index = new.index.saturating_add(later);
        let is_told = index <= self.grid.last_index();
        let (before, count) = if from == to {
            return word;
        } else if level == 0 {
            return 0;
        } else if old.elapsed == new.elapsed && is_told {
            (seen.more.count, seen.count)
        } else {
            (0, level)
        };
        let index = index.min(self.grid.last_index());
        (index << self.bits | before) << self.bits | count
    }
}

/// Carries both counts over if the windows are the same.
impl Recount for SlidingWindow {
    fn recount(&self, word: u64, now: Tick, next: &Self, counts: CarriedCounts) -> Option<u64> {
        let same = self.grid.period() == next.grid.period() && self.grid.lead() == next.grid.lead();
        let seen = self.see(word, now);
        let window = self.window(seen.word);
        if !same || window > next.grid.last_index() {
            return None;
        }
        let (limit, then) = (self.limit.get(), next.limit.get());
        let before = counts.before(seen.more.count, limit, then).min(next.most);
        let count = counts.current(seen.count, limit, then).min(next.most);
        let word = ((window << next.bits | before) << next.bits) | count;
        // A word without counts is fresh.
        Some(if before == 0 && count == 0 { 0 } else { word })
    }
}
