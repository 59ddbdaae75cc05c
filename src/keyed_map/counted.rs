//! A map that counts its decisions.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};

use super::stats::MapStats;
use super::{KeyedMap, MapKey};
use crate::algorithm::Algorithm;
use crate::clock::{Clock, Tick};
use crate::counted::{Counted, Counters};
use crate::outcome::{Denied, Granted};
use crate::rate_limiter::RateLimiter;

impl<K, A, C, H, S: Borrow<Counters>> Counted<KeyedMap<K, A, C, H>, S> {
    /// Returns a counted view of one key: see [`KeyedMap::key`].
    ///
    /// ```
    /// use tollgate::{Counted, KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(5))?;
    /// let map = Counted::new(KeyedMap::<String, _>::new(bucket, 1000)?);
    /// map.key("alice").reserve(3)?.cancel();
    /// let decisions = map.stats().decisions.unwrap_or_default();
    /// assert_eq!((decisions.granted, decisions.returned), (1, 3));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn key<'a, Q: ?Sized>(
        &'a self,
        key: &'a Q,
    ) -> Counted<MapKey<'a, K, Q, A, C, H>, &'a Counters>
    where
        K: Borrow<Q>,
    {
        self.part(self.limiter().key(key))
    }

    /// Returns [`KeyedMap::stats`] with the decisions on all keys.
    ///
    /// ```
    /// use tollgate::{Counted, KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(1))?;
    /// let map = Counted::new(KeyedMap::<String, _>::new(bucket, 1000)?);
    /// for key in ["alice", "bob", "alice"] {
    ///     let _ = map.try_acquire(key);
    /// }
    /// let stats = map.stats();
    /// let decisions = stats.decisions.unwrap_or_default();
    /// assert_eq!((stats.tracked, decisions.granted, decisions.denied), (2, 2, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> MapStats {
        MapStats {
            decisions: Some(self.counts()),
            ..self.limiter().stats()
        }
    }
}

impl<K, A, C, H, S> Counted<KeyedMap<K, A, C, H>, S>
where
    K: Hash + Eq,
    A: Algorithm,
    H: BuildHasher,
    S: Borrow<Counters>,
{
    /// Takes one permit of this key at this tick, and counts the decision: see
    /// [`KeyedMap::try_acquire_at`].
    ///
    /// # Errors
    ///
    /// The same as for [`KeyedMap::try_acquire_at`].
    #[inline]
    pub fn try_acquire_at<Q>(&self, key: &Q, now: Tick) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.try_acquire_n_at(key, 1, now)
    }

    /// Takes `n` permits of this key, or none, at this tick, and counts the decision: see
    /// [`KeyedMap::try_acquire_n_at`].
    ///
    /// # Errors
    ///
    /// The same as for [`KeyedMap::try_acquire_n_at`].
    #[inline]
    pub fn try_acquire_n_at<Q>(&self, key: &Q, n: u64, now: Tick) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.key(key).try_acquire_n_at(n, now)
    }

    /// Takes one permit of this key, and counts the decision: see [`KeyedMap::try_acquire`].
    ///
    /// # Errors
    ///
    /// The same as for [`KeyedMap::try_acquire`].
    #[inline]
    pub fn try_acquire<Q>(&self, key: &Q) -> Result<Granted, Denied>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        C: Clock,
    {
        self.try_acquire_n(key, 1)
    }

    /// Takes `n` permits of this key, or none, and counts the decision: see
    /// [`KeyedMap::try_acquire_n`].
    ///
    /// # Errors
    ///
    /// The same as for [`KeyedMap::try_acquire_n`].
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
