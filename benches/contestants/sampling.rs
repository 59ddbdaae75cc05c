//! Single decisions, each timed by itself.
//!
//! The counter is read right before and right after each decision. A processor may begin what
//! follows before the last of a decision is done, so what is seen is what the thread waits for, and
//! not each decision's whole way.

use std::hint::black_box;

use super::timing::{Aligned, Contestant, Handle, Handled, PerThread, Runner};

/// A contestant whose decisions can be timed one by one.
pub(crate) trait Sampled: Runner {
    /// What one of so many threads runs.
    fn sampler(&self, threads: usize) -> Box<dyn Sampler + '_>;
}

/// A contestant in its loop.
pub(crate) trait Sampler {
    /// Makes a decision for each place of `taken`, the first of them turn `first`, and puts there
    /// how many counts of this clock it took. Returns how many were allowed.
    fn sample(&mut self, first: u64, clock: &quanta::Clock, taken: &mut [u64]) -> u64;
}

impl<C: Contestant> Sampled for Aligned<C> {
    fn sampler(&self, _threads: usize) -> Box<dyn Sampler + '_> {
        Box::new(&self.0)
    }
}

impl<C: Contestant> Sampler for &C {
    #[inline(never)]
    fn sample(&mut self, first: u64, clock: &quanta::Clock, taken: &mut [u64]) -> u64 {
        let contestant = *self;
        each(first, clock, taken, |turn| {
            black_box(contestant).decide(turn)
        })
    }
}

impl<C: Handled> Sampled for PerThread<C> {
    fn sampler(&self, threads: usize) -> Box<dyn Sampler + '_> {
        Box::new(Aligned(self.0.handle(threads)))
    }
}

impl<H: Handle> Sampler for Aligned<H> {
    #[inline(never)]
    fn sample(&mut self, first: u64, clock: &quanta::Clock, taken: &mut [u64]) -> u64 {
        each(first, clock, taken, |turn| {
            black_box(&mut self.0).decide(turn)
        })
    }
}

#[inline(always)]
fn each(
    first: u64,
    clock: &quanta::Clock,
    taken: &mut [u64],
    mut decide: impl FnMut(u64) -> bool,
) -> u64 {
    let mut allowed = 0;
    for (turn, taken) in (first..).zip(taken) {
        let before = clock.raw();
        let is_allowed = black_box(decide(turn));
        *taken = clock.raw().saturating_sub(before);
        allowed += u64::from(is_allowed);
    }
    allowed
}

/// Decides nothing: what is seen of it is the timing itself.
pub(crate) struct Nothing(pub(crate) bool);

impl Contestant for Nothing {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0
    }
}
