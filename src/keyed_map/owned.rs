//! A key that keeps its map alive.

use core::fmt;
use core::hash::{BuildHasher, Hash};
use core::time::Duration;
use std::hash::RandomState;
use std::sync::Arc;

use super::{KeyedMap, MapKey};
use crate::algorithm::Algorithm;
use crate::clock::{Clock, SystemClock, Tick};
use crate::outcome::Denied;
use crate::rate_limiter::forms::limiter_verbs;
use crate::store::view::View;
use crate::wait::waits;

/// A view of one key that keeps its [`KeyedMap`] alive, made by [`KeyedMap::key_owned`]. It has the
/// methods of a [`MapKey`], and can move to another thread or task.
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{KeyedMap, Quota, TokenBucket};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
/// # runtime.block_on(async {
/// let bucket = TokenBucket::new(Quota::per_hour(5))?;
/// let map = Arc::new(KeyedMap::<String, _>::new(bucket, 1000)?);
/// let alice = map.key_owned("alice".to_owned());
/// let task = tokio::spawn(async move { alice.try_acquire_n(3).is_ok() });
/// assert!(task.await?);
/// assert_eq!(map.key("alice").available(), 2);
/// # Ok(())
/// # })
/// # }
/// ```
pub struct OwnedMapKey<K, A, C = SystemClock, S = RandomState> {
    map: Arc<KeyedMap<K, A, C, S>>,
    key: K,
}

impl<K, A, C, S> KeyedMap<K, A, C, S> {
    /// Returns a view of one key that keeps the map alive: see [`key`](Self::key).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(5))?;
    /// let map = Arc::new(KeyedMap::<u64, _>::new(bucket, 1000)?);
    /// let key = map.key_owned(7);
    /// let reservation = std::thread::spawn(move || key.reserve_owned(3)).join().unwrap()?;
    /// assert!(reservation.is_due());
    /// # Ok(())
    /// # }
    /// ```
    pub fn key_owned(self: &Arc<Self>, key: K) -> OwnedMapKey<K, A, C, S> {
        OwnedMapKey {
            map: Arc::clone(self),
            key,
        }
    }
}

impl<K, A, C, S> OwnedMapKey<K, A, C, S> {
    /// Returns the key, borrowed from this one.
    #[inline]
    pub fn key(&self) -> MapKey<'_, K, K, A, C, S> {
        self.map.key(&self.key)
    }

    /// Returns a view whose methods run at this tick and read no clock.
    #[inline]
    pub fn at(&self, now: Tick) -> View<MapKey<'_, K, K, A, C, S>> {
        self.key().at(now)
    }

    /// Returns the map's clock.
    #[inline]
    pub fn clock(&self) -> &C {
        self.map.clock()
    }

    /// Returns the map.
    pub const fn map(&self) -> &Arc<KeyedMap<K, A, C, S>> {
        &self.map
    }
}

impl<K, A, C, S> OwnedMapKey<K, A, C, S>
where
    K: Hash + Eq,
    A: Algorithm,
    S: BuildHasher,
{
    /// Removes the key from the map: see [`MapKey::remove`].
    pub fn remove(&self) -> bool {
        self.key().remove()
    }
}

impl<K, A, C, S> OwnedMapKey<K, A, C, S>
where
    K: Hash + Eq + Clone,
    A: Algorithm,
    C: Clock,
    S: BuildHasher,
{
    /// Bans the key: see [`KeyedMap::ban`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use tollgate::{KeyedMap, Quota, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(5))?;
    /// let map = Arc::new(KeyedMap::<String, _>::new(bucket, 1000)?);
    /// let mallory = map.key_owned("mallory".to_owned());
    /// mallory.ban_for(Duration::from_secs(60))?;
    /// assert!(mallory.banned_until().is_some());
    /// assert!(mallory.remove());
    /// assert!(mallory.banned_until().is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn ban(&self, until: Tick) -> Result<(), Denied> {
        self.key().ban(until)
    }

    /// Bans the key for this duration: see [`ban`](Self::ban).
    ///
    /// # Errors
    ///
    /// [`Denied::NoRoom`] if the key is new and there is no room for it.
    pub fn ban_for(&self, long: Duration) -> Result<(), Denied> {
        self.key().ban_for(long)
    }

    /// Returns the tick of the first permit: see [`MapKey::banned_until`].
    #[must_use]
    pub fn banned_until(&self) -> Option<Tick> {
        self.key().banned_until()
    }
}

limiter_verbs!([] [K: Hash + Eq + Clone, S: BuildHasher] OwnedMapKey<K, A, C, S>);
waits!([] [K: Hash + Eq + Clone, S: BuildHasher] owned OwnedMapKey<K, A, C, S>);

impl<K: Clone, A, C, S> Clone for OwnedMapKey<K, A, C, S> {
    fn clone(&self) -> Self {
        Self {
            map: Arc::clone(&self.map),
            key: self.key.clone(),
        }
    }
}

impl<K: fmt::Debug, A, C, S> fmt::Debug for OwnedMapKey<K, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedMapKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
