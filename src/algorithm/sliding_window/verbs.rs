//! What a sliding window does with a word.

use core::num::NonZeroU64;
use core::time::Duration;

use super::super::{Algorithm, Debt, Forecast, Gauge, GiveBack, Level, Rebase};
use super::SlidingWindow;
use crate::algorithm::carry::{CarriedCounts, Recount};
use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};

/// What a word says at a tick.
#[derive(Clone, Copy)]
struct Unpacked {
    /// The word as it stands now.
    settled: u64,
    before: u64,
    count: u64,
    /// What is left of the window: from a whole period down to a nanosecond.
    left: u64,
}

impl SlidingWindow {
    #[inline(always)]
    const fn window(&self, word: u64) -> u64 {
        word >> (2 * self.bits)
    }

    /// The word as it stands now, and how long ago its window began: not at all, if somebody with a
    /// later tick began it.
    #[inline(always)]
    fn settled(&self, word: u64, now: Tick) -> (u64, u64) {
        match self.grid.elapsed_in(self.window(word), now) {
            Some(elapsed) => (word, elapsed),
            None => self.elsewhere(word, now),
        }
    }

    /// A word of another window than the clock's.
    #[cold]
    #[inline(never)]
    fn elsewhere(&self, word: u64, now: Tick) -> (u64, u64) {
        let place = self.grid.place(now);
        let settled = match place.index.checked_sub(self.window(word)) {
            // No window of ours is the last number, but a word may be anything: it is full, so that
            // it can't become all ones.
            None if self.window(word) > self.grid.last_index() => return (word | self.most, 0),
            None => return (word, 0),
            Some(0) => word,
            Some(1) => (place.index << self.bits | word & self.most) << self.bits,
            Some(_) => place.index << (2 * self.bits),
        };
        (settled, place.elapsed)
    }

    #[inline(always)]
    fn view(&self, word: u64, now: Tick) -> Unpacked {
        let (settled, elapsed) = self.settled(word, now);
        self.viewed(settled, elapsed)
    }

    #[inline(always)]
    fn viewed(&self, settled: u64, elapsed: u64) -> Unpacked {
        Unpacked {
            settled,
            before: (settled >> self.bits) & self.most,
            count: settled & self.most,
            left: self.grid.period().get() - elapsed,
        }
    }

    /// When permits count: now, or at the beginning of a window that is ahead.
    #[inline(always)]
    fn counted_at(&self, view: Unpacked, now: Tick) -> Tick {
        let start = self.grid.start_of(self.window(view.settled));
        now.max(Tick::from_nanos(start))
    }

    /// What so many permits weigh.
    #[inline(always)]
    fn weight(&self, permits: u64) -> u128 {
        u128::from(permits) * u128::from(self.grid.period().get())
    }

    /// What all that is counted weighs.
    #[inline(always)]
    fn weighed(&self, view: Unpacked) -> u128 {
        u128::from(view.before) * u128::from(view.left) + self.weight(view.count)
    }

    /// What it may weigh.
    #[inline(always)]
    fn allowed(&self) -> u128 {
        let (lower, upper) = self.allowed;
        u128::from(upper) << 64 | u128::from(lower)
    }

    /// How many more there are room for.
    #[inline]
    fn room(&self, view: Unpacked) -> u64 {
        let room = self.allowed().saturating_sub(self.weighed(view));
        let room = room / u128::from(self.grid.period().get());
        // No more than the limit, since rounding down leaves out less than a permit.
        u64::try_from(room).unwrap_or(self.limit.get())
    }

    /// How much may be left of a window in which there are so many permits, after so many in the
    /// one before; `None` if they are too many at all times.
    #[inline]
    fn most_left(&self, before: u64, count: u64) -> Option<u64> {
        let rest = self.allowed().checked_sub(self.weight(count))?;
        let period = self.grid.period().get();
        let left = rest.checked_div(before.into()).unwrap_or(u128::MAX);
        Some(u64::try_from(left).map_or(period, |left| left.min(period)))
    }

    /// When `n` more will fit, if they don't now; `None` if the clock does not get there.
    #[inline]
    fn fits_at(&self, view: Unpacked, now: Tick, n: u64) -> Option<Tick> {
        // In this window, when less of the one before is left, or in the next one, where this one's
        // count weighs, or in the one after that, where nothing does.
        let index = self.window(view.settled);
        let this = (index, view.before, view.count.saturating_add(n));
        let next = (index + 1, view.count, n);
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

    /// When nothing that is counted weighs any more.
    #[inline]
    fn forgotten_at(&self, view: Unpacked, count: u64) -> u64 {
        match (count, view.before) {
            (0, 0) => 0,
            (0, _) => self.grid.start_of(self.window(view.settled) + 1),
            _ => self.grid.start_of(self.window(view.settled) + 2),
        }
    }

    #[inline]
    fn give_back(&self, word: u64, view: Unpacked, n: u64) -> (u64, u64) {
        match n.min(view.count) {
            0 => (word, 0),
            n => (view.settled - n, n),
        }
    }

    /// The decision on a word that is seen so.
    #[inline(always)]
    fn decide(
        &self,
        word: u64,
        view: Unpacked,
        now: Tick,
        n: u64,
    ) -> Result<(u64, Granted), Denied> {
        if n > self.limit.get() {
            return Err(Denied::never(n, self.limit.get()));
        }
        let then = Unpacked {
            count: view.count + n,
            ..view
        };
        if self.weighed(then) > self.allowed() {
            return Err(match self.fits_at(view, now, n) {
                Some(due) => Denied::later(n, due.saturating_since(now)),
                None => Denied::stuck(n),
            });
        }
        Ok(self.granted(word, view, now, n))
    }

    /// The next word and the grant of `n` permits, for which there is room.
    #[inline(always)]
    fn granted(&self, word: u64, view: Unpacked, now: Tick, n: u64) -> (u64, Granted) {
        let then = Unpacked {
            count: view.count + n,
            ..view
        };
        // The count is at most the limit now, so it carries nothing into its neighbour.
        let next = if n == 0 { word } else { view.settled + n };
        let reset = Tick::from_nanos(self.forgotten_at(view, then.count));
        let granted = Granted::new(n, self.counted_at(view, now))
            .with_room(self.room(then), NonZeroU64::MIN)
            .with_reset_at(reset)
            .with_mark(next);
        (next, granted)
    }
}

impl Algorithm for SlidingWindow {
    #[inline(always)]
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
        self.decide(word, self.view(word, now), now, n)
    }

    #[inline(always)]
    fn short_step(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        let elapsed = self.grid.elapsed_in(self.window(word), now)?;
        Some(self.decide(word, self.viewed(word, elapsed), now, n))
    }

    #[inline]
    fn available(&self, word: u64, now: Tick) -> u64 {
        self.room(self.view(word, now))
    }

    #[inline]
    fn is_idle(&self, word: u64, now: Tick) -> bool {
        let view = self.view(word, now);
        view.before == 0
            && view.count == 0
            && self.window(view.settled) <= self.grid.place(now).index
    }

    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let view = self.view(word, now);
        self.granted(word, view, now, n.min(self.room(view)))
    }
}

impl GiveBack for SlidingWindow {
    #[inline]
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        let view = self.view(word, now);
        // Its window is over, for the clock or for the word.
        if self.window(granted.mark()) != self.window(view.settled) {
            return (word, 0);
        }
        self.give_back(word, view, granted.n())
    }

    #[inline]
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64) {
        self.give_back(word, self.view(word, now), n)
    }
}

impl Debt for SlidingWindow {
    #[inline]
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged) {
        let view = self.view(word, now);
        let n = n.min(self.most - view.count);
        let next = if n == 0 { word } else { view.settled + n };
        let then = Unpacked {
            count: view.count + n,
            ..view
        };
        let debt = self.weighed(then).saturating_sub(self.allowed());
        let debt = debt.div_ceil(u128::from(self.grid.period().get()));
        let clear_after = match self.fits_at(then, now, 0) {
            _ if debt == 0 => Duration::ZERO,
            Some(tick) => tick.saturating_since(now),
            None => Duration::MAX,
        };
        let debt = u64::try_from(debt).unwrap_or(u64::MAX);
        let charged = Charged::new(n, self.counted_at(view, now));
        (next, charged.with_debt(debt, clear_after))
    }
}

impl Forecast for SlidingWindow {
    #[inline]
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick> {
        if n > self.limit.get() {
            return None;
        }
        let view = self.view(word, now);
        let then = Unpacked {
            count: view.count + n,
            ..view
        };
        if self.weighed(then) <= self.allowed() {
            Some(now)
        } else {
            self.fits_at(view, now, n)
        }
    }
}

impl Rebase for SlidingWindow {
    /// Where as much of a window is over on both clocks, nothing changes. Else what weighs now
    /// counts in the window of the other clock, a part of a permit counted whole: how much of that
    /// window is over says nothing of the old one. What is counted in a window ahead stays counted
    /// there, or in the next one, if it would end earlier.
    #[inline]
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64 {
        let view = self.view(word, from);
        let (old, new) = (self.grid.place(from), self.grid.place(to));
        let ahead = self.window(view.settled).saturating_sub(old.index);
        let level = self.level(word, from).ceil().min(self.most);
        // Of what is ahead, the window would not end earlier.
        let later = ahead + u64::from(ahead > 0 && self.grid.ends_earlier(from, to));
        let index = new.index.saturating_add(later);
        let is_told = index <= self.grid.last_index();
        let (before, count) = if from == to {
            return word;
        } else if level == 0 {
            return 0;
        } else if old.elapsed == new.elapsed && is_told {
            (view.before, view.count)
        } else {
            (0, level)
        };
        let index = index.min(self.grid.last_index());
        (index << self.bits | before) << self.bits | count
    }
}

impl Gauge for SlidingWindow {
    #[inline]
    fn level(&self, word: u64, now: Tick) -> Level {
        Level::of_units(self.weighed(self.view(word, now)), self.grid.period())
    }
}

/// Both counts, where the windows are the same.
impl Recount for SlidingWindow {
    fn recount(&self, word: u64, now: Tick, next: &Self, counts: CarriedCounts) -> Option<u64> {
        let same = self.grid.period() == next.grid.period() && self.grid.lead() == next.grid.lead();
        let view = self.view(word, now);
        let window = self.window(view.settled);
        if !same || window > next.grid.last_index() {
            return None;
        }
        let (limit, then) = (self.limit.get(), next.limit.get());
        let before = counts.before(view.before, limit, then).min(next.most);
        let count = counts.current(view.count, limit, then).min(next.most);
        let word = ((window << next.bits | before) << next.bits) | count;
        // Nothing counted is as good as new.
        Some(if before == 0 && count == 0 { 0 } else { word })
    }
}
