//! The loop: as [`cell`](crate::cell)'s, but that each turn runs on the parameters of its own version.

use core::convert::Infallible;

use super::ring::{Pair, Ring};
use crate::algorithm::{Algorithm, Reserve, Settings, Then};
use crate::clock::Tick;
use crate::outcome::{Denied, Granted};

/// What a deed says of a word: the next word and the answer, or why not.
pub(super) type Turn<A, D> = Result<(u64, <D as Deed<A>>::Answer), <D as Deed<A>>::Refusal>;

/// What is to be done with a word, by the algorithm that is in force. As [`cell::Step`](crate::cell) a trait and
/// not a closure, so that it is inlined by force.
pub(super) trait Deed<A>: Sized {
    type Answer;
    type Refusal;

    /// Pure: it may be run again, also by another algorithm.
    fn run(&mut self, algorithm: &A, pair: Pair) -> Turn<A, Self>;

    /// The same, if that is short; else it is run out of line.
    #[inline(always)]
    fn run_short(&mut self, algorithm: &A, pair: Pair) -> Option<Turn<A, Self>> {
        Some(self.run(algorithm, pair))
    }

    /// Whether it wants nothing written.
    #[inline(always)]
    fn leaves(&self, word: u64, next: u64) -> bool {
        word == next
    }
}

/// Runs a deed on this pair, if that is short.
struct Short<'d, D>(&'d mut D, Pair);

impl<A, D: Deed<A>> Then<A> for Short<'_, D> {
    type Output = Option<Turn<A, D>>;

    #[inline(always)]
    fn then(self, algorithm: &A) -> Self::Output {
        self.0.run_short(algorithm, self.1)
    }
}

/// Runs a deed on this pair.
struct Long<'d, D>(&'d mut D, Pair);

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
    mut deed: D,
) -> Result<D::Answer, D::Refusal> {
    let mut pair = ring.load();
    let short = Short(&mut deed, pair);
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
    go_round(ring, pair, deed)
}

/// The first turn alone: the answer if the deed is short, does not refuse and was not disturbed.
#[inline(always)]
pub(super) fn try_once<A: Settings, D: Deed<A>>(ring: &Ring, mut deed: D) -> Option<D::Answer> {
    let pair = ring.load();
    let (next, answer) = ring.read::<A, _>(pair, Short(&mut deed, pair))??.ok()?;
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
    mut deed: D,
) -> Result<D::Answer, D::Refusal> {
    loop {
        let Some(outcome) = ring.read::<A, _>(pair, Long(&mut deed, pair)) else {
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

/// The deed of a decision.
pub(super) struct Acquire {
    pub(super) now: Tick,
    pub(super) n: u64,
}

impl<A: Algorithm> Deed<A> for Acquire {
    type Answer = Granted;
    type Refusal = Denied;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, pair: Pair) -> Result<(u64, Granted), Denied> {
        let (next, granted) = algorithm.step(pair.word, self.now, self.n)?;
        Ok((next, granted.of_part(part_of(pair.version))))
    }

    #[inline(always)]
    fn run_short(&mut self, algorithm: &A, pair: Pair) -> Option<Result<(u64, Granted), Denied>> {
        let outcome = algorithm.short_step(pair.word, self.now, self.n)?;
        Some(outcome.map(|(next, granted)| (next, granted.of_part(part_of(pair.version)))))
    }

    /// Known before it is run, and for one permit when it is compiled.
    #[inline(always)]
    fn leaves(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }
}

/// The deed of a reservation.
pub(super) struct Ahead {
    pub(super) now: Tick,
    pub(super) n: u64,
    pub(super) latest: Tick,
}

impl<A: Reserve> Deed<A> for Ahead {
    type Answer = Granted;
    type Refusal = Denied;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, pair: Pair) -> Result<(u64, Granted), Denied> {
        let (next, granted) = algorithm.reserve(pair.word, self.now, self.n, self.latest)?;
        Ok((next, granted.of_part(part_of(pair.version))))
    }

    #[inline(always)]
    fn run_short(&mut self, algorithm: &A, pair: Pair) -> Option<Result<(u64, Granted), Denied>> {
        let (next, granted) = algorithm.reserve_now(pair.word, self.now, self.n)?;
        Some(Ok((next, granted.of_part(part_of(pair.version)))))
    }

    #[inline(always)]
    fn leaves(&self, _word: u64, _next: u64) -> bool {
        self.n == 0
    }
}

/// A deed that can't refuse.
pub(super) struct Change<F>(pub(super) F);

impl<A, T, F: FnMut(&A, Pair) -> (u64, T)> Deed<A> for Change<F> {
    type Answer = T;
    type Refusal = Infallible;

    #[inline(always)]
    fn run(&mut self, algorithm: &A, pair: Pair) -> Result<(u64, T), Infallible> {
        Ok((self.0)(algorithm, pair))
    }
}
