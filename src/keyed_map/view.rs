//! A view of one key, with the methods of a limiter.

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
use crate::store::place::Place;
use crate::store::view::View;
use crate::wait::waits;

/// A view of one key of a [`KeyedMap`], made by [`KeyedMap::key`]. It has all methods of a
/// [`Limiter`](crate::Limiter), including those that wait, and implements
/// [`RateLimiter`](crate::RateLimiter).
///
/// If there is no room for the key, a request is denied with
/// [`Denied::NoRoom`](crate::Denied::NoRoom). A query does not insert the key, and neither does any
/// other call that leaves it fresh. Undoing a grant returns nothing if the key has left since, or
/// has got another algorithm or quota. While a key is banned, no permits can be returned; a
/// [`reset`](Self::reset) ends the ban.
pub struct MapKey<'a, K, Q: ?Sized, A, C, S> {
    map: &'a KeyedMap<K, A, C, S>,
    key: &'a Q,
}

impl<'a, K, Q: ?Sized, A, C, S> MapKey<'a, K, Q, A, C, S> {
    pub(super) const fn new(map: &'a KeyedMap<K, A, C, S>, key: &'a Q) -> Self {
        Self { map, key }
    }

    /// Returns a view whose methods run at this tick and read no clock.
    ///
    /// If the key has left the map as idle, a tick before it became idle counts as the tick at
    /// which it became idle.
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

    /// Returns the key.
    pub const fn key(&self) -> &'a Q {
        self.key
    }

    pub(super) const fn map(&self) -> &'a KeyedMap<K, A, C, S> {
        self.map
    }

    /// Returns the map's clock.
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
    /// Removes the key from the map, and returns whether it was there. This allows one more burst.
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

    #[inline]
    fn place(&self) -> Option<Place> {
        Some(Place::of(self.map).with_hash(self.map.hashed_key(self.key).hash))
    }

    /// Does nothing for a key that is not in the map: such a key is fresh.
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
