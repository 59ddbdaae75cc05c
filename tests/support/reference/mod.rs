//! The answers that a model must give to be compared with a limiter. For a model that remembers
//! what was taken they follow from what it counts at each tick, and a binary search finds the tick
//! at which permits are available.

pub(crate) mod bucket;

use std::fmt::Debug;

/// 50 years of 365.25 days, in nanoseconds: the time for which the crate's guarantees hold.
pub(crate) const FIFTY_YEARS: u64 = 36_525 * 43_200 * 1_000_000_000;

/// An exact number of permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) num: u128,
    pub(crate) den: u128,
}

impl Fraction {
    pub(crate) fn whole(n: u64) -> Self {
        Self {
            num: n.into(),
            den: 1,
        }
    }

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

/// A limiter by its definition. All times are nanoseconds since the clock's start. What is counted
/// at a tick has a type wide enough that nothing overflows.
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

    /// Returns what is counted at a tick if nothing is done until then. It never grows with time.
    fn weight(&self, time: u128) -> Fraction;

    /// Returns the part of that which blocks a caller, in whole permits.
    fn held(&self, time: u128) -> u128 {
        self.weight(time).ceil()
    }

    /// Returns the tick at which the limiter counts.
    fn clock(&self, now: u64) -> u128 {
        now.min(self.horizon().unwrap_or(u64::MAX)).into()
    }

    /// Returns whether the limiter must start fresh because the clock has gone back that far.
    fn begins_anew(&self, _before: u64, _now: u64) -> bool {
        false
    }

    fn available(&self, now: u64) -> Span {
        let held = self.held(self.clock(now));
        let left = u128::from(self.limit()).saturating_sub(held);
        Span::only(u64::try_from(left).expect("below the limit"))
    }

    /// Returns the wait for `n` permits. For 0 permits, the wait until there is no debt.
    fn wait(&self, now: u64, n: u64) -> Wait {
        let fits = |time| self.held(time) + u128::from(n) <= u128::from(self.limit());
        let end = self.horizon().unwrap_or(u64::MAX);
        let due = match fits(self.clock(now)) {
            true => Some(now.into()),
            false => first(now.into(), end.into(), fits),
        };
        due.map_or(Wait::NEVER, |due| Wait {
            span: Span::only(u64::try_from(due).expect("the horizon is a tick") - now),
            may_be_never: false,
            is_never: false,
        })
    }

    /// Returns the tick at which a request is counted.
    fn counted_at(&self, now: u64) -> u64 {
        now
    }

    /// Returns the remaining permits that a grant reports.
    fn remaining(&self, now: u64) -> Span {
        self.available(now)
    }

    /// Returns the nanoseconds from the tick at which a grant was counted until the limiter is
    /// idle, as if the clock went on forever. Up to the last tick if it is beyond that, and 0 if
    /// nothing is counted now.
    fn as_new_after(&self, now: u64, counted_at: u64) -> Span {
        let (now, is_new) = (self.clock(now), |time| self.weight(time).num == 0);
        let at = match is_new(now) {
            true => Some(0),
            false => first(now, 1 << 65, is_new),
        };
        let at = at.and_then(|at| u64::try_from(at).ok());
        Span::only(at.unwrap_or(u64::MAX).saturating_sub(counted_at))
    }

    /// Returns the delay in nanoseconds of a caller that just took `n` permits.
    fn delay(&self, _now: u64, _n: u64) -> Span {
        Span::only(0)
    }

    /// Counts `n` permits, available or not.
    fn take(&mut self, now: u64, n: u64);

    /// Returns the debt in whole permits.
    fn debt(&self, now: u64) -> Span {
        let held = self.held(self.clock(now));
        let owed = held.saturating_sub(self.limit().into());
        Span::only(u64::try_from(owed).unwrap_or(u64::MAX))
    }

    /// Returns how many more permits can be counted.
    fn room(&self, _now: u64) -> Span {
        unreachable!("nothing can be charged")
    }

    /// Returns whether the model knows everything about a debt of `n` more.
    fn knows_debt(&self, _now: u64, _n: u64) -> bool {
        true
    }

    /// Returns the position of the grant that was just made.
    fn mark(&self, now: u64) -> Self::Mark;

    /// Gives back what can still be returned of `n` permits granted at `mark`, and returns the
    /// number. `None` if it is unknown, and then nothing changes.
    fn undo(&mut self, _now: u64, _n: u64, _mark: Self::Mark) -> Option<Span> {
        unreachable!("nothing can be given back")
    }

    fn refund(&mut self, _now: u64, _n: u64) -> Span {
        unreachable!("nothing can be given back")
    }

    /// Returns whether the limiter may be reported as idle, and whether it must be.
    fn is_idle(&self, _now: u64) -> [bool; 2] {
        unreachable!("this limiter has no is_idle")
    }

    /// Returns what is counted, if it is known exactly.
    fn level(&self, now: u64) -> Option<Fraction> {
        Some(self.weight(self.clock(now)))
    }

    fn reset(&mut self);
}

/// Returns the first tick after `from` and up to `end` at which a condition holds that stays true.
fn first(from: u128, end: u128, holds: impl Fn(u128) -> bool) -> Option<u128> {
    let (mut not, mut step) = (from, 1_u128);
    let mut does = loop {
        let next = (not + step).min(end);
        if next <= not {
            // It does not hold up to the end.
            return None;
        }
        if holds(next) {
            break next;
        }
        (not, step) = (next, step * 2);
    };
    while does - not > 1 {
        let middle = not + (does - not) / 2;
        if holds(middle) {
            does = middle;
        } else {
            not = middle;
        }
    }
    Some(does)
}
