//! Algorithms: pure steps on one 64-bit word.
//!
//! A step reads no clock, touches no memory and has no side effects, so a limiter may run it
//! several times for one decision. Time is passed in as a [`Tick`], the word is the whole state,
//! and `self` holds the parameters.
//!
//! Three rules hold for every algorithm, and the rest of the crate relies on them:
//!
//! - **Zero is fresh, and fresh is full.** The word 0 is a limiter that has never been used.
//! - **A grant never lowers the word.** Giving permits back may lower it.
//! - **No algorithm uses the word of all ones.** A [`Limiter`](crate::Limiter) reserves it to mark
//!   a limiter that has not started.
//!
//! A word is *idle* if it behaves like a fresh one from now on. It is in *debt* if more permits
//! were taken than were available.
//!
//! Every algorithm implements [`Algorithm`]. Further traits add what only some algorithms can do:
//!
//! | trait | what it adds | verbs |
//! |---|---|---|
//! | [`GiveBack`] | takes permits back | `undo`, `refund` |
//! | [`Debt`] | takes more permits than are available | `charge` |
//! | [`Forecast`] | knows when permits will be available | `time_until` |
//! | [`Reserve`] | grants permits before they are available | `reserve`, `blocking_acquire` |
//! | [`ChangeQuota`] | is made from a quota, which can change | `quota` |
//! | [`Rebase`] | moves its word to another clock | |
//! | [`Gauge`] | reports how much it has counted | `level` |
//! | [`Split`] | runs in several words | those of a `Sharded` |
//! | [`Settings`] | stores its parameters in words | those of an [`Adjustable`](https://docs.rs/tollgate/latest/tollgate/struct.Adjustable.html) |
//! | [`Lend`] | leaves room for permits that are lent | those of a `Lease` |
//!
//! All algorithms of this crate implement all of these traits, except that [`FixedWindow`] does not
//! implement [`Reserve`], which says why. [`AnyAlgorithm`] is any of them, chosen at run time.

mod alignment;
pub(crate) mod any;
mod carry;
mod counting;
mod delegate;
mod division;
mod first_hit;
pub(crate) mod fixed_window;
mod gauge;
pub(crate) mod gcra;
mod grid;
pub(crate) mod intervals;
pub(crate) mod leaky_bucket;
mod lend;
mod pace;
mod settings;
mod shown;
pub(crate) mod sliding_window;
mod split;
pub(crate) mod token_bucket;

pub(crate) use any::AnyAlgorithm;
pub(crate) use fixed_window::FixedWindow;
pub use gauge::{Gauge, Level};
pub(crate) use gcra::Gcra;
#[cfg(feature = "std")]
pub(crate) use grid::{Grid, needed, period_of, shortest_period};
pub(crate) use intervals::Intervals;
pub(crate) use leaky_bucket::LeakyBucket;
pub use lend::Lend;
pub use settings::{MAX_SETTINGS, Settings, Visit};
pub use sliding_window::Rounding;
pub(crate) use sliding_window::SlidingWindow;
pub use split::Split;
pub(crate) use token_bucket::TokenBucket;

use crate::clock::Tick;
use crate::outcome::{Charged, Denied, Granted};
use crate::quota::{Quota, QuotaError};
use crate::sync::inject_fault;

/// A pure step on one 64-bit word.
///
/// ```
/// use tollgate::algorithm::Algorithm;
/// use tollgate::clock::NoClock;
/// use tollgate::{Denied, Granted, Limiter, Tick};
///
/// /// At most this many permits, ever.
/// #[derive(Debug)]
/// struct Total(u32);
///
/// impl Algorithm for Total {
///     fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied> {
///         if n <= self.available(word, now) {
///             Ok((word + n, Granted::new(n, now)))
///         } else {
///             Err(Denied::never(n, self.0.into()))
///         }
///     }
///     fn available(&self, word: u64, _now: Tick) -> u64 {
///         u64::from(self.0).saturating_sub(word)
///     }
///     fn is_idle(&self, word: u64, _now: Tick) -> bool {
///         word == 0
///     }
/// }
///
/// let limiter = Limiter::unstarted(Total(2), NoClock);
/// assert!(limiter.at(Tick::ZERO).try_acquire_n(2).is_ok());
/// assert!(limiter.at(Tick::MAX).try_acquire().is_err());
/// ```
pub trait Algorithm {
    /// Decides on `n` permits at `now`. Returns the next word and the grant.
    ///
    /// `n` = 0 succeeds unless the limiter is in debt, and returns the same word.
    ///
    /// # Errors
    ///
    /// [`Denied`], which says when the request would succeed, or that it never will.
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied>;

    /// Returns how many permits a step would grant at `now`.
    fn available(&self, word: u64, now: Tick) -> u64;

    /// Returns whether the word is idle: it behaves like a fresh one from now on.
    fn is_idle(&self, word: u64, now: Tick) -> bool;

    /// Runs [`step`](Self::step) if a short path suffices, for example because the word is already
    /// in the current window. A limiter calls this first, inlined. It runs all other steps out of
    /// line, which keeps the inlined code small. Keep the default if all steps cost the same.
    #[inline(always)]
    fn step_fast(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        Some(self.step(word, now, n))
    }

    /// Returns the word of a limiter that starts at `now`: 0, unless it starts with fewer permits
    /// than it can hold.
    #[inline]
    fn initial_word(&self, now: Tick) -> u64 {
        let _ = now;
        0
    }

    /// Returns the approximate tick at which the word becomes idle if no caller uses it, or `now`
    /// if it already is. A full table of keys calls this to find the key that is closest to idle.
    /// The default searches with [`is_idle`](Self::is_idle). Override it if the algorithm can
    /// compute the tick.
    fn idle_at(&self, word: u64, now: Tick) -> Tick {
        idle_from(self, word, now)
    }

    /// Returns whether a larger word always becomes idle later than a smaller one. Words that
    /// differ by less than a nanosecond's refill may become idle at the same tick. If it returns
    /// `true`, a full table of keys chooses the key to evict by comparing words, without calling
    /// [`idle_at`](Self::idle_at) for each.
    ///
    /// The default is `false`.
    #[inline]
    fn larger_is_idle_later(&self) -> bool {
        false
    }

    /// Takes up to `n` permits: as many as are available, possibly none. Returns the next word and
    /// the grant.
    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let n = n.min(self.available(word, now));
        match self.step(word, now, n) {
            Ok(taken) => taken,
            Err(_) => (word, Granted::new(0, now)),
        }
    }
}

/// Returns the first tick, `from` or later, at which the word is idle.
pub(crate) fn idle_from<A: Algorithm + ?Sized>(algorithm: &A, word: u64, from: Tick) -> Tick {
    if algorithm.is_idle(word, from) {
        return from;
    }
    // `busy` is the last tick known not to be idle, and `stride` is how far ahead to look next. The
    // stride doubles until it overshoots, and then halves.
    let (mut busy, mut stride) = (from.as_nanos(), 1_u64);
    let is_busy = |later| !algorithm.is_idle(word, Tick::from_nanos(later));
    while let Some(later) = busy.checked_add(stride).filter(|later| is_busy(*later)) {
        busy = later;
        stride = stride.saturating_mul(2);
    }
    while stride > 0 {
        if let Some(later) = busy.checked_add(stride).filter(|later| is_busy(*later)) {
            busy = later;
        }
        stride >>= 1;
    }
    Tick::from_nanos(busy.saturating_add(1))
}

/// An algorithm that takes permits back.
pub trait GiveBack: Algorithm {
    /// Gives back a grant, or the part of it that is still counted. Returns the next word, and how
    /// many permits were returned, rounded up.
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64);

    /// Gives back `n` permits, up to those of a fresh word. Returns the next word, and how many
    /// permits were returned, rounded up.
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64);

    /// Gives back a grant that no caller used, because another limit of a
    /// [composition](crate::compose::All) denied the request. Returns what [`undo`](Self::undo)
    /// returns.
    ///
    /// An algorithm with reservations must return nothing while a caller waits behind the grant.
    /// The algorithms of this crate do what [`cancel`](Reserve::cancel) does.
    #[inline]
    fn roll_back(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64) {
        self.undo(word, now, granted)
    }
}

/// An algorithm that can take more permits than are available.
pub trait Debt: Algorithm {
    /// Takes `n` permits unconditionally. Returns the next word and the record of the charge.
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged);
}

/// An algorithm that knows when permits will be available.
pub trait Forecast: Algorithm {
    /// Returns the first tick, `now` or later, at which a step would grant `n` permits if no other
    /// caller took any. Returns `None` if there is no such tick.
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick>;
}

/// An algorithm that can grant permits before they are available. Each grant says when its permits
/// are due. Earlier callers are due first.
///
/// A reservation has the effect of the same [`step`](Algorithm::step) at the tick at which it is
/// due. So used permits keep the algorithm's bound if each counts at that tick.
///
/// - The token bucket, GCRA, the leaky bucket and [`Intervals`] take permits that will be refilled.
/// - The [`SlidingWindow`] counts permits in the window in which they are due.
/// - A greedy bucket of `Intervals` records them as debt, which the next refills pay. If its refill
///   is larger than its burst, it grants only what is available now.
/// - The [`FixedWindow`] does not implement this trait. It grants permits of a window that another
///   caller has begun to callers with an older tick, so that threads whose clocks differ are not
///   denied. If a reservation moved its word to a later window, such callers would take that
///   window's permits early, and the permits of two windows could be used in one.
///   The word has no bit left to tell the two cases apart.
///
/// A composition reserves from all its limits at one later tick. This would move a window's word to
/// a later window, and callers with older ticks would take that window's permits early. So it
/// reserves only token buckets and GCRAs: see `compose::ReserveMembers`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, ManualClock, Quota, SlidingWindow};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let window = SlidingWindow::new(Quota::per_minute(12))?;
/// let limiter = Limiter::with_clock(window, ManualClock::new());
/// assert!(limiter.reserve(12)?.is_due());
/// // A quarter of the next window must pass before 3 of the 12 permits no longer count.
/// assert_eq!(limiter.reserve(3)?.delay(), Duration::from_secs(75));
/// # Ok(())
/// # }
/// ```
pub trait Reserve: GiveBack + Debt {
    /// Takes `n` permits, if they are available by the tick `latest`. Returns the next word and the
    /// grant, which is [due](Granted::due) at the first tick at which its permits are available.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the permits will not be available in time. It says how long after `latest`
    /// they will be, or that they never will be. An algorithm that can't record the reservation
    /// says how long after `now` the same request may be granted.
    fn reserve(&self, word: u64, now: Tick, n: u64, latest: Tick)
    -> Result<(u64, Granted), Denied>;

    /// Takes `n` permits that are available now, if the short path suffices: see
    /// [`step_fast`](Algorithm::step_fast). Keep the default.
    #[inline(always)]
    fn reserve_fast(&self, word: u64, now: Tick, n: u64) -> Option<(u64, Granted)> {
        let (next, granted) = self.step_fast(word, now, n)?.ok()?;
        granted.is_ready().then_some((next, granted))
    }

    /// Gives back the last `n` permits of a reservation, or as many of them as the limit allows.
    /// Reservations that are still waiting count towards the limit. Returns the next word, the rest
    /// of the reservation, which may now be due sooner, and how many permits were returned, rounded
    /// up.
    fn cancel(&self, word: u64, now: Tick, granted: &Granted, n: u64) -> (u64, Granted, u64);

    /// Returns how many permits are taken but not yet due, rounded up.
    fn waiting(&self, word: u64, now: Tick) -> u64;
}

/// Returns whether a reservation gives permits back although another caller waits: only the last
/// one in the line does.
#[inline]
pub(crate) fn can_leave_the_line(is_last: bool) -> bool {
    is_last || inject_fault!(CancelsInTheMiddle) // FAULT
}

/// An algorithm that is made from a quota, and whose word can be carried over to another quota.
pub trait ChangeQuota: Algorithm + Sized {
    /// Returns the quota that the algorithm was made from.
    fn quota(&self) -> Quota;

    /// Returns the same algorithm with another quota.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the quota can't be represented.
    fn with_quota(&self, quota: Quota) -> Result<Self, QuotaError>;

    /// Returns the word with which `next` continues at `now`. It has as many permits as `word` has
    /// now, up to what `next` can hold, and as much debt, up to what `next` can record. The
    /// requests that wait in a queue stay in it. Fractions of a permit are rounded so that no
    /// permit is gained.
    ///
    /// `now` should be no older than the ticks that the word has seen. If it is older, and a bucket
    /// becomes a window, a new window may begin as soon as the caller's clock catches up.
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64;

    /// Carries the word over as [`carry_over`](Self::carry_over) does, but scales the available
    /// permits: half of the old burst becomes half of the new one, rounded down. Debt is not
    /// scaled.
    fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        carry::scaled(self, word, now, next)
    }

    /// Carries the word over by the permits that it counts, which are its [level](Gauge::level)
    /// rounded up, as far as `next` can record them. Those above what `next` can hold are debt.
    fn carry_used(&self, word: u64, now: Tick, next: &Self) -> u64;
}

/// An algorithm whose word can be moved to another clock.
pub trait Rebase: Algorithm {
    /// Returns a word for another clock: it means at that clock's tick `to` what `word` means at
    /// tick `from` of the old clock. It never has more permits, so the bound still holds. (If the
    /// rate of a bucket is not exact, each permit may come less than one unit sooner or later, and
    /// the move adds one unit to the bound: see [`TokenBucket`].)
    ///
    /// Periods that are aligned to the clock continue as the new clock's periods. Therefore the
    /// next permits of a bucket may be due earlier or later, by less than a period. The permits
    /// counted in a window never become available earlier than before, but may do so later, by less
    /// than a period.
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64;
}
