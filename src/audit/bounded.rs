use super::bound::{Bound, Owed};
use super::windows::Windows;
use crate::algorithm::{
    Algorithm, AnyAlgorithm, ChangeQuota, FixedWindow, Gcra, Intervals, LeakyBucket, Rounding,
    SlidingWindow, TokenBucket,
};

/// An algorithm that says what it promises of every interval, so that it can be checked.
///
/// Why the promises of this crate's algorithms hold is said at the implementations. In all of that
/// the verbs of a limiter stand in the order in which they changed its word. For an interval `[a,
/// b]`, `f` is the first and `l` the last grant in it, in that order. The grants in the interval,
/// less what came back between `f` and `l`, are at most all that was taken from `f` to `l`, less
/// the same: those at other ticks only add.
///
/// ```
/// use tollgate::audit::{Bounded, Audit, Log};
/// use tollgate::{AnyAlgorithm, Limiter, ManualClock};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// for text in ["sliding-window 5/min", "fixed-window 5/min", "intervals 5/min burst 10"] {
///     let limiter = Limiter::with_clock(text.parse::<AnyAlgorithm>()?, ManualClock::new());
///     let mut log = Log::new();
///     for _ in 0..200 {
///         limiter.clock().advance(std::time::Duration::from_secs(3));
///         if let Ok(granted) = limiter.try_acquire() {
///             log.granted(&granted);
///         }
///     }
///     let audit: Audit = [log].into_iter().collect();
///     assert!(audit.check(&limiter.algorithm().bound())?.granted >= 40);
/// }
/// # Ok(())
/// # }
/// ```
pub trait Bounded: Algorithm {
    /// What is promised of the ticks at which grants are counted
    /// ([`Granted::at`](crate::Granted::at)), net of what was given back.
    fn bound(&self) -> Bound;
}

/// `burst + rate * (b - a)`: the word never falls but by what comes back, is at least `made(a)`
/// when `f` is added to it, and at most `made(b) + burst` after `l`.
impl Bounded for TokenBucket {
    fn bound(&self) -> Bound {
        Bound::steady(self.quota())
    }
}

/// That of the token bucket with the same quota, and so for an interval and a tolerance
/// `1 + (tolerance + (b - a)) / interval`: the tolerance need be no multiple of the interval.
impl Bounded for Gcra {
    fn bound(&self) -> Bound {
        let quota = self.quota();
        match self.uneven_tolerance() {
            // Such a quota is one permit every interval.
            Some(tolerance) => Bound::spaced(quota.period(), tolerance),
            None => Bound::steady(quota),
        }
    }
}

/// That of the token bucket with the same quota, of what is admitted, be it a meter or a queue.
impl Bounded for LeakyBucket {
    fn bound(&self) -> Bound {
        Bound::steady(self.quota())
    }
}

/// Windows on the clock: at most `n` in each, since the word's window counts all grants whose tick
/// is in it, and no word goes back to an older window. A debt is forgotten with its window.
///
/// Opened by the first hit: at most `n * (1 + ceil((b - a) / period))`. Let `m` be the windows from
/// that of `f` to that of `l`, but for those that were closed because all came back. The first one
/// ends after `a`. Each of the others begins when the one before is over or later, lasts a period
/// or longer, and counts nothing at a tick before the end of the one before: not the permit that
/// opens it, and others not before its beginning. So `b` is `m - 2` periods after the end of the
/// first, or more: `b - a > (m - 2) * period`.
impl Bounded for FixedWindow {
    fn bound(&self) -> Bound {
        let quota = self.quota();
        match self.quantum() {
            None => Bound::anew(quota, Windows::of(quota, self.lead())),
            Some(_) => Bound::in_steps(quota).forgetting_debt(),
        }
    }
}

/// `n + rate * (b - a)`, and with [`Rounding::Down`] a permit more, but for the part of one that a
/// nanosecond makes at this rate.
///
/// Let `c(i)` be the count of window `i` in the end, and let `l` be in window `k`, with `x` of it
/// elapsed and `c` counted. It was admitted, so `c(k - 1) * (1 - x / period) + c <= n`; and after
/// the last grant in any window there were at most `n` in it.
///
/// - If `f` is in window `k` too, then `c <= n` holds all.
/// - If it is in window `k - 1`, then all are at most `c(k - 1) + c <= n + c(k - 1) * x / period <=
///   n + rate * x`, and `x <= b - a`.
/// - If it is in window `j < k - 1`, there are at most `n` more in each of the windows `j` to `k -
///   2`, and the interval is longer by the `k - 1 - j` periods from `j + 1` to `k - 1`: rate times
///   these is as much.
///
/// Rounding down allows less than one permit more in the first inequality, and so in the others.
/// What was charged weighs in the window after, but not for long enough to be paid: a grant may
/// come out of the debt of another window.
impl Bounded for SlidingWindow {
    fn bound(&self) -> Bound {
        let quota = self.quota();
        let steady = Bound::steady(quota);
        let grace = match self.rounds() {
            Rounding::Exact => 0,
            Rounding::Down => quota.period().as_nanos().saturating_sub(1),
        };
        Bound {
            burst: steady.burst + grace,
            debt: Owed::ForgottenAfter(Windows::of(quota, self.lead())),
            ..steady
        }
    }
}

/// Periods on the clock: `burst`, and `n` for each period that begins after `a` and not after `b`.
/// It is that of the token bucket, with permits that are made then.
///
/// Greedy: `burst + n * ceil((b - a) / period)`. Let `m` be the refills from `f` to `l`: all these
/// are at most `burst + n * m`. The first refill is after `a`, since `f` came before it; each of
/// the others a period after the one before, or later, since a period that begins when the bucket
/// is full begins after the last refill; and the last one is not after `b`, since nothing is
/// counted at a tick before the beginning of the word's period. So `b - a > (m - 1) * period`.
impl Bounded for Intervals {
    fn bound(&self) -> Bound {
        let quota = self.quota();
        match self.quantum() {
            None => Bound::at_edges(quota, Windows::of(quota, self.lead())),
            Some(_) => Bound::in_steps(quota),
        }
    }
}

impl Bounded for AnyAlgorithm {
    fn bound(&self) -> Bound {
        match self {
            Self::TokenBucket(this) => this.bound(),
            Self::Gcra(this) => this.bound(),
            Self::LeakyBucket(this) => this.bound(),
            Self::FixedWindow(this) => this.bound(),
            Self::SlidingWindow(this) => this.bound(),
            Self::Intervals(this) => this.bound(),
        }
    }
}
