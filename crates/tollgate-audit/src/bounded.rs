use tollgate::algorithm::{Algorithm, ChangeQuota, Rounding};
use tollgate::{
    AnyAlgorithm, FixedWindow, Gcra, Intervals, LeakyBucket, SlidingWindow, TokenBucket,
};

use crate::bound::{Bound, Owed};
use crate::windows::Windows;

/// An algorithm that states its bound, so that the bound can be checked.
///
/// The documentation of each implementation for an algorithm of tollgate proves its bound. In these
/// proofs, operations are ordered by when they changed the limiter's word, and `made(t)` is the
/// number of units refilled up to the tick `t`. In that order, `f` is the first and `l` the last
/// grant whose tick is in the interval `[a, b]`. Operations between `f` and `l` that took permits
/// at ticks outside the interval count too. That is safe, since they only add to the number that
/// the bound limits.
///
/// ```
/// use tollgate_audit::{Bounded, Audit, Log};
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
    /// Returns the bound on grants, counted at [`Granted::at`](tollgate::Granted::at), net of
    /// permits that were given back.
    fn bound(&self) -> Bound;
}

/// The bound is `burst + rate * (b - a)`, plus what the rate allows in one unit of time if the rate
/// is not exact. The word falls only by what is given back. It is at least `made(a)` when `f` is
/// added, and at most `made(b) + burst` after `l`. `made` counts whole units, so
/// `made(b) - made(a)` is less than one unit more than what accrues from `a` to `b`.
impl Bounded for TokenBucket {
    fn bound(&self) -> Bound {
        Bound::bucket(self.quota())
    }
}

/// The bound of the token bucket with the same quota. For an interval and a tolerance this is
/// `1 + (tolerance + (b - a)) / interval`; the tolerance need not be a multiple of the interval.
impl Bounded for Gcra {
    fn bound(&self) -> Bound {
        let quota = self.quota();
        match self.uneven_tolerance() {
            // A quota with an uneven tolerance is one permit each interval.
            Some(tolerance) => Bound::spaced(quota.period(), tolerance),
            None => Bound::bucket(quota),
        }
    }
}

/// The bound of the token bucket with the same quota, on what the meter or queue admits.
impl Bounded for LeakyBucket {
    fn bound(&self) -> Bound {
        Bound::bucket(self.quota())
    }
}

/// Windows on the clock: at most `n` in each. The word's window counts all grants whose tick lies
/// in it, and the word never returns to an older window. Debt is forgotten with its window.
///
/// Windows opened by the first hit, which is the permit that opens a window when none is open: at
/// most `n * (1 + ceil((b - a) / period))`. Let `m` be the number of windows from the window of `f`
/// to the window of `l`, without windows that closed because all their permits came back. The first
/// window ends after `a`. Each later window begins at the end of the previous one or after it, and
/// lasts at least a period. No permit counts in it at a tick before that end: the first hit is not
/// earlier, and all others are not earlier than the window's beginning. So `b` is at least `m - 2`
/// periods after the end of the first window, and `b - a > (m - 2) * period`.
impl Bounded for FixedWindow {
    fn bound(&self) -> Bound {
        let quota = self.quota();
        match self.quantum() {
            None => Bound::anew(quota, Windows::of(quota, self.lead())),
            Some(_) => Bound::in_steps(quota).forgetting_debt(),
        }
    }
}

/// The bound is `n + rate * (b - a)`. [`Rounding::Down`] adds almost one permit: `1 - 1 / period`,
/// with the period in nanoseconds.
///
/// Let `c(i)` be the final count of window `i`. Let `l` be in window `k`, with `x` of the window
/// elapsed and `c` counted. It was admitted, so `c(k - 1) * (1 - x / period) + c <= n`. After the
/// last grant in any window, that window counted at most `n`.
///
/// - If `f` is in window `k` too, `c <= n` is enough.
/// - If `f` is in window `k - 1`, the interval has at most
///   `c(k - 1) + c <= n + c(k - 1) * x / period <= n + rate * x`, and `x <= b - a`.
/// - If `f` is in a window `j < k - 1`, each of the windows `j` to `k - 2` adds at most `n`. The
///   interval is longer by the `k - 1 - j` periods `j + 1` to `k - 1`, in which the rate allows as
///   much.
///
/// Rounding down allows less than one permit more in the first inequality, and so in the others. A
/// charge counts in the next window too, but not for long enough to be paid, so a grant may follow
/// while debt of an earlier window is unpaid.
impl Bounded for SlidingWindow {
    fn bound(&self) -> Bound {
        let quota = self.quota();
        let steady = Bound::steady(quota);
        let grace = match *self == self.rounding(Rounding::Exact) {
            true => 0,
            false => quota.period().as_nanos().saturating_sub(1),
        };
        Bound {
            burst: steady.burst + grace,
            debt: Owed::ForgottenAfter(Windows::of(quota, self.lead())),
            ..steady
        }
    }
}

/// Periods on the clock: `burst`, and `n` for each period that begins after `a` and not after `b`.
/// The proof is that of the token bucket, with permits that are refilled at these beginnings.
///
/// Greedy periods (the first permit from a full bucket begins one):
/// `burst + n * ceil((b - a) / period)`. Let `m` be the number of refills from `f` to `l`. The
/// permits taken from `f` to `l` are at most `burst + n * m`. The first refill is after `a`, since
/// `f` came before it. Each later refill is at least a period after the one before: a period that
/// begins with a full bucket begins after the previous refill. The last refill is not after `b`,
/// since nothing is counted at a tick before the beginning of the word's period. So
/// `b - a > (m - 1) * period`.
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
            // An algorithm that is newer than this crate. Of those above, a bucket has the smallest
            // bound.
            _ => Bound::bucket(self.quota()),
        }
    }
}
