//! The retry loop: as in [`cell`](crate::store::cell), except that each attempt uses the parameters
//! of its own version.

use super::ring::{Pair, Ring};
use crate::algorithm::{Settings, Visit};
use crate::clock::Tick;
use crate::store::op::{Attempt, Current, Op, OpResult, Step};
use crate::sync::Backoff;

/// Returns the pair in the form that an operation takes.
#[inline(always)]
const fn current(pair: Pair, now: Tick) -> Current {
    Current::new(pair.word, now).with_source(source_of(pair.version))
}

/// The first, short attempt of an operation on this pair.
struct Fast<'o, O>(&'o mut O, Current);

impl<A, O: Op<A>> Visit<A> for Fast<'_, O> {
    type Output = Option<Step<A, O>>;

    #[inline(always)]
    fn visit(self, algorithm: &A) -> Self::Output {
        self.0.run_fast(algorithm, self.1)
    }
}

/// An attempt that runs an operation on this pair in full.
struct Long<'o, O>(&'o mut O, Current);

impl<A, O: Op<A>> Visit<A> for Long<'_, O> {
    type Output = Step<A, O>;

    #[inline(always)]
    fn visit(self, algorithm: &A) -> Self::Output {
        self.0.run(algorithm, self.1)
    }
}

/// Runs an operation until its new word has replaced exactly the word that it was given, under the
/// version whose algorithm it used. An operation that refuses, or that leaves the word as it is,
/// writes nothing.
///
/// This is lock-free if the exchange of a pair is: a thread retries only because another thread has
/// exchanged the pair, or because the exchange failed spuriously.
#[inline(always)]
pub(super) fn apply<A: Settings, O: Op<A>>(ring: &Ring, now: Tick, mut op: O) -> OpResult<A, O> {
    let fast @ Some(_) = ring.fast_pair() else {
        return retry(ring, None, now, op);
    };
    let pair = ring.load_with(fast);
    let short = Fast(&mut op, current(pair, now));
    if let Some(Some(step)) = ring.read::<A, _>(pair, short) {
        let exchange = |next| ring.exchange_with(fast, pair, next);
        if let Some(output) = Attempt::end::<A, _, _>(&op, pair.word, step?, exchange).answer() {
            return Ok(output);
        }
    }
    retry(ring, Some(pair), now, op)
}

/// Makes the first attempt only. Returns the answer if the operation has a short path and no other
/// thread interfered.
#[inline(always)]
pub(super) fn try_fast<A: Settings, O: Op<A>>(
    ring: &Ring,
    now: Tick,
    mut op: O,
) -> Option<OpResult<A, O>> {
    let fast = Some(ring.fast_pair()?);
    let pair = ring.load_with(fast);
    let step = match ring.read::<A, _>(pair, Fast(&mut op, current(pair, now)))?? {
        Ok(step) => step,
        Err(refusal) => return Some(Err(refusal)),
    };
    let exchange = |next| ring.exchange_with(fast, pair, next);
    Some(Ok(
        Attempt::end::<A, _, _>(&op, pair.word, step, exchange).answer()?
    ))
}

/// Makes the attempts after the first one (which used `pair`), and runs operations without a short
/// path. On a processor without the instruction that exchanges a pair, it runs every operation. It
/// is out of line, as in `cell`.
#[cold]
#[inline(never)]
fn retry<A: Settings, O: Op<A>>(
    ring: &Ring,
    pair: Option<Pair>,
    now: Tick,
    mut op: O,
) -> OpResult<A, O> {
    let mut backoff = Backoff::new();
    let mut pair = match pair {
        Some(pair) => backoff.wait_if_changed(pair, || ring.load()),
        None => ring.load(),
    };
    loop {
        let Some(step) = ring.read::<A, _>(pair, Long(&mut op, current(pair, now))) else {
            // This version has been replaced, so a load returns a later one.
            pair = ring.load();
            continue;
        };
        let exchange = |next| ring.exchange(pair, next);
        if let Some(output) = Attempt::end::<A, _, _>(&op, pair.word, step?, exchange).answer() {
            return Ok(output);
        }
        pair = backoff.wait_if_changed(pair, || ring.load());
    }
}

/// Returns the number by which a grant identifies its version. It repeats after 2^32 changes.
#[inline(always)]
pub(super) const fn source_of(version: u64) -> u32 {
    version as u32
}
