//! Algorithms: pure steps on one 64-bit word.
//!
//! A step reads no clock, touches no memory and has no side effect: it may be run several times for
//! one decision. All time comes in as a [`Tick`], all state is the word, all parameters are `self`.
//! Three rules hold for every algorithm, and the rest of the crate relies on them:
//!
//! - **Zero is fresh, and fresh is full.** The word 0 is a limiter that nobody has used.
//! - **An admission never lowers the word**; giving back may.
//! - **The word of all ones is not used.** A [`Limiter`](crate::Limiter) keeps it for itself, as
//!   the mark of one that has not started. (A map of keys has two marks, and stores the next
//!   smaller word for a larger one.)
//!
//! [`Algorithm`] is what every algorithm can do. What only some can do are traits beside it, so
//! that code can ask for just what it needs:
//!
//! | trait | what it adds | verbs |
//! |---|---|---|
//! | [`GiveBack`] | permits can be given back | `undo`, `refund` |
//! | [`Debt`] | more can be taken than there is | `charge` |
//! | [`Forecast`] | it knows when permits will be there | `time_until` |
//! | [`Reserve`] | permits can be had before they are there | `reserve`, `acquire` |
//! | [`ChangeQuota`] | it is made from a quota, which can change | `quota` |
//! | [`Rebase`] | its word can move to another clock | |
//! | [`Gauge`] | it can say how much it has counted | `level` |
//! | [`Split`] | it can be kept in several words | all, of a `Sharded` |
//! | [`Settings`] | its parameters can be kept in words | those of an [`Adjustable`](https://docs.rs/tollgate/latest/tollgate/struct.Adjustable.html) |
//! | [`Lend`] | it can leave room for permits that are lent | those of a `Lease` |
//!
//! All algorithms of this crate have all of them but [`Reserve`], which the buckets have.
//! [`AnyAlgorithm`] is any of them, chosen at run time.

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
use crate::quota::{ConfigError, Quota};

/// A pure step on one 64-bit word.
///
/// ```
/// use tollgate::algorithm::Algorithm;
/// use tollgate::clock::NoClock;
/// use tollgate::{Denied, Granted, Limiter, Tick};
///
/// /// At most so many, ever.
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
/// assert!(limiter.try_acquire_n_at(2, Tick::ZERO).is_ok());
/// assert!(limiter.try_acquire_at(Tick::MAX).is_err());
/// ```
pub trait Algorithm {
    /// Decides on `n` permits at `now`: the next word and the grant, or why not.
    ///
    /// `n` = 0 succeeds unless the limiter is in debt, and returns the word it was given.
    ///
    /// # Errors
    ///
    /// [`Denied`], which says when it would succeed, or that it never will.
    fn step(&self, word: u64, now: Tick, n: u64) -> Result<(u64, Granted), Denied>;

    /// How many permits a step would grant at `now`.
    fn available(&self, word: u64, now: Tick) -> u64;

    /// Whether the word can no longer be told from a fresh one.
    fn is_idle(&self, word: u64, now: Tick) -> bool;

    /// The same as [`step`](Self::step), if that is short here, such as in the window that the word
    /// is in already. A limiter tries this first, in line, and makes the other steps out of line,
    /// which keeps the short ones short. Leave it as it is if all steps are alike.
    #[inline(always)]
    fn short_step(&self, word: u64, now: Tick, n: u64) -> Option<Result<(u64, Granted), Denied>> {
        Some(self.step(word, now, n))
    }

    /// The word of a limiter that is made at `now`: 0 unless it starts with less than it can
    /// hold.
    #[inline]
    fn initial_word(&self, now: Tick) -> u64 {
        let _ = now;
        0
    }

    /// About when the word will be idle if it is left alone: `now`, if it is already. A table of
    /// keys without room asks it, to find the one that is nearest to it. This finds it out by
    /// [`is_idle`](Self::is_idle); an algorithm that knows it does better.
    fn idle_at(&self, word: u64, now: Tick) -> Tick {
        idle_from(self, word, now)
    }

    /// Whether a larger word is always idle later than a smaller one, or at the same nanosecond
    /// where they differ by less than a nanosecond makes. A table of keys without room then finds
    /// the key that leaves without asking [`idle_at`](Self::idle_at) of each.
    ///
    /// Provided: `false`.
    #[inline]
    fn larger_is_idle_later(&self) -> bool {
        false
    }

    /// Takes as many of `n` as there are, which may be none: the next word and the grant.
    #[inline]
    fn take_up_to(&self, word: u64, now: Tick, n: u64) -> (u64, Granted) {
        let n = n.min(self.available(word, now));
        match self.step(word, now, n) {
            Ok(taken) => taken,
            Err(_) => (word, Granted::new(0, now)),
        }
    }
}

/// The first tick from this one on at which the word is idle.
pub(crate) fn idle_from<A: Algorithm + ?Sized>(algorithm: &A, word: u64, from: Tick) -> Tick {
    if algorithm.is_idle(word, from) {
        return from;
    }
    // The last tick of which it is known that it is not idle then, and how far on to look: farther
    // and farther, and then back.
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

/// An algorithm to which permits can be given back.
pub trait GiveBack: Algorithm {
    /// Gives back a grant, or as much of it as is still to be had: the next word, and how many
    /// permits came back, a part of one counted whole.
    fn undo(&self, word: u64, now: Tick, granted: &Granted) -> (u64, u64);

    /// Gives back `n` permits, never above what a fresh one has: the next word, and how many came
    /// back, a part of one counted whole.
    fn refund(&self, word: u64, now: Tick, n: u64) -> (u64, u64);
}

/// An algorithm that can take more than there is.
pub trait Debt: Algorithm {
    /// Takes `n` permits whether they are there or not: the next word, and what was recorded.
    fn charge(&self, word: u64, now: Tick, n: u64) -> (u64, Charged);
}

/// An algorithm that knows when permits will be there.
pub trait Forecast: Algorithm {
    /// The first tick, `now` or later, at which a step would grant `n` if nobody else took any;
    /// `None` if there is none.
    fn due(&self, word: u64, now: Tick, n: u64) -> Option<Tick>;
}

/// An algorithm of which permits can be had before they are there: those who take them are told
/// when they are, in the order in which they came.
pub trait Reserve: GiveBack + Debt {
    /// Takes `n` permits, if they are there, or will be at `latest` or sooner: the next word and
    /// the grant, which is [due](Granted::due) at the first tick at which they are.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they won't: how much too late they will be, or that they never will.
    fn reserve(&self, word: u64, now: Tick, n: u64, latest: Tick)
    -> Result<(u64, Granted), Denied>;

    /// The same of permits that are there, if that is short: see
    /// [`short_step`](Algorithm::short_step). Leave it as it is.
    #[inline(always)]
    fn reserve_now(&self, word: u64, now: Tick, n: u64) -> Option<(u64, Granted)> {
        let (next, granted) = self.short_step(word, now, n)?.ok()?;
        granted.is_ready().then_some((next, granted))
    }

    /// Gives back as much of the last `n` permits of what was reserved as can be without admitting
    /// more than was promised, those who wait among it: the next word, what is kept of the
    /// reservation, which may be due sooner now, and how many came back, a part of one counted
    /// whole.
    fn cancel(&self, word: u64, now: Tick, granted: &Granted, n: u64) -> (u64, Granted, u64);

    /// How many permits were taken that are not due yet, a started one counted whole.
    fn waiting(&self, word: u64, now: Tick) -> u64;
}

/// An algorithm that is made from a quota, and whose word can be carried over to another one.
pub trait ChangeQuota: Algorithm + Sized {
    /// The quota it was made from.
    fn quota(&self) -> Quota;

    /// The same algorithm with another quota.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the quota can't be represented.
    fn with_quota(&self, quota: Quota) -> Result<Self, ConfigError>;

    /// The word with which `next` goes on at `now` where this left off: with as many permits, but
    /// no more than it can hold, and with as much debt, as far as it can hold that (a queue goes on
    /// with its line); a part of a permit is rounded to the limiter's favour, not the caller's.
    /// `now` should be no older than what the word has seen: a bucket that is carried over to
    /// windows by a caller whose clock is behind may find a new window when the clock catches up.
    fn carry_over(&self, word: u64, now: Tick, next: &Self) -> u64;

    /// The same, but of the permits that there are as large a part is carried over as they are of
    /// all that this can hold: half a burst goes on as half of the other burst, rounded down. A
    /// debt stays as it is.
    fn carry_scaled(&self, word: u64, now: Tick, next: &Self) -> u64 {
        carry::scaled(self, word, now, next)
    }
}

/// An algorithm whose word can be moved to another clock.
pub trait Rebase: Algorithm {
    /// The word that stands at tick `to` of another clock as `word` stands at tick `from` of the
    /// old one: with as many permits, and no more for the bound's sake. Where periods lie on the
    /// clock, those of the other clock go on from there: the next permits of a bucket may come
    /// earlier by less than a period, and those of a window in which something is counted come no
    /// earlier, but may come as much later.
    fn rebase(&self, word: u64, from: Tick, to: Tick) -> u64;
}
