//! What a model must be able to say so that a limiter can be compared with it.

use std::fmt::Debug;
use std::ops::RangeInclusive;

/// 50 years of 365.25 days, in nanoseconds: so long the crate promises everything.
pub(crate) const FIFTY_YEARS: u64 = 36_525 * 43_200 * 1_000_000_000;

/// A number of permits, exactly.
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

/// The values that are right: all from `lo` to `hi`, which are one where the limiter is exact.
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

    /// What is right of as many as there are, but no more than `n`.
    pub(crate) fn upto(self, n: u64) -> Self {
        Self {
            lo: self.lo.min(n.into()),
            hi: self.hi.min(n.into()),
        }
    }
}

/// How long it takes until permits are there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    /// Nanoseconds from now on; what is at or below `lo` only may be and above `hi` can't.
    pub(crate) span: Span,
    /// Whether it may be said that waiting does not help.
    pub(crate) may_be_never: bool,
    /// Whether it must.
    pub(crate) is_never: bool,
}

impl Wait {
    /// What never comes.
    pub(crate) const NEVER: Self = Self {
        span: Span {
            lo: i128::MAX,
            hi: i128::MAX,
        },
        may_be_never: true,
        is_never: true,
    };
}

/// A limiter as its definition has it. All times are nanoseconds since the clock's start.
pub(crate) trait Reference: Debug {
    /// Where a grant stands.
    type Mark: Debug;

    /// The most permits at once.
    fn limit(&self) -> u64;

    /// A length of time that matters.
    fn period(&self) -> u64;

    /// The next moment at which something ends.
    fn edge(&self, now: u64) -> u64;

    /// The last tick that is told from later ones, where ticks beyond 50 years are answered
    /// exactly.
    fn horizon(&self) -> Option<u64>;

    /// Whether the limiter is to begin anew because the clock has gone back so far.
    fn begins_anew(&self, _before: u64, _now: u64) -> bool {
        false
    }

    fn available(&self, now: u64) -> Span;

    /// Until `n` permits are there; for 0 permits, until no debt is left.
    fn wait(&self, now: u64, n: u64) -> Wait;

    /// The tick at which a request for `n` permits is counted.
    fn counted_at(&self, now: u64, n: u64) -> u64;

    /// What a grant says that remains, after it.
    fn remaining(&self, now: u64) -> Span {
        self.available(now)
    }

    /// Nanoseconds from the tick at which a grant was counted until the limiter is as good as new.
    fn as_new_after(&self, now: u64, counted_at: u64) -> Span;

    /// How many nanoseconds a caller that just took `n` permits must wait.
    fn delay(&self, _now: u64, _n: u64) -> Span {
        Span::only(0)
    }

    /// Counts `n` permits, there or not.
    fn take(&mut self, now: u64, n: u64);

    /// What is owed, in whole permits.
    fn debt(&self, now: u64) -> Span;

    /// How many more can be counted: so many or more, and never more than so many.
    fn room(&self, now: u64) -> RangeInclusive<u64>;

    /// Whether all is known of a debt of so many more.
    fn knows_debt(&self, _now: u64, _n: u64) -> bool {
        true
    }

    /// Where the grant stands that was just made.
    fn mark(&self, now: u64) -> Self::Mark;

    /// Gives back what is still to be had of `n` permits granted there, and says how many; `None`
    /// if that can't be known, and nothing was done.
    fn undo(&mut self, now: u64, n: u64, mark: Self::Mark) -> Option<Span>;

    fn refund(&mut self, now: u64, n: u64) -> Span;

    /// Whether it may be said to be as good as new, and whether it must.
    fn is_idle(&self, now: u64) -> (bool, bool);

    /// What is counted, where that is known exactly.
    fn level(&self, now: u64) -> Option<Fraction>;

    fn reset(&mut self);
}
