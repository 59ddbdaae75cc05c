//! Going on with another quota, where the words of the two have nothing in common.

use super::{Algorithm, Debt};
use crate::clock::Tick;

/// The word with which `next` goes on at `now` where `this` left off: with as many whole permits, but
/// no more than it can hold, and with as much debt.
pub(super) fn by_permits<A, B>(this: &A, word: u64, now: Tick, next: &B) -> u64
where
    A: Algorithm + Debt,
    B: Algorithm + Debt,
{
    let (_, seen) = this.charge(word, now, 0);
    // A word that somebody with a later tick has written goes on at that tick.
    let now = seen.at();
    let (have, most) = (this.available(word, now), next.available(0, now));
    match most.saturating_sub(have).saturating_add(seen.debt()) {
        0 => 0,
        lack => next.charge(0, now, lack).0,
    }
}
