use super::stats::MapStats;
use super::view::MapKey;
use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};
use std::hash::RandomState;

use super::entries::Entries;
use super::horizon::Horizon;
use super::latest::Latest;
use super::moving::Change;
use super::published::Published;
use super::stats::MapCounters;
use crate::algorithm::Algorithm;
use crate::clock::{Clock, SystemClock, Tick};
use crate::outcome::{Denied, Granted};
use crate::overflow::Overflow;
use crate::quota::ConfigError;
use crate::sync::{AtomicU64, Ordering, SettersMutex};

/// The most keys: more would not fit in the processor's addresses.
const MAX_CAPACITY: usize = (isize::MAX as usize) / 128;

/// A limit for each key, in a map that keeps the keys: they can be listed, removed by a condition,
/// and have algorithms of their own.
///
/// `Keyed` (feature `keyed`) takes less memory and time for a key, but knows keys by their hashes
/// only.
///
/// ```
/// use tollgate::{KeyedMap, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 100_000)?;
/// assert!(map.try_acquire_n("alice", 5).is_ok());
/// assert!(map.try_acquire("alice").is_err());
/// assert!(map.try_acquire("bob").is_ok());
/// let alice = map.key("alice"); // with all verbs of a limiter
/// assert_eq!(alice.refund(2), 2);
/// assert_eq!(map.pin().iter().count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Keys
///
/// A key is cloned when it comes in, and not otherwise: a `&str` will do where keys are `String`.
/// It is there until it is idle, that is, until it can't be told from a fresh one: then it may
/// leave, and comes back as a fresh one, which is the same (only a quota with
/// [`initial`](crate::Quota::initial) permits begins anew with those). Idle keys leave in small
/// steps: with each key that comes, the next four in turn are looked at. There is no sweep, and no
/// thread that makes it; [`purge_idle`](Self::purge_idle) makes steps without a new key.
///
/// # How many
///
/// There are never more than `capacity` keys. Where there is no room for a new one, sixteen are
/// looked at; if none of these is idle, the [`Overflow`] decides.
///
/// The map evicts one of these sixteen, or one of the newest keys. A key that was granted something
/// a second time after it came is *protected*, and leaves after keys that are not. Of keys that are
/// alike in that, the one that has spent the least of its burst leaves first, in eighths, and keys
/// in debt leave last. Of keys that have spent as much, the newest leaves first. So a flood of new
/// keys evicts its own keys, and does not reset spent ones. A [banned](Self::ban) key leaves after
/// all others.
///
/// # Memory
///
/// Memory is taken as keys come: for each key 24 bytes of the limit, 16 for finding it, the key
/// itself, 24 in the line of keys whose turn it is to be looked at, and what the map's table and
/// the allocator take. An entry is freed soon after its key has gone, however it went. Two things
/// may stay:
///
/// - The line keeps the places of removed keys until their turn comes, but never many: after each
///   [`remove`](Self::remove) and [`retain`](Self::retain) there are at most as many of them as
///   there are keys, and 64 more. A map that was emptied has next to none.
/// - The table does not shrink when keys go. It has 9 bytes for each slot, and at most four slots
///   for each of the most keys that were ever there. When new keys come, and few are there, it is
///   halved now and then.
///
/// # Many threads
///
/// A decision on a key that is in the map waits for no other thread: the map is read without a
/// lock, and the word is exchanged as a [`Limiter`](crate::Limiter)'s is. That holds while another
/// thread changes the key's algorithm, bans it or [sets the quota](Self::set_quota) of all keys;
/// such changes wait for each other. A thread that adds or removes a key allocates or frees memory,
/// and may wait while the map grows.
///
/// **Bound.** Each key keeps its algorithm's bound, on the ticks at which its permits were counted
/// ([`Granted::at`]), however late a caller is, and however often the key leaves as idle and comes
/// back. Each time that it is removed, evicted or starts afresh with another algorithm or quota it
/// may have one burst more. Permits admitted for want of room are not counted.
///
/// Ticks of a map are those of one clock. A tick from far in the future makes keys leave that are
/// not idle yet at other callers' ticks; when these keys come back they are counted at the ticks at
/// which they became idle.
pub struct KeyedMap<K, A, C = SystemClock, S = RandomState> {
    pub(super) entries: Entries<K, A>,
    pub(super) hasher: S,
    /// The algorithm of all keys that have none of their own.
    pub(super) latest: Latest<A>,
    pub(super) clock: C,
    pub(super) capacity: u64,
    pub(super) overflow: Overflow,
    /// Keys that are there, and rooms for such.
    pub(super) tracked: AtomicU64,
    pub(super) numbers: AtomicU64,
    pub(super) horizon: Horizon,
    /// Held by a thread that sets the quota of all keys.
    pub(super) setting: SettersMutex<()>,
    /// Held by a thread that changes a key's algorithm, or the latest one, for these few steps.
    pub(super) moving: SettersMutex<()>,
    pub(super) change: Published<Change<A>>,
    /// 1 while a thread tears up the tickets of keys that were removed.
    pub(super) clearing: AtomicU64,
    pub(super) counts: MapCounters,
}

impl<K: Hash + Eq, A: Algorithm> KeyedMap<K, A> {
    /// A map for `capacity` keys at most, of which each has this algorithm, on the system's clock.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the capacity is 0, or absurd.
    ///
    /// ```
    /// use tollgate::{ConfigError, KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), ConfigError> {
    /// let map: Result<KeyedMap<String, _>, _> = KeyedMap::token_bucket(Quota::per_hour(5), 0);
    /// assert_eq!(map.unwrap_err(), ConfigError::ZeroCapacity);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(algorithm: A, capacity: usize) -> Result<Self, ConfigError> {
        Self::with_clock(algorithm, capacity, SystemClock)
    }
}

impl<K: Hash + Eq, A: Algorithm, C> KeyedMap<K, A, C> {
    /// The same on a clock of your own.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the capacity is 0, or absurd.
    pub fn with_clock(algorithm: A, capacity: usize, clock: C) -> Result<Self, ConfigError> {
        match capacity {
            0 => return Err(ConfigError::ZeroCapacity),
            1..=MAX_CAPACITY => {}
            capacity => {
                let max = MAX_CAPACITY;
                return Err(ConfigError::CapacityTooLarge { capacity, max });
            }
        }
        Ok(Self {
            entries: Entries::new(),
            hasher: RandomState::new(),
            latest: Latest::new(algorithm),
            clock,
            capacity: capacity as u64,
            overflow: Overflow::default(),
            tracked: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
            horizon: Horizon::default(),
            setting: SettersMutex::new(()),
            moving: SettersMutex::new(()),
            change: Published::nothing(),
            clearing: AtomicU64::new(0),
            counts: MapCounters::default(),
        })
    }
}

impl<K: Hash + Eq, A: Algorithm, C, S> KeyedMap<K, A, C, S> {
    /// The same with another hasher: before any key is there, so by value. The standard library's
    /// is safe with keys that strangers choose; others are quicker.
    ///
    /// ```
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map = KeyedMap::<u64, _>::token_bucket(Quota::per_hour(5), 1000)?;
    /// let map = map.with_hasher(BuildHasherDefault::<DefaultHasher>::default());
    /// assert!(map.try_acquire(&7).is_ok());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_hasher<T>(self, hasher: T) -> KeyedMap<K, A, C, T> {
        KeyedMap {
            entries: Entries::new(),
            hasher,
            latest: self.latest,
            clock: self.clock,
            capacity: self.capacity,
            overflow: self.overflow,
            tracked: AtomicU64::new(0),
            numbers: self.numbers,
            horizon: self.horizon,
            setting: self.setting,
            moving: self.moving,
            change: self.change,
            clearing: self.clearing,
            counts: self.counts,
        }
    }

    /// The same map, which does this when there is no room for a new key.
    ///
    /// ```
    /// use tollgate::{Denied, KeyedMap, Overflow, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map = KeyedMap::<u64, _>::token_bucket(Quota::per_hour(5), 1)?;
    /// let map = map.with_overflow(Overflow::Deny);
    /// assert!(map.try_acquire(&7).is_ok());
    /// assert!(matches!(map.try_acquire(&8), Err(Denied::NoRoom { .. })));
    /// assert_eq!(map.stats().no_room, 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}

impl<K, A, C, S> KeyedMap<K, A, C, S> {
    /// The limit of a key, with all verbs.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// let alice = map.key("alice");
    /// assert_eq!(alice.charge(7).debt(), 2);
    /// assert_eq!(alice.available(), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub const fn key<'a, Q: ?Sized>(&'a self, key: &'a Q) -> MapKey<'a, K, Q, A, C, S>
    where
        K: Borrow<Q>,
    {
        MapKey::new(self, key)
    }

    /// The algorithm of all keys that have none of their own, as it is now.
    pub fn algorithm(&self) -> A
    where
        A: Clone,
    {
        A::clone(&self.latest.get())
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// How many keys there can be.
    pub const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Says what happens to a new key for which there is no room.
    pub const fn overflow(&self) -> Overflow {
        self.overflow
    }

    /// How many keys are there, those that are being added among them.
    #[must_use]
    pub fn len(&self) -> usize {
        // ORDERING: Relaxed. A count, which publishes nothing.
        self.tracked.load(Ordering::Relaxed) as usize
    }

    /// Whether no key is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the keys in the map and those that left.
    #[must_use]
    pub fn stats(&self) -> MapStats {
        self.counts.with_tracked(self.len() as u64)
    }
}

impl<K: Hash + Eq, A: Algorithm, C, S: BuildHasher> KeyedMap<K, A, C, S> {
    /// Takes one permit of this key's at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there, or there was [no room](Denied::NoRoom) for the key.
    #[inline]
    pub fn try_acquire_at<Q>(&self, key: &Q, now: Tick) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).at(now).try_acquire()
    }

    /// Takes `n` permits of this key's, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there, or there was [no room](Denied::NoRoom) for the key.
    #[inline]
    pub fn try_acquire_n_at<Q>(&self, key: &Q, n: u64, now: Tick) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).at(now).try_acquire_n(n)
    }

    /// Takes one permit of this key's.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it was not there, or there was [no room](Denied::NoRoom) for the key.
    #[inline]
    pub fn try_acquire<Q>(&self, key: &Q) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
    {
        self.key(key).try_acquire()
    }

    /// Takes `n` permits of this key's, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if they were not all there, or there was [no room](Denied::NoRoom) for the key.
    #[inline]
    pub fn try_acquire_n<Q>(&self, key: &Q, n: u64) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
    {
        self.key(key).try_acquire_n(n)
    }
}

impl<K, A: fmt::Debug, C, S> fmt::Debug for KeyedMap<K, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedMap")
            .field("algorithm", &**self.latest.get())
            .field("capacity", &self.capacity)
            .field("overflow", &self.overflow)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
