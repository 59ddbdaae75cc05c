//! Algorithms that can run in several words.

mod search;

use super::{
    Algorithm, AnyAlgorithm, ChangeQuota, FixedWindow, Forecast, Gcra, GiveBack, Intervals,
    LeakyBucket, SlidingWindow, TokenBucket,
};
use crate::clock::Tick;

/// An algorithm whose limit can be split into shards, for `Sharded`: words of equal shares of the
/// limit, to the fraction of a permit.
///
/// The bounds of the shards add up to the bound of the whole limit, neither more nor less.
pub trait Split: Forecast + GiveBack + Clone {
    /// The most shards that it can be split into; 1 if it can't be split.
    fn most_shards(&self) -> u64;

    /// The algorithm that each of these shards runs, and how many of its permits make one permit of
    /// the whole: a multiple of `shards`. `None` if that can't be represented.
    ///
    /// Provided: each shard runs the whole algorithm, for which a permit is `shards` permits. An
    /// algorithm that can count smaller fractions has fewer left over.
    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        let burst = self.available(0, Tick::ZERO);
        (shards > 0 && burst.checked_mul(shards).is_some()).then(|| (self.clone(), shards))
    }

    /// Whether permits come steadily, or to all words at the same ticks. If not, small requests
    /// empty one word after the other instead of keeping them level: when one that fails rolls back
    /// what it took, no other thread has changed an empty word.
    ///
    /// Provided: they do.
    fn is_steady(&self) -> bool {
        true
    }

    /// Whether a word that does not change never has fewer permits at a later tick than at an
    /// earlier one. Then a denial may be answered by what another thread found at another
    /// tick. It must hold at all ticks, also at those before the word's own.
    ///
    /// Provided: it is not known.
    fn never_falls(&self) -> bool {
        false
    }

    /// Whether a smaller word never has fewer permits than a larger one, at any tick, and taking
    /// `n` permits adds the same amount to any word in use. Then a shard's word can be compared
    /// with what another shard's was at an earlier tick. If it is wrong, shards become uneven; the
    /// bound still holds.
    ///
    /// Provided: `false`.
    fn is_ordered(&self) -> bool {
        false
    }

    /// The first tick from `now` on at which these words have `n` permits together, if nobody takes
    /// any; `None` if they never will. Fractions of a permit may be added to each other or not.
    ///
    /// Provided: it looks for that tick, which takes longer than to compute it.
    fn due_together(&self, words: &[u64], now: Tick, n: u64) -> Option<Tick> {
        search::due_together(self, words, now, n)
    }
}

macro_rules! split_by_pace {
    ($bucket:ty) => {
        impl Split for $bucket {
            fn most_shards(&self) -> u64 {
                self.pace().burst()
            }

            fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
                let (pace, permit) = self.pace().per_shard(shards)?;
                Some((self.at_pace(pace), permit))
            }

            fn never_falls(&self) -> bool {
                true
            }

            fn is_ordered(&self) -> bool {
                true
            }

            fn due_together(&self, words: &[u64], now: Tick, n: u64) -> Option<Tick> {
                self.pace().due_together(words, now, n)
            }
        }
    };
}
split_by_pace!(TokenBucket);
split_by_pace!(Gcra);

/// A meter. A queue is kept whole: two that leave at the same time are not what it promises.
impl Split for LeakyBucket {
    fn most_shards(&self) -> u64 {
        match self.free_permits() {
            None => self.pace().burst(),
            Some(_) => 1,
        }
    }

    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        if self.free_permits().is_some() {
            return (shards == 1).then_some((*self, 1));
        }
        let (pace, permit) = self.pace().per_shard(shards)?;
        Some((self.at_pace(pace), permit))
    }

    fn never_falls(&self) -> bool {
        true
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn due_together(&self, words: &[u64], now: Tick, n: u64) -> Option<Tick> {
        match self.free_permits() {
            None => self.pace().due_together(words, now, n),
            Some(_) => search::due_together(self, words, now, n),
        }
    }
}

impl Split for FixedWindow {
    fn most_shards(&self) -> u64 {
        self.limit()
    }

    fn never_falls(&self) -> bool {
        true
    }
}

impl Split for SlidingWindow {
    fn most_shards(&self) -> u64 {
        self.limit()
    }

    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        let (window, fraction) = self.in_fractions(shards);
        window.available(0, Tick::ZERO).checked_mul(shards)?;
        let permit = shards.checked_mul(fraction)?;
        (shards > 0).then_some((window, permit))
    }

    fn never_falls(&self) -> bool {
        true
    }
}

impl Split for Intervals {
    fn most_shards(&self) -> u64 {
        self.quota().burst_size()
    }

    fn is_steady(&self) -> bool {
        self.quantum().is_none()
    }

    fn never_falls(&self) -> bool {
        true
    }

    fn is_ordered(&self) -> bool {
        self.pace().is_some()
    }

    fn due_together(&self, words: &[u64], now: Tick, n: u64) -> Option<Tick> {
        match self.pace() {
            Some(pace) => pace.due_together(words, now, n),
            None => search::due_together(self, words, now, n),
        }
    }
}

macro_rules! each {
    ($this:ident, $algorithm:ident => $call:expr) => {
        match $this {
            AnyAlgorithm::TokenBucket($algorithm) => $call,
            AnyAlgorithm::Gcra($algorithm) => $call,
            AnyAlgorithm::LeakyBucket($algorithm) => $call,
            AnyAlgorithm::FixedWindow($algorithm) => $call,
            AnyAlgorithm::SlidingWindow($algorithm) => $call,
            AnyAlgorithm::Intervals($algorithm) => $call,
        }
    };
}
pub(super) use each;

impl Split for AnyAlgorithm {
    fn most_shards(&self) -> u64 {
        each!(self, algorithm => algorithm.most_shards())
    }

    fn is_steady(&self) -> bool {
        each!(self, algorithm => algorithm.is_steady())
    }

    fn never_falls(&self) -> bool {
        each!(self, algorithm => algorithm.never_falls())
    }

    fn is_ordered(&self) -> bool {
        each!(self, algorithm => algorithm.is_ordered())
    }

    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        each!(self, algorithm => {
            let (algorithm, permit) = algorithm.per_shard(shards)?;
            Some((algorithm.into(), permit))
        })
    }

    fn due_together(&self, words: &[u64], now: Tick, n: u64) -> Option<Tick> {
        each!(self, algorithm => algorithm.due_together(words, now, n))
    }
}
