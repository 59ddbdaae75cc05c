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

/// The highest capacity: more keys would not fit in the address space.
const MAX_CAPACITY: usize = (isize::MAX as usize) / 128;

/// A limit for each key, in a map that stores the keys: they can be listed, removed by a predicate,
/// and have their own algorithms.
///
/// `Keyed` (feature `keyed`) takes less memory and time per key, but stores only hashes of the
/// keys.
///
/// ```
/// use tollgate::{KeyedMap, Quota};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 100_000)?;
/// assert!(map.try_acquire_n("alice", 5).is_ok());
/// assert!(map.try_acquire("alice").is_err());
/// assert!(map.try_acquire("bob").is_ok());
/// let alice = map.key("alice"); // has all methods of a limiter
/// assert_eq!(alice.refund(2), 2);
/// assert_eq!(map.pin().iter().count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Keys
///
/// Every call takes a borrowed key: a `&str` if the map's keys are `String`. The key is cloned only
/// when it is inserted or banned, or when its algorithm or quota is set.
///
/// A key stays in the map until it is *idle*, that is, until it decides like a fresh key. Then it
/// may leave, and starts as a fresh key when it returns, which makes no difference. (Only a quota
/// with [`initial`](crate::Quota::initial) permits starts again with those.) There is no sweep and
/// no background thread: each new key checks the next four keys in turn, and removes idle ones.
/// [`purge_idle`](Self::purge_idle) does so without a new key.
///
/// # Capacity
///
/// The map never holds more than `capacity` keys. If there is no room for a new key, the map looks
/// at up to sixteen keys. If none of them is idle, the [`Overflow`] decides.
///
/// With [`Overflow::Evict`], the default, the map evicts one of these sixteen keys or one of the
/// newest keys. A key that got a second grant after it was inserted is *protected*, and is evicted
/// after unprotected keys. Among equals, the key that has spent the least of its burst (in eighths)
/// is evicted first, and keys in debt last. Among those, the newest key is evicted first. So a
/// flood of new keys mostly evicts its own keys (docs/KEYS.md has the exceptions). A
/// [banned](Self::ban) key is evicted after all others, and a key with its
/// [own algorithm](Self::set_algorithm) never.
///
/// # Memory
///
/// Memory is allocated as keys are inserted. Each key takes 32 bytes for the limit, 16 for finding
/// it, the key itself, 24 in the queue of keys to be checked, and the overhead of the table and the
/// allocator. An entry is freed soon after its key has left. Two things may stay:
///
/// - The queue keeps the places of removed keys until their turn. After each
///   [`remove`](Self::remove) and [`retain`](Self::retain), their number is at most that of the
///   keys in the map, plus 64.
/// - The table does not shrink when keys leave. It has 9 bytes for each slot, and at most four
///   slots for each key that it held when it was fullest. When new keys are inserted into a nearly
///   empty table, it is halved now and then.
///
/// # Many threads
///
/// A decision on a key in the map waits for no other thread: the map is read without a lock, and
/// the key's state is changed by compare-and-swap, like that of a [`Limiter`](crate::Limiter). This
/// holds even while another thread changes the key's algorithm, bans it or [sets the
/// quota](Self::set_quota) of all keys. Such changes wait for each other. A thread that adds or
/// removes a key, or finds it in the middle of such a change, allocates or frees memory, and may
/// wait while the map grows.
///
/// **Bound.** Each key keeps its algorithm's bound over every interval of [`Granted::at`], even if
/// a caller's tick is old, and however often the key leaves as idle and returns. Each time the key
/// is removed, evicted, or restarted with another algorithm or quota, it may get one more burst.
/// Requests that are admitted without room are not counted.
///
/// All ticks of a map belong to one clock. If a caller passes a tick far in the future, the map
/// removes keys that are idle at that tick but in use at the ticks of other callers. These keys,
/// and all new keys, then count from the latest tick at which a removed key became idle. If that
/// key was banned for a year, or had a debt that takes as long to pay off, the tick is a year
/// ahead: a new key gets its burst, and no more permits until then.
pub struct KeyedMap<K, A, C = SystemClock, S = RandomState> {
    pub(super) entries: Entries<K, A>,
    pub(super) hasher: S,
    /// The algorithm of all keys without their own.
    pub(super) latest: Latest<A>,
    pub(super) clock: C,
    pub(super) capacity: u64,
    pub(super) overflow: Overflow,
    /// The number of keys in the map, plus reserved room.
    pub(super) tracked: AtomicU64,
    pub(super) numbers: AtomicU64,
    pub(super) horizon: Horizon,
    /// Held by a thread that sets the quota of all keys.
    pub(super) setting: SettersMutex<()>,
    /// Held briefly by a thread that changes a key's algorithm or the map's.
    pub(super) moving: SettersMutex<()>,
    pub(super) change: Published<Change<A>>,
    /// 1 while a thread discards the tickets of removed keys.
    pub(super) clearing: AtomicU64,
    pub(super) counts: MapCounters,
}

impl<K: Hash + Eq, A: Algorithm> KeyedMap<K, A> {
    /// Creates a map for at most `capacity` keys, on the system clock. Each key has this algorithm.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the capacity is 0 or too large.
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
    /// Creates a map for at most `capacity` keys, on your own clock.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the capacity is 0 or too large.
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
    /// Replaces the hasher, and starts with an empty map. The standard library's hasher is safe
    /// with keys that untrusted users choose; others are faster.
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

    /// Sets what happens to a new key when there is no room for it.
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
    /// Returns a view of one key, with all methods of a limiter.
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

    /// Returns the current algorithm of all keys without their own.
    pub fn algorithm(&self) -> A
    where
        A: Clone,
    {
        A::clone(&self.latest.get())
    }

    /// Returns the clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Returns the maximum number of keys.
    pub const fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Returns what happens to a new key when there is no room for it.
    pub const fn overflow(&self) -> Overflow {
        self.overflow
    }

    /// Returns the number of keys in the map, including those that are being inserted.
    #[must_use]
    pub fn len(&self) -> usize {
        // ORDERING: Relaxed. A count publishes nothing.
        self.tracked.load(Ordering::Relaxed) as usize
    }

    /// Returns whether the map has no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns statistics of the keys in the map and of those that left.
    #[must_use]
    pub fn stats(&self) -> MapStats {
        self.counts.with_tracked(self.len() as u64)
    }
}

impl<K: Hash + Eq, A: Algorithm, C, S: BuildHasher> KeyedMap<K, A, C, S> {
    /// Takes one permit of this key, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it is not available, or if there is [no room](Denied::NoRoom) for the key.
    #[inline]
    pub fn try_acquire_at<Q>(&self, key: &Q, now: Tick) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).at(now).try_acquire()
    }

    /// Takes `n` permits of this key, or none, at this tick.
    ///
    /// # Errors
    ///
    /// [`Denied`] if not all are available, or if there is [no room](Denied::NoRoom) for the key.
    #[inline]
    pub fn try_acquire_n_at<Q>(&self, key: &Q, n: u64, now: Tick) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).at(now).try_acquire_n(n)
    }

    /// Takes one permit of this key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if it is not available, or if there is [no room](Denied::NoRoom) for the key.
    #[inline]
    pub fn try_acquire<Q>(&self, key: &Q) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
    {
        self.key(key).try_acquire()
    }

    /// Takes `n` permits of this key, or none.
    ///
    /// # Errors
    ///
    /// [`Denied`] if not all are available, or if there is [no room](Denied::NoRoom) for the key.
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
