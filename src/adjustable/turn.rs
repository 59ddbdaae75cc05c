//! The loop: as [`cell`](crate::cell)'s, but that each turn runs on the parameters of its own version.

use super::ring::{Pair, Ring};
use crate::algorithm::{Settings, Then};
use crate::clock::Tick;
use crate::deed::{Deed, Held, Turn};

/// A pair as deeds see it.
#[inline(always)]
const fn held(pair: Pair, now: Tick) -> Held {
    Held::new(pair.word, now, part_of(pair.version))
}

/// Runs a deed on this pair, if that is short.
struct Short<'d, D>(&'d mut D, Held);

impl<A, D: Deed<A>> Then<A> for Short<'_, D> {
    type Output = Option<Turn<A, D>>;

    #[inline(always)]
    fn then(self, algorithm: &A) -> Self::Output {
        self.0.run_short(algorithm, self.1)
    }
}

/// Runs a deed on this pair.
struct Long<'d, D>(&'d mut D, Held);

impl<A, D: Deed<A>> Then<A> for Long<'_, D> {
    type Output = Turn<A, D>;

    #[inline(always)]
    fn then(self, algorithm: &A) -> Self::Output {
        self.0.run(algorithm, self.1)
    }
}

/// Runs a deed on the pair until what it answered holds: until the word that it returned has replaced the very
/// word that it was given, under the very version whose algorithm it was given. Who refuses, or leaves the word
/// as it is, writes nothing.
///
/// It is lock-free where the exchange of a pair is: who goes round, does so because another has exchanged the
/// pair (or the processor's exchange is a weak one).
#[inline(always)]
pub(super) fn update<A: Settings, D: Deed<A>>(
    ring: &Ring,
    now: Tick,
    mut deed: D,
) -> Result<D::Answer, D::Refusal> {
    let mut pair = ring.load();
    let short = Short(&mut deed, held(pair, now));
    if let Some(Some(outcome)) = ring.read::<A, _>(pair, short) {
        let (next, answer) = outcome?;
        if deed.leaves(pair.word, next) {
            return Ok(answer);
        }
        match ring.exchange(pair, next) {
            Ok(()) => return Ok(answer),
            Err(seen) => pair = seen,
        }
    }
    go_round(ring, pair, now, deed)
}

/// The first turn alone: the answer if the deed is short, does not refuse and was not disturbed.
#[inline(always)]
pub(super) fn try_once<A: Settings, D: Deed<A>>(
    ring: &Ring,
    now: Tick,
    mut deed: D,
) -> Option<D::Answer> {
    let pair = ring.load();
    let (next, answer) = ring
        .read::<A, _>(pair, Short(&mut deed, held(pair, now)))??
        .ok()?;
    if !deed.leaves(pair.word, next) {
        ring.exchange(pair, next).ok()?;
    }
    Some(answer)
}

/// The turns after the first one, and long deeds. Out of line, as the cell's.
#[cold]
#[inline(never)]
fn go_round<A: Settings, D: Deed<A>>(
    ring: &Ring,
    mut pair: Pair,
    now: Tick,
    mut deed: D,
) -> Result<D::Answer, D::Refusal> {
    loop {
        let Some(outcome) = ring.read::<A, _>(pair, Long(&mut deed, held(pair, now))) else {
            // That version is over, so there is a later one.
            pair = ring.load();
            continue;
        };
        let (next, answer) = outcome?;
        if deed.leaves(pair.word, next) {
            return Ok(answer);
        }
        match ring.exchange(pair, next) {
            Ok(()) => return Ok(answer),
            Err(seen) => pair = seen,
        }
    }
}

/// By which version something was granted, as it fits a grant: a number that comes again after 2^32 changes.
#[inline(always)]
pub(super) const fn part_of(version: u64) -> u32 {
    version as u32
}
