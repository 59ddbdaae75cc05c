//! The least that a decision on a shared word can cost: a limiter without arithmetic.

#![allow(clippy::disallowed_types, reason = "no model runs a bench")]

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::clock::{Clock, SystemClock};

use super::timing::{Contestant, Handle, Handled};

/// Reads the clock and exchanges the word: the floor of an allowed decision.
pub(crate) struct Exchange {
    word: AtomicU64,
    clock: quanta::Clock,
}

impl Exchange {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            clock: quanta::Clock::new(),
        }
    }
}

impl Contestant for Exchange {
    // ORDERING: Relaxed. The word publishes nothing; the bench only exchanges it.
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        let now = self.clock.raw();
        let mut word = self.word.load(Ordering::Relaxed);
        // On one thread the first exchange succeeds.
        while let Err(seen) =
            self.word
                .compare_exchange_weak(word, now, Ordering::Relaxed, Ordering::Relaxed)
        {
            word = seen;
        }
        true
    }
}

/// Reads the clock of a limiter, and exchanges the word for one that needs a multiplication, as a
/// bucket's does. It retries at once.
#[allow(dead_code, reason = "one bench has it")]
pub(crate) struct Counted(AtomicU64);

impl Counted {
    #[allow(dead_code, reason = "one bench has it")]
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Contestant for Counted {
    // ORDERING: Relaxed. The word publishes nothing; the bench only exchanges it.
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        let now = SystemClock.now().as_nanos();
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let next = word.max(now.wrapping_mul(black_box(3))).wrapping_add(1);
            let exchanged =
                self.0
                    .compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
    }
}

/// Reads the clock and the word: the floor of a denied decision.
pub(crate) struct Load {
    word: AtomicU64,
    clock: quanta::Clock,
}

impl Load {
    pub(crate) fn new() -> Self {
        Self {
            word: AtomicU64::new(u64::MAX),
            clock: quanta::Clock::new(),
        }
    }
}

impl Contestant for Load {
    // ORDERING: Relaxed. The word publishes nothing and never changes.
    #[inline(always)]
    fn decide(&self, _turn: u64) -> bool {
        self.clock.raw() > self.word.load(Ordering::Relaxed)
    }
}

/// The same floors on private words, without contention.
#[allow(dead_code, reason = "not used by benches on one thread")]
pub(crate) struct Private<C>(pub(crate) fn() -> C);

impl<C: Contestant> Handled for Private<C> {
    type Handle<'a>
        = Own<C>
    where
        C: 'a;

    fn handle(&self, _threads: usize) -> Own<C> {
        Own((self.0)())
    }
}

/// A thread's private word.
pub(crate) struct Own<C>(C);

impl<C: Contestant> Handle for Own<C> {
    #[inline(always)]
    fn decide(&mut self, turn: u64) -> bool {
        self.0.decide(turn)
    }
}
