//! A sliding window of slots. Its state is more than one word: when a slot ends, its count moves to
//! an entry of a ring, and any thread can do that. [`shape`] defines the layout of the words,
//! [`roll`] the protocol that moves from one slot to the next.

mod roll;
mod shape;

use core::fmt;
use core::num::NonZeroU64;
use core::time::Duration;

use roll::RolledWindow;
use shape::{MAX_SLOTS, SlotLayout};

use crate::algorithm::Level;
use crate::clock::{SystemClock, Tick};
use crate::limiter_error::LimiterError;
use crate::multiword::verbs::verbs_by_ticks;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::Quota;
use crate::sync::{AtomicU64, Backoff};
use crate::traits::forms::settle_form;

/// A sliding window that is divided into slots: grants at most `n` permits in the current slot and
/// the `slots - 1` slots before it.
///
/// A window of a minute in 60 slots slides by the second. (Sentinel calls this a leap array;
/// others, a counter for each second.) One word decides. The slots' counts are summed once per slot
/// and not once per decision, so a decision costs as much as in a
/// [`FixedWindow`](crate::FixedWindow). The window takes 8 bytes for each slot, with the number of
/// slots rounded up to a power of two.
///
/// **Bound.** At most `n` permits in any `slots` consecutive slots, for any number of threads, at
/// the ticks at which they were counted ([`Granted::at`]). So there are at most `n` in every
/// interval that is a slot shorter than the window, and at most `2 * n` in an interval as long as
/// the window. One exchange checks and raises the sum, so it never exceeds the limit, even while
/// threads whose clocks differ move on to a new slot.
///
/// If a caller's tick is before the slot that the limiter is in, its permits count at the beginning
/// of that slot. [Undoing](Self::undo) a grant after its slot has ended returns nothing, since the
/// slot's count is final. Permits that are [charged](Self::charge) count in the current slot. The
/// part above the limit is debt until the slot leaves the window.
///
/// The largest `n` depends on the length of a slot: it is 67 108 863 for a second in 50 slots.
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
    // The word comes first, next to the parameters that every decision reads.
    word: AtomicU64,
    shape: SlotLayout,
    /// The note of the first slot that has permits, as [`note_first`](Self::note_first) writes it.
    first: AtomicU64,
    ring: Box<[AtomicU64]>,
    quota: Quota,
    clock: C,
}

impl SlottedWindow {
    /// The largest number of slots that a window can have.
    pub const MAX_SLOTS: usize = MAX_SLOTS;

    /// Creates a window as long as the quota's period, divided into `slots` slots, on the system
    /// clock.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] names what can't be represented, and what is allowed: the slots must divide
    /// the period into whole nanoseconds, and there are at most [`MAX_SLOTS`](Self::MAX_SLOTS).
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::error::LimiterError;
    /// use tollgate::{Quota, SlottedWindow};
    ///
    /// let period = Duration::from_secs(1);
    /// assert_eq!(
    ///     SlottedWindow::new(Quota::per(10, period), 7).unwrap_err(),
    ///     LimiterError::SlotsUneven { slots: 7, period }
    /// );
    /// ```
    pub fn new(quota: Quota, slots: usize) -> Result<Self, LimiterError> {
        Self::with_clock(quota, slots, SystemClock)
    }
}

impl<C> SlottedWindow<C> {
    /// Creates a window as long as the quota's period, divided into `slots` slots, on a clock of
    /// your own.
    ///
    /// # Errors
    ///
    /// The same as for [`new`](SlottedWindow::new).
    pub fn with_clock(quota: Quota, slots: usize, clock: C) -> Result<Self, LimiterError> {
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

    /// Returns the number of slots in a window.
    pub const fn slots(&self) -> usize {
        self.shape.slots as usize
    }

    /// Returns the length of a slot.
    pub const fn slot_length(&self) -> Duration {
        Duration::from_nanos(self.shape.grid.period().get())
    }

    /// Returns the largest debt that can be counted. A charge beyond it takes fewer permits.
    pub const fn largest_debt(&self) -> u64 {
        self.shape.most - self.shape.limit
    }

    /// Takes `n` permits or none at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if fewer than `n` permits are available.
    #[inline(always)]
    pub(crate) fn try_acquire_n_at(&self, n: u64, now: Tick) -> Result<Granted, Denied> {
        let (shape, word) = (&self.shape, self.load());
        let (slot, total) = (shape.slot(word), shape.count(word));
        // Within the word's own slot, nothing needs to be summed.
        let is_current = shape.grid.elapsed_in(slot, now).is_some() && !shape.is_frozen(word);
        if is_current && n == 1 {
            // The limit is at least 1. If it is reached, a permit comes when the first slot that
            // has any leaves the window.
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
            .with_remaining(self.shape.limit.saturating_sub(total), NonZeroU64::MIN)
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

    /// Decides in any state of the word.
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
            // The first attempt handles the word's own slot, so another thread disturbed it.
            if view.slot == self.shape.slot(view.word) && core::mem::take(&mut is_first_look) {
                return None;
            }
            let done = self.advance(view, total);
            done.then(|| Ok(self.granted(view.slot, total, n, now)))
        })
    }

    /// Evaluates the word at `now` and calls `act`, until that returns an answer.
    fn change<T>(&self, now: Tick, mut act: impl FnMut(&RolledWindow) -> Option<T>) -> T {
        let mut backoff = Backoff::new();
        loop {
            // If this fails, the word has changed: another thread made progress.
            let view = self.view(self.load(), now);
            if let Some(done) = view.and_then(|view| act(&view)) {
                return done;
            }
            backoff.wait();
        }
    }

    /// Takes up to `n` permits at this tick.
    #[must_use = "the grant says how many permits were taken"]
    pub(crate) fn take_up_to_at(&self, n: u64, now: Tick) -> Granted {
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

    /// Returns what [`try_acquire_n`](Self::try_acquire_n) would answer. Takes nothing.
    ///
    /// # Errors
    ///
    /// The [`Denied`] that the request would get.
    pub(crate) fn check_n_at(&self, n: u64, now: Tick) -> Result<(), Denied> {
        if n > self.shape.limit {
            return Err(Denied::never(n, self.shape.limit));
        }
        match self.time_until_at(n, now) {
            Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(Denied::later(n, wait)),
            None => Err(Denied::stuck(n)),
        }
    }

    /// Returns how many permits are [available](Self::available) at this tick.
    pub(crate) fn available_at(&self, now: Tick) -> u64 {
        self.change(now, |view| {
            Some(self.shape.limit.saturating_sub(view.total))
        })
    }

    /// Returns the [level](Self::level) at this tick: whole permits.
    pub(crate) fn level_at(&self, now: Tick) -> Level {
        self.change(now, |view| Some(Level::of_permits(view.total)))
    }

    /// Returns how long it takes until `n` permits are available.
    pub(crate) fn time_until_at(&self, n: u64, now: Tick) -> Option<Duration> {
        if n > self.shape.limit {
            return None;
        }
        let slot = self.change(now, |view| self.falls_with(view, self.shape.limit - n));
        Some(self.shape.reachable_end(slot)?.saturating_since(now))
    }

    /// Gives back a grant at this tick.
    pub(crate) fn undo_at(&self, granted: Granted, now: Tick) -> u64 {
        self.give_back(granted.n(), Some(granted.mark()), now)
    }

    /// Gives back `n` permits at this tick.
    pub(crate) fn refund_at(&self, n: u64, now: Tick) -> u64 {
        self.give_back(n, None, now)
    }

    fn give_back(&self, n: u64, slot: Option<u64>, now: Tick) -> u64 {
        self.change(now, |view| {
            let own = self.shape.slot(view.word);
            if view.slot != own || slot.is_some_and(|slot| slot != own) {
                // That slot has ended, for the clock or for the word.
                return Some(0);
            }
            let n = n.min(self.count_of(view.word)?);
            let done = n == 0 || self.advance(view, view.total - n);
            done.then_some(n)
        })
    }

    /// Takes `n` permits unconditionally at this tick.
    pub(crate) fn charge_at(&self, n: u64, now: Tick) -> Charged {
        let shape = &self.shape;
        self.change(now, |view| {
            let n = n.min(shape.most.saturating_sub(view.total));
            let total = view.total + n;
            // Computed before the exchange, so that the answer is of one moment.
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
