//! A model that remembers when permits were taken, and the answers that follow from that. The tick
//! at which permits are available is found by binary search over what the definition counts at each
//! tick.

use std::fmt::Debug;

pub(crate) use crate::support::reference::Fraction;

impl Fraction {
    pub(crate) fn whole(n: u64) -> Self {
        Self {
            num: n.into(),
            den: 1,
        }
    }
}

/// An algorithm by its definition. All times are nanoseconds since the clock's start, in types wide
/// enough that nothing overflows.
pub(crate) trait Model: Debug + Clone {
    /// The position of a grant.
    type Mark: Debug + Copy;

    /// Returns the most permits at once.
    fn limit(&self) -> u64;

    /// Returns a characteristic length of time.
    fn period(&self) -> u64;

    /// Returns the last tick that is distinguished from later ones.
    fn horizon(&self) -> u64;

    /// Returns what is counted at a tick if nothing is done until then. It never grows with time.
    fn weight(&self, time: u128) -> Fraction;

    /// Returns the part of that which blocks a caller, in whole permits.
    fn held(&self, time: u128) -> u128 {
        self.weight(time).ceil()
    }

    /// Returns the tick at which a permit taken now is counted.
    fn counted_at(&self, now: u64) -> u64;

    /// Returns whether a grant reports the remaining permits.
    fn reports_remaining(&self) -> bool {
        true
    }

    /// Counts `n` permits, available or not.
    fn take(&mut self, now: u64, n: u64);

    /// Returns how many more permits the word can count.
    fn room(&self, now: u64) -> u64;

    /// Returns the position of the grant that was just made.
    fn mark(&self, now: u64) -> Self::Mark;

    /// Gives back what can still be returned of `n` permits granted at `mark`, and returns the
    /// number. `None` if it is unknown, and then nothing changes.
    fn undo(&mut self, now: u64, n: u64, mark: Self::Mark) -> Option<u64>;

    fn refund(&mut self, now: u64, n: u64) -> u64;

    fn is_idle(&self, now: u64) -> bool;

    fn reset(&mut self);

    /// Returns the next tick at which a period ends.
    fn edge(&self, now: u64) -> u64;

    /// Returns the delay of a caller that just took permits.
    fn delay(&self, _now: u64) -> u64 {
        0
    }
}

/// The answers that follow for every model.
pub(crate) trait Answers: Model {
    /// Returns the tick at which the limiter counts.
    fn clock(&self, now: u64) -> u128 {
        now.min(self.horizon()).into()
    }

    fn fits(&self, time: u128, n: u64) -> bool {
        self.held(time) + u128::from(n) <= u128::from(self.limit())
    }

    fn available(&self, now: u64) -> u64 {
        let held = self.held(self.clock(now));
        u64::try_from(u128::from(self.limit()).saturating_sub(held)).expect("below the limit")
    }

    /// Returns the debt.
    fn debt(&self, now: u64) -> u64 {
        let owed = self
            .held(self.clock(now))
            .saturating_sub(self.limit().into());
        u64::try_from(owed).unwrap_or(u64::MAX)
    }

    /// Returns the first tick from now on at which `n` permits are available.
    fn due(&self, now: u64, n: u64) -> Option<u64> {
        if self.fits(self.clock(now), n) {
            return Some(now);
        }
        let due = first(now.into(), self.horizon().into(), |time| self.fits(time, n))?;
        Some(u64::try_from(due).expect("the horizon is a tick"))
    }

    /// Returns the first tick at which nothing is counted any more, as if the clock went on
    /// forever. Returns the last tick if it is beyond that, and 0 if nothing is counted now.
    fn as_new_at(&self, now: u64) -> u64 {
        let now = self.clock(now);
        if self.weight(now).num == 0 {
            return 0;
        }
        let new = first(now, 1 << 65, |time| self.weight(time).num == 0);
        new.map_or(u64::MAX, |time| u64::try_from(time).unwrap_or(u64::MAX))
    }
}

impl<M: Model> Answers for M {}

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
