//! All keys: iterating over them, and removing some.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::KeyedMap;
use super::entries::{FoundEntry, Guard};
use super::entry::{EntryState, first_word};
use super::room::Forgotten;
use super::room::SeenEntry;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};

/// A key in the map, as it was when the iterator reached it.
pub struct TrackedKey<'p, K, A> {
    found: FoundEntry<'p, K, A>,
    available: u64,
    idle: bool,
}

impl<K, A> TrackedKey<'_, K, A> {
    /// Returns the key.
    pub fn key(&self) -> &K {
        self.found.key()
    }

    /// Returns the key's algorithm: its [own](KeyedMap::set_algorithm) or the map's.
    pub fn algorithm(&self) -> &A {
        self.found.entry().algorithm()
    }

    /// Returns whether the key has its own algorithm.
    pub fn has_its_own(&self) -> bool {
        self.found.entry().has_its_own()
    }

    /// Returns how many permits were available.
    pub const fn available(&self) -> u64 {
        self.available
    }

    /// Returns whether the key was idle, that is, decided like a fresh one.
    pub const fn is_idle(&self) -> bool {
        self.idle
    }
}

impl<K: fmt::Debug, A> fmt::Debug for TrackedKey<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackedKey")
            .field("key", self.key())
            .field("available", &self.available)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}

/// A map whose keys can be iterated, made by [`KeyedMap::pin`]. While it lives, the memory of keys
/// that leave is not freed.
pub struct PinnedMap<'m, K, A, C, S> {
    map: &'m KeyedMap<K, A, C, S>,
    guard: Guard<'m>,
}

impl<K, A, C, S> fmt::Debug for PinnedMap<'_, K, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedMap").finish_non_exhaustive()
    }
}

impl<K, A, C, S> PinnedMap<'_, K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// Returns an iterator over the keys, with their states at this tick: see [`iter`](Self::iter).
    pub fn iter_at(&self, now: Tick) -> impl Iterator<Item = TrackedKey<'_, K, A>> {
        let all = self.map.entries.all(&self.guard);
        all.filter_map(move |found| {
            let state = found.entry().state();
            self.map.tracked_at(&found, &state, now)
        })
    }

    /// Returns an iterator over the keys, in no particular order.
    ///
    /// If no other thread uses the map, this yields each key once. It is not a snapshot. While
    /// other threads insert and remove keys:
    ///
    /// - a key that is in the map from beginning to end is yielded once, but may be missed if it is
    ///   banned or its algorithm or quota changes meanwhile;
    /// - a key that is inserted or leaves meanwhile may be yielded or not, and one that leaves and
    ///   returns may be yielded twice;
    /// - so there may be more items than keys, and more than the map's capacity.
    ///
    /// Each [`TrackedKey`] shows its key as it was when the iterator reached it. All are judged at
    /// one tick, that at which the iteration began. An iteration always ends: it walks through the
    /// map's table as it was at the beginning. [`len`](KeyedMap::len) counts the keys without a
    /// walk.
    pub fn iter(&self) -> impl Iterator<Item = TrackedKey<'_, K, A>>
    where
        C: Clock,
    {
        self.iter_at(self.map.clock.now())
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// Returns a guard through which the map's keys can be iterated.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// map.try_acquire("alice")?;
    /// map.try_acquire_n("bob", 5)?;
    /// let spent: Vec<String> = (map.pin().iter())
    ///     .filter(|tracked| tracked.available() == 0)
    ///     .map(|tracked| tracked.key().clone())
    ///     .collect();
    /// assert_eq!(spent, ["bob"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pin(&self) -> PinnedMap<'_, K, A, C, S> {
        PinnedMap {
            map: self,
            guard: self.entries.guard(),
        }
    }

    /// Returns the view of a key in this state.
    fn tracked_at<'p>(
        &'p self,
        found: &FoundEntry<'p, K, A>,
        state: &EntryState,
        now: Tick,
    ) -> Option<TrackedKey<'p, K, A>> {
        let algorithm = found.entry().algorithm();
        let (word, at) = match state {
            EntryState::Live(live) => (live.word, now.max(live.since)),
            EntryState::Pending => {
                let at = now.max(self.horizon.tick());
                (first_word(algorithm, at), at)
            }
            EntryState::Retired | EntryState::Moved => return None,
        };
        Some(TrackedKey {
            available: algorithm.available(word, at),
            idle: algorithm.is_idle(word, at),
            found: found.clone(),
        })
    }

    /// Returns whether the key is in the map.
    pub(super) fn tracks<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hashed_key = self.hashed_key(key);
        let guard = self.entries.guard();
        self.entries.get(&hashed_key, &guard).is_some()
    }

    /// Removes a key, idle or not, and returns whether it was in the map. The key is fresh when it
    /// returns: this allows one more burst.
    ///
    /// Now and then, a removal clears up after earlier removals (see the map's
    /// [memory](Self#memory)), which takes time in proportion to their number.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// map.try_acquire("alice")?;
    /// assert!(map.remove("alice"));
    /// assert!(!map.remove("alice"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hashed_key = self.hashed_key(key);
        let guard = self.entries.guard();
        while let Some(found) = self.entries.get(&hashed_key, &guard) {
            match self.forget(&found, &guard) {
                Forgotten::Now(room) => {
                    self.counts.removed();
                    drop(room);
                    self.clear_up(&guard);
                    return true;
                }
                Forgotten::Already => drop(self.take_out(&found, &guard)),
            }
        }
        false
    }

    /// Removes the keys for which `keep` returns false, at this tick: see [`retain`](Self::retain).
    pub fn retain_at(
        &self,
        now: Tick,
        mut keep: impl FnMut(&TrackedKey<'_, K, A>) -> bool,
    ) -> usize {
        let guard = self.entries.guard();
        let mut removed: usize = 0;
        for found in self.entries.all(&guard) {
            // If another thread changes the key's word, `keep` is asked again.
            loop {
                let state = found.entry().state();
                let tracked = self.tracked_at(&found, &state, now);
                if tracked.is_none_or(|tracked| keep(&tracked)) {
                    break;
                }
                if self.retire(&found, &state, now) {
                    removed = removed.saturating_add(1);
                    drop(self.take_out(&found, &guard));
                    break;
                }
            }
        }
        if removed > 0 {
            self.clear_up(&guard);
        }
        removed
    }

    /// Retires a key that was in this state. A key that was idle counts as expired.
    fn retire(&self, found: &FoundEntry<'_, K, A>, state: &EntryState, now: Tick) -> bool {
        let retired = match state {
            EntryState::Live(live) => {
                if self.retire_idle(found, live, now) {
                    return true;
                }
                found.entry().retire(live)
            }
            EntryState::Pending => found.entry().retire_pending(),
            EntryState::Retired | EntryState::Moved => false,
        };
        if retired {
            self.counts.removed();
        }
        retired
    }

    /// Checks the next `steps` keys at this tick, and removes those that are idle: see
    /// [`purge_idle`](Self::purge_idle).
    pub fn purge_idle_at(&self, now: Tick, steps: usize) -> usize {
        let guard = self.entries.guard();
        let mut seen = SeenEntry::nothing();
        for _ in 0..steps {
            drop(self.step(now, &guard, &mut seen));
        }
        seen.left
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    C: Clock,
    S: BuildHasher,
{
    /// Removes the keys for which `keep` returns false, and returns how many. Idle keys count as
    /// [`expired`](crate::stats::MapStats::expired). The others count as
    /// [`removed`](crate::stats::MapStats::removed), and may get one more burst. It visits the keys
    /// that [`PinnedMap::iter`] would yield, and may call `keep` several times for one key. Other
    /// threads may use the map meanwhile.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// map.try_acquire("tenant-1/alice")?;
    /// map.try_acquire("tenant-2/bob")?;
    /// assert_eq!(map.retain(|tracked| !tracked.key().starts_with("tenant-1/")), 1);
    /// assert_eq!(map.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn retain(&self, keep: impl FnMut(&TrackedKey<'_, K, A>) -> bool) -> usize {
        self.retain_at(self.clock.now(), keep)
    }

    /// Checks the next `steps` keys in turn, removes those that are idle, and returns how many
    /// left. Each new key does this with a few keys; use this method for a map without new keys.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{KeyedMap, ManualClock, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::new(Quota::per_second(5))?;
    /// let map: KeyedMap<u64, _, _> = KeyedMap::with_clock(bucket, 1000, clock.clone())?;
    /// for key in 0..10 {
    ///     map.try_acquire(&key)?;
    /// }
    /// assert_eq!(map.purge_idle(10), 0);
    /// clock.advance(Duration::from_secs(1));
    /// assert_eq!(map.purge_idle(4), 4);
    /// assert_eq!(map.len(), 6);
    /// # Ok(())
    /// # }
    /// ```
    pub fn purge_idle(&self, steps: usize) -> usize {
        self.purge_idle_at(self.clock.now(), steps)
    }
}
