//! A key's limit, with the verbs of a limiter.

use core::borrow::Borrow;
use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::KeyedMap;
use crate::algorithm::Algorithm;
use crate::clock::Tick;
use crate::rate_limiter::forms::limiter_verbs;
use crate::store::Store;
use crate::store::op::{Op, OpResult};
use crate::store::operations::Reset;
use crate::store::view::View;
use crate::wait::waits;

/// The limit of one key of a [`KeyedMap`]: [`KeyedMap::key`] makes one. It has all verbs of a
/// [`Limiter`](crate::Limiter), also those that wait, and is a [`RateLimiter`](crate::RateLimiter).
///
/// A request for a key that finds no room is denied with [`Denied::NoRoom`](crate::Denied::NoRoom).
/// Looking at a key that is not there doesn't bring it in, and neither does a verb that leaves it
/// fresh. Nothing comes back of a grant from before the key left, or got another algorithm or
/// quota. While a key is banned nothing comes back at all; a [`reset`](Self::reset) ends the ban.
pub struct MapKey<'a, K, Q: ?Sized, A, C, S> {
    map: &'a KeyedMap<K, A, C, S>,
    key: &'a Q,
}

impl<'a, K, Q: ?Sized, A, C, S> MapKey<'a, K, Q, A, C, S> {
    pub(super) const fn new(map: &'a KeyedMap<K, A, C, S>, key: &'a Q) -> Self {
        Self { map, key }
    }

    /// A view on which every verb runs at this tick, without reading a clock.
    ///
    /// If the key has left as idle, a tick that is older than the one at which it became idle is
    /// counted as that one.
    ///
    /// ```
    /// use tollgate::clock::NoClock;
    /// use tollgate::{KeyedMap, Quota, Tick, TokenBucket};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bucket = TokenBucket::new(Quota::per_hour(5))?;
    /// let map: KeyedMap<String, _, _> = KeyedMap::with_clock(bucket, 1000, NoClock)?;
    /// let alice = map.key("alice").at(Tick::from_nanos(7));
    /// let granted = alice.try_acquire_n(3)?;
    /// assert_eq!((granted.at(), alice.undo(granted)), (Tick::from_nanos(7), 3));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub const fn at(&self, now: Tick) -> View<Self> {
        View::new(*self, now)
    }

    /// The key.
    pub const fn key(&self) -> &'a Q {
        self.key
    }

    pub(super) const fn map(&self) -> &'a KeyedMap<K, A, C, S> {
        self.map
    }

    /// The map's clock.
    pub const fn clock(&self) -> &'a C {
        &self.map.clock
    }
}

impl<K, Q, A, C, S> MapKey<'_, K, Q, A, C, S>
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ?Sized,
    A: Algorithm,
    S: BuildHasher,
{
    /// Takes the key out of the map, and says whether it was there. This allows one burst more.
    ///
    /// ```
    /// use tollgate::{KeyedMap, Quota};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let map: KeyedMap<String, _> = KeyedMap::token_bucket(Quota::per_hour(5), 1000)?;
    /// map.key("alice").try_acquire()?;
    /// assert!(map.key("alice").remove());
    /// assert!(map.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove(&self) -> bool {
        self.map.remove(self.key)
    }
}

limiter_verbs!(
    [] [K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ToOwned<Owned = K> + ?Sized, S: BuildHasher]
    MapKey<'_, K, Q, A, C, S>
);
waits!(
    [] [K: Hash + Eq + Borrow<Q>, Q: Hash + Eq + ToOwned<Owned = K> + ?Sized, S: BuildHasher]
    copied MapKey<'_, K, Q, A, C, S>
);

impl<K, Q, A, C, S> Store for MapKey<'_, K, Q, A, C, S>
where
    K: Hash + Eq + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    A: Algorithm,
    S: BuildHasher,
{
    type Algorithm = A;

    #[inline(always)]
    fn apply<O: Op<A>>(&self, now: Tick, op: O) -> OpResult<A, O> {
        self.map.apply(self.key, now, op)
    }

    /// A key that is not in the map is fresh.
    #[inline]
    fn reset(&self, now: Tick) {
        if self.map.tracks(self.key) {
            let Ok(()) = self.apply(now, Reset);
        }
    }
}

impl<K, Q: ?Sized, A, C, S> Clone for MapKey<'_, K, Q, A, C, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, Q: ?Sized, A, C, S> Copy for MapKey<'_, K, Q, A, C, S> {}

impl<K, Q: fmt::Debug + ?Sized, A, C, S> fmt::Debug for MapKey<'_, K, Q, A, C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapKey")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
