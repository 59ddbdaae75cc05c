//! Limits in parts.

use super::{
    AnyAlgorithm, FixedWindow, Forecast, Gcra, GiveBack, Intervals, LeakyBucket, SlidingWindow,
    TokenBucket,
};

/// An algorithm whose limit can be kept in parts, each with a word of its own, as `Sharded` does.
///
/// What the parts promise adds up to what the whole promises, neither more nor less.
pub trait Split: Forecast + GiveBack + Sized {
    /// In how many parts it can be split; 1 if it can't be.
    fn most_parts(&self) -> u64;

    /// Part `index` of `of`, where `of` is at most [`most_parts`](Self::most_parts). `None` if there
    /// is no such part, or it can't be represented. What such a part says of its quota means nothing.
    fn part(&self, index: u64, of: u64) -> Option<Self>;
}

/// What one of `of` gets of a total; those who come first get what can't be shared equally.
pub(super) const fn share(total: u64, index: u64, of: u64) -> u64 {
    match (total.checked_div(of), total.checked_rem(of)) {
        (Some(each), Some(rest)) if index < of => each + (index < rest) as u64,
        _ => 0,
    }
}

impl Split for TokenBucket {
    fn most_parts(&self) -> u64 {
        self.pace().burst()
    }

    fn part(&self, index: u64, of: u64) -> Option<Self> {
        Some(self.at_pace(self.pace().part(index, of)?))
    }
}

impl Split for Gcra {
    fn most_parts(&self) -> u64 {
        self.pace().burst()
    }

    fn part(&self, index: u64, of: u64) -> Option<Self> {
        Some(self.at_pace(self.pace().part(index, of)?))
    }
}

/// A meter. A queue is kept whole: two that leave at the same time are not what it promises.
impl Split for LeakyBucket {
    fn most_parts(&self) -> u64 {
        match self.free_permits() {
            None => self.pace().burst(),
            Some(_) => 1,
        }
    }

    fn part(&self, index: u64, of: u64) -> Option<Self> {
        if of > self.most_parts() {
            return None;
        }
        Some(self.at_pace(self.pace().part(index, of)?))
    }
}

impl Split for FixedWindow {
    fn most_parts(&self) -> u64 {
        self.limit() / self.least()
    }

    fn part(&self, index: u64, of: u64) -> Option<Self> {
        self.of_limit(share(self.limit(), index, of)).ok()
    }
}

/// Of those that round down only the first does: it is that which may admit a permit more.
impl Split for SlidingWindow {
    fn most_parts(&self) -> u64 {
        self.limit() / self.least()
    }

    fn part(&self, index: u64, of: u64) -> Option<Self> {
        let part = self.of_limit(share(self.limit(), index, of)).ok()?;
        Some(match index {
            0 => part,
            _ => part.rounding(super::Rounding::Exact),
        })
    }
}

/// On the clock, each part gets its part of a refill, fractions of a permit and all; greedy, whole
/// permits, so there can be no more parts than permits in a refill.
impl Split for Intervals {
    fn most_parts(&self) -> u64 {
        self.most_parts()
    }

    fn part(&self, index: u64, of: u64) -> Option<Self> {
        self.part(index, of)
    }
}

macro_rules! each {
    ($this:ident, $algorithm:ident => $call:expr) => {
        match $this {
            AnyAlgorithm::TokenBucket($algorithm) => $call,
            AnyAlgorithm::Gcra($algorithm) => $call,
            AnyAlgorithm::LeakyBucket($algorithm) => $call,
            AnyAlgorithm::FixedWindow($algorithm) => $call,
            AnyAlgorithm::SlidingWindow($algorithm) => $call,
            AnyAlgorithm::Intervals($algorithm) => $call,
        }
    };
}
pub(super) use each;

impl Split for AnyAlgorithm {
    fn most_parts(&self) -> u64 {
        each!(self, algorithm => Split::most_parts(algorithm))
    }

    fn part(&self, index: u64, of: u64) -> Option<Self> {
        each!(self, algorithm => Split::part(algorithm, index, of).map(Self::from))
    }
}
