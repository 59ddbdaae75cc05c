//! Times single decisions.
//!
//! The counter is read right before and right after each decision. A processor may begin the next
//! instructions before a decision is complete, so the figures show how long the thread waits, and
//! not the full latency of all instructions.

use std::hint::black_box;

use super::timing::{Aligned, Contestant, Handle, Handled, PerThread, Runner};

/// A contestant whose decisions can be timed one by one.
pub(crate) trait Sampled: Runner {
    /// Returns the loop of one of `threads` threads.
    fn sampler(&self, threads: usize) -> Box<dyn Sampler + '_>;
}

/// A contestant in its loop.
pub(crate) trait Sampler {
    /// Makes a decision for each element of `taken`, beginning with turn `first`, and stores its
    /// duration in ticks of this clock. Returns how many decisions were allowed.
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

/// Decides nothing, to measure the cost of the timing itself.
pub(crate) struct Nothing(pub(crate) bool);

impl Contestant for Nothing {
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.0
    }
}
