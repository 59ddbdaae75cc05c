//! A decision that was computed, but not made.

use crate::clock::Tick;
use crate::store::cell::UNSTARTED;

/// A request that a limiter would have granted when it looked. Nothing is taken yet.
///
/// It keeps the word that the limiter read and the next one, so that taking the permits is a single
/// exchange if no other caller was faster.
// No grant is kept. It would be copied between calls, and can be computed from the word.
#[derive(Debug)]
#[must_use = "nothing is taken yet"]
pub struct Prepared {
    n: u64,
    now: Tick,
    /// [`UNSTARTED`] if there are no words to exchange.
    word: u64,
    next: u64,
}

impl Prepared {
    /// Creates a request for `n` permits that was only checked. To take the permits, the limiter
    /// decides again.
    #[inline(always)]
    pub const fn checked(n: u64, now: Tick) -> Self {
        Self {
            n,
            now,
            word: UNSTARTED,
            next: UNSTARTED,
        }
    }

    #[inline(always)]
    pub(crate) const fn of((word, next): (u64, u64), n: u64, now: Tick) -> Self {
        Self { n, now, word, next }
    }

    /// Returns the number of permits.
    #[inline(always)]
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Returns the tick of the look.
    #[inline(always)]
    #[must_use]
    pub const fn now(&self) -> Tick {
        self.now
    }

    /// Returns a copy. The caller must take only one of the two.
    #[inline(always)]
    pub(crate) const fn again(&self) -> Self {
        Self { ..*self }
    }

    /// Returns the words that were exchanged, after the permits were taken.
    #[inline(always)]
    pub(crate) const fn exchanged(&self) -> (u64, u64) {
        (self.word, self.next)
    }

    #[inline(always)]
    pub(crate) const fn words(&self) -> Option<(u64, u64)> {
        match self.word {
            UNSTARTED => None,
            word => Some((word, self.next)),
        }
    }
}
