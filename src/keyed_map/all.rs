//! All keys: looking at them, and having some of them go.

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

/// A key in the map, as it was when it was looked at.
pub struct TrackedKey<'p, K, A> {
    found: FoundEntry<'p, K, A>,
    available: u64,
    idle: bool,
}

impl<K, A> TrackedKey<'_, K, A> {
    /// The key.
    pub fn key(&self) -> &K {
        self.found.key()
    }

    /// The algorithm that decides on it: its [own](KeyedMap::set_algorithm), or that of all.
    pub fn algorithm(&self) -> &A {
        self.found.entry().algorithm()
    }

    /// Whether it has an algorithm of its own.
    pub fn has_its_own(&self) -> bool {
        self.found.entry().has_its_own()
    }

    /// How many permits there were.
    pub const fn available(&self) -> u64 {
        self.available
    }

    /// Whether it was idle: it could not be told from a fresh one.
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

/// A map whose keys can be looked at: [`KeyedMap::pin`] makes one. While it lives, the memory of
/// keys that go is not given back.
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
    /// [`iter`](Self::iter) at this tick.
    pub fn iter_at(&self, now: Tick) -> impl Iterator<Item = TrackedKey<'_, K, A>> {
        let all = self.map.entries.all(&self.guard);
        all.filter_map(move |found| {
            let state = found.entry().state();
            self.map.tracked_at(&found, &state, now)
        })
    }

    /// The keys, in no order.
    ///
    /// Alone on the map, this yields each key once. It is no snapshot: other threads go on
    /// deciding, and while they bring in and take out keys
    ///
    /// - a key that is there from beginning to end is yielded once, unless its algorithm is changed
    ///   meanwhile: then it may be missed;
    /// - a key that comes or goes meanwhile may be yielded or not, and one that leaves and comes
    ///   back may be yielded twice;
    /// - so there may be more items than keys, and more than the map's capacity.
    ///
    /// Each [`TrackedKey`] says how its key stood when the iterator came to it, at the one tick at
    /// which the iteration was begun. An iteration always ends: it walks through the map's table as
    /// it was at the beginning. [`len`](KeyedMap::len) counts the keys without walking through
    /// them.
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
    /// The map, for looking at its keys.
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

    /// A key as it is in this state.
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

    /// Whether the key is in the map.
    pub(super) fn tracks<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hashed_key = self.hashed_key(key);
        let guard = self.entries.guard();
        self.entries.get(&hashed_key, &guard).is_some()
    }

    /// Removes a key, idle or not, and says whether it was there. It is fresh when it comes back:
    /// this allows it one burst more.
    ///
    /// A removal now and then clears up after the removals before it (see the [memory](Self#memory)
    /// of a map), which takes time in proportion to their number.
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

    /// [`retain`](Self::retain) at this tick.
    pub fn retain_at(
        &self,
        now: Tick,
        mut keep: impl FnMut(&TrackedKey<'_, K, A>) -> bool,
    ) -> usize {
        let guard = self.entries.guard();
        let mut removed: usize = 0;
        for found in self.entries.all(&guard) {
            // As long as another thread changes its word, it is asked again.
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

    /// Retires a key that was in this state, as one that has left if it was idle.
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

    /// [`purge_idle`](Self::purge_idle) at this tick.
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
    /// Removes the keys for which `keep` says no, and says how many. Keys that were idle count as
    /// [`expired`](crate::stats::MapStats::expired); the others count as
    /// [`removed`](crate::stats::MapStats::removed), and may have one burst more. It looks at the
    /// keys that [`PinnedMap::iter`] would yield, and may ask for one several times; other threads
    /// may use the map meanwhile.
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

    /// Looks at the next `steps` keys in turn, removes those that are idle, as each new key does
    /// with a few, and says how many have left. For a map to which no new keys come.
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
