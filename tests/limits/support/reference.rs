//! The answers that a model must give to be compared with a limiter.

use std::fmt::Debug;
use std::ops::RangeInclusive;

/// 50 years of 365.25 days, in nanoseconds: the time for which the crate's guarantees hold.
pub(crate) const FIFTY_YEARS: u64 = 36_525 * 43_200 * 1_000_000_000;

/// An exact number of permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) num: u128,
    pub(crate) den: u128,
}

impl Fraction {
    pub(crate) fn floor(self) -> u128 {
        self.num / self.den
    }

    pub(crate) fn ceil(self) -> u128 {
        self.num.div_ceil(self.den)
    }

    pub(crate) fn as_f64(self) -> f64 {
        self.floor() as f64 + (self.num % self.den) as f64 / self.den as f64
    }
}

/// The correct values: all from `lo` to `hi`, which are equal for an exact limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) lo: i128,
    pub(crate) hi: i128,
}

impl Span {
    pub(crate) fn only(value: u64) -> Self {
        let value = value.into();
        Self {
            lo: value,
            hi: value,
        }
    }

    pub(crate) fn has(self, value: u128) -> bool {
        i128::try_from(value).is_ok_and(|value| self.lo <= value && value <= self.hi)
    }

    /// Returns the correct values for at most `n` of an available number.
    pub(crate) fn upto(self, n: u64) -> Self {
        Self {
            lo: self.lo.min(n.into()),
            hi: self.hi.min(n.into()),
        }
    }
}

/// The time until permits are available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// Nanoseconds from now on. A request may pass from `lo` on, and must pass from `hi` on.
    pub(crate) span: Span,
    /// Whether the limiter may say that waiting does not help.
    pub(crate) may_be_never: bool,
    /// Whether the limiter must say so.
    pub(crate) is_never: bool,
}

impl Wait {
    /// A wait that never ends.
    pub(crate) const NEVER: Self = Self {
        span: Span {
            lo: i128::MAX,
            hi: i128::MAX,
        },
        may_be_never: true,
        is_never: true,
    };
}

/// A limiter by its definition. All times are nanoseconds since the clock's start.
pub(crate) trait Reference: Debug {
    /// The position of a grant.
    type Mark: Debug;

    /// Returns the most permits at once.
    fn limit(&self) -> u64;

    /// Returns a characteristic length of time.
    fn period(&self) -> u64;

    /// Returns the next tick at which a period ends.
    fn edge(&self, now: u64) -> u64;

    /// Returns the last tick that is distinguished from later ones, if ticks beyond 50 years are
    /// answered exactly.
    fn horizon(&self) -> Option<u64>;

    /// Returns whether the limiter must start fresh because the clock has gone back that far.
    fn begins_anew(&self, _before: u64, _now: u64) -> bool {
        false
    }

    fn available(&self, now: u64) -> Span;

    /// Returns the wait for `n` permits. For 0 permits, the wait until there is no debt.
    fn wait(&self, now: u64, n: u64) -> Wait;

    /// Returns the tick at which a request for `n` permits is counted.
    fn counted_at(&self, now: u64, n: u64) -> u64;

    /// Returns the remaining permits that a grant reports.
    fn remaining(&self, now: u64) -> Span {
        self.available(now)
    }

    /// Returns the nanoseconds from the tick at which a grant was counted until the limiter is
    /// idle.
    fn as_new_after(&self, now: u64, counted_at: u64) -> Span;

    /// Returns the delay in nanoseconds of a caller that just took `n` permits.
    fn delay(&self, _now: u64, _n: u64) -> Span {
        Span::only(0)
    }

    /// Counts `n` permits, available or not.
    fn take(&mut self, now: u64, n: u64);

    /// Returns the debt in whole permits.
    fn debt(&self, now: u64) -> Span;

    /// Returns how many more permits can be counted: at least the start of the range, at most its
    /// end.
    fn room(&self, now: u64) -> RangeInclusive<u64>;

    /// Returns whether the model knows everything about a debt of `n` more.
    fn knows_debt(&self, _now: u64, _n: u64) -> bool {
        true
    }

    /// Returns the position of the grant that was just made.
    fn mark(&self, now: u64) -> Self::Mark;

    /// Gives back what can still be returned of `n` permits granted at `mark`, and returns the
    /// number. `None` if it is unknown, and then nothing changes.
    fn undo(&mut self, now: u64, n: u64, mark: Self::Mark) -> Option<Span>;

    fn refund(&mut self, now: u64, n: u64) -> Span;

    /// Returns whether the limiter may be reported as idle, and whether it must be.
    fn is_idle(&self, now: u64) -> (bool, bool);

    /// Returns what is counted, if it is known exactly.
    fn level(&self, now: u64) -> Option<Fraction>;

    fn reset(&mut self);
}
