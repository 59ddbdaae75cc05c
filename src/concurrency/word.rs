//! The word of a [`Concurrency`](super::Concurrency).
//!
//! ```text
//!   63        62 .. 32   31 .. 0
//! [ waiting | limit    | inside ]
//! ```
//!
//! `inside` is the total weight of the guards. A caller enters only within the limit, so `inside`
//! is at most the largest limit that was ever set, and fits its field. It exceeds the limit only
//! after the limit was lowered. `waiting` is set while a waiter stands in line, so one load shows
//! whether there is room and whether a caller is ahead.

use crate::outcome::Denied;

/// The highest limit: `Concurrency::MAX_LIMIT`.
pub(super) const MAX_CONCURRENCY: u64 = (1 << 31) - 1;

/// The flag that is set while a waiter stands in line.
pub(super) const WAITING: u64 = 1 << 63;

const LIMIT_AT: u32 = 32;
const INSIDE: u64 = (1 << LIMIT_AT) - 1;

/// A copy of the word, as it was loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Occupancy(pub(super) u64);

impl Occupancy {
    /// Returns the word with none inside and none waiting. The limit is at most
    /// [`MAX_CONCURRENCY`].
    pub(super) const fn empty(limit: u64) -> Self {
        Self(limit << LIMIT_AT)
    }

    #[inline]
    pub(super) const fn limit(self) -> u64 {
        (self.0 & !WAITING) >> LIMIT_AT
    }

    #[inline]
    pub(super) const fn inside(self) -> u64 {
        self.0 & INSIDE
    }

    #[inline]
    pub(super) const fn somebody_waits(self) -> bool {
        self.0 & WAITING != 0
    }

    /// Returns whether a weight of `n` fits. A weight of 0 always does.
    #[inline]
    pub(super) const fn has_room(self, n: u64) -> bool {
        n <= self.limit().saturating_sub(self.inside())
    }

    /// Returns the word with a further weight of `n` inside. It must fit.
    #[inline]
    pub(super) const fn with_inside(self, n: u64) -> Self {
        Self(self.0.wrapping_add(n))
    }

    pub(super) const fn with_limit(self, limit: u64) -> Self {
        Self((self.0 & (WAITING | INSIDE)) | (limit << LIMIT_AT))
    }

    pub(super) const fn with_waiting(self, waits: bool) -> Self {
        match waits {
            true => Self(self.0 | WAITING),
            false => Self(self.0 & !WAITING),
        }
    }

    /// Returns the answer to a caller that can't enter.
    pub(super) const fn denied(self, n: u64) -> Denied {
        match n > self.limit() {
            true => Denied::never(n, self.limit()),
            false => Denied::busy(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_keeps_the_others() {
        for limit in [1, 5, MAX_CONCURRENCY] {
            for inside in [0, 1, limit] {
                for waiting in [false, true] {
                    let word = Occupancy::empty(limit)
                        .with_inside(inside)
                        .with_waiting(waiting);
                    let fields =
                        |word: Occupancy| (word.limit(), word.inside(), word.somebody_waits());
                    assert_eq!(fields(word), (limit, inside, waiting));
                    assert_eq!(fields(word.with_limit(7)), (7, inside, waiting));
                    assert_eq!(
                        fields(word.with_waiting(!waiting)),
                        (limit, inside, !waiting)
                    );
                    assert!(word.has_room(limit - inside) && !word.has_room(limit - inside + 1));
                }
            }
        }
    }

    #[test]
    fn above_a_lowered_limit_only_a_weight_of_0_fits() {
        let word = Occupancy::empty(9).with_inside(9).with_limit(4);
        assert!(word.has_room(0) && !word.has_room(1) && !word.has_room(u64::MAX));
        assert_eq!(word.denied(4), Denied::busy(4));
        assert_eq!(word.denied(5), Denied::never(5, 4));
    }
}
