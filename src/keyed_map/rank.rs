//! Which key is evicted when there is no room for a new one and none is idle.
//!
//! A key that was granted something a second time after it came is *protected*. Of the keys that
//! the map looks at,
//!
//! 1. keys that are banned, and were not granted anything since, leave last;
//! 2. of the others, those that are not protected leave first;
//! 3. of these, those that have spent least of their burst, in eighths; those in debt come last;
//! 4. of these, the newest.
//!
//! It looks at the keys at the front of the queue, which may be of any age, and at the newest ones
//! (`newest.rs`). So a flood of new keys evicts its own keys, whatever each of them takes: other
//! keys that have spent as much are older.

use core::cmp::Reverse;
use core::hash::{BuildHasher, Hash};

use super::KeyedMap;
use super::entries::FoundEntry;
use super::entry::{Live, STANDING_PROTECTED};
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::overflow::Overflow;

/// A key that may be evicted.
pub(super) struct Candidate<'g, K, A> {
    pub(super) found: FoundEntry<'g, K, A>,
    pub(super) rank: Rank,
}

/// In which order keys are evicted: the one of the least rank is the first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// How much is [`spent`], below two bits: whether it is banned, and whether it is protected.
    standing: u8,
    /// Of two that have spent as much, the newer one is the first.
    age: Reverse<u64>,
}

impl Rank {
    pub(super) const fn is_protected(&self) -> bool {
        self.standing & STANDING_PROTECTED != 0
    }
}

/// How much of the burst is spent, in eighths, rounded up; more than all, if the key is in debt.
pub(super) fn spent<A: Algorithm>(algorithm: &A, word: u64, now: Tick) -> u8 {
    const IN_DEBT: u8 = 9;
    let (all, left) = (algorithm.available(0, now), algorithm.available(word, now));
    if left == 0 && algorithm.step(word, now, 0).is_err() {
        return IN_DEBT;
    }
    let eighths = u128::from(all.saturating_sub(left)) * 8;
    eighths.div_ceil(u128::from(all.max(1))) as u8
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// Remembers the key if it leaves before the one that was.
    pub(super) fn consider<'g>(
        &self,
        found: FoundEntry<'g, K, A>,
        live: &Live,
        now: Tick,
        first: &mut Option<Candidate<'g, K, A>>,
    ) {
        if self.overflow != Overflow::Evict {
            return;
        }
        let rank = self.rank(&found, live, now);
        if (first.as_ref()).is_none_or(|first| rank < first.rank) {
            *first = Some(Candidate { found, rank });
        }
    }

    /// When a key with this word is evicted.
    pub(super) fn rank(&self, found: &FoundEntry<'_, K, A>, live: &Live, now: Tick) -> Rank {
        let (entry, at) = (found.entry(), now.max(live.since));
        Rank {
            standing: entry.standing() | spent(entry.algorithm(), live.word, at),
            age: Reverse(found.ticket().id),
        }
    }
}
