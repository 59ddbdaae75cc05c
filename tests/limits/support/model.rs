//! A model that counts what was taken when, and what follows from it: when permits are there is
//! searched for, tick by tick in halves, in what the definition says is counted at each.

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

/// An algorithm as its definition has it. All times are nanoseconds since the clock's start, and
/// wide enough that nothing is cut off.
pub(crate) trait Model: Debug + Clone {
    /// Where a grant stands.
    type Mark: Debug + Copy;

    /// The most permits at once.
    fn limit(&self) -> u64;

    /// A length of time that matters.
    fn period(&self) -> u64;

    /// The last tick that is told from later ones.
    fn horizon(&self) -> u64;

    /// What is counted at a moment if nobody does anything until then. It never grows with time.
    fn weight(&self, time: u128) -> Fraction;

    /// What of that is held against a caller, in whole permits.
    fn held(&self, time: u128) -> u128 {
        self.weight(time).ceil()
    }

    /// The tick at which a permit taken now is counted.
    fn counted_at(&self, now: u64) -> u64;

    /// Whether a grant says how many remain.
    fn tells_what_remains(&self) -> bool {
        true
    }

    /// Counts `n` permits, there or not.
    fn take(&mut self, now: u64, n: u64);

    /// How many more the word can count.
    fn room(&self, now: u64) -> u64;

    /// Where the grant stands that was just made.
    fn mark(&self, now: u64) -> Self::Mark;

    /// Gives back what is still to be had of `n` permits granted there, and says how many; `None`
    /// if that can't be known, and nothing was done.
    fn undo(&mut self, now: u64, n: u64, mark: Self::Mark) -> Option<u64>;

    fn refund(&mut self, now: u64, n: u64) -> u64;

    fn is_idle(&self, now: u64) -> bool;

    fn reset(&mut self);

    /// The next moment at which something ends.
    fn edge(&self, now: u64) -> u64;

    /// How long the caller must wait who just took permits.
    fn delay(&self, _now: u64) -> u64 {
        0
    }
}

/// What follows for every model.
pub(crate) trait Answers: Model {
    /// The moment it is for the limiter.
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

    /// What is owed.
    fn debt(&self, now: u64) -> u64 {
        let owed = self
            .held(self.clock(now))
            .saturating_sub(self.limit().into());
        u64::try_from(owed).unwrap_or(u64::MAX)
    }

    /// The first tick from now on at which `n` permits are there.
    fn due(&self, now: u64, n: u64) -> Option<u64> {
        if self.fits(self.clock(now), n) {
            return Some(now);
        }
        let due = first(now.into(), self.horizon().into(), |time| self.fits(time, n))?;
        Some(u64::try_from(due).expect("the horizon is a tick"))
    }

    /// The first tick at which nothing is counted any more, as if the clock went on forever: the
    /// last there is, if it is beyond that. 0 if nothing is counted now.
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

/// The first moment after `from`, and until `end`, at which something holds that goes on to hold.
fn first(from: u128, end: u128, holds: impl Fn(u128) -> bool) -> Option<u128> {
    let (mut not, mut step) = (from, 1_u128);
    let mut does = loop {
        let next = (not + step).min(end);
        if next <= not {
            // Up to the end it does not.
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
