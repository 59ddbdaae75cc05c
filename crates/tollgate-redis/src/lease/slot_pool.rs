//! The slots that a node holds of a key: a word that says how many are in use and how many are
//! idle, and beside it which grants may still give theirs back.
//!
//! A slot is in use from the exchange of the word that enters to the one that leaves. In between it
//! is a guard's, or in a generation. So the word never says less than what is in use: slots are
//! added to a generation after they have entered, and taken out before they leave.

use super::generations::Generations;
use super::slots_held::SlotsHeld;
use super::sync::{AtomicU64, Ordering};

#[derive(Debug)]
pub(crate) struct SlotPool {
    word: AtomicU64,
    /// The fewest idle slots since the keeper looked, if any were put to use.
    lowest: AtomicU64,
    generations: Generations,
}

/// Slots that were put to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InUse {
    pub(crate) idle: u64,
    pub(crate) generation: u64,
    /// Whether the keeper must be told to draw.
    pub(crate) tells: bool,
}

impl SlotPool {
    pub(crate) fn new(lease_ns: u64) -> Self {
        Self {
            word: AtomicU64::new(0),
            lowest: AtomicU64::new(u64::MAX),
            generations: Generations::new(lease_ns),
        }
    }

    pub(crate) fn held(&self) -> SlotsHeld {
        SlotsHeld(self.word.load(Ordering::Relaxed))
    }

    /// Puts `n` slots to use, if they are idle. A miss writes nothing.
    pub(crate) fn enter(&self, now_ns: u64, n: u64) -> Option<InUse> {
        let entered = self.change(|held| {
            let entered = held.enter(now_ns, n)?;
            Some((entered.held, entered))
        })?;
        if entered.idle < self.lowest.load(Ordering::Relaxed) {
            self.lowest.fetch_min(entered.idle, Ordering::Relaxed);
        }
        Some(InUse {
            idle: entered.idle,
            generation: self.add(now_ns, n),
            tells: entered.asks,
        })
    }

    /// Adds slots that are in use to the latest generation, and returns it.
    fn add(&self, now_ns: u64, n: u64) -> u64 {
        let (generation, lapsed) = self.generations.add(now_ns, n);
        if lapsed > 0 {
            let _ = self.leave(now_ns, lapsed);
        }
        generation
    }

    /// Takes a grant's slots out of its generation: they no longer lapse. Returns whether it has
    /// them.
    pub(crate) fn adopt(&self, generation: u64, n: u64) -> bool {
        self.generations.take(generation, n)
    }

    /// Makes adopted slots idle. Returns how many came back: none if they are lost.
    pub(crate) fn leave(&self, now_ns: u64, n: u64) -> u64 {
        let left = self.change(|held| Some((held.leave(now_ns, n)?, n)));
        left.unwrap_or(0)
    }

    /// Makes slots of a grant idle. Returns how many came back: none if they have lapsed, or are
    /// lost.
    pub(crate) fn give(&self, now_ns: u64, generation: u64, n: u64) -> u64 {
        match self.generations.take(generation, n) {
            true => self.leave(now_ns, n),
            false => 0,
        }
    }

    /// Moves a grant's slots to the latest generation. Returns it, if the grant still has them.
    pub(crate) fn renew(&self, now_ns: u64, generation: u64, n: u64) -> Option<u64> {
        if self.held().is_lost(now_ns) || !self.generations.take(generation, n) {
            return None;
        }
        Some(self.add(now_ns, n))
    }

    /// Makes slots idle whose grants were not given back for a lease.
    pub(crate) fn lapse(&self, now_ns: u64) {
        let lapsed = self.generations.lapse(now_ns);
        if lapsed > 0 {
            let _ = self.leave(now_ns, lapsed);
        }
    }

    /// Returns whether slots that were in use are lost. Once it has said so, they stay lost.
    pub(crate) fn is_lost(&self, now_ns: u64) -> bool {
        if now_ns < self.held().until_ns() {
            return false;
        }
        let _ = self.change(|held| {
            let is_new = held != SlotsHeld::LOST && held.is_lost(now_ns);
            is_new.then_some((SlotsHeld::LOST, ()))
        });
        self.held() == SlotsHeld::LOST
    }

    /// Gives up all slots that are in use: they are lost.
    pub(crate) fn lose(&self) {
        let _ = self.change(|_| Some((SlotsHeld::LOST, ())));
    }

    /// Takes out all idle slots but some, before a message is sent. Returns how many slots the node
    /// keeps, and how many were taken out.
    pub(crate) fn withdraw(&self, now_ns: u64, keep: u64) -> (u64, u64) {
        let withdrawn = self.change(|held| {
            let (held, keeps, returns) = held.withdraw(now_ns, keep);
            Some((held, (keeps, returns)))
        });
        withdrawn.unwrap_or_default()
    }

    /// Takes the slots of an answer in: see [`SlotsHeld::answered`]. Returns how many are idle.
    pub(crate) fn answered(
        &self,
        now_ns: u64,
        lost: u64,
        more: u64,
        until_ns: u64,
        mark: u64,
    ) -> u64 {
        let idle = self.change(|held| {
            let held = held.answered(now_ns, lost, more, until_ns, mark);
            Some((held, held.at(now_ns).1))
        });
        idle.unwrap_or_default()
    }

    /// Returns the fewest idle slots since this was asked before, if any were put to use.
    pub(crate) fn lowest(&self) -> Option<u64> {
        let lowest = self.lowest.swap(u64::MAX, Ordering::Relaxed);
        (lowest < u64::MAX).then_some(lowest)
    }

    /// Lets the one that leaves no more than `mark` idle slots tell the keeper.
    pub(crate) fn rearm(&self, mark: u64) {
        let _ = self.change(|held| Some((held.rearmed(mark), ())));
    }

    /// Changes the word, or leaves it as it is.
    fn change<T>(&self, change: impl Fn(SlotsHeld) -> Option<(SlotsHeld, T)>) -> Option<T> {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let (next, result) = change(SlotsHeld(word))?;
            let exchanged =
                self.word
                    .compare_exchange_weak(word, next.0, Ordering::Relaxed, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Some(result),
                Err(seen) => word = seen,
            }
        }
    }
}
