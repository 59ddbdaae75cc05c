//! The order in which keys are evicted when there is no room for a new one and none is idle.
//!
//! A key that got a second grant after it was inserted is *protected*. Of the keys that the map
//! looks at:
//!
//! 1. unprotected keys are evicted first, then protected ones, then banned ones that have got no
//!    grant since;
//! 2. among these, keys that have spent less of their burst, in eighths, are evicted before others,
//!    and keys in debt last;
//! 3. among these, the newest is evicted first.
//!
//! The map looks at keys at the front of the queue, which may be of any age, and at the newest keys
//! (`newest.rs`). So a flood of new keys evicts its own keys, however much each of them takes:
//! other keys that have spent as much are older.

use core::cmp::Reverse;
use core::hash::{BuildHasher, Hash};

use super::KeyedMap;
use super::entries::FoundEntry;
use super::entry::{Live, STANDING_PROTECTED};
use super::stored::MatchesKey;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::overflow::Overflow;

/// A key that may be evicted.
pub(super) struct Candidate<'g, K, A> {
    pub(super) found: FoundEntry<'g, K, A>,
    pub(super) rank: Rank,
}

/// The eviction order: the key with the lowest rank is evicted first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// How much is [`spent`], in the low bits. The highest bit says whether the key is banned, and
    /// the next one whether it is protected.
    standing: u8,
    /// Of two keys that have spent as much, the newer one ranks lower.
    age: Reverse<u64>,
}

impl Rank {
    pub(super) const fn is_protected(&self) -> bool {
        self.standing & STANDING_PROTECTED != 0
    }
}

/// Returns how much of the burst is spent, in eighths, rounded up. A key in debt has spent more
/// than eight.
pub(super) fn spent<A: Algorithm>(algorithm: &A, word: u64, now: Tick) -> u8 {
    const IN_DEBT: u8 = 9;
    let (all, left) = (algorithm.available(0, now), algorithm.available(word, now));
    if left == 0 && algorithm.step(word, now, 0).is_err() {
        return IN_DEBT;
    }
    let (spent, all) = (all.saturating_sub(left), all.max(1));
    match spent.checked_mul(8) {
        // A division of 64 bits is several times as fast as one of 128 bits.
        Some(eighths) => eighths.div_ceil(all) as u8,
        None => (u128::from(spent) * 8).div_ceil(u128::from(all)) as u8,
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// Makes this key the candidate if it ranks below the present one. `own` is the key that needs
    /// the room.
    pub(super) fn consider<'g>(
        &self,
        found: FoundEntry<'g, K, A>,
        live: &Live,
        now: Tick,
        own: Option<&dyn MatchesKey<K>>,
        first: &mut Option<Candidate<'g, K, A>>,
    ) {
        if self.overflow != Overflow::Evict || own.is_some_and(|own| own.is(found.stored())) {
            return;
        }
        let rank = self.rank(&found, live, now);
        if (first.as_ref()).is_none_or(|first| rank < first.rank) {
            *first = Some(Candidate { found, rank });
        }
    }

    /// Returns the rank of a key with this word.
    pub(super) fn rank(&self, found: &FoundEntry<'_, K, A>, live: &Live, now: Tick) -> Rank {
        let (entry, at) = (found.entry(), now.max(live.since));
        Rank {
            standing: entry.standing() | spent(entry.algorithm(), live.word, at),
            age: Reverse(found.ticket().id),
        }
    }
}
