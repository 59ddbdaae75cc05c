//! A sliding window of slots. It is no store of one word: at the end of a slot its count moves to a
//! word of its own, and other threads help. [`shape`] says what its words mean, [`roll`] how it
//! goes from one slot to the next.

mod roll;
mod shape;

use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

use roll::RolledWindow;
use shape::{MAX_SLOTS, SlotLayout};

use crate::algorithm::Level;
use crate::clock::{SystemClock, Tick};
use crate::multiword::verbs::verbs_by_ticks;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{ConfigError, Quota};
use crate::rate_limiter::forms::settle_form;
use crate::sync::{AtomicU64, Backoff};

/// The sliding window of slots: at most `n` permits in the last so many slots of the clock, this
/// one among them.
///
/// A window of a minute in 60 slots slides by the second. (Sentinel calls this a leap array;
/// others, a counter for each second.) One word decides, and the slots' counts are summed once a
/// slot and not once a decision; so a decision costs what it costs in a
/// [`FixedWindow`](crate::FixedWindow). It takes 8 bytes for each slot, rounded up to a power of
/// two.
///
/// **Bound.** At most `n` permits in any so many slots that follow each other, for any number of
/// threads, at the ticks at which they were counted ([`Granted::at`]): so at most `n` in every
/// interval that is shorter than the window by a slot, and at most `2 * n` in one of the window's
/// length. The sum is checked and raised in one exchange: it never exceeds the limit, also while
/// threads whose clocks differ go on to a new slot.
///
/// A caller with an older tick than the slot that the word is in is counted in that slot, at its
/// beginning. What is [undone](Self::undo) after the grant's slot is over does not come back: it
/// has been summed. What is [charged](Self::charge) counts in the current slot and may exceed the
/// limit, into debt, until it has left the window.
///
/// How large `n` may be depends on how long a slot is: up to 67 108 863 for a second in 50 slots.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{ManualClock, Quota, SlottedWindow};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = ManualClock::new();
/// let limiter = SlottedWindow::with_clock(Quota::per_minute(100), 60, clock.clone())?;
/// clock.advance(Duration::from_secs(59));
/// limiter.try_acquire_n(100)?;
/// clock.advance(Duration::from_secs(59)); // another minute, but only 59 slots later
/// let denied = limiter.try_acquire().unwrap_err();
/// assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
/// clock.advance(Duration::from_secs(1));
/// assert_eq!(limiter.available(), 100);
/// # Ok(())
/// # }
/// ```
#[repr(C)]
pub struct SlottedWindow<C = SystemClock> {
    // The word first, and next to it the parameters that every decision reads.
    word: AtomicU64,
    shape: SlotLayout,
    /// Of the word's slot, how many slots before it the first permits were taken.
    first: AtomicU64,
    ring: Box<[AtomicU64]>,
    quota: Quota,
    clock: C,
}

impl SlottedWindow {
    /// The most slots that a window can have.
    pub const MAX_SLOTS: usize = MAX_SLOTS;

    /// A window as long as the quota's period in so many slots, on the system's clock.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names what can't be represented, and what is allowed: the slots must divide
    /// the period in whole nanoseconds, and there are at most [`MAX_SLOTS`](Self::MAX_SLOTS).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{ConfigError, Quota, SlottedWindow};
    ///
    /// let period = Duration::from_secs(1);
    /// assert_eq!(
    ///     SlottedWindow::new(Quota::per(10, period), 7).unwrap_err(),
    ///     ConfigError::SlotsUneven { slots: 7, period }
    /// );
    /// ```
    pub fn new(quota: Quota, slots: usize) -> Result<Self, ConfigError> {
        Self::with_clock(quota, slots, SystemClock)
    }
}

impl<C> SlottedWindow<C> {
    /// The same on a clock of your own.
    ///
    /// # Errors
    ///
    /// As [`new`](SlottedWindow::new).
    pub fn with_clock(quota: Quota, slots: usize, clock: C) -> Result<Self, ConfigError> {
        let shape = SlotLayout::new(quota, slots)?;
        Ok(Self {
            word: AtomicU64::new(0),
            shape,
            first: AtomicU64::new(0),
            ring: (0..slots.next_power_of_two())
                .map(|_| AtomicU64::new(0))
                .collect(),
            quota,
            clock,
        })
    }

    /// How many slots a window has.
    pub const fn slots(&self) -> usize {
        self.shape.slots as usize
    }

    /// How long a slot is.
    pub const fn slot_length(&self) -> Duration {
        self.shape.slot_length()
    }

    /// How many permits above the limit can be counted: what is charged beyond that is not
    /// recorded.
    pub const fn largest_debt(&self) -> u64 {
        self.shape.most - self.shape.limit
    }

    /// Takes `n` permits, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there.
    #[inline(always)]
    pub fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        let (shape, word) = (&self.shape, self.load());
        let (slot, total) = (shape.slot(word), shape.count(word));
        // In the slot that the word is in, nothing need be summed.
        let is_current = shape.grid.elapsed_in(slot, now).is_some() && !shape.is_frozen(word);
        if is_current && n == 1 {
            // The limit is at least 1. Where it is reached one permit comes with the first slot
            // that leaves.
            if total == shape.limit {
                if let Some(first) = self.first_in(slot) {
                    if let Some(due) = shape.reachable_end(Some(first)) {
                        return Err(Denied::later(1, due.saturating_since(now)));
                    }
                }
            } else if total < shape.limit && self.exchange(word, word + 1) {
                return Ok(self.granted(slot, total + 1, 1, now));
            }
        } else if is_current && n > 0 && n <= shape.limit {
            let total = total + n;
            if total <= shape.limit && self.exchange(word, word + n) {
                return Ok(self.granted(slot, total, n, now));
            }
        }
        self.try_all(n, now)
    }

    #[inline(always)]
    fn granted(&self, slot: u64, total: u64, n: u64, now: Tick) -> Granted {
        let granted = Granted::new(n, self.shape.counted_at(slot, now))
            .with_room(self.shape.limit.saturating_sub(total), NonZeroU64::MIN)
            .with_mark(slot);
        granted.with_reset_at(self.shape.end(slot))
    }

    fn granted_none(&self, view: &RolledWindow, now: Tick) -> Option<Granted> {
        let granted = self.granted(view.slot, view.total, 0, now);
        Some(match self.falls_with(view, 0)? {
            Some(slot) => granted.with_reset_at(self.shape.end(slot)),
            None => granted.with_reset_at(Tick::ZERO),
        })
    }

    /// Decides in whatever state the word is.
    #[cold]
    #[inline(never)]
    fn try_all(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        if n > self.shape.limit {
            return Err(Denied::never(n, self.shape.limit));
        }
        let mut is_first_look = true;
        self.change(now, |view| {
            let total = view.total.saturating_add(n);
            if total > self.shape.limit {
                let slot = self.falls_with(view, self.shape.limit - n)?;
                return Some(Err(match self.shape.reachable_end(slot) {
                    Some(due) => Denied::later(n, due.saturating_since(now)),
                    None => Denied::stuck(n),
                }));
            }
            if n == 0 {
                return Some(Ok(self.granted_none(view, now)?));
            }
            // The attempt before takes permits of the word's own slot: another thread disturbed it.
            if view.slot == self.shape.slot(view.word) && core::mem::take(&mut is_first_look) {
                return None;
            }
            let done = self.advance(view, total);
            done.then(|| Ok(self.granted(view.slot, total, n, now)))
        })
    }

    /// Looks at the word as it stands at `now` until the look was good enough.
    fn change<T>(&self, now: Tick, mut act: impl FnMut(&RolledWindow) -> Option<T>) -> T {
        let mut backoff = Backoff::new();
        loop {
            // What fails here has failed because the word is another one: another thread is done.
            let view = self.view(self.load(), now);
            if let Some(done) = view.and_then(|view| act(&view)) {
                return done;
            }
            backoff.wait();
        }
    }

    /// [`take_up_to`](Self::take_up_to) at this tick.
    #[must_use = "it says how many were there"]
    pub fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
        self.change(now, |view| {
            let n = n.min(self.shape.limit.saturating_sub(view.total));
            if n == 0 {
                return self.granted_none(view, now);
            }
            let total = view.total + n;
            let done = self.advance(view, total);
            done.then(|| self.granted(view.slot, total, n, now))
        })
    }

    /// [`available`](Self::available) at this tick.
    pub fn available_at(&self, now: Tick) -> u64 {
        self.change(now, |view| {
            Some(self.shape.limit.saturating_sub(view.total))
        })
    }

    /// [`level`](Self::level) at this tick: whole permits.
    pub fn level_at(&self, now: Tick) -> Level {
        self.change(now, |view| Some(Level::of_permits(view.total)))
    }

    /// [`time_until`](Self::time_until) at this tick.
    pub fn time_until_at(&self, n: u64, now: Tick) -> Option<Duration> {
        if n > self.shape.limit {
            return None;
        }
        let slot = self.change(now, |view| self.falls_with(view, self.shape.limit - n));
        Some(self.shape.reachable_end(slot)?.saturating_since(now))
    }

    /// [`undo`](Self::undo) at this tick.
    pub fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        self.give_back(granted.n(), Some(granted.mark()), now)
    }

    /// [`refund`](Self::refund) at this tick.
    pub fn refund_at(&self, n: u64, now: Tick) -> u64 {
        self.give_back(n, None, now)
    }

    fn give_back(&self, n: u64, slot: Option<u64>, now: Tick) -> u64 {
        self.change(now, |view| {
            let own = self.shape.slot(view.word);
            if view.slot != own || slot.is_some_and(|slot| slot != own) {
                // That slot is over, for the clock or for the word.
                return Some(0);
            }
            let n = n.min(self.count_of(view.word)?);
            let done = n == 0 || self.advance(view, view.total - n);
            done.then_some(n)
        })
    }

    /// [`charge`](Self::charge) at this tick.
    pub fn charge_at(&self, n: u64, now: Tick) -> Charged {
        let shape = &self.shape;
        self.change(now, |view| {
            let n = n.min(shape.most.saturating_sub(view.total));
            let total = view.total + n;
            // Before it is exchanged, so that the answer is of one moment.
            let clear = self.falls_with(&RolledWindow { total, ..*view }, shape.limit)?;
            if n > 0 && !self.advance(view, total) {
                return None;
            }
            let debt = total.saturating_sub(shape.limit);
            let clear_after = match shape.reachable_end(clear) {
                Some(tick) => tick.saturating_since(now),
                None => Duration::MAX,
            };
            let charged = Charged::new(n, shape.counted_at(view.slot, now));
            Some(charged.with_debt(debt, clear_after))
        })
    }
}

verbs_by_ticks!(SlottedWindow: take_verbs, forecast_verbs, gauge_verbs, give_back_verbs, debt_verbs);
settle_form!([C: crate::clock::Clock] SlottedWindow<C>);

impl<C: fmt::Debug> fmt::Debug for SlottedWindow<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlottedWindow")
            .field("quota", &self.quota)
            .field("slots", &self.slots())
            .field("slot", &self.shape.slot(self.load()))
            .field("counted", &self.shape.count(self.load()))
            .field("clock", &self.clock)
            .finish()
    }
}
