//! The least that a decision on a shared word can cost: what is left when a limiter has no
//! arithmetic at all.

use tollgate::sync::{AtomicU64, Ordering};

use super::timing::{Contestant, Handle, Handled};

/// Reads the clock and exchanges the word: the floor of a decision that is allowed.
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
    // ORDERING: Relaxed. The word publishes nothing; it is there to be exchanged.
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

/// Reads the clock and the word: the floor of a decision that is denied.
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

/// The same on words that no two threads share: how much of a decision is others' doing.
#[allow(dead_code, reason = "who measures on one thread has no use for it")]
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

/// A thread's own.
pub(crate) struct Own<C>(C);

impl<C: Contestant> Handle for Own<C> {
    #[inline(always)]
    fn decide(&mut self, turn: u64) -> bool {
        self.0.decide(turn)
    }
}
