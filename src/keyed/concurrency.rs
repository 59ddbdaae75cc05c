//! A concurrency limit for each key: a table whose words count callers inside.
//!
//! The table is a [`Keyed`] with the algorithm [`Places`] and [`Overflow::Deny`]. A key with guards
//! is never idle, so it keeps its slot until its guards are dropped. Nothing else removes a key, so
//! a guard finds its key when it is dropped.

use ::core::fmt;
use ::core::hash::Hash;
use ::core::marker::PhantomData;
use ::core::ops::Deref;
use std::sync::Arc;

use super::hasher::{KeyHasher, SeededHasher};
use super::limiter::Keyed;
use super::overflow::Overflow;
use super::places::Places;
use super::stats::KeyedStats;
use crate::clock::{NoClock, Tick};
use crate::concurrency::limiter::checked;
use crate::limiter_error::LimiterError;
use crate::outcome::Denied;
use crate::sync::{Ordering, fence, inject_fault};

/// Limits how many callers are inside at once for each key, such as a tenant or an address.
///
/// A caller that enters gets a guard, and leaves when the guard is dropped: at the end of its
/// scope, in a panic, or with the future that holds it. [`Concurrency`](crate::Concurrency) does
/// the same without keys, and can also wait.
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
/// The limiter allocates all memory when it is created, 24 bytes for each key of its `capacity`, as
/// a [`Keyed`](crate::Keyed) does. A key occupies a slot while it has guards. After that another
/// key can take the slot. A key with guards is never evicted. If all slots that a new key can use
/// belong to such keys, the caller is denied with [`Denied::NoRoom`].
///
/// # Guarantees
///
/// - No more than the limit is ever inside for a key.
/// - A dropped guard always gives back what it took. A leaked guard (by
///   [`core::mem::forget`](::core::mem::forget), or in a reference cycle) stays inside forever.
/// - A caller that enters after another one left sees everything that the other one did inside, as
///   with a lock.
/// - No call waits for another thread, if the processor has an atomic exchange of 128 bits
///   ([`Keyed::is_lock_free`](crate::Keyed::is_lock_free)).
///
/// Two keys whose hashes agree in 60 bits share a limit.
pub struct KeyedConcurrency<S = SeededHasher> {
    pub(super) table: Keyed<Places, NoClock, S>,
    limit: u64,
}

impl KeyedConcurrency {
    /// Creates a limiter for `capacity` keys, which lets in at most `limit` callers at once for
    /// each key.
    ///
    /// The capacity means the same as for [`Keyed::new`](crate::Keyed::new): the number of keys
    /// that have guards at the same time. There is often room for more.
    ///
    /// # Errors
    ///
    /// [`LimiterError`] if the limit is 0 or above
    /// [`Concurrency::MAX_LIMIT`](crate::Concurrency::MAX_LIMIT), the capacity is 0, or there is
    /// not enough memory.
    ///
    /// ```
    /// use tollgate::keyed::KeyedConcurrency;
    ///
    /// let error = KeyedConcurrency::new(0, 1000).unwrap_err();
    /// assert_eq!(error.to_string(), "limit is 0, but must be at least 1");
    /// ```
    pub fn new(limit: u64, capacity: usize) -> Result<Self, LimiterError> {
        let limit = checked(limit)?;
        let table = Keyed::with_clock(Places { limit }, capacity, NoClock)?;
        let overflow = inject_fault!(EvictsGuards => Overflow::Evict, else Overflow::Deny); // FAULT
        let table = table.with_overflow(overflow);
        Ok(Self { table, limit })
    }
}

impl<S> KeyedConcurrency<S> {
    /// Returns the same limiter, empty, with another hasher.
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

    /// Returns the limit of each key.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Counts the keys in the table. `tracked - idle` keys have guards, and `no_room` counts how
    /// often a key found no slot. `evicted` is 0.
    ///
    /// This visits all slots.
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
    /// Enters, if the limit of this key allows it.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if the key's limit is reached; [`Denied::NoRoom`] if the table has no slot
    /// for the key.
    #[inline]
    pub fn try_enter<K: Hash + ?Sized>(&self, key: &K) -> Result<KeyedGuard<&Self, S>, Denied> {
        self.try_enter_n(key, 1)
    }

    /// Enters with a weight of `n`, which counts as `n` callers, or not at all. A weight of 0 takes
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`Denied::Busy`] if the weight does not fit now; [`Denied::Never`] if `n` is above the
    /// limit; [`Denied::NoRoom`] if the table has no slot for the key.
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
    pub fn try_enter_n<K: Hash + ?Sized>(
        &self,
        key: &K,
        n: u64,
    ) -> Result<KeyedGuard<&Self, S>, Denied> {
        let hash = self.table.hasher.hash_key(key);
        KeyedGuard::enter(self, hash, n)
    }

    /// Enters like [`try_enter_n`](Self::try_enter_n). The guard keeps the limiter alive, and can
    /// move to another thread or task.
    ///
    /// # Errors
    ///
    /// As for [`try_enter_n`](Self::try_enter_n).
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
    ) -> Result<KeyedGuard<Arc<Self>, S>, Denied> {
        let hash = self.table.hasher.hash_key(key);
        KeyedGuard::enter(Arc::clone(self), hash, n)
    }

    /// Returns the total weight inside for this key.
    #[must_use]
    pub fn inside<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        let available = self.table.key(key).at(Tick::ZERO).available();
        self.limit.saturating_sub(available)
    }
}

impl<S> KeyedConcurrency<S> {
    /// Takes a weight of `n` for the key with this hash.
    #[inline(always)]
    pub(super) fn enter(&self, hash: u64, n: u64) -> Result<(), Denied> {
        self.table.key_of(hash).at(Tick::ZERO).try_acquire_n(n)?;
        // ORDERING: Acquire. It pairs with the fence in `leave`, since decisions in place are
        // Relaxed. The exchange of the slot read what the last caller that left wrote there, or a
        // later exchange, so this caller sees what that one did inside.
        // Model: keyed_concurrency::an_entering_thread_sees_earlier_writes
        fence(Ordering::Acquire);
        Ok(())
    }

    /// Gives a weight of `n` back, which the caller has.
    #[inline]
    pub(super) fn leave(&self, hash: u64, n: u64) {
        if n == 0 {
            return;
        }
        // ORDERING: Release. It publishes what was done inside, before the exchange that gives the
        // weight back. It pairs with the fence in `enter`.
        // Model: keyed_concurrency::an_entering_thread_sees_earlier_writes
        fence(Ordering::Release);
        // The key is in the table: it has this guard, so it is not idle.
        self.table.key_of(hash).at(Tick::ZERO).refund(n);
    }
}

/// Keeps a caller inside a [`KeyedConcurrency`] until it is dropped.
///
/// `R` is the reference to the limiter: `&KeyedConcurrency`, or an `Arc` of it, which keeps the
/// limiter alive ([`KeyedConcurrency::try_enter_owned`]). `S` is the limiter's hasher.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::keyed::{KeyedConcurrency, KeyedGuard};
///
/// /// A connection counts for its tenant until it is closed.
/// struct Connection {
///     _guard: KeyedGuard<Arc<KeyedConcurrency>>,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Arc::new(KeyedConcurrency::new(3, 1000)?);
/// let connection = Connection { _guard: limiter.try_enter_owned("tenant", 1)? };
/// let guard = limiter.try_enter_n("tenant", 2)?;
/// assert_eq!(limiter.inside("tenant"), 3);
/// drop((connection, guard));
/// assert_eq!(limiter.inside("tenant"), 0);
/// # Ok(())
/// # }
/// ```
#[must_use = "dropping the guard leaves the limiter"]
pub struct KeyedGuard<R: Deref<Target = KeyedConcurrency<S>>, S = SeededHasher> {
    limiter: R,
    /// The hash of the key.
    hash: u64,
    n: u64,
    hasher: PhantomData<fn() -> S>,
}

impl<S, R: Deref<Target = KeyedConcurrency<S>>> KeyedGuard<R, S> {
    #[inline(always)]
    fn enter(limiter: R, hash: u64, n: u64) -> Result<Self, Denied> {
        limiter.enter(hash, n)?;
        Ok(Self {
            limiter,
            hash,
            n,
            hasher: PhantomData,
        })
    }

    /// Returns the guard's weight.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }
}

impl<S, R: Deref<Target = KeyedConcurrency<S>>> Drop for KeyedGuard<R, S> {
    #[inline]
    fn drop(&mut self) {
        self.limiter.leave(self.hash, self.n);
    }
}

impl<S, R: Deref<Target = KeyedConcurrency<S>>> fmt::Debug for KeyedGuard<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedGuard").field("n", &self.n()).finish()
    }
}

impl<S> fmt::Debug for KeyedConcurrency<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedConcurrency")
            .field("limit", &self.limit)
            .field("tracked", &self.table.len())
            .finish_non_exhaustive()
    }
}
