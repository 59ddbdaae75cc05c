//! Algorithms that can run in several words.

mod search;

use super::any::any_of;
use super::{
    Algorithm, AnyAlgorithm, ChangeQuota, FixedWindow, Forecast, Gcra, GiveBack, Intervals,
    LeakyBucket, SlidingWindow, TokenBucket,
};
use crate::clock::Tick;

/// An algorithm whose limit can be split into shards, for `Sharded`. Each shard is one word with an
/// equal share of the limit, down to fractions of a permit.
///
/// The bounds of the shards add up to exactly the bound of the whole limit.
pub trait Split: Forecast + GiveBack + Clone {
    /// Returns the most shards that the algorithm can be split into, or 1 if it can't be split.
    fn most_shards(&self) -> u64;

    /// Returns the algorithm that each shard runs, and how many of its permits are one permit of
    /// the whole limit. This number is a multiple of `shards`. Returns `None` if it can't be
    /// represented.
    ///
    /// By default each shard runs the whole algorithm, and one permit is `shards` of its permits.
    /// An algorithm that can count smaller fractions leaves a smaller part of a permit unused.
    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        let burst = self.available(0, Tick::ZERO);
        (shards > 0 && burst.checked_mul(shards).is_some()).then(|| (self.clone(), shards))
    }

    /// Returns whether permits come steadily. The alternative is that all words are refilled at the
    /// same tick. In that case small requests empty one word after another, not all words evenly.
    /// Then no other thread takes from the words that a request has emptied, and a request that
    /// fails can roll back.
    ///
    /// The default is `true`.
    fn is_steady(&self) -> bool {
        true
    }

    /// Returns whether a word's period begins with the first permit that is taken while the word is
    /// full. If so, a request that finds all words full takes from each of them, so that their
    /// periods begin and end at the same ticks.
    ///
    /// The default is `false`.
    fn begins_with_a_permit(&self) -> bool {
        false
    }

    /// Returns whether an unchanged word never has fewer permits at a later tick than at an earlier
    /// one. This must hold for all ticks, including those before the tick at which the word was
    /// written. If it does, a request may be denied because of a scan that another thread made at
    /// another tick.
    ///
    /// The default is `false`.
    fn never_falls(&self) -> bool {
        false
    }

    /// Returns whether words are ordered: at every tick, a smaller word has at least as many
    /// permits as a larger one, and taking `n` permits adds the same amount to every word that is
    /// not idle. If so, a shard's word can be compared with an older reading of another shard's
    /// word. A wrong answer makes shards uneven, but the bound still holds.
    ///
    /// The default is `false`.
    fn is_ordered(&self) -> bool {
        false
    }

    /// Returns the first tick, `now` or later, at which these words together have `n` permits if no
    /// caller takes any. Returns `None` if they never will. An implementation may add up fractions
    /// of a permit across words, or ignore them.
    ///
    /// The default searches for the tick, which takes longer than computing it.
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

/// Only a meter can be split. If a queue were split, permits could leave two shards at the same
/// time, and a queue must prevent that.
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

    fn begins_with_a_permit(&self) -> bool {
        self.quantum().is_some()
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

    fn begins_with_a_permit(&self) -> bool {
        self.quantum().is_some()
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

impl Split for AnyAlgorithm {
    fn most_shards(&self) -> u64 {
        any_of!(self, algorithm => algorithm.most_shards())
    }

    fn is_steady(&self) -> bool {
        any_of!(self, algorithm => algorithm.is_steady())
    }

    fn begins_with_a_permit(&self) -> bool {
        any_of!(self, algorithm => algorithm.begins_with_a_permit())
    }

    fn never_falls(&self) -> bool {
        any_of!(self, algorithm => algorithm.never_falls())
    }

    fn is_ordered(&self) -> bool {
        any_of!(self, algorithm => algorithm.is_ordered())
    }

    fn per_shard(&self, shards: u64) -> Option<(Self, u64)> {
        any_of!(self, algorithm => {
            let (algorithm, permit) = algorithm.per_shard(shards)?;
            Some((algorithm.into(), permit))
        })
    }

    fn due_together(&self, words: &[u64], now: Tick, n: u64) -> Option<Tick> {
        any_of!(self, algorithm => algorithm.due_together(words, now, n))
    }
}
