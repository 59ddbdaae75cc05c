//! At most so many at once for each key: a table whose words count what is inside.
//!
//! The table is that of [`Keyed`], with the algorithm [`Places`] and
//! [`Overflow::Deny`]: a key with guards is never idle, and so keeps its slot until they are gone.
//! Nothing else takes a key out, so a guard that leaves finds its key.

use ::core::fmt;
use ::core::hash::Hash;
use std::sync::Arc;

use super::core::{Core, Request};
use super::hasher::{KeyHasher, SeededHasher};
use super::limiter::Keyed;
use super::places::Places;
use super::stats::KeyedStats;
use crate::clock::{NoClock, Tick};
use crate::concurrency::limiter::checked;
use crate::outcome::Denied;
use crate::overflow::Overflow;
use crate::quota::ConfigError;
use crate::store::operations::{Acquire, Refund};
use crate::sync::{Ordering, fence, inject_fault};

/// Limits how many callers are inside at once for each key, such as a tenant or an address.
///
/// A caller that enters gets a guard, and leaves when the guard is dropped: at the end of its
/// scope, in a panic, or with the future that held it. [`Concurrency`](crate::Concurrency) is the
/// same without keys, and can also wait.
///
/// ```
/// use tollgate::Denied;
/// use tollgate::keyed::KeyedConcurrency;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connections = KeyedConcurrency::new(2, 10_000)?;
/// let one = connections.try_enter("192.0.2.7")?;
/// let two = connections.try_enter("192.0.2.7")?;
/// assert!(matches!(connections.try_enter("192.0.2.7"), Err(Denied::Busy { .. })));
/// assert!(connections.try_enter("192.0.2.8").is_ok());
/// drop(two);
/// assert_eq!(connections.inside("192.0.2.7"), 1);
/// # drop(one);
/// # Ok(())
/// # }
/// ```
///
/// # Memory
///
/// All memory is allocated when the limiter is made: a table of 24 bytes for each key of its
/// `capacity`, as in a [`Keyed`](crate::Keyed), and nothing afterwards. A key takes a slot while it
/// has guards; after that any other key can take the slot. If all slots in reach of a new key
/// belong to keys with guards, the caller is denied with [`Denied::NoRoom`]. A key with guards is
/// never evicted.
///
/// # What is promised
///
/// - Never more than the limit is inside for a key.
/// - A guard that is dropped always gives back what it took. A guard that is leaked, by
///   [`core::mem::forget`](::core::mem::forget) or in a cycle, stays inside for ever.
/// - A caller that enters after another one left sees all that the other one did inside, as with a
///   lock.
/// - No call waits for another thread, if the exchange of two words is lock-free
///   ([`Keyed::is_lock_free`](crate::Keyed::is_lock_free)).
///
/// Keys are known by 60 bits of their hashes. Two keys whose hashes agree in these share a limit.
pub struct KeyedConcurrency<S = SeededHasher> {
    table: Keyed<Places, NoClock, S>,
    limit: u64,
}

impl KeyedConcurrency {
    /// A limiter that lets in at most `limit` at once for each of `capacity` keys.
    ///
    /// The capacity is as that of [`Keyed::new`](crate::Keyed::new): there is room for as many keys
    /// with guards, and often for more.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] if the limit is 0 or above
    /// [`Concurrency::MAX_LIMIT`](crate::Concurrency::MAX_LIMIT), the capacity is 0, or there is
    /// not as much memory.
    ///
    /// ```
    /// use tollgate::keyed::KeyedConcurrency;
    ///
    /// let error = KeyedConcurrency::new(0, 1000).unwrap_err();
    /// assert_eq!(error.to_string(), "limit is 0, but must be at least 1");
    /// ```
    pub fn new(limit: u64, capacity: usize) -> Result<Self, ConfigError> {
        let limit = checked(limit)?;
        let table = Keyed::with_clock(Places { limit }, capacity, NoClock)?;
        let overflow = inject_fault!(EvictsWhoIsInside => Overflow::Evict, else Overflow::Deny);
        let table = table.with_overflow(overflow);
        Ok(Self { table, limit })
    }
}

impl<S> KeyedConcurrency<S> {
    /// The same empty limiter with another hasher.
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use tollgate::keyed::KeyedConcurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = KeyedConcurrency::new(1, 1000)?.with_hasher(RandomState::new());
    /// assert!(limiter.try_enter("alice").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_hasher<T: KeyHasher>(self, hasher: T) -> KeyedConcurrency<T> {
        KeyedConcurrency {
            table: self.table.with_hasher(hasher),
            limit: self.limit,
        }
    }

    /// The limit of each key.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts of the keys in the table. `tracked - idle` keys have guards; `no_room` is how often a
    /// key found no slot. `evicted` is 0.
    ///
    /// It visits all slots.
    ///
    /// ```
    /// use tollgate::keyed::KeyedConcurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = KeyedConcurrency::new(2, 1000)?;
    /// let alice = limiter.try_enter("alice")?;
    /// drop(limiter.try_enter("bob")?);
    /// let stats = limiter.stats();
    /// assert_eq!((stats.tracked, stats.idle, stats.no_room), (2, 1, 0));
    /// # drop(alice);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> KeyedStats {
        self.table.stats_at(Tick::ZERO)
    }
}

impl<S: KeyHasher> KeyedConcurrency<S> {
    /// Enters, if there is a place for this key.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is none; [`Denied::NoRoom`] if the table has no slot for the key.
    #[inline]
    pub fn try_enter<K: Hash + ?Sized>(&self, key: &K) -> Result<KeyedGuard<'_>, Denied> {
        self.try_enter_n(key, 1)
    }

    /// Enters with a weight of `n`, all or nothing. A weight of 0 takes no place.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if there is not as much room; [`Denied::Never`] if `n` is above the limit;
    /// [`Denied::NoRoom`] if the table has no slot for the key.
    ///
    /// ```
    /// use tollgate::Denied;
    /// use tollgate::keyed::KeyedConcurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = KeyedConcurrency::new(10, 1000)?;
    /// let guard = limiter.try_enter_n("alice", 7)?;
    /// assert_eq!(guard.n(), 7);
    /// assert!(matches!(limiter.try_enter_n("alice", 4), Err(Denied::Busy { requested: 4, .. })));
    /// assert!(matches!(limiter.try_enter_n("bob", 11), Err(Denied::Never { limit: 10, .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_n<K: Hash + ?Sized>(&self, key: &K, n: u64) -> Result<KeyedGuard<'_>, Denied> {
        let inside = self.enter(key, n)?;
        let core = &self.table.core;
        Ok(KeyedGuard { core, inside })
    }

    /// As [`try_enter_n`](Self::try_enter_n), with a guard that keeps the limiter alive and can go
    /// to another thread or task.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::keyed::KeyedConcurrency;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = Arc::new(KeyedConcurrency::new(1, 1000)?);
    /// let guard = limiter.try_enter_owned("alice", 1)?;
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// assert_eq!(limiter.inside("alice"), 0);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn try_enter_owned<K: Hash + ?Sized>(
        self: &Arc<Self>,
        key: &K,
        n: u64,
    ) -> Result<OwnedKeyedGuard<S>, Denied> {
        let inside = self.enter(key, n)?;
        let limiter = Arc::clone(self);
        Ok(OwnedKeyedGuard { limiter, inside })
    }

    /// How much is inside for this key, by weight.
    #[must_use]
    pub fn inside<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        let available = self.table.key(key).at(Tick::ZERO).available();
        self.limit.saturating_sub(available)
    }

    #[inline(always)]
    fn enter<K: Hash + ?Sized>(&self, key: &K, n: u64) -> Result<Inside, Denied> {
        let hash = self.table.hasher.hash_key(key);
        let core = &self.table.core;
        core.apply(request(core, hash), Acquire { n })?;
        // ORDERING: Acquire. The exchange of the slot read what the last caller that left wrote
        // there, or a later exchange: so this one sees what that one did inside. It pairs with the
        // fence in `leave`, since decisions in place are Relaxed.
        // Model: keyed_concurrency::who_enters_sees_what_was_done_inside
        fence(Ordering::Acquire);
        Ok(Inside { hash, n })
    }
}

fn request(core: &Core<Places>, hash: u64) -> Request {
    Request {
        probe_seq: core.fetch(hash),
        plan: 0,
        now: Tick::ZERO,
    }
}

/// A weight that is inside, and the hash of its key.
#[derive(Debug, Clone, Copy)]
struct Inside {
    hash: u64,
    n: u64,
}

impl Inside {
    #[inline]
    fn leave(self, core: &Core<Places>) {
        let Self { hash, n } = self;
        if n == 0 {
            return;
        }
        // ORDERING: Release. What was done inside comes before the exchange that gives back: see
        // `enter`. Model: keyed_concurrency::who_enters_sees_what_was_done_inside
        fence(Ordering::Release);
        // The key is there: it has this guard, so it is not idle.
        let Ok(_) = core.apply(request(core, hash), Refund { n });
    }
}

/// Stands for a caller that is inside a [`KeyedConcurrency`], until it is dropped.
///
/// ```
/// use tollgate::keyed::KeyedConcurrency;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = KeyedConcurrency::new(2, 1000)?;
/// {
///     let _guard = limiter.try_enter_n("alice", 2)?;
///     assert_eq!(limiter.inside("alice"), 2);
/// }
/// assert_eq!(limiter.inside("alice"), 0);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the guard leaves the limiter"]
pub struct KeyedGuard<'a> {
    core: &'a Core<Places>,
    inside: Inside,
}

/// A [`KeyedGuard`] that keeps the limiter alive: [`KeyedConcurrency::try_enter_owned`] makes it.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::keyed::{KeyedConcurrency, OwnedKeyedGuard};
///
/// /// A connection counts for its tenant until it is closed.
/// struct Connection {
///     _guard: OwnedKeyedGuard,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Arc::new(KeyedConcurrency::new(3, 1000)?);
/// let connection = Connection { _guard: limiter.try_enter_owned("tenant", 1)? };
/// assert_eq!(limiter.inside("tenant"), 1);
/// drop(connection);
/// assert_eq!(limiter.inside("tenant"), 0);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the guard leaves the limiter"]
pub struct OwnedKeyedGuard<S = SeededHasher> {
    limiter: Arc<KeyedConcurrency<S>>,
    inside: Inside,
}

impl KeyedGuard<'_> {
    /// How much it weighs.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.inside.n
    }
}

impl<S> OwnedKeyedGuard<S> {
    /// How much it weighs.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.inside.n
    }
}

impl Drop for KeyedGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.inside.leave(self.core);
    }
}

impl<S> Drop for OwnedKeyedGuard<S> {
    #[inline]
    fn drop(&mut self) {
        self.inside.leave(&self.limiter.table.core);
    }
}

impl fmt::Debug for KeyedGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedGuard").field("n", &self.n()).finish()
    }
}

impl<S> fmt::Debug for OwnedKeyedGuard<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OwnedKeyedGuard");
        shown.field("n", &self.n()).finish()
    }
}

impl<S> fmt::Debug for KeyedConcurrency<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedConcurrency")
            .field("limit", &self.limit)
            .field("tracked", &self.table.core.events.tracked())
            .finish_non_exhaustive()
    }
}
