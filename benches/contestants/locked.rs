//! The same bucket behind a lock: the same step on the same word, with a mutex instead of the
//! exchange. The clock is read before the lock is taken, to hold it as briefly as possible.

use tollgate::algorithm::Algorithm;
use tollgate::clock::{Clock, CoarseClock, SystemClock};
use tollgate::error::QuotaError;
use tollgate::{Tick, TokenBucket};

use super::bucket::bucket;
use super::timing::{Contestant, Kind};

/// A time source.
pub(crate) trait Time: Sync {
    fn tick(&self, turn: u64) -> Tick;
}

impl Time for SystemClock {
    #[inline(always)]
    fn tick(&self, _turn: u64) -> Tick {
        self.now()
    }
}

impl Time for &CoarseClock {
    #[inline(always)]
    fn tick(&self, _turn: u64) -> Tick {
        self.now()
    }
}

/// The turn number, as nanoseconds.
pub(crate) struct Told;

impl Time for Told {
    #[inline(always)]
    fn tick(&self, turn: u64) -> Tick {
        Tick::from_nanos(turn)
    }
}

/// A mutex around a word.
pub(crate) trait Lock: Sync {
    fn holding(word: u64) -> Self;

    /// Locks the word and runs `step` on it. Returns the result of `step`.
    fn with(&self, step: impl FnOnce(&mut u64) -> bool) -> bool;
}

impl Lock for std::sync::Mutex<u64> {
    fn holding(word: u64) -> Self {
        Self::new(word)
    }

    #[inline(always)]
    fn with(&self, step: impl FnOnce(&mut u64) -> bool) -> bool {
        self.lock().is_ok_and(|mut word| step(&mut word))
    }
}

impl Lock for parking_lot::Mutex<u64> {
    fn holding(word: u64) -> Self {
        Self::new(word)
    }

    #[inline(always)]
    fn with(&self, step: impl FnOnce(&mut u64) -> bool) -> bool {
        step(&mut self.lock())
    }
}

/// A token bucket behind a lock.
pub(crate) struct Locked<L, T> {
    word: L,
    bucket: TokenBucket,
    time: T,
}

impl<L: Lock, T: Time> Locked<L, T> {
    pub(crate) fn new(kind: Kind, time: T) -> Result<Self, QuotaError> {
        let bucket = bucket(kind)?;
        Ok(Self {
            word: L::holding(bucket.initial_word(time.tick(0))),
            bucket,
            time,
        })
    }
}

impl<L: Lock, T: Time> Contestant for Locked<L, T> {
    #[inline(always)]
    fn decide(&self, turn: u64) -> bool {
        let now = self.time.tick(turn);
        self.word.with(|word| {
            self.bucket
                .step(*word, now, 1)
                .map(|(next, _)| *word = next)
                .is_ok()
        })
    }
}
